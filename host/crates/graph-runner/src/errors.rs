//! Errors for callers, from refusals of the store, the graph and the replay.

use longhaul_core::graph::GraphError;
use longhaul_core::store::StoreError;
use longhaul_graph::graph;
use longhaul_graph::replay::ReplayError;

/// There is no graph of this name.
pub(super) fn no_graph(name: &str) -> GraphError {
    let name = longhaul_core::text::printable(name, 100);
    GraphError::Invalid(format!("there is no graph `{name}`; `longhaul graph list` has those that there are"))
}

/// The store cannot be read or written.
pub(super) fn broken(error: StoreError) -> GraphError {
    GraphError::Failed(error.to_string())
}

/// The error for a refusal of the graph.
pub(super) fn refused(error: graph::StepGraphError) -> GraphError {
    match error {
        graph::StepGraphError::UnknownStep { id } => GraphError::UnknownStep(id.to_string()),
        other => GraphError::Invalid(other.to_string()),
    }
}

/// The error for a refusal of the replay.
pub(super) fn replay_refused(error: ReplayError) -> GraphError {
    match error {
        ReplayError::Graph(error) => refused(error),
        other => GraphError::Failed(other.to_string()),
    }
}
