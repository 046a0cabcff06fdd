//! Graphs of steps of code, and the results of their operations.

use crate::graph_output::{GraphOutputContent, GraphOutputEvent, StepOutcome};
use crate::graphs::GraphPage;
use longhaul_core::graph as inner;
use longhaul_core::output::StandardStream;
use serde::Serialize;

/// The reason why a step failed, or does not parse.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphFailureView {
    /// The exception's type, `SyntaxError` for a source that does not parse, or the name of a limit.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The line in the step's source, from 1.
    pub line: Option<u32>,
    /// The column, in characters from 1.
    pub column: Option<u32>,
    /// The traceback as the language prints it; bounded.
    pub traceback: String,
}

impl From<inner::StepFailure> for GraphFailureView {
    fn from(of: inner::StepFailure) -> Self {
        let inner::StepFailure { kind, message, line, column, traceback } = of;
        Self { kind, message, line, column, traceback }
    }
}

/// A step of a graph.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphStepView {
    /// Its name.
    pub id: String,
    /// Its source.
    pub source: String,
    /// Its state: `fresh`, `stale`, `blocked`, `failed`, `broken` or `unknown`.
    pub state: String,
    /// Names that it reads of earlier steps.
    pub reads: Vec<String>,
    /// Names that it may write or change.
    pub writes: Vec<String>,
    /// The steps that it needs directly.
    pub needs: Vec<String>,
    /// Values that it made and that cannot be stored.
    pub unstorable: Vec<String>,
    /// Files and directories that its last run read, by their paths in the guest. If one changes, the step is stale.
    pub files: Vec<String>,
    /// Standard output of its last run; bounded.
    pub stdout: String,
    /// Standard error of its last run; bounded.
    pub stderr: String,
    /// The value of its last expression, as the language prints it; bounded.
    pub value: Option<String>,
    /// The reason why it failed or does not parse.
    pub failure: Option<GraphFailureView>,
    /// Duration of its last run, in milliseconds.
    pub duration_ms: u32,
    /// Fuel of its last run.
    pub fuel_used: u64,
    /// Peak memory of its last run, in bytes.
    pub memory_bytes_peak: u64,
}

impl From<inner::StepView> for GraphStepView {
    fn from(of: inner::StepView) -> Self {
        let inner::StepView {
            id,
            source,
            state,
            reads,
            writes,
            needs,
            live_only,
            files,
            stdout,
            stderr,
            value,
            failure,
            duration_ms,
            fuel_used,
            memory_bytes_peak,
        } = of;
        Self {
            id,
            source,
            state: state.as_str().to_owned(),
            reads,
            writes,
            needs,
            unstorable: live_only,
            files,
            stdout,
            stderr,
            value,
            failure: failure.map(Into::into),
            duration_ms,
            fuel_used,
            memory_bytes_peak,
        }
    }
}

/// The effect of a change of steps.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphChangesView {
    /// Steps that run next, in order.
    pub stale: Vec<String>,
    /// The reason why the new source does not parse.
    pub failure: Option<GraphFailureView>,
}

impl From<inner::GraphChanges> for GraphChangesView {
    fn from(of: inner::GraphChanges) -> Self {
        let inner::GraphChanges { stale, failure } = of;
        Self { stale, failure: failure.map(Into::into) }
    }
}

/// The result of a run of a graph.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphRunView {
    /// Steps that ran, in their order, the failed ones included.
    pub ran: Vec<String>,
    /// Steps whose earlier result for the same input was used.
    pub reused: Vec<String>,
    /// Steps that failed.
    pub failed: Vec<String>,
    /// Steps that did not run, since one that they need failed.
    pub blocked: Vec<String>,
    /// Steps that acted and were interrupted; a person decides.
    pub unknown: Vec<String>,
    /// Number of steps that were fresh and stayed so.
    pub untouched: u32,
    /// Output of the steps that ran and printed something or ended with a value, in their order; bounded.
    pub outputs: Vec<GraphOutputView>,
    /// The first dependencies that the sources do not show and the run found. They are known from then on.
    pub discovered: Vec<GraphDependencyView>,
    /// Number of all dependencies that the run found.
    pub discovered_count: u32,
    /// Warnings.
    pub warnings: Vec<String>,
}

