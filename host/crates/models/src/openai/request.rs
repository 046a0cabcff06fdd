//! Converts a request to the wire format.

use super::config::{ImageDetail, OpenAiConfig, OutputTokensField, SchemaMode};
use crate::adaptation::{Adaptation, SchemaForm};
use crate::http::Endpoint;
use crate::http_exchange::decimal;
use crate::picture::{check_media_type, check_speaker};
use crate::prefill::{self, PrefillMode};
use crate::schema::{self, Dialect, Lowered};
use crate::{ModelsError, tool_names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_core::model::{
    Message, MessagePart, MessageRole, ModelError, ModelRequest, OfferedTool, ReplyFormat, RequestedCall,
};
use serde_json::{Map, Value, json};

/// OpenAI accepts four; the rest is applied to the reply only.
const STOPS_SENT_MAX: usize = 4;

/// Required fields of a request.
const NEEDED: [&str; 3] = ["model", "messages", "stream"];

/// Fields that this file writes, and `extra_body` may not.
const OURS: [&str; 13] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "seed",
    "stop",
    "tools",
    "response_format",
    "continue_final_message",
    "add_generation_prompt",
];

/// Refuses settings that would break the request.
pub(super) fn check_settings(model: &str, config: &OpenAiConfig) -> Result<(), ModelsError> {
    let wrong = |field, value: &str, remedy: &str| ModelsError::Setting {
        model: model.to_owned(),
        field,
        value: value.to_owned(),
        remedy: remedy.to_owned(),
    };
    if let Some(field) = config.omit.iter().find(|field| NEEDED.contains(&field.as_str())) {
        return Err(wrong("omit", field, "there is no request without it; remove it from the list"));
    }
    if let Some(field) = config.extra_body.keys().find(|field| OURS.contains(&field.as_str())) {
        return Err(wrong("extra_body", field, "it is written from the request; remove it, or use its own setting"));
    }
    if config.id.trim().is_empty() {
        return Err(wrong("id", &config.id, "write the provider's name of the model, for example gpt-5-mini"));
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
        config: &OpenAiConfig,
        endpoint: &Endpoint,
        dialect: Dialect,
        adaptation: Adaptation,
        request: &ModelRequest,
    ) -> Result<Self, ModelError> {
        let form = Form::of(config.schema, adaptation.schema(), dialect, &request.format);
        let mut body = config.extra_body.clone();
        body.retain(|field, _| adaptation.name(field).is_some());
        let mut set = |field: &str, value: Value| {
            let name = adaptation.name(field).filter(|_| !config.omit.iter().any(|omitted| omitted == field));
            if let Some(name) = name {
                body.insert(name.to_owned(), value);
            }
        };
        set("model", json!(config.id));
        set("messages", Value::Array(messages(config, &form, request)?));
        set("stream", json!(true));
        set("stream_options", json!({ "include_usage": true }));
        let output_tokens = adaptation.output_tokens(request.output_tokens_max);
        set(output_tokens_field(config, endpoint), json!(output_tokens));
        if let Some(temperature) = request.temperature.or(config.temperature) {
            set("temperature", decimal(temperature)?);
        }
        if let Some(seed) = request.seed {
            set("seed", json!(seed));
        }
        let stops: Vec<_> = request.stop.iter().filter(|stop| !stop.is_empty()).take(STOPS_SENT_MAX).collect();
        if !stops.is_empty() {
            set("stop", json!(stops));
        }
        if !request.tools.is_empty() {
            set("tools", request.tools.iter().map(|tool| offered(tool, dialect)).collect());
        }
        if let Some(format) = form.response_format() {
            set("response_format", format);
        }
        if request.prefill.is_some() && config.prefill == PrefillMode::Continue {
            set("continue_final_message", json!(true));
            set("add_generation_prompt", json!(false));
        }
        let lowered = if let Form::Strict(lowered) = form { Some(lowered) } else { None };
        Ok(Self { body: Value::Object(body), lowered, adaptation })
    }
}

