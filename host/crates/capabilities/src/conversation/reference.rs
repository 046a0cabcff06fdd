//! Replaces large texts of older turns by references, and lets the guest read them again.
//!
//! A text goes into the store's content, under its digest, in the transaction of its journal entry. Its invocation can
//! read it through one more tool, `context.read_again`, which the host itself implements: it needs no grant, and it
//! reads only texts that the same invocation replaced, and long answers of its tool calls, of which an agent may have
//! shown its model the beginning.

use super::messages::{HeldMessage, MessageKind};
use crate::ctx::Ctx;
use crate::remembered::keep_missing;
use crate::stop::Stop;
use longhaul_core::Digest;
use longhaul_core::journal::EffectClass;
use longhaul_core::model::MessagePart;
use longhaul_core::store::Batch;
use longhaul_core::tool::{FunctionInfo, ToolCall, ToolError, ToolInfo, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The tool, and its only function.
const TOOL: &str = "context";
/// Not `read`: an agent that knows functions by their short names has a `files.read` already.
const FUNCTION: &str = "read_again";

/// The prefix of the id of a tool call's answer; its number follows, from 1.
pub(crate) const CALL: &str = "call-";

/// Bytes of the beginning that a reference shows.
const HEAD_BYTES: usize = 200;
/// Bytes that one call reads: by default, and at most.
const READ_BYTES: u32 = 4_000;
const READ_BYTES_MAX: u32 = 64 << 10;

/// The texts to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Outputs of tools.
    ToolOutputs,
    /// All texts that the guest pushed.
    Everything,
}

/// Takes the long texts out of a message; `keep` returns their replacement.
pub(super) fn take_long(held: &mut HeldMessage, reach: Reach, bytes_max: usize, mut keep: impl FnMut(&str) -> String) {
    let is_told = match held.kind {
        MessageKind::Observed => true,
        MessageKind::Told => reach == Reach::Everything,
        MessageKind::Replied | MessageKind::Summary { .. } => false,
    };
    for part in &mut held.message.parts {
        match part {
            MessagePart::Text(text) if is_told && text.len() > bytes_max => {
                let short = keep(text);
                shorten(text, short);
            }
            // An output is JSON, and so must its replacement be.
            MessagePart::Answered { output, .. } if is_told && output.len() > bytes_max => {
                let short = Value::String(keep(output)).to_string();
                shorten(output, short);
            }
            MessagePart::Text(_)
            | MessagePart::Image { .. }
            | MessagePart::Requested(_)
            | MessagePart::Answered { .. }
            | MessagePart::Thought(_) => {}
        }
    }
}

fn shorten(text: &mut String, short: String) {
    if short.len() < text.len() {
        *text = short;
    }
}

/// The replacement of a text.
fn in_place_of(text: &str, digest: &Digest, readable: bool) -> String {
    let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
    format!("[{} bytes were put away. {} They begin:]\n{head}", text.len(), link(digest, readable))
}

/// The reference to a replaced text.
pub(super) fn link(digest: &Digest, readable: bool) -> String {
    let id = digest.short();
    if readable {
        format!("Kept as {id}: read it with {TOOL}.{FUNCTION} {{\"id\": \"{id}\"}}.")
    } else {
        format!("Kept as {id}.")
    }
}

/// The tool's description.
fn info() -> ToolInfo {
    let parameters = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "as the note in its place says" },
            "offset": { "type": "integer", "minimum": 0, "description": "where to begin, in bytes; default 0" },
            "bytes": { "type": "integer", "minimum": 1, "maximum": READ_BYTES_MAX, "description": "default 4000" },
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    ToolInfo {
        id: TOOL.to_owned(),
        description: "Earlier parts of this conversation that were put away to save room.".to_owned(),
        functions: vec![FunctionInfo {
            name: FUNCTION.to_owned(),
            description: "Reads again what a note `Kept as ID` stands for.".to_owned(),
            parameters: parameters.to_string(),
            effect: EffectClass::ReadOnly,
            claim: None,
        }],
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    bytes: Option<u32>,
}

impl Ctx {
    /// The granted tools with the host's own, which is added if any tool is granted: other guests cannot call one. An
    /// operator's tool of that name has precedence.
    pub(crate) fn with_own_tool(&self, mut granted: Vec<ToolInfo>) -> Vec<ToolInfo> {
        if self.has_own_tool(&granted) {
            granted.push(info());
        }
        granted
    }

    fn has_own_tool(&self, granted: &[ToolInfo]) -> bool {
        let refers = self.pinned_context.as_ref().is_some_and(|pinned| pinned.rules.policy.refers());
        refers && !granted.is_empty() && granted.iter().all(|info| info.id != TOOL)
    }

    /// True when a call is one of the host's own tool.
    pub(crate) fn is_own_call(&self, call: &ToolCall, granted: &[ToolInfo]) -> bool {
        call.tool == TOOL && self.has_own_tool(granted)
    }

