//! The types of the execution-state graph's operations and answers.
//!
//! A graph is code in steps. Other crates decide about dependencies, staleness and runs; here are only the types that
//! the contract, the service and their callers share. Knows no language and runs nothing.

use crate::grant::{Access, DirectoryGrant, HostPattern};
use crate::store::Batch;
use crate::{Denial, InvocationId, LimitHit};
use serde::{Deserialize, Serialize};

/// Bytes of the name of a graph, and of a step.
pub const NAME_BYTES_MAX: usize = 200;

/// Bytes of the source of a step. A longer one is refused; data belongs in a file or in values.
pub const SOURCE_BYTES_MAX: usize = 1_000_000;

/// Checks the name of a graph or of a step.
///
/// # Errors
/// The fault as text, with the rule for names.
pub fn check_name(kind: &str, name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("the name of a {kind} is empty; give it one, such as `load`"));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the name of a {kind} has {} bytes, and at most {NAME_BYTES_MAX} are kept", name.len()));
    }
    // Including marks that change the direction of writing.
    if crate::text::printable(name, NAME_BYTES_MAX) != name {
        let shown = crate::text::truncate(&name.escape_debug().to_string(), 60);
        return Err(format!("the name `{shown}` of a {kind} has control characters; use printable ones"));
    }
    Ok(())
}

/// The state of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Its values are the results of its source with its present inputs.
    Fresh,
    /// The next run includes it.
    #[default]
    Stale,
    /// A step that it needs failed, so it did not run.
    Blocked,
    /// It raised, or reached a limit.
    Failed,
    /// Its source does not parse.
    Broken,
    /// It acts, and was interrupted: whether its effect happened is unknown, so it does not run automatically.
    Unknown,
}

impl StepState {
    /// The name of the state.
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

/// The reason why a step failed, or does not parse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFailure {
    /// The exception's type, `SyntaxError` for a source that does not parse, or the limit's name.
    pub kind: String,
    /// The message.
    pub message: String,
    /// In the step's source, from 1.
    pub line: Option<u32>,
    /// In characters, from 1.
    pub column: Option<u32>,
    /// The traceback as the language prints it; bounded.
    pub traceback: String,
}

/// A view of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepView {
    /// Its name.
    pub id: String,
    /// Its source.
    pub source: String,
    /// Its state.
    pub state: StepState,
    /// Names that it reads of earlier steps.
    pub reads: Vec<String>,
    /// Names that it may write or change.
    pub writes: Vec<String>,
    /// The steps that it needs directly.
    pub needs: Vec<String>,
    /// Values that it made and that cannot be stored.
    #[serde(alias = "unstorable")]
    pub live_only: Vec<String>,
    /// Standard output of its last run; bounded.
    pub stdout: String,
    /// Standard error of its last run; bounded.
    pub stderr: String,
    /// The value of its last expression, as the language prints it; bounded.
    pub value: Option<String>,
    /// The reason why it failed or does not parse.
    pub failure: Option<StepFailure>,
    /// The duration of its last run, in milliseconds.
    pub duration_ms: u32,
    /// Fuel of its last run.
    pub fuel_used: u64,
    /// Peak memory of its last run, in bytes.
    pub memory_bytes_peak: u64,
}

/// The effect of a change of the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphChanges {
    /// Steps that run next, in order.
    pub stale: Vec<String>,
    /// The reason why the new source does not parse.
    pub failure: Option<StepFailure>,
}

/// The result of a run of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplaySummary {
    /// Steps that ran, in their order, the failed ones included.
    pub ran: Vec<String>,
    /// Steps that were answered with an earlier result for the same input.
    #[serde(alias = "reused")]
    pub answered: Vec<String>,
    /// Steps that failed.
    pub failed: Vec<String>,
    /// Steps that did not run, since one that they need failed.
    pub blocked: Vec<String>,
    /// Steps that acted and were interrupted; a person decides.
    pub unknown: Vec<String>,
    /// The number of steps that were fresh and stayed so.
    pub untouched: u32,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// A value that may be related to a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ValueView {
    /// Its name.
    pub name: String,
    /// Its text; bounded.
    #[serde(alias = "text")]
    pub shown: String,
    /// The step that made it.
    #[serde(alias = "producer")]
    pub made_by: Option<String>,
}

/// The diagnosis of a failed step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiagnosisView {
    /// The step that failed.
    pub step: String,
    /// The failure.
    pub failure: StepFailure,
    /// Related values.
    pub values: Vec<ValueView>,
    /// The step that is likely at fault.
    #[serde(alias = "cause")]
    pub culprit: String,
    /// The reason why that step is likely at fault.
    #[serde(alias = "reason")]
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
    /// The change, and its reason.
    #[serde(alias = "reason")]
    pub why: String,
    /// The number of sources that were tried.
    pub tries: u32,
    /// The run that followed it.
    pub replay: ReplaySummary,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphFormat {
    /// One JSON object.
    Json,
    /// The input format of Graphviz.
    Dot,
}

