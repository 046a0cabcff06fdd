//! Edges as callers receive them. The graph does not store them: it makes them when they are asked for.

use super::node::StepId;
use super::variables::Variables;
use crate::analysis::VariableName;
use serde::{Deserialize, Serialize};

/// A dependency of one step on another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// The step that is depended on.
    pub from: StepId,
    /// The step that depends.
    pub to: StepId,
    /// The names that it is about, with why `from` matters to each. Empty for an edge that was asked for without names.
    pub variables: Variables,
    /// True when some name of it was not predicted and seen when a step ran.
    pub observed: bool,
    /// True when it was asked for.
    pub explicit: bool,
}

/// A dependency that analysis missed and a run showed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MissedEdge {
    /// The step that is depended on.
    pub from: StepId,
    /// The step that depends.
    pub to: StepId,
    /// The name.
    pub variable: VariableName,
}
