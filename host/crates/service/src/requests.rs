//! The requests of an invocation as text, and the difference of two of them.
//!
//! A journal keeps the digest of a request and a short summary of it, so the whole text of a recorded one is heard from
//! a replay of the bytes that made it, and believed only if it has that digest. All of it is cut to a readable length.

use super::trajectories::chat;
use longhaul_capabilities::{ConversationUpdate, Watch};
use longhaul_core::text::printable;
use longhaul_core::{Digest, InvocationId};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a text on one line. A longer one goes on on the next line.
const LINE_BYTES_MAX: usize = 300;

/// Lines of one request, and of all that was said in conversations before it.
const LINES_MAX: usize = 20_000;

/// Bytes of the arguments that are read. Arguments that are longer are cut, and shown as text.
const ARGUMENTS_BYTES_MAX: usize = 1 << 20;

/// Lines of each side of a difference that are shown, and lines before it that are the same in both.
const CHANGED_LINES_MAX: usize = 30;
const SAME_LINES: usize = 2;

/// Hears the requests of a replay, and keeps one of them.
pub(super) struct RequestRecorder {
    /// The number of the entry that is kept. None: the last one.
    entry: Option<u32>,
    state: Mutex<RecorderState>,
}

#[derive(Default)]
struct RecorderState {
    asked: u32,
    /// The lines that were said, each with its conversation.
    said: Vec<(usize, String)>,
    kept: Option<KeptRequest>,
}

/// The request that is kept.
struct KeptRequest {
    name: &'static str,
    digest: Digest,
    arguments: Vec<u8>,
    /// The number of lines that were said before it.
    said: usize,
}

impl RequestRecorder {
    /// Keeps the last request.
    pub(super) fn of_last() -> Self {
        Self { entry: None, state: Mutex::default() }
    }

    /// Keeps the request of this entry.
    pub(super) fn of_entry(entry: u32) -> Self {
        Self { entry: Some(entry), state: Mutex::default() }
    }

    /// The number of requests so far, which is that of the last one's entry.
    pub(super) fn asked(&self) -> u32 {
        self.state().asked
    }

    /// The digest of the arguments of the kept request.
    pub(super) fn digest(&self) -> Option<Digest> {
        self.state().kept.as_ref().map(|kept| kept.digest)
    }

    /// The kept request as lines; empty if there was none.
    pub(super) fn lines(&self) -> Vec<String> {
        let state = self.state();
        let Some(kept) = &state.kept else { return Vec::new() };
        let mut lines = vec![kept.name.to_owned()];
        let arguments = serde_json::from_slice::<Value>(&kept.arguments);
        let conversation = arguments.as_ref().ok().and_then(|arguments| conversation_of(kept.name, arguments));
        match (conversation, arguments) {
            (Some(conversation), _) => {
                let said = state.said.iter().take(kept.said).filter(|(of, _)| *of == conversation);
                lines.extend(said.map(|(_, line)| line.clone()));
            }
            (None, Ok(arguments)) => flatten("", &arguments, &mut lines),
            (None, Err(_)) => flatten("", &json!(String::from_utf8_lossy(&kept.arguments)), &mut lines),
        }
        lines
    }

    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for RequestRecorder {
    fn heard(&self, _invocation: &InvocationId, _text: &str) {}

    fn called(&self, name: &'static str, arguments: &[u8]) {
        let mut state = self.state();
        state.asked = state.asked.saturating_add(1);
        if self.entry.is_none_or(|entry| entry == state.asked) {
            let (digest, said) = (Digest::of(arguments), state.said.len());
            let arguments = arguments[..arguments.len().min(ARGUMENTS_BYTES_MAX)].to_vec();
            state.kept = Some(KeptRequest { name, digest, arguments, said });
        }
    }

    fn said(&self, conversation: usize, said: ConversationUpdate<'_>) {
        let mut state = self.state();
        if self.entry.is_some_and(|entry| state.asked >= entry) || state.said.len() >= LINES_MAX {
            return;
        }
        let messages = match said {
            ConversationUpdate::System(text) => vec![json!({ "role": "system", "content": text })],
            ConversationUpdate::Message(message) => chat(message),
        };
        let mut lines = Vec::new();
        for mut message in messages {
            let role = message["role"].take();
            if let Some(fields) = message.as_object_mut() {
                fields.remove("role");
            }
            flatten(role.as_str().unwrap_or_default(), &message, &mut lines);
        }
        state.said.extend(lines.into_iter().map(|line| (conversation, line)));
    }
}

/// A result as lines.
pub(super) fn lines_of(json: &str) -> Vec<String> {
    let mut lines = Vec::new();
    flatten("", &json.into(), &mut lines);
    lines
}

/// The conversation that a request to a model continues. Its arguments hold only the digest of the messages.
fn conversation_of(name: &str, arguments: &Value) -> Option<usize> {
    let number = arguments.get(0).filter(|_| name.starts_with("conversation."))?.as_u64()?;
    usize::try_from(number).ok()
}

/// Writes a value as lines, each with its place. A text of several lines has a line for each, and one that is JSON, as
/// arguments of tools are, is taken apart.
fn flatten(place: &str, value: &Value, lines: &mut Vec<String>) {
    if lines.len() >= LINES_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            fields.iter().take(LINES_MAX).for_each(|(key, value)| flatten(&below(place, key), value, lines));
        }
        Value::Array(values) => {
            let values = (0_usize..).zip(values).take(LINES_MAX);
            values.for_each(|(at, value)| flatten(&below(place, &at.to_string()), value, lines));
        }
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => flatten(place, &inner, lines),
            _ if text.is_empty() => lines.push(line(place, "")),
            _ => text.lines().for_each(|text| push_text(place, text, lines)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => lines.push(line(place, &value.to_string())),
    }
}