impl From<inner::ReplaySummary> for GraphRunView {
    fn from(of: inner::ReplaySummary) -> Self {
        let inner::ReplaySummary {
            ran,
            answered,
            failed,
            blocked,
            unknown,
            untouched,
            outputs,
            discovered,
            discovered_count,
            warnings,
        } = of;
        Self {
            ran,
            reused: answered,
            failed,
            blocked,
            unknown,
            untouched,
            outputs: outputs.into_iter().map(Into::into).collect(),
            discovered: discovered.into_iter().map(Into::into).collect(),
            discovered_count,
            warnings,
        }
    }
}

/// The output of a step.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphOutputView {
    /// Its name.
    pub step: String,
    /// Its standard output; bounded.
    pub stdout: String,
    /// The value of its last expression, as the language prints it; bounded.
    pub value: Option<String>,
}

impl From<inner::StepOutput> for GraphOutputView {
    fn from(of: inner::StepOutput) -> Self {
        let inner::StepOutput { step, stdout, value } = of;
        Self { step, stdout, value }
    }
}

/// A dependency of a step on another one.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphDependencyView {
    /// The step that is needed.
    pub from: String,
    /// The step that needs it.
    pub to: String,
    /// The variable.
    pub variable: String,
}

impl From<inner::StepDependency> for GraphDependencyView {
    fn from(of: inner::StepDependency) -> Self {
        let inner::StepDependency { from, to, variable } = of;
        Self { from, to, variable }
    }
}

/// A place in a step that a failure passed through.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphFrameView {
    /// The step.
    pub step: String,
    /// The line in its source, from 1.
    pub line: u32,
    /// The function; empty outside of functions.
    pub function: String,
    /// The text of the line; empty if the source has no such line any more.
    pub source: String,
}

impl From<inner::StepFrame> for GraphFrameView {
    fn from(of: inner::StepFrame) -> Self {
        let inner::StepFrame { step, line, function, source } = of;
        Self { step, line, function, source }
    }
}

/// A value that may be related to a failure.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphValueView {
    /// Its name.
    pub name: String,
    /// Its text; bounded.
    pub text: String,
    /// The step that made it.
    pub producer: Option<String>,
}

impl From<inner::ValueView> for GraphValueView {
    fn from(of: inner::ValueView) -> Self {
        let inner::ValueView { name, shown, made_by } = of;
        Self { name, text: shown, producer: made_by }
    }
}

/// The diagnosis of a failed step.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphDiagnosisView {
    /// The step that failed.
    pub step: String,
    /// The failure.
    pub failure: GraphFailureView,
    /// The innermost place in a step; null if it failed in no step, or that is not known.
    pub frame: Option<GraphFrameView>,
    /// Related values.
    pub values: Vec<GraphValueView>,
    /// The step that is likely at fault.
    pub cause: String,
    /// The reason why that step is likely at fault.
    pub reason: String,
}

impl From<inner::DiagnosisView> for GraphDiagnosisView {
    fn from(of: inner::DiagnosisView) -> Self {
        let inner::DiagnosisView { step, failure, frame, values, culprit, why } = of;
        Self {
            step,
            failure: failure.into(),
            frame: frame.map(Into::into),
            values: values.into_iter().map(Into::into).collect(),
            cause: culprit,
            reason: why,
        }
    }
}

/// A patch that was kept.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphPatchView {
    /// The step that was changed.
    pub step: String,
    /// Its source now.
    pub source: String,
    /// The change, and its reason.
    pub reason: String,
    /// Number of sources that were tried.
    pub tries: u32,
    /// The run that followed it.
    pub replay: GraphRunView,
}

impl From<inner::PatchView> for GraphPatchView {
    fn from(of: inner::PatchView) -> Self {
        let inner::PatchView { step, source, why, tries, replay } = of;
        Self { step, source, reason: why, tries, replay: replay.into() }
    }
}

