//! Operations on one graph, requested by a person or by an agent.

use longhaul_api::graphs::{ModelChoice, TRIES_MAX};
use longhaul_core::graph::GraphOperation;

/// An operation on one graph.
pub(super) enum GraphTask {
    Ask(GraphOperation),
    AddMany(Vec<(String, String)>),
    Run { keep_going: bool, again: Option<String> },
    Diagnose { step: Option<String>, model: Option<ModelChoice> },
    Patch { step: Option<String>, model: Option<ModelChoice>, tries_max: u32 },
}

impl GraphTask {
    /// An agent has its own model, and its budget.
    pub(super) fn of_agent(ask: GraphOperation) -> Self {
        match ask {
            GraphOperation::Run { keep_going } => Self::Run { keep_going, again: None },
            GraphOperation::Diagnose { step } => Self::Diagnose { step, model: None },
            GraphOperation::Patch { step } => Self::Patch { step, model: None, tries_max: TRIES_MAX },
            other => Self::Ask(other),
        }
    }
}

pub(super) fn task_only_looks(task: &GraphTask) -> bool {
    matches!(task, GraphTask::Ask(GraphOperation::Stale | GraphOperation::Show | GraphOperation::Export { .. }))
}