    /// Answers a call of the host's own tool.
    pub(crate) fn own_call(&self, call: &ToolCall) -> Result<Result<ToolOutput, ToolError>, Stop> {
        if call.function != FUNCTION {
            return Ok(Err(ToolError::UnknownFunction(format!("{TOOL}.{FUNCTION} is all there is"))));
        }
        let Arguments { id, offset, bytes } = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Err(ToolError::InvalidArguments(error.to_string()))),
        };
        let Some(digest) = self.conversations.put_away.get(&id) else {
            return Ok(Err(ToolError::InvalidArguments("nothing of this conversation is kept under that id".into())));
        };
        let lost = || Stop::Broken(format!("the store lost what a conversation kept as {id}"));
        let text = self.services.store.blob(digest).map_err(|error| Stop::Broken(error.to_string()))?;
        if text.is_none() && id.starts_with(CALL) {
            // An answer from before answers were kept.
            return Ok(Err(ToolError::Failed("what that call answered was not kept; call it again".into())));
        }
        let text = String::from_utf8(text.ok_or_else(lost)?).map_err(|_| lost())?;
        Ok(Ok(page(&text, offset, bytes.unwrap_or(READ_BYTES).clamp(1, READ_BYTES_MAX))))
    }

    /// Lets the guest read a text again.
    pub(super) fn remember(&mut self, digest: Digest) -> Result<(), Stop> {
        self.remember_as(digest.short(), digest)
    }

    /// The same under another name.
    pub(crate) fn remember_as(&mut self, name: String, digest: Digest) -> Result<(), Stop> {
        if self.conversations.put_away.insert(name, digest).is_none() {
            // The name, the digest, and the memory of both.
            self.hold(100)?;
        }
        Ok(())
    }

    /// Replaces the long texts of some messages by references, one entry of the journal. Returns how many.
    pub(super) async fn refer(&mut self, at: usize, places: &[usize], reach: Reach) -> Result<u32, Stop> {
        let bytes_max = self.pinned_context.as_ref().map_or(u32::MAX, |pinned| pinned.rules.older_text_bytes_max);
        let readable = self.can_read();
        let (mut batch, mut digests) = (Batch::new(), Vec::new());
        let messages = &mut self.conversations.open[at].messages;
        for place in places {
            take_long(&mut messages[*place], reach, bytes_max as usize, |text| {
                let digest = batch.blob(text.as_bytes().to_vec());
                digests.push(digest);
                in_place_of(text, &digest, readable)
            });
        }
        if digests.is_empty() {
            return Ok(0);
        }
        let count = u32::try_from(digests.len()).unwrap_or(u32::MAX);
        let asking = (at, &digests);
        let summary = format!("{count} texts");
        match self.ask_repeatable("conversation.refer", summary, &asking, EffectClass::Idempotent).await? {
            Ok(()) => keep_missing(Arc::clone(&self.services.store), batch).await?,
            Err(handle) => self.answer_with(handle, (), batch).await?,
        }
        for digest in digests {
            self.remember(digest)?;
        }
        Ok(count)
    }

    /// True when the guest can call the tool that reads: only a guest with granted tools has one, and their list is an
    /// entry, so it counts only once the guest asked for it.
    pub(crate) fn can_read(&self) -> bool {
        self.tool_infos.as_ref().is_some_and(|granted| self.has_own_tool(granted))
    }
}

/// A piece of a text. The guest chooses the offset: it is clamped to the text, and to the beginning of a character.
fn page(text: &str, offset: u64, bytes: u32) -> ToolOutput {
    let start = text.floor_char_boundary(usize::try_from(offset).unwrap_or(usize::MAX));
    let end = text.ceil_char_boundary(start.saturating_add(bytes as usize).min(text.len()));
    let next = (end < text.len()).then_some(end);
    let output = json!({ "text": &text[start..end], "bytes_in_all": text.len(), "next_offset": next });
    ToolOutput { output: output.to_string(), truncated: next.is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::model::{Message, MessageRole};

    #[test]
    fn a_text_is_read_page_by_page_and_no_character_is_split() {
        let text = "日本語".repeat(3);
        let (mut offset, mut read) = (0, String::new());
        loop {
            let output: Value = serde_json::from_str(&page(&text, offset, 4).output).unwrap();
            read.push_str(output["text"].as_str().unwrap());
            match output["next_offset"].as_u64() {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(read, text);
        assert!(!page("ab", u64::MAX, 1).truncated && !page("", 0, 1).truncated);
    }

    #[test]
    fn only_what_is_long_and_came_from_outside_is_put_away() {
        let long = "x".repeat(3_000);
        let check = |kind: MessageKind, reach, part: MessagePart, expected: bool| {
            let mut held =
                HeldMessage::new(Message { speaker: MessageRole::User, parts: vec![part] }, false, kind.clone());
            let mut count = 0;
            take_long(&mut held, reach, 1_000, |text| {
                count += 1;
                in_place_of(text, &Digest::of(text.as_bytes()), true)
            });
            assert_eq!((count == 1, held.bytes() < 1_000), (expected, expected), "{kind:?} {reach:?}");
            held
        };
        let text = || MessagePart::Text(long.clone());
        check(MessageKind::Observed, Reach::ToolOutputs, text(), true);
        check(MessageKind::Told, Reach::ToolOutputs, text(), false);
        check(MessageKind::Told, Reach::Everything, text(), true);
        check(MessageKind::Replied, Reach::Everything, text(), false);
        let answered =
            MessagePart::Answered { id: "1".into(), output: Value::from(long.clone()).to_string(), failed: false };
        let held = check(MessageKind::Observed, Reach::ToolOutputs, answered, true);
        let MessagePart::Answered { output, .. } = &held.message.parts[0] else { panic!() };
        let output: String = serde_json::from_str(output).expect("it is JSON still");
        assert!(output.contains("context.read_again {\"id\": \""), "{output}");
    }
}
