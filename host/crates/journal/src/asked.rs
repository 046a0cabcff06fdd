//! The calls of an invocation with their arguments, heard while it runs or is replayed.
//!
//! A journal keeps digests of arguments alone, so a replay says the arguments once more. A request to a model is kept
//! as its difference from the request before it in the same conversation, since each one holds all messages so far.
//! Digests in calls of a conversation are left out: they follow from texts that the requests have. Nothing is stored.

use longhaul_core::approval::ENTRY;
use longhaul_core::model::{Message, MessagePart, MessageRole, ModelRequest, ReplyFormat};
use longhaul_core::watch::Watch;
use longhaul_core::{Digest, InvocationId};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The call of a request to a model, whose arguments are the request.
const COMPLETE: &str = "conversation.complete";

/// The beginning of the names of calls whose arguments have digests of texts of the conversation.
const CONVERSATION: &str = "conversation.";

/// The text in the place of such a digest.
const DIGEST: &str = "(digest)";

/// The call of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedCall {
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// The arguments. JSON in a text of them is a value of its own.
    pub arguments: Value,
    /// The JSON of the arguments, if the call asks for a decision about another call: the decision holds for these
    /// bytes alone.
    pub exact: Option<String>,
}

/// The calls of one invocation, in order: the first is entry 1 of its journal.
#[derive(Default)]
pub struct AskedCalls(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    calls: Vec<AskedCall>,
    /// The latest request of each conversation.
    requests: BTreeMap<usize, ModelRequest>,
    /// The request that the next call is.
    next: Option<Value>,
}

impl AskedCalls {
    /// All calls so far.
    #[must_use]
    pub fn all(&self) -> Vec<AskedCall> {
        self.lock().calls.clone()
    }