/// The form of the reply, as sent to the provider.
enum Form<'a> {
    /// There is none.
    Text,
    /// With `strict`, in the provider's form.
    Strict(Lowered),
    /// Without `strict`. Few providers enforce it, so the prompt may contain it too.
    Loose { schema: &'a Value, in_prompt: bool },
    /// As `json_object`; the prompt contains the schema.
    Json { schema: Option<&'a Value> },
    /// In the prompt alone.
    Words { schema: Option<&'a Value> },
}

impl<'a> Form<'a> {
    fn of(mode: SchemaMode, form: SchemaForm, dialect: Dialect, format: &'a ReplyFormat) -> Self {
        let schema = match format {
            ReplyFormat::Text => return Self::Text,
            ReplyFormat::Json => None,
            ReplyFormat::Schema(schema) => Some(schema),
        };
        match (mode, form.dialect(dialect), schema) {
            _ if form == SchemaForm::Words => Self::Words { schema },
            (SchemaMode::Strict, Some(dialect), Some(schema)) => match Lowered::of(schema, dialect) {
                Some(lowered) => Self::Strict(lowered),
                None if dialect == Dialect::OpenAi => Self::Loose { schema, in_prompt: true },
                None => Self::Json { schema: Some(schema) },
            },
            (SchemaMode::Loose, Some(_), Some(schema)) => Self::Loose { schema, in_prompt: false },
            _ => Self::Json { schema },
        }
    }

    fn response_format(&self) -> Option<Value> {
        let json_schema = |schema: &Value, strict: bool| json!({ "type": "json_schema", "json_schema": { "name": "reply", "strict": strict, "schema": schema } });
        match self {
            Self::Text | Self::Words { .. } => None,
            Self::Strict(lowered) => Some(json_schema(&lowered.schema, true)),
            Self::Loose { schema, .. } => Some(json_schema(schema, false)),
            Self::Json { .. } => Some(json!({ "type": "json_object" })),
        }
    }

    fn instruction(&self) -> Option<String> {
        match self {
            Self::Text | Self::Strict(_) | Self::Loose { in_prompt: false, .. } => None,
            Self::Loose { schema, .. } => Some(prefill::schema_instruction(schema)),
            // OpenAI refuses `json_object` unless a message contains the word JSON.
            Self::Json { schema } | Self::Words { schema } => {
                Some(schema.map_or_else(|| prefill::JSON_INSTRUCTION.to_owned(), prefill::schema_instruction))
            }
        }
    }
}

fn output_tokens_field(config: &OpenAiConfig, endpoint: &Endpoint) -> &'static str {
    let own = endpoint.base.host_str() == Some("api.openai.com");
    match config.output_tokens_field {
        Some(OutputTokensField::MaxCompletionTokens) => "max_completion_tokens",
        None if own => "max_completion_tokens",
        Some(OutputTokensField::MaxTokens) | None => "max_tokens",
    }
}

fn offered(tool: &OfferedTool, dialect: Dialect) -> Value {
    json!({ "type": "function", "function": {
        "name": tool_names::encode(&tool.tool, &tool.function),
        "description": tool.description,
        "parameters": schema::parameters(&tool.parameters, dialect),
    } })
}

fn messages(config: &OpenAiConfig, form: &Form<'_>, request: &ModelRequest) -> Result<Vec<Value>, ModelError> {
    let mut messages = Vec::new();
    let system = system(config, form, request);
    if !system.is_empty() {
        messages.push(json!({ "role": "system", "content": system }));
    }
    for said in &request.messages {
        push_message(&mut messages, said, config.image_detail)?;
    }
    match (&request.prefill, config.prefill) {
        (Some(prefill), PrefillMode::Native | PrefillMode::Echoed | PrefillMode::Continue) => {
            messages.push(json!({ "role": "assistant", "content": prefill }));
        }
        (Some(_), PrefillMode::Prompt) | (None, _) => {}
    }
    Ok(messages)
}

/// The system prompt, with instructions that the provider accepts only as text.
fn system(config: &OpenAiConfig, form: &Form<'_>, request: &ModelRequest) -> String {
    let mut parts = Vec::from_iter((!request.system.is_empty()).then(|| request.system.clone()));
    parts.extend(form.instruction());
    if let (Some(prefill), PrefillMode::Prompt) = (&request.prefill, config.prefill) {
        parts.push(prefill::instruction(prefill));
    }
    parts.join("\n\n")
}

/// Answers of tools are messages of their own on the wire, and come first: they belong to the calls before them.
fn push_message(messages: &mut Vec<Value>, said: &Message, detail: Option<ImageDetail>) -> Result<(), ModelError> {
    let mut content = Vec::new();
    let mut calls = Vec::new();
    for part in &said.parts {
        match part {
            MessagePart::Text(text) => content.push(json!({ "type": "text", "text": text })),
            MessagePart::Image { media_type, data } => content.push(image(said.speaker, media_type, data, detail)?),
            MessagePart::Requested(call) => calls.push(requested(call)),
            // This protocol accepts no thoughts.
            MessagePart::Thought(_) => {}
            MessagePart::Answered { id, output, failed } => {
                let output = if *failed { format!("the tool failed: {output}") } else { output.clone() };
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": output }));
            }
        }
    }
    if content.is_empty() && calls.is_empty() {
        return Ok(());
    }
    let role = if said.speaker == MessageRole::Assistant { "assistant" } else { "user" };
    let mut message = Map::from_iter([("role".to_owned(), json!(role)), ("content".to_owned(), joined(content))]);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    messages.push(Value::Object(message));
    Ok(())
}

/// Plain text if there is nothing else, which every server accepts.
fn joined(mut content: Vec<Value>) -> Value {
    match content.len() {
        0 => Value::Null,
        1 if content[0]["type"] == "text" => content[0]["text"].take(),
        _ => Value::Array(content),
    }
}

fn image(
    speaker: MessageRole,
    media_type: &str,
    data: &[u8],
    detail: Option<ImageDetail>,
) -> Result<Value, ModelError> {
    check_speaker(speaker)?;
    check_media_type(media_type)?;
    let url = format!("data:{media_type};base64,{}", STANDARD.encode(data));
    let mut address = json!({ "url": url });
    if let Some(detail) = detail {
        address["detail"] = json!(detail);
    }
    Ok(json!({ "type": "image_url", "image_url": address }))
}

fn requested(call: &RequestedCall) -> Value {
    json!({ "id": call.id, "type": "function", "function": {
        "name": tool_names::encode(&call.tool, &call.function),
        "arguments": call.arguments,
    } })
}
