//! The words of the execution-state graph: what is asked of one, and what it answers.
//!
//! A graph is code in steps. What depends on what, what is stale and what runs is decided elsewhere; here are only
//! the words that the contract, the service and their callers share. Knows no language and runs nothing.

use crate::grant::{Access, DirectoryGrant, HostPattern};
use crate::store::Batch;
use crate::{Denial, InvocationId, LimitHit};
use serde::{Deserialize, Serialize};

/// Bytes of the name of a graph, and of a step.
pub const NAME_BYTES_MAX: usize = 200;

/// Bytes of the source of a step. More is refused; data belongs into a file or into values.
pub const SOURCE_BYTES_MAX: usize = 1_000_000;

/// Why a text is no name of a graph or of a step.
///
/// # Errors
/// In words, with what a name may be.
pub fn check_name(kind: &str, name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("the name of a {kind} is empty; give it one, such as `load`"));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the name of a {kind} has {} bytes, and at most {NAME_BYTES_MAX} are kept", name.len()));
    }
    // Also the marks that turn the direction of writing.
    if crate::text::printable(name, NAME_BYTES_MAX) != name {
        let shown = crate::text::truncate(&name.escape_debug().to_string(), 60);
        return Err(format!("the name `{shown}` of a {kind} has control characters; use printable ones"));
    }
    Ok(())
}

/// How it is with a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// What it made is what its source makes of what it reads.
    Fresh,
    /// It runs with the next run.
    #[default]
    Stale,
    /// A step that it needs failed, so it did not run.
    Blocked,
    /// It raised, or reached a limit.
    Failed,
    /// Its source cannot be read.
    Broken,
    /// It acts, and was cut off: whether its effect happened is not known, so it does not run by itself.
    Unknown,
}

impl StepState {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a step failed, or cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFailure {
    /// The exception's type, `SyntaxError` for a source that cannot be read, or the limit's name.
    pub kind: String,
    /// In words.
    pub message: String,
    /// In the step's source, from 1.
    pub line: Option<u32>,
    /// In characters, from 1.
    pub column: Option<u32>,
    /// As the language shows it; bounded.
    pub traceback: String,
}

/// A step as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepView {
    /// Its name.
    pub id: String,
    /// Its source.
    pub source: String,
    /// How it is.
    pub state: StepState,
    /// Names that it reads of earlier steps.
    pub reads: Vec<String>,
    /// Names that it may write or change.
    pub writes: Vec<String>,
    /// The steps that it needs directly.
    pub needs: Vec<String>,
    /// What it made and nobody can keep.
    pub live_only: Vec<String>,
    /// Of its last run; bounded.
    pub stdout: String,
    /// Likewise.
    pub stderr: String,
    /// The last expression, shown as the language does; bounded.
    pub value: Option<String>,
    /// Why it failed or cannot be read.
    pub failure: Option<StepFailure>,
    /// How long its last run took, in milliseconds.
    pub duration_ms: u32,
    /// Instructions of its last run, in wasmtime's fuel.
    pub fuel_used: u64,
    /// The most memory that its last run held, in bytes.
    pub memory_bytes_peak: u64,
}

/// What a change of the steps did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphChanges {
    /// What runs next, in its order.
    pub stale: Vec<String>,
    /// Why the new source cannot be read.
    pub failure: Option<StepFailure>,
}

/// What a run of a graph did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplaySummary {
    /// Steps that ran, in their order, the failed ones included.
    pub ran: Vec<String>,
    /// Steps that were answered with what an earlier run gave for the same input.
    pub answered: Vec<String>,
    /// Steps that failed.
    pub failed: Vec<String>,
    /// Steps that did not run, since one that they need failed.
    pub blocked: Vec<String>,
    /// Steps that acted and were cut off; a person decides.
    pub unknown: Vec<String>,
    /// How many steps were fresh and stayed so.
    pub untouched: u32,
    /// What was noticed.
    pub warnings: Vec<String>,
}

/// A value that a failure may have to do with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ValueView {
    /// Its name.
    pub name: String,
    /// As text; bounded.
    pub shown: String,
    /// The step that made it.
    pub made_by: Option<String>,
}

/// Why a step failed, as far as it can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiagnosisView {
    /// The step that failed.
    pub step: String,
    /// How.
    pub failure: StepFailure,
    /// What it may have to do with.
    pub values: Vec<ValueView>,
    /// The step that is likely at fault.
    pub culprit: String,
    /// Why that one.
    pub why: String,
}

/// A patch that was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PatchView {
    /// The step that was changed.
    pub step: String,
    /// Its source now.
    pub source: String,
    /// What was changed, and why.
    pub why: String,
    /// How many sources were tried.
    pub tries: u32,
    /// What ran because of it.
    pub replay: ReplaySummary,
}

/// How a graph is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphFormat {
    /// One JSON object.
    Json,
    /// For Graphviz.
    Dot,
}

