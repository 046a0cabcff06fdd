//! The types of the execution-state graph's operations and answers.
//!
//! A graph is code in steps. Other crates decide about dependencies, staleness and runs; here are only the types that
//! the contract, the service and their callers share. Knows no language and runs nothing.

use crate::grant::{Access, DirectoryGrant, HostPattern};
use crate::store::Batch;
use crate::{Denial, InvocationId, LimitHit};
use serde::{Deserialize, Serialize};

/// The most bytes of the name of a graph, and of a step.
pub const NAME_BYTES_MAX: usize = 200;

/// The most bytes of the source of a step. Longer sources are refused; data belongs in files or in values.
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
    /// The values of the step are those that its source computes from the values that it reads now.
    Fresh,
    /// The step runs in the next run.
    #[default]
    Stale,
    /// The step did not run, because a step that it needs failed.
    Blocked,
    /// The last run of the step raised an exception or reached a limit.
    Failed,
    /// The source of the step does not parse.
    Broken,
    /// The last run of the step was cut off, and whether its effect happened is unknown. The step does not run until a
    /// person decides.
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

/// The reason for which a step failed, or does not parse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFailure {
    /// The exception's type, `SyntaxError` for a source that does not parse, or the limit's name.
    pub kind: String,
    /// The message of the exception or the limit.
    pub message: String,
    /// The line in the source of the step, from 1. None: not known.
    pub line: Option<u32>,
    /// The column in that line, in characters from 1. None: not known.
    pub column: Option<u32>,
    /// The traceback as the language prints it, cut at 16 KiB.
    pub traceback: String,
}

/// A step and the results of its last run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepView {
    /// The name of the step.
    pub id: String,
    /// The source of the step.
    pub source: String,
    /// The state of the step.
    pub state: StepState,
    /// The names of the variables that it reads from earlier steps.
    pub reads: Vec<String>,
    /// The names of the variables that it may write or change.
    pub writes: Vec<String>,
    /// The names of the steps that it depends on directly.
    pub needs: Vec<String>,
    /// The names of the variables whose values cannot be stored.
    #[serde(alias = "unstorable")]
    pub live_only: Vec<String>,
    /// The files and directories that the last run read, by their paths in the guest.
    pub files: Vec<String>,
    /// The standard output of the last run, cut at 64 KiB.
    pub stdout: String,
    /// The standard error of the last run, cut at 64 KiB.
    pub stderr: String,
    /// The value of the last expression as the language prints it, cut at 10 000 bytes. None: there is none.
    pub value: Option<String>,
    /// The reason for which it failed or does not parse.
    pub failure: Option<StepFailure>,
    /// The duration of the last run, in milliseconds.
    pub duration_ms: u32,
    /// The fuel of the last run.
    pub fuel_used: u64,
    /// The highest memory of the last run, in bytes.
    pub memory_bytes_peak: u64,
}

/// The effect of a change of the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphChanges {
    /// The names of the steps that the next run includes, in order.
    pub stale: Vec<String>,
    /// The reason for which the new source does not parse. None: it parses.
    pub failure: Option<StepFailure>,
}

/// The result of a run of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplaySummary {
    /// The names of the steps that ran, in order, the failed ones included.
    pub ran: Vec<String>,
    /// The names of the steps whose earlier result for the same inputs was used.
    #[serde(alias = "reused")]
    pub answered: Vec<String>,
    /// The names of the steps that failed.
    pub failed: Vec<String>,
    /// The names of the steps that did not run because a step that they need failed.
    pub blocked: Vec<String>,
    /// The names of the steps whose effect is unknown. A person decides.
    pub unknown: Vec<String>,
    /// The number of steps that were fresh and still are.
    pub untouched: u32,
    /// The output of the steps that ran and printed something or ended with a value, in order; bounded.
    pub outputs: Vec<StepOutput>,
    /// The first dependencies that the sources do not show and the run found. They are known from then on.
    pub discovered: Vec<StepDependency>,
    /// The number of all of them.
    pub discovered_count: u32,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
}

/// The output of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepOutput {
    /// The name of the step.
    pub step: String,
    /// The standard output, cut at 64 KiB.
    pub stdout: String,
    /// The value of the last expression as the language prints it, cut at 10 000 bytes. None: there is none.
    pub value: Option<String>,
}

/// A dependency of a step on another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepDependency {
    /// The name of the step that is needed.
    pub from: String,
    /// The name of the step that needs it.
    pub to: String,
    /// The name of the variable.
    pub variable: String,
}

/// A place in a step that a failure passed through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepFrame {
    /// The name of the step.
    pub step: String,
    /// The line in the source of the step, from 1.
    pub line: u32,
    /// The name of the function. Empty: outside of functions.
    pub function: String,
    /// The text of the line, cut at 200 bytes. Empty: the source has no such line any more.
    pub source: String,
}

/// A value that may be related to a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ValueView {
    /// The name of the variable.
    pub name: String,
    /// The value as text, cut at 300 bytes.
    #[serde(alias = "text")]
    pub shown: String,
    /// The name of the step that computed it. None: no step did.
    #[serde(alias = "producer")]
    pub made_by: Option<String>,
}

