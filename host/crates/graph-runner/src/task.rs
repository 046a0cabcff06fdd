//! What is done with one graph: asked by a person, or by an agent.

use longhaul_api::graphs::{ModelChoice, TRIES_MAX};
use longhaul_core::graph::Ask;

/// What is done with one graph.
pub(super) enum Task {
    Ask(Ask),
    AddMany(Vec<(String, String)>),
    Run { keep_going: bool, again: Option<String> },
    Draw { width: u32 },
    Diagnose { step: Option<String>, model: Option<ModelChoice> },
    Patch { step: Option<String>, model: Option<ModelChoice>, tries_max: u32 },
}

impl Task {
    /// An agent has a model of its own to ask, and its budget.
    pub(super) fn of_agent(ask: Ask) -> Self {
        match ask {
            Ask::Run { keep_going } => Self::Run { keep_going, again: None },
            Ask::Diagnose { step } => Self::Diagnose { step, model: None },
            Ask::Patch { step } => Self::Patch { step, model: None, tries_max: TRIES_MAX },
            other => Self::Ask(other),
        }
    }
}

pub(super) fn task_only_looks(task: &Task) -> bool {
    matches!(task, Task::Draw { .. } | Task::Ask(Ask::Stale | Ask::Show | Ask::Export { .. }))
}