/// The place of a field. A guest may have chosen the keys, so it is cut: each of many values would copy it whole.
fn below(place: &str, key: &str) -> String {
    let mut below = if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    below.truncate(below.floor_char_boundary(LINE_BYTES_MAX));
    below
}

fn push_text(place: &str, text: &str, lines: &mut Vec<String>) {
    let mut rest = text;
    while lines.len() < LINES_MAX {
        let (head, tail) = rest.split_at(rest.floor_char_boundary(LINE_BYTES_MAX));
        lines.push(line(place, head));
        if tail.is_empty() {
            return;
        }
        rest = tail;
    }
}

fn line(place: &str, text: &str) -> String {
    let label = if place.is_empty() { String::new() } else { format!("{place}: ") };
    printable(&format!("{label}{text}"), 3 * LINE_BYTES_MAX)
}

/// The difference of two requests: what they begin and end with alike is left out.
pub(super) fn difference(recorded: &[String], asked: &[String]) -> Vec<String> {
    let same = recorded.iter().zip(asked).take_while(|(one, other)| one == other).count();
    if same == recorded.len() && same == asked.len() {
        return Vec::new();
    }
    let (old, new) = (&recorded[same..], &asked[same..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let before = &recorded[same.saturating_sub(SAME_LINES)..same];
    let mut lines: Vec<String> = before.iter().map(|line| format!("  {line}")).collect();
    changed('-', &old[..old.len() - tail], &mut lines);
    changed('+', &new[..new.len() - tail], &mut lines);
    lines
}

fn changed(sign: char, changed: &[String], lines: &mut Vec<String>) {
    lines.extend(changed.iter().take(CHANGED_LINES_MAX).map(|line| format!("{sign} {line}")));
    let more = changed.len().saturating_sub(CHANGED_LINES_MAX);
    if more > 0 {
        lines.push(format!("{sign} ({more} more lines)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::model::{Message, MessagePart, MessageRole};

    fn texts(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn a_difference_shows_what_changed_and_a_little_before_it() {
        let (old, new) = (texts(&["a", "b", "c", "old", "z"]), texts(&["a", "b", "c", "new", "newer", "z"]));
        assert_eq!(difference(&old, &new), ["  b", "  c", "- old", "+ new", "+ newer"]);
        assert_eq!(difference(&old, &old), Vec::<String>::new());
        assert_eq!(difference(&old, &[]), ["- a", "- b", "- c", "- old", "- z"]);
        // A line that only repeats is counted once.
        assert_eq!(difference(&texts(&["a", "a"]), &texts(&["a"])), ["  a", "- a"]);
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let shown = difference(&[], &many);
        assert_eq!((shown.len(), shown.last().map(String::as_str)), (31, Some("+ (70 more lines)")));
    }

    #[test]
    fn a_call_of_a_tool_is_shown_by_its_arguments_with_a_line_for_each_of_a_text() {
        let recorder = RequestRecorder::of_entry(2);
        let call = |content: &str| json!({ "tool": "files", "arguments": json!({ "content": content }).to_string() });
        for content in ["first", "one\ntwo\u{1b}", "third"] {
            recorder.called("tools.call", &serde_json::to_vec(&call(content)).expect("JSON"));
        }
        let lines = recorder.lines();
        assert_eq!(lines[0], "tools.call");
        assert!(lines.contains(&"arguments.content: one".to_owned()), "{lines:?}");
        assert!(lines.contains(&"arguments.content: two\\u001b".to_owned()), "{lines:?}");
        assert_eq!(recorder.digest(), Some(Digest::of(&serde_json::to_vec(&call("one\ntwo\u{1b}")).expect("JSON"))));
        assert_eq!(RequestRecorder::of_last().lines(), Vec::<String>::new());
    }

    #[test]
    fn keys_of_a_guest_make_no_long_places() {
        let (key, mut lines) = ("k".repeat(1_000), Vec::new());
        flatten("", &json!({ &key: { &key: ["one", "two"] } }), &mut lines);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.len() <= LINE_BYTES_MAX + ": one".len()), "{lines:?}");
        assert_eq!(below(&below("", &key), &key).len(), below("", &key).len());
    }

    #[test]
    fn a_change_far_into_a_long_line_is_seen() {
        let lines = |end: &str| {
            let recorder = RequestRecorder::of_last();
            let text = format!("{}{end}", "ä".repeat(1_000));
            recorder.called("tools.call", &serde_json::to_vec(&json!({ "content": text })).expect("JSON"));
            recorder.lines()
        };
        let shown = difference(&lines("one"), &lines("two"));
        assert!(shown.iter().any(|line| line.starts_with('-') && line.ends_with("one")), "{shown:?}");
        assert!(shown.iter().any(|line| line.starts_with('+') && line.ends_with("two")), "{shown:?}");
    }

    #[test]
    fn a_request_to_a_model_is_shown_by_the_messages_before_it() {
        let recorder = RequestRecorder::of_last();
        let told = |text: &str| Message { speaker: MessageRole::User, parts: vec![MessagePart::Text(text.into())] };
        recorder.said(0, ConversationUpdate::System("be brief"));
        recorder.said(1, ConversationUpdate::Message(&told("elsewhere")));
        recorder.said(0, ConversationUpdate::Message(&told("one\ntwo")));
        recorder.called("conversation.complete", b"[0,null,\"digest\"]");
        recorder.said(0, ConversationUpdate::Message(&told("later")));
        let expected = ["conversation.complete", "system.content: be brief", "user.content: one", "user.content: two"];
        assert_eq!(recorder.lines(), expected);
    }
}
