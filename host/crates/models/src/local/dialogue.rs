//! Converts a request for the small model, and its reply back.
//!
//! The protocol has no tools, and a model of this size chooses them badly in prose. So if tools are offered, the answer
//! has to match a schema with one shape for each function and one for plain text: `{"call": "tool__function",
//! "arguments": {...}}` or `{"answer": ...}`. One reply contains at most one call. Pictures are refused, and so is a
//! beginning together with a schema.

use crate::tool_names::{Names, encode};
use longhaul_core::Digest;
use longhaul_core::model::{
    Message, MessagePart, MessageRole, ModelError, ModelReply, ModelRequest, OfferedTool, ReplyFormat, RequestedCall,
    StopReason, Usage,
};
use longhaul_llama::protocol::{self, ChatRole, Completion, CompletionReply};
use serde_json::{Value, json};

/// A request, checked.
pub(super) struct Dialogue<'a> {
    request: &'a ModelRequest,
    messages: Vec<protocol::ChatMessage>,
}

impl<'a> Dialogue<'a> {
    pub(super) fn of(request: &'a ModelRequest) -> Result<Self, ModelError> {
        let held_to_json = !request.tools.is_empty() || request.format != ReplyFormat::Text;
        if request.prefill.is_some() && held_to_json {
            let text =
                "the local model takes a prefill only without tools and without a JSON format; leave one of them out";
            return Err(ModelError::Invalid(text.to_owned()));
        }
        let system = system(request);
        let mut messages =
            Vec::from_iter((!system.is_empty()).then(|| protocol::ChatMessage::new(ChatRole::System, system)));
        for said in &request.messages {
            messages.push(message(said)?);
        }
        Ok(Self { request, messages })
    }

    /// True when the child's text is the reply's text, and not JSON around it.
    pub(super) fn is_plain(&self) -> bool {
        self.request.tools.is_empty()
    }

    pub(super) fn completion(&self) -> Completion {
        let request = self.request;
        let schema = match &request.format {
            _ if !self.is_plain() => Some(envelope(request)),
            ReplyFormat::Schema(schema) => Some(schema.clone()),
            ReplyFormat::Text | ReplyFormat::Json => None,
        };
        Completion {
            session: session(request),
            messages: self.messages.clone(),
            prefill: request.prefill.clone(),
            schema,
            json: request.format == ReplyFormat::Json,
            temperature: request.temperature.unwrap_or(0.0),
            // Without a seed the same request gets the same reply: nothing needs randomness.
            seed: u64::from(request.seed.unwrap_or(0)),
            output_tokens_max: request.output_tokens_max,
            // A stop text could cut the JSON around a call or an answer.
            stop: if self.is_plain() { request.stop.clone() } else { Vec::new() },
            ..Completion::default()
        }
    }

    pub(super) fn reply(&self, reply: CompletionReply) -> Result<ModelReply, ModelError> {
        let usage = Usage {
            input_tokens: reply.prompt_tokens,
            cached_tokens: reply.cached_tokens.min(reply.prompt_tokens),
            output_tokens: reply.output_tokens,
            ..Usage::default()
        };
        let reason = match reply.stop_reason {
            protocol::CompletionStop::End => StopReason::End,
            protocol::CompletionStop::Length => StopReason::Length,
            protocol::CompletionStop::Cancelled => {
                return Err(ModelError::Failed("the reply was stopped by another".to_owned()));
            }
        };
        if self.is_plain() {
            let text = format!("{}{}", self.request.prefill.as_deref().unwrap_or_default(), reply.text);
            return Ok(ModelReply { text, reason, usage, ..ModelReply::default() });
        }
        Ok(self.opened(&reply.text, reason, usage))
    }