/// The diagnosis of a failed step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiagnosisView {
    /// The name of the failed step.
    pub step: String,
    /// The failure of the step.
    pub failure: StepFailure,
    /// The innermost place in a step. None: it failed in no step, or is not known.
    pub frame: Option<StepFrame>,
    /// The values that the failure may depend on.
    pub values: Vec<ValueView>,
    /// The name of the step that probably causes the failure.
    #[serde(alias = "cause")]
    pub culprit: String,
    /// The reason for naming that step.
    #[serde(alias = "reason")]
    pub why: String,
}

/// A change of a source that repaired a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PatchView {
    /// The name of the changed step.
    pub step: String,
    /// The new source of the step.
    pub source: String,
    /// The change and its reason.
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
    /// A JSON object with the steps and their dependencies.
    Json,
    /// The input format of Graphviz.
    Dot,
}

/// An operation on a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphOperation {
    /// Adds a step after the last one.
    Add {
        /// The name of the step.
        step: String,
        /// The source of the step.
        source: String,
    },
    /// Replaces the source of a step.
    Change {
        /// The name of the step.
        step: String,
        /// The new source of the step.
        source: String,
    },
    /// Removes a step.
    Remove {
        /// The name of the step.
        step: String,
    },
    /// Runs the stale steps.
    Run {
        /// True when steps that need a failed step run, too.
        keep_going: bool,
    },
    /// Runs a step again, and then the steps that its new values affect.
    Replay {
        /// The name of the step.
        step: String,
        /// True when steps that need a failed step run, too.
        keep_going: bool,
    },
    /// Lists the stale steps.
    Stale,
    /// Lists all steps.
    Show,
    /// Diagnoses the failure of a step.
    Diagnose {
        /// The name of the step. None: the first step that failed.
        step: Option<String>,
    },
    /// Repairs the failure of a step by another source.
    Patch {
        /// The name of the step. None: the first step that failed.
        step: Option<String>,
    },
    /// Exports the graph as text.
    Export {
        /// The format of the text.
        format: GraphFormat,
    },
}

/// The answer to an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphAnswer {
    /// The answer to [`GraphOperation::Add`], [`GraphOperation::Change`] and [`GraphOperation::Remove`].
    Changed(GraphChanges),
    /// The answer to [`GraphOperation::Run`] and [`GraphOperation::Replay`].
    Replayed(ReplaySummary),
    /// The answer to [`GraphOperation::Stale`]: names, in the order in which the steps will run.
    Stale(Vec<String>),
    /// The answer to [`GraphOperation::Show`], in the order of the graph.
    Steps(Vec<StepView>),
    /// The answer to [`GraphOperation::Diagnose`].
    Diagnosed(DiagnosisView),
    /// The answer to [`GraphOperation::Patch`].
    Patched(PatchView),
    /// The answer to [`GraphOperation::Export`].
    Text(String),
}

/// The limits of each step of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepLimits {
    /// The most wall time, in milliseconds. Default 300 000 (five minutes).
    pub timeout_ms: u64,
    /// The most linear memory, in bytes. Default 256 MiB.
    pub memory_bytes_max: u64,
    /// The most fuel, in wasmtime's unit. Default 1 000 000 000 000.
    pub fuel_max: u64,
}

impl Default for StepLimits {
    fn default() -> Self {
        Self { timeout_ms: 300_000, memory_bytes_max: 256 << 20, fuel_max: 1_000_000_000_000 }
    }
}

/// The environment that all steps of a graph run in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepEnvironment {
    /// The directories that steps see. Default none.
    pub directories: Vec<DirectoryGrant>,
    /// The hosts that steps may reach by HTTP. Default none.
    pub hosts: Vec<HostPattern>,
    /// The limits of each step.
    pub limits: StepLimits,
}

impl StepEnvironment {
    /// True when a step may change something outside, or send something: then each of them acts.
    #[must_use]
    pub fn may_act(&self) -> bool {
        !self.hosts.is_empty() || self.directories.iter().any(|one| one.access == Access::Write)
    }
}

/// A summary of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphSummary {
    /// The name. That of an agent's graph consists of the invocation, `#`, and the agent's own name for it.
    pub name: String,
    /// `python`. A graph of an earlier version may have `javascript`: it is listed and removed, and not opened.
    pub language: String,
    /// The number of changes.
    pub version: u64,
    /// The number of steps.
    pub steps: usize,
    /// The number of stale steps.
    pub stale: usize,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time of its last change, in milliseconds since 1970-01-01 UTC.
    pub changed_ms: u64,
    /// True when it belongs to an agent, which alone may change it.
    pub of_agent: bool,
    /// The directories that its steps see, as `HOST:GUEST`, with `:ro` behind those that they only read.
    #[serde(default)]
    pub directories: Vec<String>,
    /// The hosts that its steps may reach.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// One change of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphVersion {
    /// The number of the change, from 1.
    pub number: u64,
    /// The time of the change, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The change, in one line.
    pub what: String,
}

/// The reason for which a graph refused an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum GraphError {
    /// There is no step of that name.
    #[error("there is no step `{0}` in this graph")]
    UnknownStep(String),
    /// A grant or a resource is missing.
    #[error(transparent)]
    Denied(Denial),
    /// A limit was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// The operation is not valid.
    #[error("{0}")]
    Invalid(String),
    /// Any other failure.
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
