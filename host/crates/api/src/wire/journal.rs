//! Invocations and their journals.

use super::approvals::Effect;
use crate::journal::{RecordedCall, RecordedInvocation};
use crate::runs::{CarriedInvocation, ReplayResult as InnerReplayed};
use longhaul_core::InvocationId;
use longhaul_core::journal as inner;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An invocation with the plugin that carried it out.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Invocation {
    /// Its name.
    pub invocation: String,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub agent: String,
    /// The plugin.
    pub plugin: String,
    /// Time when it first began, in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// Time when it ended, in milliseconds since 1970-01-01 UTC; null while it has not.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub until_ms: Option<u64>,
}

impl From<CarriedInvocation> for Invocation {
    fn from(inner: CarriedInvocation) -> Self {
        let CarriedInvocation { invocation, table, plugin, from_ms, until_ms } = inner;
        Self { invocation: invocation.as_str().to_owned(), agent: table, plugin, from_ms, until_ms }
    }
}

/// A person's statement about an effect whose outcome is unknown.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = Resolution))]
pub enum ResolutionView {
    /// The effect happened, and this JSON, as text, is the answer of the tool.
    Happened(String),
    /// The effect did not happen: execute it.
    DidNotHappen,
    /// Do not execute the effect; the agent gets an error.
    Skip,
}

impl From<inner::Resolution> for ResolutionView {
    fn from(inner: inner::Resolution) -> Self {
        match inner {
            inner::Resolution::Happened(output) => Self::Happened(output),
            inner::Resolution::DidNotHappen => Self::DidNotHappen,
            inner::Resolution::Skip => Self::Skip,
        }
    }
}

impl From<ResolutionView> for inner::Resolution {
    fn from(outer: ResolutionView) -> Self {
        match outer {
            ResolutionView::Happened(output) => Self::Happened(output),
            ResolutionView::DidNotHappen => Self::DidNotHappen,
            ResolutionView::Skip => Self::Skip,
        }
    }
}

/// One call of an import.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = JournalEntry))]
pub struct JournalEntryView {
    /// Its number.
    pub number: u32,
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// The call in one line.
    pub summary: String,
    /// The class of its effect.
    pub class: Effect,
    /// The digest of its arguments.
    pub arguments: String,
    /// Number of attempts.
    pub attempt: u32,
    /// Time of the call, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Fuel used by the guest up to it.
    pub fuel_used: u64,
    /// The answer: JSON as text; null while the call is in flight.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub answer: Option<String>,
    /// Time of the answer, in milliseconds since 1970-01-01 UTC.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub answered_ms: Option<u64>,
    /// A person's statement about the effect, if its outcome was unknown.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub resolution: Option<ResolutionView>,
}

impl From<(u32, inner::JournalEntry)> for JournalEntryView {
    fn from((number, entry): (u32, inner::JournalEntry)) -> Self {
        let inner::JournalEntry { asked, answered, resolution } = entry;
        let (answer, answered_ms) = answered.map(|answered| (answered.answer, answered.at_ms)).unzip();
        Self {
            number,
            name: asked.name,
            summary: asked.summary,
            class: asked.class.into(),
            arguments: asked.arguments.to_string(),
            attempt: asked.attempt,
            at_ms: asked.at_ms,
            fuel_used: asked.fuel_used,
            answer,
            answered_ms,
            resolution: resolution.map(Into::into),
        }
    }
}

