//! The agent `react`: reason, act, observe, until it is done or out of steps.
//!
//! Two styles, chosen by the settings: `actions` lets the model pick tools one step at a time,
//! `file` has a small model write one file in one code block. With a repository in its context, `actions` is an agent
//! for code: it is shown a map, and runs the checks before it finishes. The agent never judges its own work: what it
//! finishes with goes to an evaluator.

mod actions;
mod code;
mod file;
mod own;
mod prompt;
mod repeated;
mod reply;
mod repository;
mod settings;

use longhaul_sdk::agent::{Agent, AgentError};
use longhaul_sdk::types::{Outcome, Task};

use settings::{Settings, Style};

struct React;

impl Agent for React {
    fn run(task: Task) -> Result<Outcome, AgentError> {
        let settings: Settings = longhaul_sdk::json::read("agent settings", &task.settings)?;
        let settings = settings.clamped();
        let outcome = match settings.style {
            Style::Actions => actions::run(&task, &settings)?,
            Style::File => file::run(&task, &settings)?,
        };
        Ok(outcome)
    }
}

longhaul_sdk::export_agent!(React);
