//! The journal and the events of a run, as they are asked for and shown. Reads no journal.

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
    /// The invocation, with or without the run's name.
    pub invocation: String,
    /// Entries after this one.
    pub after: u32,
}

/// Run finished invocations again from their journals and compare.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayInvocations {
    /// The run.
    pub run: RunRef,
    /// Only this one.
    pub invocation: Option<String>,
    /// With this component in place of the pinned one.
    pub with: Option<PathBuf>,
}

/// List events of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListEvents {
    /// The run.
    pub run: RunRef,
    /// After this number.
    pub after: u64,
}

/// List who carried out each invocation of a run.
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
    /// In the order in which they started; a delegation follows the one that asked for it.
    pub invocations: Vec<InvocationId>,
}

/// The entries of an invocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvocationEntries {
    /// The invocation.
    pub invocation: InvocationId,
    /// With their numbers.
    pub entries: Vec<(u32, JournalEntry)>,
    /// How it ended, if it has.
    pub finished: Option<Finished>,
}

/// What replays gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplayOutcome {
    /// One for each invocation.
    pub invocations: Vec<ReplayResult>,
}