/// A summary of a graph.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphView {
    /// Its name; for the graph of an agent, the invocation, `#`, and the name that the agent gave it.
    pub name: String,
    /// The language of its steps: `python`. A graph of an earlier version may have `javascript`.
    pub language: String,
    /// Counts every change.
    pub version: u64,
    /// Number of its steps.
    pub steps: usize,
    /// Number of its stale steps.
    pub stale: usize,
    /// Time when it was made, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// Time of its last change, in milliseconds since 1970-01-01 UTC.
    pub changed_ms: u64,
    /// True when it belongs to an agent, which alone changes it.
    pub of_agent: bool,
    /// Directories that its steps see, as `HOST:GUEST`, with `:ro` behind those that they only read.
    pub directories: Vec<String>,
    /// Hosts that its steps may reach.
    pub hosts: Vec<String>,
}

impl From<inner::GraphSummary> for GraphView {
    fn from(of: inner::GraphSummary) -> Self {
        let inner::GraphSummary {
            name,
            language,
            version,
            steps,
            stale,
            created_ms,
            changed_ms,
            of_agent,
            directories,
            hosts,
        } = of;
        Self { name, language, version, steps, stale, created_ms, changed_ms, of_agent, directories, hosts }
    }
}

/// A graph with its steps.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphDetails {
    /// The graph. The number of its stale steps is that of the list below.
    pub graph: GraphView,
    /// A page of its steps, in their order, with their sources, outputs, dependencies and states.
    pub steps: Vec<GraphStepView>,
    /// Number of all steps.
    pub total: usize,
    /// Steps before this page.
    pub offset: usize,
}

impl From<GraphPage> for GraphDetails {
    fn from(of: GraphPage) -> Self {
        let GraphPage { graph, steps, total, offset } = of;
        Self { graph: graph.into(), steps: steps.into_iter().map(Into::into).collect(), total, offset }
    }
}

/// A change of a step, and the run that followed it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphStepChange {
    /// The effect of the change.
    pub changes: GraphChangesView,
    /// The run; null if none was asked for, or the source does not parse.
    pub run: Option<GraphRunView>,
}

/// One change of a graph.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphVersionView {
    /// Its number, from 1 on.
    pub number: u64,
    /// Its time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The change, in one line.
    pub summary: String,
}

impl From<inner::GraphVersion> for GraphVersionView {
    fn from(of: inner::GraphVersion) -> Self {
        let inner::GraphVersion { number, at_ms, what } = of;
        Self { number, at_ms, summary: what }
    }
}

/// An event of a step of a graph while it runs. Fields of other types are left out.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GraphOutputLine {
    /// Its number. It grows from event to event of the graph.
    pub number: u64,
    /// The step.
    pub step: String,
    /// `begin`, `output` or `end`. New types may appear.
    pub r#type: String,
    /// Of `begin`: the place of the step in the run, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// Of `begin`: the number of steps that the run looks at, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Of `output`: `stdout` or `stderr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Of `output`: whole lines of at most 4 KiB. A line without its end comes when the step ends, or has 4 KiB. It may
    /// have escape sequences, as the step printed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of `end`: `done`, `failed`, or `again` where the step runs once more with variables that its source does not
    /// show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Of `end`: duration of the step, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Of `end`: the value of the last expression, as the language prints it; bounded. Left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl From<GraphOutputEvent> for GraphOutputLine {
    fn from(of: GraphOutputEvent) -> Self {
        let GraphOutputEvent { number, step, content } = of;
        let line = |kind: &str| Self { number, step, r#type: kind.to_owned(), ..Self::default() };
        match content {
            GraphOutputContent::Began { place, steps } => {
                Self { place: Some(place), steps: Some(steps), ..line("begin") }
            }
            GraphOutputContent::Printed { stream, text } => {
                let stream = match stream {
                    StandardStream::Output => "stdout",
                    StandardStream::Error => "stderr",
                };
                Self { stream: Some(stream.to_owned()), text: Some(text), ..line("output") }
            }
            GraphOutputContent::Ended { outcome, duration_ms, value } => {
                let outcome = match outcome {
                    StepOutcome::Done => "done",
                    StepOutcome::Failed => "failed",
                    StepOutcome::Again => "again",
                };
                Self { outcome: Some(outcome.to_owned()), duration_ms: Some(duration_ms), value, ..line("end") }
            }
        }
    }
}
