//! Converts a request to the wire format.

use super::config::{AnthropicConfig, AnthropicSchema};
use crate::adaptation::{Adaptation, SchemaForm};
use crate::http_exchange::decimal;
use crate::picture::{check_media_type, check_speaker};
use crate::prefill::{self, PrefillMode};
use crate::schema::{self, Dialect, Lowered};
use crate::{ModelsError, tool_names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_core::model::{
    Message, MessagePart, MessageRole, ModelError, ModelRequest, OfferedTool, ReplyFormat, RequestedCall, Thought,
};
use serde_json::{Map, Value, json};

/// The fewest tokens that the provider allows for thinking.
const THINKING_TOKENS_MIN: u32 = 1_024;

/// Required fields of a request.
const NEEDED: [&str; 4] = ["model", "messages", "max_tokens", "stream"];

/// Fields that this file writes, and `extra_body` may not.
const OURS: [&str; 8] =
    ["model", "messages", "max_tokens", "stream", "system", "temperature", "stop_sequences", "tools"];

/// Refuses settings that would break the request.
pub(super) fn check_settings(model: &str, config: &AnthropicConfig) -> Result<(), ModelsError> {
    let wrong = |field, value: &str, remedy: &str| ModelsError::Setting {
        model: model.to_owned(),
        field,
        value: value.to_owned(),
        remedy: remedy.to_owned(),
    };
    if let Some(field) = config.omit.iter().find(|field| NEEDED.contains(&field.as_str())) {
        return Err(wrong("omit", field, "there is no request without it; remove it from the list"));
    }
    let both = |field: &str| field == "thinking" && config.thinking_tokens_max.is_some();
    if let Some(field) = config.extra_body.keys().find(|field| OURS.contains(&field.as_str()) || both(field)) {
        return Err(wrong("extra_body", field, "it is written from the request; remove it, or use its own setting"));
    }
    if config.id.trim().is_empty() {
        return Err(wrong("id", &config.id, "write the provider's name of the model, for example claude-sonnet-4-5"));
    }
    if let Some(tokens) = config.thinking_tokens_max.filter(|tokens| *tokens < THINKING_TOKENS_MIN) {
        return Err(wrong("thinking_tokens_max", &tokens.to_string(), "give 1024 or more, or remove it"));
    }
    if !matches!(config.prefill, PrefillMode::Prompt | PrefillMode::Native) {
        return Err(wrong("prefill", "echoed or continue", "this protocol has `prompt` and `native`"));
    }
    Ok(())
}

/// A request with the adaptation of its provider.
pub(super) struct Sending {
    pub(super) body: Value,
    /// The schema of the reply, if it is sent in the provider's form.
    pub(super) lowered: Option<Lowered>,
    pub(super) adaptation: Adaptation,
}

impl Sending {
    pub(super) fn of(
        config: &AnthropicConfig,
        adaptation: Adaptation,
        request: &ModelRequest,
    ) -> Result<Self, ModelError> {
        let lowered = match (&request.format, config.schema, adaptation.schema()) {
            (ReplyFormat::Schema(schema), AnthropicSchema::Native, SchemaForm::Strict(_)) => {
                Lowered::of(schema, Dialect::Anthropic)
            }
            _ => None,
        };
        let mut body = config.extra_body.clone();
        let thinks = config.thinking_tokens_max.is_some() || body.contains_key("thinking");
        body.retain(|field, _| adaptation.name(field).is_some());
        let mut set = |field: &str, value: Value| {
            let name = adaptation.name(field).filter(|_| !config.omit.iter().any(|omitted| omitted == field));
            if let Some(name) = name {
                body.insert(name.to_owned(), value);
            }
        };
        set("model", json!(config.id));
        let output_tokens = request.output_tokens_max.saturating_add(config.thinking_tokens_max.unwrap_or(0));
        set("max_tokens", json!(adaptation.output_tokens(output_tokens)));
        set("stream", json!(true));
        let system = system(config, request, lowered.is_some());
        if !system.is_empty() {
            set("system", json!([marked(json!({ "type": "text", "text": system }), config.prompt_cache)]));
        }
        set("messages", Value::Array(messages(config, request)?));
        if let Some(temperature) = request.temperature.or(config.temperature).filter(|_| !thinks) {
            // The protocol's scale ends at 1, the host's at 2.
            set("temperature", decimal(temperature.clamp(0.0, 1.0))?);
        }
        // The provider refuses a stop of white space only, which is applied to the reply all the same.
        let stops: Vec<_> = request.stop.iter().filter(|stop| !stop.trim().is_empty()).collect();
        if !stops.is_empty() {
            set("stop_sequences", json!(stops));
        }
        if !request.tools.is_empty() {
            set("tools", request.tools.iter().map(offered).collect());
        }
        if let Some(tokens) = config.thinking_tokens_max {
            set("thinking", json!({ "type": "enabled", "budget_tokens": tokens }));
        }
        if let Some(lowered) = &lowered {
            let mut output = config.extra_body.get("output_config").cloned().unwrap_or_else(|| json!({}));
            output["format"] = json!({ "type": "json_schema", "schema": lowered.schema });
            set("output_config", output);
        }
        Ok(Self { body: Value::Object(body), lowered, adaptation })
    }
}

fn offered(tool: &OfferedTool) -> Value {
    json!({
        "name": tool_names::encode(&tool.tool, &tool.function),
        "description": tool.description,
        "input_schema": schema::parameters(&tool.parameters, Dialect::Anthropic),
    })
}

/// The system prompt, with instructions that the provider accepts only as text.
fn system(config: &AnthropicConfig, request: &ModelRequest, has_schema: bool) -> String {
    let mut parts = Vec::from_iter((!request.system.trim().is_empty()).then(|| request.system.clone()));
    match &request.format {
        ReplyFormat::Json => parts.push(prefill::JSON_INSTRUCTION.to_owned()),
        ReplyFormat::Schema(schema) if !has_schema => parts.push(prefill::schema_instruction(schema)),
        ReplyFormat::Schema(_) | ReplyFormat::Text => {}
    }
    if let (Some(prefill), PrefillMode::Prompt) = (&request.prefill, config.prefill) {
        parts.push(prefill::instruction(prefill));
    }
    parts.join("\n\n")
}

/// Messages alternate: consecutive ones of one side become one message.
fn messages(config: &AnthropicConfig, request: &ModelRequest) -> Result<Vec<Value>, ModelError> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for said in &request.messages {
        let role = if said.speaker == MessageRole::Assistant { "assistant" } else { "user" };
        let blocks = blocks(config, said)?;
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => turns.push((role, blocks)),
        }
    }
    for (role, blocks) in &mut turns {
        // The provider wants answers to calls before the user's other parts.
        if *role == "user" {
            blocks.sort_by_key(|block| block["type"] != "tool_result");
        }
    }
    if let Some(last) = turns.last_mut().and_then(|(_, blocks)| blocks.last_mut()) {
        *last = marked(last.take(), config.prompt_cache);
    }
    if let (Some(prefill), PrefillMode::Native) = (&request.prefill, config.prefill) {
        // White space at its end is refused.
        turns.push(("assistant", vec![json!({ "type": "text", "text": prefill.trim_end() })]));
    }
    Ok(turns.into_iter().map(|(role, blocks)| json!({ "role": role, "content": blocks })).collect())
}

