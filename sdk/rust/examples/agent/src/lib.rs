//! The agent `reporter`: lets a model pick tools until it can report.
//!
//! The loop is the SDK's. The agent never judges its own work: what it finishes with goes to an evaluator.

use longhaul_sdk::agent::{Agent, AgentError};
use longhaul_sdk::json;
use longhaul_sdk::react::React;
use longhaul_sdk::types::{Outcome, Task};
use serde::Deserialize;

/// Under `[agents.NAME.settings]` of `longhaul.toml`. Unknown fields are errors: a misspelt cap would not hold.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// The role in the system prompt.
    prompt: String,
    /// Replies of the model. Default 8, at most 200.
    steps_max: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let prompt = "You find things out with the tools you are given, and report what you found.".to_owned();
        Self { prompt, steps_max: 8 }
    }
}

struct Reporter;

impl Agent for Reporter {
    fn run(task: Task) -> Result<Outcome, AgentError> {
        let settings: Settings = json::read("the settings", &task.settings)?;
        let steps_max = settings.steps_max.clamp(1, 200);
        Ok(React::new(settings.prompt).steps_max(steps_max).run(&task)?)
    }
}

longhaul_sdk::export_agent!(Reporter);
