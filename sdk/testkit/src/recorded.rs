//! The recorded part of a scenario: the answers of a journal, which stand in the place of those of a script.
//!
//! An answer is given to the first call of the same name about the same thing: the same function of a tool, check or
//! agent. Its other arguments may differ, so that a changed prompt gets the recorded reply and the difference is one of
//! arguments. A call without a recorded answer left goes to the script.

use crate::error::KitError;
use longhaul_core::Digest;
use longhaul_core::approval::ENTRY;
use longhaul_core::context::PinnedContext;
use longhaul_core::tool::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The file with the answers, in the folder of a scenario.
pub(crate) const ANSWERS: &str = "answers.json";

/// Table `[recorded]` of a `scenario.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordedTable {
    /// The invocation that was recorded, for people.
    pub invocation: String,
    /// The seed of its randomness, as 64 hexadecimal digits. Default: the seed of the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Digest>,
    /// The tools that it was granted.
    pub tools: Vec<String>,
    /// The agents that it was granted.
    pub agents: Vec<String>,
    /// The first entry whose call is compared. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// The last entry. The plugin is stopped at its next call. Default: none; the plugin goes on to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// The rules that trim its conversations. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<PinnedContext>,
}

impl RecordedTable {
    /// True when the call of an entry is compared.
    pub(crate) fn compares(&self, entry: u32) -> bool {
        entry >= self.first() && self.to.is_none_or(|to| entry <= to)
    }

    /// The first entry whose call is compared.
    pub(crate) fn first(&self) -> u32 {
        self.from.unwrap_or(1)
    }
}

/// An answer of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedAnswer {
    /// The number of the entry, for people.
    pub(crate) entry: u32,
    /// The capability and verb, for example `tools.call`.
    pub(crate) call: String,
    /// The function of a tool, the check or the agent that was called. Empty for other calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) about: String,
    /// The time of the call, in milliseconds since 1970-01-01 UTC.
    pub(crate) asked_ms: u64,
    /// The time of the answer, in milliseconds since 1970-01-01 UTC.
    pub(crate) answered_ms: u64,
    /// The call of a tool that the answer decides about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decides: Option<ToolCall>,
    /// The answer, as the journal has it.
    pub(crate) answer: Value,
}

/// The recorded part of a scenario, with its answers.
#[derive(Clone, Debug)]
pub(crate) struct RecordedPart {
    pub(crate) table: RecordedTable,
    pub(crate) answers: Arc<Vec<RecordedAnswer>>,
}

impl RecordedPart {
    /// Reads the answers that lie beside a `scenario.toml`.
    pub(crate) fn read(table: &RecordedTable, folder: &Path) -> Result<Self, KitError> {
        let path = folder.join(ANSWERS);
        let failed = |reason: String| KitError::File { path: path.clone(), reason };
        let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let answers = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        Ok(Self { table: table.clone(), answers: Arc::new(answers) })
    }
}

/// The subject of a call: the function of a tool, the check or the agent; empty for other calls.
pub(crate) fn about(name: &str, arguments: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match name {
        "tools.call" | ENTRY => format!("{}.{}", text(&arguments["tool"]), text(&arguments["function"])),
        "delegate.run" => text(&arguments[0]),
        "checks.run" => text(arguments),
        _ => String::new(),
    }
}

/// Answers that are being given: one call uses each of them up.
pub(crate) struct AnswerQueue {
    answers: Arc<Vec<RecordedAnswer>>,
    used: Vec<bool>,
    /// The place after the answer that was given last.
    next: usize,
}

impl AnswerQueue {
    pub(crate) fn new(answers: Arc<Vec<RecordedAnswer>>) -> Self {
        Self { used: vec![false; answers.len()], answers, next: 0 }
    }

    /// The answer to a call, which is then used up.
    pub(crate) fn take(&mut self, name: &str, about: &str) -> Option<RecordedAnswer> {
        let fits = |answer: &RecordedAnswer| answer.call == name && answer.about == about;
        let place = self.answers.iter().zip(&self.used).position(|(answer, used)| !used && fits(answer))?;
        self.used[place] = true;
        self.next = place + 1;
        self.answers.get(place).cloned()
    }

    /// The next call by the recording: its name, and the digest of the arguments of a call that is decided about.
    pub(crate) fn upcoming(&self) -> Option<(String, Digest)> {
        let left = self.answers.iter().zip(&self.used).skip(self.next);
        let (next, _) = left.into_iter().find(|(_, used)| !**used)?;
        let decided = next.decides.as_ref().and_then(|call| serde_json::to_vec(call).ok()).unwrap_or_default();
        Some((next.call.clone(), Digest::of(&decided)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(entry: u32, call: &str, about: &str) -> RecordedAnswer {
        let (call, about) = (call.to_owned(), about.to_owned());
        RecordedAnswer { entry, call, about, asked_ms: 1, answered_ms: 2, decides: None, answer: json!(entry) }
    }

    #[test]
    fn an_answer_is_for_the_next_call_about_the_same() {
        let all = vec![
            answer(1, "tools.list", ""),
            answer(2, "tools.call", "files.read"),
            answer(3, "tools.call", "files.write"),
            answer(4, "tools.call", "files.read"),
        ];
        let mut queue = AnswerQueue::new(Arc::new(all));
        let mut given = |name: &str, about: &str| queue.take(name, about).map(|answer| answer.entry);
        assert_eq!(given("tools.call", "files.write"), Some(3), "what was left out does not block the rest");
        assert_eq!(given("tools.call", "files.read"), Some(2));
        assert_eq!(given("tools.call", "files.read"), Some(4));
        assert_eq!(given("tools.call", "files.read"), None);
        assert_eq!(given("tools.call", "files.list"), None);
        assert_eq!(queue.upcoming(), None, "what was passed over is not expected any more");
    }

    #[test]
    fn a_decision_is_expected_about_its_call_alone() {
        let call = ToolCall { tool: "t".into(), function: "f".into(), arguments: "{ }".into() };
        let decision = RecordedAnswer { decides: Some(call.clone()), ..answer(2, ENTRY, "t.f") };
        let mut queue = AnswerQueue::new(Arc::new(vec![answer(1, "tools.list", ""), decision]));
        assert_eq!(queue.upcoming().map(|(name, _)| name).as_deref(), Some("tools.list"));
        queue.take("tools.list", "").expect("it is there");
        let digest = Digest::of(&serde_json::to_vec(&call).unwrap());
        assert_eq!(queue.upcoming(), Some((ENTRY.to_owned(), digest)));
    }

    #[test]
    fn a_call_is_about_a_function_a_check_or_an_agent() {
        let check = |name: &str, arguments: Value, expected: &str| assert_eq!(about(name, &arguments), expected);
        check("tools.call", json!({ "tool": "files", "function": "read", "arguments": {} }), "files.read");
        check(ENTRY, json!({ "tool": "files", "function": "read" }), "files.read");
        check("delegate.run", json!(["helper", { "id": "a" }]), "helper");
        check("checks.run", json!("unit"), "unit");
        check("recall.fetch", json!(["working", "a"]), "");
        check("tools.call", Value::Null, ".");
    }
}