fn blocks(config: &AnthropicConfig, said: &Message) -> Result<Vec<Value>, ModelError> {
    let mut blocks = Vec::new();
    for part in &said.parts {
        match part {
            // Empty texts are refused.
            MessagePart::Text(text) if text.trim().is_empty() => {}
            MessagePart::Text(text) => blocks.push(json!({ "type": "text", "text": text })),
            MessagePart::Image { media_type, data } => blocks.push(image(said.speaker, media_type, data)?),
            MessagePart::Requested(call) => blocks.push(requested(call)),
            MessagePart::Answered { id, output, failed } => blocks.push(json!({
                "type": "tool_result", "tool_use_id": call_id(id), "content": output, "is_error": failed,
            })),
            MessagePart::Thought(thought) if thought.model == config.id => blocks.extend(thought_block(thought)),
            MessagePart::Thought(_) => {}
        }
    }
    Ok(blocks)
}

/// Marks the end of the cacheable part. The provider accepts no mark on thoughts.
fn marked(mut block: Value, is_marked: bool) -> Value {
    let is_thought = block["type"].as_str().is_some_and(|kind| kind.contains("thinking"));
    if is_marked && !is_thought {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
    block
}

fn thought_block(thought: &Thought) -> Option<Value> {
    let signature = thought.signature.as_ref()?;
    Some(match thought.hidden {
        true => json!({ "type": "redacted_thinking", "data": signature }),
        false => json!({ "type": "thinking", "thinking": thought.text, "signature": signature }),
    })
}

fn image(speaker: MessageRole, media_type: &str, data: &[u8]) -> Result<Value, ModelError> {
    check_speaker(speaker)?;
    check_media_type(media_type)?;
    let source = json!({ "type": "base64", "media_type": media_type, "data": STANDARD.encode(data) });
    Ok(json!({ "type": "image", "source": source }))
}

/// The wire needs an object; other arguments of the model are sent as a text.
fn requested(call: &RequestedCall) -> Value {
    let input = serde_json::from_str::<Map<String, Value>>(&call.arguments).map(Value::Object);
    json!({
        "type": "tool_use",
        "id": call_id(&call.id),
        "name": tool_names::encode(&call.tool, &call.function),
        "input": input.unwrap_or_else(|_| json!({ "unreadable": call.arguments })),
    })
}

/// Other providers' ids may contain characters that this one refuses.
fn call_id(id: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    id.chars().map(fine).collect()
}