    /// The call that was heard last.
    #[must_use]
    pub fn latest(&self) -> Option<AskedCall> {
        self.lock().calls.last().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for AskedCalls {
    fn heard(&self, _invocation: &InvocationId, _text: &str) {}

    fn requested(&self, conversation: usize, request: &ModelRequest) {
        let mut heard = self.lock();
        heard.next = Some(told(conversation, heard.requests.get(&conversation), request));
        heard.requests.insert(conversation, request.clone());
    }

    fn called(&self, name: &str, arguments: &[u8]) {
        let mut heard = self.lock();
        let request = heard.next.take().filter(|_| name == COMPLETE);
        let exact = (name == ENTRY).then(|| String::from_utf8_lossy(arguments).into_owned());
        let arguments = request.unwrap_or_else(|| read_arguments(name, arguments));
        heard.calls.push(AskedCall { name: name.to_owned(), arguments, exact });
    }
}

/// A request beside the one before it in its conversation.
fn told(conversation: usize, before: Option<&ModelRequest>, request: &ModelRequest) -> Value {
    let nothing = bare();
    let known = before.unwrap_or(&nothing);
    let mut told = Map::new();
    told.insert("conversation".to_owned(), conversation.into());
    told.insert("model".to_owned(), request.model.clone().into());
    let mut changed = |name: &str, same: bool, value: Value| {
        if !same {
            told.insert(name.to_owned(), value);
        }
    };
    changed("system", known.system == request.system, request.system.clone().into());
    let offered = request.tools.iter().map(|tool| Value::from(format!("{}.{}", tool.tool, tool.function)));
    changed("tools", known.tools == request.tools, offered.collect());
    changed("format", known.format == request.format, format_of(&request.format));
    changed("prefill", known.prefill == request.prefill, json!(request.prefill));
    changed("stop", known.stop == request.stop, json!(request.stop));
    let tokens_max = request.output_tokens_max;
    changed("output_tokens_max", known.output_tokens_max == tokens_max, tokens_max.into());
    changed("temperature", known.temperature == request.temperature, decimal(request.temperature));
    changed("seed", known.seed == request.seed, json!(request.seed));
    let same = known.messages.iter().zip(&request.messages).take_while(|(one, other)| one == other).count();
    changed("messages_before", same == 0, same.into());
    let messages: Vec<Value> = request.messages[same..].iter().map(message).collect();
    changed("messages", messages.is_empty(), messages.into());
    Value::Object(told)
}

/// A request that asks for nothing.
fn bare() -> ModelRequest {
    ModelRequest {
        model: String::new(),
        system: String::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        format: ReplyFormat::Text,
        prefill: None,
        stop: Vec::new(),
        output_tokens_max: 0,
        temperature: None,
        seed: None,
    }
}

fn format_of(format: &ReplyFormat) -> Value {
    match format {
        ReplyFormat::Text => "text".into(),
        ReplyFormat::Json => "json".into(),
        ReplyFormat::Schema(schema) => json!({ "schema": schema }),
    }
}

/// The number as its author wrote it: 0.2 as an `f32` is another number as an `f64`.
fn decimal(number: Option<f32>) -> Value {
    number.and_then(|number| number.to_string().parse::<f64>().ok()).map_or(Value::Null, Value::from)
}

fn message(message: &Message) -> Value {
    let speaker = match message.speaker {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "tool",
    };
    let parts: Vec<Value> = message.parts.iter().map(part).collect();
    let said = match <[Value; 1]>::try_from(parts) {
        Ok([one]) => one,
        Err(several) => several.into(),
    };
    json!({ speaker: said })
}

fn part(part: &MessagePart) -> Value {
    match part {
        MessagePart::Text(text) => text.clone().into(),
        MessagePart::Image { media_type, data } => {
            json!({ "image": media_type, "bytes": data.len(), "digest": Digest::of(data).to_string() })
        }
        MessagePart::Requested(call) => {
            json!({ "call": format!("{}.{}", call.tool, call.function), "arguments": read_text(&call.arguments) })
        }
        MessagePart::Answered { output, failed: false, .. } => json!({ "output": read_text(output) }),
        MessagePart::Answered { output, failed: true, .. } => json!({ "output": read_text(output), "failed": true }),
        MessagePart::Thought(thought) => json!({ "thought": thought.text }),
    }
}

fn read_arguments(name: &str, arguments: &[u8]) -> Value {
    let read = serde_json::from_slice(arguments).unwrap_or_else(|_| String::from_utf8_lossy(arguments).into());
    in_texts(read, &|text| match name.starts_with(CONVERSATION) && text.parse::<Digest>().is_ok() {
        true => DIGEST.into(),
        false => read_text(&text),
    })
}

/// The value with each text of it replaced.
fn in_texts(value: Value, replaced: &dyn Fn(String) -> Value) -> Value {
    match value {
        Value::String(text) => replaced(text),
        Value::Array(values) => values.into_iter().map(|value| in_texts(value, replaced)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, in_texts(value, replaced)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

/// The object or the array that a text is, or the text.
fn read_text(text: &str) -> Value {
    let read = serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array());
    read.unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::model::OfferedTool;

    fn request(texts: &[&str]) -> ModelRequest {
        let messages = texts.iter().map(|text| Message::text(MessageRole::User, *text)).collect();
        let tool = OfferedTool {
            tool: "files".into(),
            function: "read".into(),
            description: "Reads".into(),
            parameters: json!({}),
        };
        let temperature = Some(0.2);
        ModelRequest {
            model: "m".into(),
            system: "Be brief.".into(),
            messages,
            tools: vec![tool],
            temperature,
            ..bare()
        }
    }

    #[test]
    fn a_request_says_what_is_new_since_the_one_before_it() {
        let asked = AskedCalls::default();
        for texts in [&["a"][..], &["a", "b"], &["c"]] {
            asked.requested(0, &request(texts));
            asked.called(COMPLETE, b"[0,null,\"digest\"]");
        }
        let all: Vec<Value> = asked.all().into_iter().map(|call| call.arguments).collect();
        assert_eq!(
            all,
            [
                json!({
                    "conversation": 0,
                    "model": "m",
                    "system": "Be brief.",
                    "tools": ["files.read"],
                    "temperature": 0.2,
                    "messages": [{ "user": "a" }],
                }),
                json!({ "conversation": 0, "model": "m", "messages_before": 1, "messages": [{ "user": "b" }] }),
                json!({ "conversation": 0, "model": "m", "messages": [{ "user": "c" }] }),
            ]
        );
    }

    #[test]
    fn arguments_are_values_and_digests_of_a_conversation_are_left_out() {
        let asked = AskedCalls::default();
        let digest = Digest::of(b"x").to_string();
        asked.called("tools.call", br#"{"tool":"t","function":"f","arguments":"{\"a\":[1]}"}"#);
        asked.called("conversation.compact", format!("[0,\"{digest}\"]").as_bytes());
        asked.called("recall.fetch", format!("[\"working\",\"{digest}\"]").as_bytes());
        asked.called("tools.list", b"null");
        asked.called("checks.run", b"not JSON");
        let all: Vec<Value> = asked.all().into_iter().map(|call| call.arguments).collect();
        assert_eq!(
            all,
            [
                json!({ "tool": "t", "function": "f", "arguments": { "a": [1] } }),
                json!([0, DIGEST]),
                json!(["working", digest]),
                Value::Null,
                "not JSON".into(),
            ]
        );
        assert_eq!(asked.latest().map(|call| call.name), Some("checks.run".to_owned()));
    }

    #[test]
    fn each_part_of_a_message_is_readable() {
        let data = vec![1, 2];
        let digest = Digest::of(&data).to_string();
        let parts = vec![
            MessagePart::Image { media_type: "image/png".into(), data },
            MessagePart::Answered { id: "1".into(), output: "[1]".into(), failed: true },
        ];
        assert_eq!(
            message(&Message { speaker: MessageRole::Tool, parts }),
            json!({ "tool": [
                { "image": "image/png", "bytes": 2, "digest": digest },
                { "output": [1], "failed": true },
            ] })
        );
    }
}
