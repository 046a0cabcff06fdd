//! `builtin:ask-human`: an agent's question to a person.
//!
//! The tool has no effect of its own. Its calls stop at the approval gate, where a person's text becomes their answer.
//! So the question waits like an approval: durably, without a time limit, and without using a budget.

use longhaul_core::InvocationId;
use longhaul_core::journal::EffectClass;
use longhaul_core::tool::{FunctionInfo, HostTool, ToolCall, ToolError, ToolInfo, ToolOutput};
use serde_json::json;

/// The tool `builtin:ask-human`.
pub struct AskHuman;

#[async_trait::async_trait]
impl HostTool for AskHuman {
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError> {
        let question = json!({
            "question": { "type": "string", "minLength": 1, "description": "One clear question, with the choices and what you would do yourself." }
        });
        let about =
            "Asks a person and waits for the answer, which may take hours. Use it when only a person can decide.";
        Ok(ToolInfo {
            id: name.to_owned(),
            description: "Ask the people who gave you the task.".to_owned(),
            functions: vec![FunctionInfo::of("ask", about, EffectClass::ReadOnly, question, &["question"])],
        })
    }

    async fn call(
        &self,
        call: &ToolCall,
        _caller: &InvocationId,
        _key: &str,
        _attempt: u32,
    ) -> Result<ToolOutput, ToolError> {
        // The gate knows no such tool under that name, so no person was asked.
        Err(ToolError::Failed(format!("nobody was asked; is `{}` in longhaul.toml?", call.tool)))
    }
}
