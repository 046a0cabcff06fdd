//! Edges for callers. The graph does not store them: it makes them on request.

use super::node::StepId;
use super::variables::Variables;
use crate::analysis::VariableName;
use serde::{Deserialize, Serialize};

/// A dependency of one step on another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// The step that is needed.
    pub from: StepId,
    /// The step that depends on it.
    pub to: StepId,
    /// The names of the edge, each with the reason why `from` matters to it. Empty for a requested edge without names.
    pub variables: Variables,
    /// True when analysis did not predict one of its names and a run of a step showed it.
    pub observed: bool,
    /// True when it was requested.
    pub explicit: bool,
}

/// A dependency that analysis missed and a run showed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MissedEdge {
    /// The step that is needed.
    pub from: StepId,
    /// The step that depends on it.
    pub to: StepId,
    /// The name.
    pub variable: VariableName,
}