/// An operation on a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphOperation {
    /// Add a step after the others.
    Add {
        /// Its name.
        step: String,
        /// Its source.
        source: String,
    },
    /// Replace the source of a step.
    Change {
        /// The step.
        step: String,
        /// Its source.
        source: String,
    },
    /// Remove a step.
    Remove {
        /// The step.
        step: String,
    },
    /// Run the stale steps.
    Run {
        /// Whether to run dependents of a failed step too.
        keep_going: bool,
    },
    /// Run a step again, and the steps that its new values affect.
    Replay {
        /// The step.
        step: String,
        /// Whether to run dependents of a failed step too.
        keep_going: bool,
    },
    /// List the stale steps.
    Stale,
    /// Show all steps.
    Show,
    /// Diagnose a failed step.
    Diagnose {
        /// The step; none: the first that failed.
        step: Option<String>,
    },
    /// Find a source that removes a failure.
    Patch {
        /// The step; none: the first that failed.
        step: Option<String>,
    },
    /// Export the graph as a text.
    Export {
        /// The format.
        format: GraphFormat,
    },
}

/// The answer to an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphAnswer {
    /// For [`GraphOperation::Add`], [`GraphOperation::Change`] and [`GraphOperation::Remove`].
    Changed(GraphChanges),
    /// For [`GraphOperation::Run`] and [`GraphOperation::Replay`].
    Replayed(ReplaySummary),
    /// For [`GraphOperation::Stale`], in the order in which they would run.
    Stale(Vec<String>),
    /// For [`GraphOperation::Show`], in the order of the graph.
    Steps(Vec<StepView>),
    /// For [`GraphOperation::Diagnose`].
    Diagnosed(DiagnosisView),
    /// For [`GraphOperation::Patch`].
    Patched(PatchView),
    /// For [`GraphOperation::Export`].
    Text(String),
}

/// The limits of each step of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepLimits {
    /// Wall time, in milliseconds. Default 300 000 (five minutes).
    pub timeout_ms: u64,
    /// All linear memory, in bytes. Default 256 MiB.
    pub memory_bytes_max: u64,
    /// Fuel, in wasmtime's unit. Default 1 000 000 000 000.
    pub fuel_max: u64,
}

impl Default for StepLimits {
    fn default() -> Self {
        Self { timeout_ms: 300_000, memory_bytes_max: 256 << 20, fuel_max: 1_000_000_000_000 }
    }
}

/// The environment of every step of a graph, beside the values of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepEnvironment {
    /// Directories. Default none.
    pub directories: Vec<DirectoryGrant>,
    /// Hosts that it may reach by HTTP. Default none.
    pub hosts: Vec<HostPattern>,
    /// The limits of each step.
    pub limits: StepLimits,
}

impl StepEnvironment {
    /// Whether a step may change something outside, or send something: then each of them acts.
    #[must_use]
    pub fn may_act(&self) -> bool {
        !self.hosts.is_empty() || self.directories.iter().any(|one| one.access == Access::Write)
    }
}

/// The summary of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphSummary {
    /// Its name; of an agent's graph, the invocation, `#`, and the name that the agent gave it.
    pub name: String,
    /// `python`. A graph of an earlier version may have `javascript`: it is listed and removed, and not opened.
    pub language: String,
    /// Counts every change.
    pub version: u64,
    /// The number of steps.
    pub steps: usize,
    /// The number of stale steps.
    pub stale: usize,
    /// When it was made, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// When it was last changed.
    pub changed_ms: u64,
    /// Whether it is an agent's, which only that agent changes.
    pub of_agent: bool,
}

/// One change of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphVersion {
    /// Counts from 1.
    pub number: u64,
    /// Its time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The change, in one line.
    pub what: String,
}

/// The reason why a graph refused an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum GraphError {
    /// No such step.
    #[error("there is no step `{0}` in this graph")]
    UnknownStep(String),
    /// A required grant or resource is missing.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// An answer, with the changes that become durable with it.
#[derive(Debug)]
pub struct StagedAnswer {
    /// The answer. A refusal changes nothing.
    pub answer: Result<GraphAnswer, GraphError>,
    /// The change of the graph, which takes effect with this commit.
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
    /// Answers for the graph `name` of an invocation. Steps are stored as they end, so that the same request after a
    /// kill runs only the rest; every other change is part of the batch that is committed with the answer.
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
