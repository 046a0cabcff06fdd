//! The words of people, models and tools, in the JSON of the conventions: messages, instructions, offered tools.
//!
//! The JSON stays valid when it is too long: long texts are cut, then the oldest parts and messages are left out.
//! Images are named and never sent.

use longhaul_core::model::{Message, MessagePart, MessageRole, ModelReply, ModelRequest, RequestedCall, Thought};
use longhaul_core::text::truncate;
use opentelemetry::KeyValue;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Writes the contents of one span within a bound for each attribute.
pub(crate) struct ContentWriter {
    bytes_max: usize,
    /// True when anything was left out.
    is_cut: bool,
}

impl ContentWriter {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, is_cut: false }
    }

    /// A request and its reply.
    pub(crate) fn exchange(mut self, request: &ModelRequest, reply: &ModelReply, finish: &str) -> Vec<KeyValue> {
        let mut attributes = Vec::new();
        if !request.system.is_empty() {
            let text = self.text("text", &request.system);
            attributes.push(KeyValue::new("gen_ai.system_instructions", self.list(vec![text])));
        }
        let input = request.messages.iter().map(|message| self.message(message)).collect();
        attributes.push(KeyValue::new("gen_ai.input.messages", self.list(input)));
        let mut parts: Vec<Value> = reply.thoughts.iter().filter_map(|thought| self.thought(thought)).collect();
        if !reply.text.is_empty() {
            parts.push(self.text("text", &reply.text));
        }
        parts.extend(reply.calls.iter().map(|call| self.call(call)));
        attributes.push(KeyValue::new("gen_ai.output.messages", self.output(parts, finish)));
        if !request.tools.is_empty() {
            // The conventions advise against descriptions and schemas here, for their size.
            let tools = request.tools.iter();
            let tools = tools.map(|tool| json!({ "type": "function", "name": name(&tool.tool, &tool.function) }));
            attributes.push(KeyValue::new("gen_ai.tool.definitions", self.list(tools.collect())));
        }
        self.marked(attributes)
    }

    /// A reply of which only the beginning is known.
    pub(crate) fn reply(mut self, text: &str, finish: &str) -> Vec<KeyValue> {
        let part = self.text("text", text);
        let output = self.output(vec![part], finish);
        vec![KeyValue::new("gen_ai.output.messages", output)]
    }

    /// A call of a tool: its arguments, and its result if it succeeded.
    pub(crate) fn tool(mut self, arguments: Option<&str>, result: Option<&str>) -> Vec<KeyValue> {
        let mut attributes = Vec::new();
        for (name, text) in [("gen_ai.tool.call.arguments", arguments), ("gen_ai.tool.call.result", result)] {
            if let Some(text) = text {
                self.is_cut |= text.len() > self.bytes_max;
                attributes.push(KeyValue::new(name, truncate(text, self.bytes_max)));
            }
        }
        self.marked(attributes)
    }

    fn marked(&self, mut attributes: Vec<KeyValue>) -> Vec<KeyValue> {
        if self.is_cut {
            attributes.push(KeyValue::new("longhaul.content.truncated", true));
        }
        attributes
    }

    fn output(&mut self, parts: Vec<Value>, finish: &str) -> String {
        let message = self.with_parts("assistant", parts, Some(finish));
        self.list(vec![message])
    }

    fn message(&mut self, message: &Message) -> Value {
        let role = match message.speaker {
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
            MessageRole::Tool => "tool",
        };
        let parts = message.parts.iter().filter_map(|part| self.part(part)).collect();
        self.with_parts(role, parts, None)
    }

    /// A message with as many of its last parts as there is room for.
    fn with_parts(&mut self, role: &str, parts: Vec<Value>, finish: Option<&str>) -> Value {
        let mut room = self.bytes_max.saturating_sub(128);
        let mut kept = VecDeque::new();
        for part in parts.into_iter().rev() {
            let bytes = part.to_string().len() + 1;
            if bytes > room {
                self.is_cut = true;
                break;
            }
            room -= bytes;
            kept.push_front(part);
        }
        let mut message = json!({ "role": role, "parts": Vec::from(kept) });
        if let (Some(finish), Some(fields)) = (finish, message.as_object_mut()) {
            fields.insert("finish_reason".to_owned(), finish.into());
        }
        message
    }

    fn part(&mut self, part: &MessagePart) -> Option<Value> {
        match part {
            MessagePart::Text(text) => Some(self.text("text", text)),
            MessagePart::Image { media_type, data } => {
                self.is_cut = true;
                Some(self.text("text", &format!("[{media_type}, {} bytes]", data.len())))
            }
            MessagePart::Requested(call) => Some(self.call(call)),
            MessagePart::Answered { id, output, .. } => {
                let response = self.value(output);
                Some(json!({ "type": "tool_call_response", "id": id, "response": response }))
            }
            MessagePart::Thought(thought) => self.thought(thought),
        }
    }

    fn thought(&mut self, thought: &Thought) -> Option<Value> {
        let is_shown = !thought.hidden && !thought.text.is_empty();
        is_shown.then(|| self.text("reasoning", &thought.text))
    }

    fn call(&mut self, call: &RequestedCall) -> Value {
        let arguments = self.value(&call.arguments);
        json!({ "type": "tool_call", "id": call.id, "name": name(&call.tool, &call.function), "arguments": arguments })
    }

    fn text(&mut self, kind: &str, text: &str) -> Value {
        json!({ "type": kind, "content": self.short(text) })
    }

    /// JSON text as its value, and any other text as it is.
    fn value(&mut self, text: &str) -> Value {
        let parsed = if text.len() <= self.bytes_max / 4 { serde_json::from_str(text).ok() } else { None };
        parsed.unwrap_or_else(|| self.short(text).into())
    }

    /// The beginning of a text, so short that its JSON has room in a message.
    fn short(&mut self, text: &str) -> String {
        let mut short = truncate(text, self.bytes_max / 4);
        // Escapes of JSON are up to six times as long as what they stand for.
        if Value::from(short.as_str()).to_string().len() > self.bytes_max / 2 {
            short = truncate(text, self.bytes_max / 16);
        }
        self.is_cut |= short != text;
        short
    }

    /// A list with as many of its last items as there is room for.
    fn list(&mut self, items: Vec<Value>) -> String {
        let mut texts: VecDeque<String> = items.iter().map(Value::to_string).collect();
        let mut bytes: usize = texts.iter().map(|text| text.len() + 1).sum();
        while bytes + 1 > self.bytes_max {
            let Some(oldest) = texts.pop_front() else { break };
            bytes -= oldest.len() + 1;
            self.is_cut = true;
        }
        format!("[{}]", Vec::from(texts).join(","))
    }
}

/// The name of a function as spans have it.
fn name(tool: &str, function: &str) -> String {
    format!("{tool}.{function}")
}

#[cfg(test)]
mod tests;