/// What is asked of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphOperation {
    /// A step more, behind the others.
    Add {
        /// Its name.
        step: String,
        /// Its source.
        source: String,
    },
    /// Another source for a step.
    Change {
        /// Which.
        step: String,
        /// Its source.
        source: String,
    },
    /// A step less.
    Remove {
        /// Which.
        step: String,
    },
    /// Run what is stale.
    Run {
        /// Also what needs a failed step.
        keep_going: bool,
    },
    /// Run a step again, and what its new values touch.
    Replay {
        /// Which.
        step: String,
        /// Also what needs a failed step.
        keep_going: bool,
    },
    /// What would run.
    Stale,
    /// All steps.
    Show,
    /// Why a step failed.
    Diagnose {
        /// Which; none: the first that did.
        step: Option<String>,
    },
    /// Find a source with which a failure is gone.
    Patch {
        /// Which; none: the first that failed.
        step: Option<String>,
    },
    /// The graph as a text.
    Export {
        /// In which form.
        format: GraphFormat,
    },
}

/// What a graph answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphAnswer {
    /// To [`GraphOperation::Add`], [`GraphOperation::Change`] and [`GraphOperation::Remove`].
    Changed(GraphChanges),
    /// To [`GraphOperation::Run`] and [`GraphOperation::Replay`].
    Replayed(ReplaySummary),
    /// To [`GraphOperation::Stale`], in the order in which they would run.
    Stale(Vec<String>),
    /// To [`GraphOperation::Show`], in the order of the graph.
    Steps(Vec<StepView>),
    /// To [`GraphOperation::Diagnose`].
    Diagnosed(DiagnosisView),
    /// To [`GraphOperation::Patch`].
    Patched(PatchView),
    /// To [`GraphOperation::Export`].
    Text(String),
}

/// What the steps of a graph may use, each by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepLimits {
    /// Time on the clock, in milliseconds. Default 300 000 (five minutes).
    pub timeout_ms: u64,
    /// All linear memory, in bytes. Default 256 MiB.
    pub memory_bytes_max: u64,
    /// Instructions, in wasmtime's fuel. Default 1 000 000 000 000.
    pub fuel_max: u64,
}

impl Default for StepLimits {
    fn default() -> Self {
        Self { timeout_ms: 300_000, memory_bytes_max: 256 << 20, fuel_max: 1_000_000_000_000 }
    }
}

/// What every step of a graph may see, beside the values of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepEnvironment {
    /// Directories. Default none.
    pub directories: Vec<DirectoryGrant>,
    /// Hosts that may be asked by HTTP. Default none.
    pub hosts: Vec<HostPattern>,
    /// What each step may use.
    pub limits: StepLimits,
}

impl StepEnvironment {
    /// Whether a step may change something outside, or tell somebody: then each of them acts.
    #[must_use]
    pub fn may_act(&self) -> bool {
        !self.hosts.is_empty() || self.directories.iter().any(|one| one.access == Access::Write)
    }
}

/// A graph in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphSummary {
    /// Its name; of an agent's graph, the invocation, `#`, and the name that the agent gave it.
    pub name: String,
    /// `python`. A graph of an earlier version may have `javascript`: it is listed and removed, and not opened.
    pub language: String,
    /// Counts every change.
    pub version: u64,
    /// How many steps there are.
    pub steps: usize,
    /// How many of them are stale.
    pub stale: usize,
    /// When it was made, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// When it was last changed.
    pub changed_ms: u64,
    /// Whether it is an agent's, which nobody else changes.
    pub of_agent: bool,
}

/// What a change did to a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphVersion {
    /// Counts from 1.
    pub number: u64,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What, in one line.
    pub what: String,
}

/// Why a graph did not do it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum GraphError {
    /// No such step.
    #[error("there is no step `{0}` in this graph")]
    UnknownStep(String),
    /// What it takes is not allowed, or not there until somebody provides it.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// It cannot be asked like this.
    #[error("{0}")]
    Invalid(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// An answer, and what becomes durable with it.
#[derive(Debug)]
pub struct StagedAnswer {
    /// The answer. A refusal changes nothing.
    pub answer: Result<GraphAnswer, GraphError>,
    /// The change of the graph: it is there once this is committed, and not before.
    pub closing: Batch,
}

impl From<GraphError> for StagedAnswer {
    fn from(error: GraphError) -> Self {
        Self { answer: Err(error), closing: Batch::new() }
    }
}

/// The graphs of invocations.
#[async_trait::async_trait]
pub trait Graphs: Send + Sync {
    /// Answers for the graph `name` of an invocation. Steps that ran are kept as they end, so that the same question
    /// after a kill runs only what is left; every other change is in what is to be committed with the answer.
    async fn ask(&self, owner: &InvocationId, name: &str, ask: GraphOperation) -> StagedAnswer;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_printable_and_not_long() {
        assert_eq!(check_name("step", "load the data: ä"), Ok(()));
        assert_eq!(check_name("step", &"a".repeat(NAME_BYTES_MAX)), Ok(()));
        assert!(check_name("step", &"a".repeat(NAME_BYTES_MAX + 1)).is_err_and(|why| why.contains("201 bytes")));
        assert!(check_name("graph", "").is_err_and(|why| why.contains("is empty")));
        assert!(check_name("graph", "a\0b").is_err_and(|why| why.contains("a\\0b")));
        assert!(check_name("graph", "a\u{1b}[2J").is_err() && check_name("step", "a\u{202e}b").is_err());
    }
}
