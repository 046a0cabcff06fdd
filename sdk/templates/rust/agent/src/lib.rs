//! The agent `{{name}}`: asks a model once, and hands its answer back.

use longhaul_sdk::Conversation;
use longhaul_sdk::agent::{Agent, AgentError};
use longhaul_sdk::types::{Outcome, Task};

struct Plugin;

/// The reply that the model is to give; the host holds it to the schema below.
#[derive(serde::Deserialize)]
struct Reply {
    answer: String,
}

impl Agent for Plugin {
    fn run(task: Task) -> Result<Outcome, AgentError> {
        let schema = serde_json::json!({
            "type": "object",
            "properties": { "answer": { "type": "string" } },
            "required": ["answer"],
            "additionalProperties": false,
        });
        let conversation = Conversation::new("You do the task and answer in JSON.");
        let reply: Reply = conversation.schema(&task.instruction, &schema)?;
        Ok(longhaul_sdk::outcome(&serde_json::json!({ "answer": reply.answer }), "asked a model"))
    }
}

longhaul_sdk::export_agent!(Plugin);
