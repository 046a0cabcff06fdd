//! Reasons for which a graph was not changed.

use super::node::StepId;

/// The reason why a graph was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepGraphError {
    /// The name is taken.
    #[error("there is a step `{id}` already; change it, or choose another name")]
    DuplicateStep {
        /// The name.
        id: StepId,
    },
    /// No step has the name.
    #[error("there is no step `{id}`")]
    UnknownStep {
        /// The name.
        id: StepId,
    },
    /// The edge would make a step depend on itself.
    #[error("an edge from `{from}` to `{to}` would close a cycle; the graph is unchanged")]
    Cycle {
        /// The start of the edge.
        from: StepId,
        /// The end of the edge.
        to: StepId,
    },
    /// Too many edges against insertion order.
    #[error("the graph has {edges_max} edges from later to earlier steps already, which is the most")]
    TooManyBackwardEdges {
        /// The cap.
        edges_max: usize,
    },
    /// The graph has the most steps already.
    #[error("the graph has {steps_max} steps already, which is the most; begin another graph")]
    TooManySteps {
        /// The cap.
        steps_max: usize,
    },
}
