//! One step of a run: a call that a plugin made, or the result of its work.
//!
//! A step is the same as another by its digests, which are made of whole calls and answers; its texts are for people
//! and may be cut. What a reply of a model cost and which endpoint gave it makes no difference, nor does what a check
//! printed.

use longhaul_core::Digest;
use longhaul_core::journal::{Finished, ImportAnswer, JournalEntry};
use longhaul_core::model::{ModelError, ModelReply, RequestedCall};
use longhaul_core::tool::{CheckError, ToolError, ToolOutput};
use longhaul_core::work::CheckReport;
use serde_json::Value;

/// Calls that are no steps: what the host offers, and the time.
const NO_STEPS: [&str; 6] =
    ["artifact.number", "checks.list", "conversation.window", "timer.sleep", "timer.until", "tools.list"];

/// The calls whose answers are read.
const REPLY: &str = "conversation.complete";
const TOOL: &str = "tools.call";
const CHECK: &str = "checks.run";
const DELEGATION: &str = "delegate.run";

/// Calls whose first word names what is called: a tool with its function, a check, an agent.
const NAMED: [&str; 3] = [TOOL, CHECK, DELEGATION];

/// The kind of the result of a work.
const RESULT: &str = "result";

/// The digests by which a step is compared. Equal digests mean equal steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepKey {
    /// Of what it did: its call and its answer, or the reply of a model alone.
    pub(crate) same: Digest,
    /// Of its call with all arguments.
    pub(crate) call: Digest,
    /// Of its kind, with the name of what it calls.
    pub(crate) alike: Digest,
}

/// One step.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) key: StepKey,
    pub(crate) kind: String,
    /// The number of the entry; 0 for a result.
    pub(crate) entry: u32,
    pub(crate) at_ms: u64,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) call: String,
    /// The answer, or its beginning.
    pub(crate) answer: String,
    /// Bytes of the whole answer.
    pub(crate) answer_bytes: usize,
}

impl Step {
    /// The step of an entry; none if the call is no step.
    pub(crate) fn of_entry(number: u32, entry: JournalEntry) -> Option<Self> {
        let JournalEntry { asked, answered, .. } = entry;
        if NO_STEPS.contains(&asked.name.as_str()) {
            return None;
        }
        let duration_ms = answered.as_ref().map(|answered| answered.at_ms.saturating_sub(asked.at_ms));
        let read = answered
            .map_or_else(ReadAnswer::in_flight, |ImportAnswer { answer, .. }| ReadAnswer::of(&asked.name, answer));
        let key = StepKey::of(&asked.name, &asked.summary, asked.arguments, &read);
        Some(Self {
            key,
            kind: asked.name,
            entry: number,
            at_ms: asked.at_ms,
            duration_ms,
            call: asked.summary,
            answer_bytes: read.text.len(),
            answer: read.text,
        })
    }

    /// The result of a work as its last step.
    pub(crate) fn of_result(finished: Finished) -> Self {
        let read = ReadAnswer::plain(finished.result);
        Self {
            key: StepKey::of(RESULT, "", Digest::of(b""), &read),
            kind: RESULT.to_owned(),
            entry: 0,
            at_ms: finished.at_ms,
            duration_ms: Some(0),
            call: String::new(),
            answer_bytes: read.text.len(),
            answer: read.text,
        }
    }

    /// True for the reply of a model.
    pub(crate) fn is_reply(&self) -> bool {
        self.kind == REPLY
    }

    /// Keeps at most so many bytes of its answer.
    pub(crate) fn cut_to(&mut self, bytes_max: usize) {
        let end = self.answer.floor_char_boundary(bytes_max);
        self.answer.truncate(end);
        self.answer.shrink_to_fit();
    }
}

impl StepKey {
    fn of(kind: &str, summary: &str, arguments: Digest, read: &ReadAnswer) -> Self {
        let name = if NAMED.contains(&kind) { summary.split(' ').next().unwrap_or_default() } else { "" };
        let call = Digest::of_parts(&[kind.as_bytes(), arguments.as_bytes()]);
        let answer = read.identity.as_bytes();
        let same = match kind {
            // A request has the names of other runs and files in it, and leads to the same reply all the same.
            REPLY => Digest::of_parts(&[kind.as_bytes(), answer]),
            _ => Digest::of_parts(&[call.as_bytes(), answer]),
        };
        Self { same, call, alike: Digest::of_parts(&[kind.as_bytes(), name.as_bytes()]) }
    }
}

/// An answer as people read it, and what it is the same by.
struct ReadAnswer {
    text: String,
    identity: Digest,
}

impl ReadAnswer {
    /// Reads what the journal has as JSON. What is of another form stays as it is.
    fn of(kind: &str, answer: String) -> Self {
        let read = match kind {
            REPLY => serde_json::from_str(&answer).ok().map(Self::of_reply),
            TOOL => serde_json::from_str(&answer).ok().map(Self::of_tool),
            CHECK => serde_json::from_str(&answer).ok().map(Self::of_check),
            DELEGATION => serde_json::from_str(&answer).ok().and_then(|kept: Value| Self::of_delegation(&kept)),
            _ => None,
        };
        read.unwrap_or_else(|| Self::plain(answer))
    }

    fn of_reply(reply: Result<ModelReply, ModelError>) -> Self {
        Self::plain(match reply {
            Ok(reply) => {
                let call = |call: RequestedCall| format!("calls {}.{} {}", call.tool, call.function, call.arguments);
                let text = Some(reply.text).filter(|text| !text.is_empty());
                text.into_iter().chain(reply.calls.into_iter().map(call)).collect::<Vec<_>>().join("\n")
            }
            Err(error) => format!("no reply: {error}"),
        })
    }

    fn of_tool(answer: Result<ToolOutput, ToolError>) -> Self {
        Self::plain(match answer {
            Ok(ToolOutput { output, truncated: false }) => output,
            Ok(ToolOutput { output, truncated: true }) => format!("{output}\n(cut at a limit)"),
            Err(error) => format!("failed: {error}"),
        })
    }

    /// A check says the time that its tests took, so what it printed makes no difference.
    fn of_check(answer: Result<CheckReport, CheckError>) -> Self {
        match answer {
            Ok(CheckReport { passed, exit_code, stdout, stderr, .. }) => {
                let word = if passed { "passed" } else { "failed" };
                let result = format!("{word}, exit code {exit_code}");
                let identity = Digest::of(result.as_bytes());
                Self { text: format!("{result}\n{stdout}{stderr}").trim_end().to_owned(), identity }
            }
            Err(error) => Self::plain(format!("could not run: {error}")),
        }
    }

    /// The outcome without what it used, which has digits that differ each time.
    fn of_delegation(kept: &Value) -> Option<Self> {
        kept.get("answer").map(|answer| Self::plain(answer.to_string()))
    }

    fn plain(text: String) -> Self {
        Self { identity: Digest::of(text.as_bytes()), text }
    }

    fn in_flight() -> Self {
        Self { text: String::new(), identity: Digest::of_parts(&[b"in flight"]) }
    }
}
