//! Requests and responses about the journal and the events of a run. This module reads no journal.

use crate::runs::{ReplayResult, RunRef};
use longhaul_core::InvocationId;
use longhaul_core::journal::{Finished, JournalEntry};
use serde::{Deserialize, Serialize};
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

/// The results of replays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayOutcome {
    /// One result for each invocation.
    pub invocations: Vec<ReplayResult>,
}
