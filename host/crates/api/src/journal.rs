//! Requests and responses about the journal and the events of a run. This module reads no journal.

use crate::runs::{ReplayResult, RunRef};
use longhaul_core::context::PinnedContext;
use longhaul_core::journal::{Finished, JournalEntry};
use longhaul_core::tool::ToolCall;
use longhaul_core::{Digest, InvocationId, Limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// List the invocations of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListInvocations {
    /// The run.
    pub run: RunRef,
}

/// List the entries of an invocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListEntries {
    /// The run.
    pub run: RunRef,
    /// The id of the invocation, with or without that of the run.
    pub invocation: String,
    /// Only entries with a higher number are listed.
    pub after: u32,
}

/// Record an invocation of a plugin, so that a test can play it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordInvocation {
    /// The run.
    pub run: RunRef,
    /// The id of the invocation, with or without that of the run.
    pub invocation: String,
}

/// Run finished invocations again from their journals, and compare the results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayInvocations {
    /// The run.
    pub run: RunRef,
    /// The id of one invocation. None: all finished ones.
    pub invocation: Option<String>,
    /// The path of a component that takes the place of the pinned one. None: the pinned one.
    pub with: Option<PathBuf>,
}

/// List events of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListEvents {
    /// The run.
    pub run: RunRef,
    /// Only events with a higher number are listed. 0: from the first one.
    pub after: u64,
}

/// List the plugin and the table that carried out each invocation of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCarried {
    /// The run.
    pub run: RunRef,
}

impl ReplayInvocations {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        self.with.iter().map(PathBuf::as_path).collect()
    }
}

/// The invocations of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvocationList {
    /// The ids, in the order of their start. A delegation follows the invocation that asked for it.
    pub invocations: Vec<InvocationId>,
}

/// The entries of an invocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvocationEntries {
    /// The id of the invocation.
    pub invocation: InvocationId,
    /// The entries with their numbers.
    pub entries: Vec<(u32, JournalEntry)>,
    /// The end of the invocation. None: it has not ended.
    pub finished: Option<Finished>,
}

/// All that an invocation of a plugin was told, asked and answered, without the values of known secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedInvocation {
    /// The id of the invocation.
    pub invocation: InvocationId,
    /// The name of the plugin.
    pub plugin: String,
    /// The version in its manifest. Empty: it has none.
    pub version: String,
    /// The digest of its component.
    pub component: Digest,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub table: String,
    /// The role and the export, for example `agent.run`.
    pub export: String,
    /// The arguments of the export, as the journal has them.
    pub input: Value,
    /// The seed of its randomness, as 64 hexadecimal digits.
    pub seed: Digest,
    /// The time of its start, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The rules that trim its conversations. None: never.
    pub context: Option<PinnedContext>,
    /// Its limits.
    pub limits: Limits,
    /// The models that it was granted, the default first.
    pub models: Vec<String>,
    /// The tools that it was granted.
    pub tools: Vec<String>,
    /// The agents that it was granted.
    pub agents: Vec<String>,
    /// Its calls that were answered, in order: the first is entry 1.
    pub calls: Vec<RecordedCall>,
    /// Its result: JSON as text. None: see `open`.
    pub result: Option<String>,
    /// The reason for which it has no result that a test can compare.
    pub open: Option<String>,
    /// The number of texts from which values of secrets were removed.
    pub secrets_replaced: usize,
}

/// A call of an import, with its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// The arguments. A request to a model is its difference from the one before it in the same conversation.
    pub arguments: Value,
    /// The call of a tool that it asks a decision about.
    pub decides: Option<ToolCall>,
    /// The time of the call, in milliseconds since 1970-01-01 UTC.
    pub asked_ms: u64,
    /// The time of the answer, in milliseconds since 1970-01-01 UTC.
    pub answered_ms: u64,
    /// The answer.
    pub answer: Value,
}

/// The results of replays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayOutcome {
    /// One result for each invocation.
    pub invocations: Vec<ReplayResult>,
}
