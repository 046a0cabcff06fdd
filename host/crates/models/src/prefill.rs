//! The required beginning and form of a reply, for providers that only accept them in the prompt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The handling of the required beginning of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefillMode {
    /// The system prompt asks for it, and it is added in front if the model left it out. Works everywhere; a watcher
    /// sees the reply only at its end, since only then this is known.
    #[default]
    Prompt,
    /// It is the last message, of the assistant, which the provider continues and does not repeat.
    Native,
    /// As `native`, for a provider that repeats it at the start of its answer, as llama-server does.
    Echoed,
    /// As `native`, with the two fields that vLLM wants for it.
    Continue,
}

/// The instruction for a reply in JSON.
pub(crate) const JSON_INSTRUCTION: &str = "Reply with one JSON value and nothing else.";

/// The instruction for a reply that satisfies a schema.
pub(crate) fn schema_instruction(schema: &Value) -> String {
    format!("{JSON_INSTRUCTION} It satisfies this JSON Schema:\n{schema}")
}

/// The instruction for a reply with this beginning.
pub(crate) fn instruction(prefill: &str) -> String {
    format!("Begin your reply with exactly the text between the marks, and continue it:\n<<<{prefill}>>>")
}

/// A repeated beginning at least this long, in bytes, is no coincidence.
const ECHO_BYTES_MIN: usize = 8;

/// The text with its beginning, which the model may or may not have written itself.
pub(crate) fn with_prefill(text: String, prefill: &str, mode: PrefillMode) -> String {
    let repeats = text.starts_with(prefill);
    match mode {
        PrefillMode::Native | PrefillMode::Continue if repeats && prefill.len() >= ECHO_BYTES_MIN => {
            tracing::warn!("the provider repeats the prefill; set prefill = \"echoed\"");
            text
        }
        PrefillMode::Native | PrefillMode::Continue => format!("{prefill}{text}"),
        PrefillMode::Prompt | PrefillMode::Echoed if repeats => text,
        PrefillMode::Prompt => format!("{prefill}{}", repeated(&text, prefill).unwrap_or(&text)),
        PrefillMode::Echoed => format!("{prefill}{text}"),
    }
}

/// The text after the beginning, when the model wrote that with other white space or behind a code fence.
fn repeated<'a>(text: &'a str, prefill: &str) -> Option<&'a str> {
    let trimmed = text.trim_start();
    if let Some(rest) = trimmed.strip_prefix(prefill) {
        return Some(rest);
    }
    let core = prefill.trim();
    if core.is_empty() {
        return None;
    }
    if let Some(rest) = trimmed.strip_prefix(core) {
        return Some(rest.trim_start());
    }
    let fenced = trimmed.strip_prefix("```")?.split_once('\n')?.1.trim_start();
    let rest = fenced.strip_prefix(prefill).or_else(|| fenced.strip_prefix(core))?;
    Some(rest.trim_end().strip_suffix("```").map_or(rest, str::trim_end))
}