    /// The content of the envelope. A truncated one is plain text, so that its reader sees how it failed.
    fn opened(&self, text: &str, reason: StopReason, usage: Usage) -> ModelReply {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        if let Some(name) = value.get("call").and_then(Value::as_str) {
            let (tool, function) = Names::of(&self.request.tools).decode(name);
            let arguments = value.get("arguments").map_or_else(|| "{}".to_owned(), Value::to_string);
            let call = RequestedCall { id: self.call_id(), tool, function, arguments };
            return ModelReply { calls: vec![call], reason: StopReason::Tools, usage, ..ModelReply::default() };
        }
        let text = match value.get("answer") {
            Some(Value::String(words)) if self.request.format == ReplyFormat::Text => words.clone(),
            Some(answer) => answer.to_string(),
            None => text.to_owned(),
        };
        ModelReply { text, reason, usage, ..ModelReply::default() }
    }

    /// The same in each replay, and never twice in a conversation.
    fn call_id(&self) -> String {
        let parts = self.request.messages.iter().flat_map(|message| &message.parts);
        format!("call_{}", parts.filter(|part| matches!(part, MessagePart::Requested(_))).count())
    }
}

/// Conversations with the same beginning share the child's computation of it.
fn session(request: &ModelRequest) -> String {
    let first = request.messages.first().map(|message| serde_json::to_vec(message).unwrap_or_default());
    Digest::of_parts(&[request.system.as_bytes(), &first.unwrap_or_default()]).short()
}

fn system(request: &ModelRequest) -> String {
    let mut parts = Vec::from_iter((!request.system.is_empty()).then(|| request.system.clone()));
    if !request.tools.is_empty() {
        let mut text = "You can call one of these functions, or answer. To call one, reply with {\"call\": NAME, \"arguments\": {...}}. \
                        To answer, reply with {\"answer\": ...}."
            .to_owned();
        for tool in &request.tools {
            text.push_str(&format!(
                "\n- {}: {} Arguments: {}",
                encode(&tool.tool, &tool.function),
                tool.description,
                tool.parameters
            ));
        }
        parts.push(text);
    }
    parts.join("\n\n")
}

/// One shape for each function, and one for an answer.
fn envelope(request: &ModelRequest) -> Value {
    let shape = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    let call = |tool: &OfferedTool| {
        let properties = json!({ "call": { "const": encode(&tool.tool, &tool.function) }, "arguments": arguments(&tool.parameters) });
        shape(properties, json!(["call", "arguments"]))
    };
    let answer = match &request.format {
        ReplyFormat::Text => json!({ "type": "string" }),
        ReplyFormat::Json => json!({ "type": "object" }),
        ReplyFormat::Schema(schema) => embedded(schema),
    };
    let mut shapes: Vec<Value> = request.tools.iter().map(call).collect();
    shapes.push(shape(json!({ "answer": answer }), json!(["answer"])));
    json!({ "anyOf": shapes })
}

fn arguments(parameters: &Value) -> Value {
    if parameters.as_object().is_some_and(|schema| !schema.is_empty()) {
        embedded(parameters)
    } else {
        json!({ "type": "object" })
    }
}

/// References count from the root, which is another one inside the envelope.
fn embedded(schema: &Value) -> Value {
    if has_reference(schema) { json!({ "type": "object" }) } else { schema.clone() }
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.contains_key("$ref") || fields.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Small models have no tool messages: the user reports the result of a call.
fn message(said: &Message) -> Result<protocol::ChatMessage, ModelError> {
    let role = if said.speaker == MessageRole::Assistant { ChatRole::Assistant } else { ChatRole::User };
    let mut parts = Vec::new();
    for part in &said.parts {
        parts.push(match part {
            MessagePart::Text(text) => text.clone(),
            // Another model's thoughts are not part of the dialogue.
            MessagePart::Thought(_) => continue,
            MessagePart::Requested(call) => requested(call),
            MessagePart::Answered { output, failed: false, .. } => format!("The function returned: {output}"),
            MessagePart::Answered { output, failed: true, .. } => format!("The function failed: {output}"),
            MessagePart::Image { .. } => {
                return Err(ModelError::Invalid(
                    "the local model sees no pictures; leave them out, or use another model".to_owned(),
                ));
            }
        });
    }
    Ok(protocol::ChatMessage::new(role, parts.join("\n")))
}

/// As the model wrote it.
fn requested(call: &RequestedCall) -> String {
    let arguments: Value =
        serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone()));
    json!({ "call": encode(&call.tool, &call.function), "arguments": arguments }).to_string()
}