/// The end of an invocation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = InvocationResult))]
pub struct FinishedView {
    /// The result of the export, or the error that ended it: JSON as text.
    pub result: String,
    /// Fuel used in all.
    pub fuel_used: u64,
    /// True when a deadline, a cancellation or the machine ended it.
    pub interrupted: bool,
    /// Time of the end, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// Entries of a journal.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = JournalEntries))]
pub struct Entries {
    /// Name of the invocation.
    pub invocation: String,
    /// The entries in order.
    pub entries: Vec<JournalEntryView>,
    /// The end of the invocation; null while it has not ended.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub finished: Option<FinishedView>,
    /// The value of `after` for the next page; null if this page is the last.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub next_after: Option<u32>,
}

impl Entries {
    /// The entries of an invocation, at most `limit` of them.
    pub fn of(
        invocation: &InvocationId,
        entries: Vec<(u32, inner::JournalEntry)>,
        finished: Option<inner::Finished>,
        limit: usize,
    ) -> Self {
        let has_more = entries.len() > limit;
        let entries: Vec<JournalEntryView> = entries.into_iter().take(limit).map(Into::into).collect();
        let next_after = entries.last().filter(|_| has_more).map(|last| last.number);
        let finished = finished.map(|inner::Finished { result, fuel_used, interrupted, at_ms }| FinishedView {
            result,
            fuel_used,
            interrupted,
            at_ms,
        });
        Self { invocation: invocation.as_str().to_owned(), entries, finished, next_after }
    }
}

/// The result of the replay of one invocation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ReplayResult))]
pub struct ReplayedView {
    /// Name of the invocation.
    pub invocation: String,
    /// Calls that were answered from the journal.
    pub calls: u32,
    /// Fuel that the journal holds.
    pub fuel_journal: u64,
    /// Fuel that the replay used.
    pub fuel_replay: u64,
    /// True when result, calls and fuel are the same.
    pub same: bool,
    /// The difference, in one line.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub difference: Option<String>,
}

/// The results of replays.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ReplayResults))]
pub struct Replays {
    /// One result for each invocation.
    pub invocations: Vec<ReplayedView>,
}

impl From<Vec<InnerReplayed>> for Replays {
    fn from(inner: Vec<InnerReplayed>) -> Self {
        let one = |InnerReplayed { invocation, calls, fuel, same, difference }: InnerReplayed| ReplayedView {
            invocation: invocation.as_str().to_owned(),
            calls,
            fuel_journal: fuel.0,
            fuel_replay: fuel.1,
            same,
            difference,
        };
        Self { invocations: inner.into_iter().map(one).collect() }
    }
}

/// A recorded call of an import.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RecordedCall))]
pub struct RecordedCallView {
    /// Number of the journal entry.
    pub entry: u32,
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// The arguments. A request to a model is its difference from the one before it in the same conversation.
    pub arguments: Value,
    /// Time of the call, in milliseconds since 1970-01-01 UTC.
    pub asked_ms: u64,
    /// Time of the answer, in milliseconds since 1970-01-01 UTC.
    pub answered_ms: u64,
    /// The answer.
    pub answer: Value,
}

impl From<(u32, RecordedCall)> for RecordedCallView {
    fn from((entry, inner): (u32, RecordedCall)) -> Self {
        let RecordedCall { name, arguments, decides: _, asked_ms, answered_ms, answer } = inner;
        Self { entry, name, arguments, asked_ms, answered_ms, answer }
    }
}

/// All that an invocation of a plugin was told, asked and answered, without the values of known secrets.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Recording))]
pub struct RecordingView {
    /// Name of the invocation.
    pub invocation: String,
    /// Name of the plugin.
    pub plugin: String,
    /// The version in its manifest. Empty: it has none.
    pub version: String,
    /// The digest of its component.
    pub component: String,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub agent: String,
    /// The role and the export, for example `agent.run`.
    pub export: String,
    /// The arguments of the export, as the journal has them.
    pub input: Value,
    /// The seed of its randomness, as 64 hexadecimal digits.
    pub seed: String,
    /// Time of its start, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The rules that trim its conversations; null: never.
    pub context: Value,
    /// Its limits, by name.
    pub limits: Value,
    /// The models that it was granted, the default first.
    pub models: Vec<String>,
    /// The tools that it was granted.
    pub tools: Vec<String>,
    /// The agents that it was granted.
    pub agents: Vec<String>,
    /// Its calls that were answered, in order.
    pub calls: Vec<RecordedCallView>,
    /// Its result: JSON as text; null if it has none that a test can compare.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub result: Option<String>,
    /// The reason for which it has no such result.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub open: Option<String>,
    /// Number of texts from which values of secrets were removed.
    pub secrets_replaced: usize,
}

impl From<RecordedInvocation> for RecordingView {
    fn from(inner: RecordedInvocation) -> Self {
        Self {
            invocation: inner.invocation.as_str().to_owned(),
            plugin: inner.plugin,
            version: inner.version,
            component: inner.component.to_string(),
            agent: inner.table,
            export: inner.export,
            input: inner.input,
            seed: inner.seed.to_string(),
            at_ms: inner.at_ms,
            context: json!(inner.context),
            limits: json!(inner.limits),
            models: inner.models,
            tools: inner.tools,
            agents: inner.agents,
            calls: (1..).zip(inner.calls).map(Into::into).collect(),
            result: inner.result,
            open: inner.open,
            secrets_replaced: inner.secrets_replaced,
        }
    }
}
