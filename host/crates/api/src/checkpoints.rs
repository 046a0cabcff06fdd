//! Requests and responses about checkpoints. A snapshot of a run is an opaque document here: this crate never reads its
//! content.

use crate::runs::RunRef;
use longhaul_core::event::CheckpointCause;
use longhaul_core::{InvocationId, RunId};
use longhaul_security::signing::{AcceptedRisks, Signer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// List the checkpoints of a run and the saved snapshots.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCheckpoints {
    /// The run.
    pub run: RunRef,
    /// The number of steps between two checkpoints. None: as configured.
    pub every: Option<u32>,
}

/// List the runs on the shared server of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListShared {
    /// The directory of the project.
    pub directory: PathBuf,
}

/// Take a snapshot of a run or a part of it, also while a process works on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowCheckpoint {
    /// The key: `RUN`, or `RUN:PART`.
    pub key: String,
}

/// Take a signed snapshot of a run, or of the part of one agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportCheckpoint {
    /// The key: `RUN`, or `RUN:PART`.
    pub key: String,
}

/// Save a snapshot in the data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SaveCheckpoint {
    /// The key: `RUN`, or `RUN:PART`.
    pub key: String,
    /// The name of the saved snapshot.
    pub name: String,
    /// The time until the snapshot expires, in seconds.
    pub ttl_s: u64,
}

/// Read a saved snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowSaved {
    /// The name of the saved snapshot.
    pub name: String,
}

/// Import a run from a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportCheckpoint {
    /// The document of an export.
    pub snapshot: Value,
    /// The directory of the project.
    pub directory: PathBuf,
    /// True when a run of that id is replaced. Default false: it is refused.
    pub replace: bool,
    /// The risks that the caller accepts about the signer.
    #[serde(default)]
    pub accepts: AcceptedRisks,
}

/// Import a run from the shared server, and become its holder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TakeOverRun {
    /// The key of the run on the server.
    pub key: String,
    /// The directory of the project.
    pub directory: PathBuf,
    /// True when a run of that id is replaced. Default false: it is refused.
    pub replace: bool,
    /// The risks that the caller accepts about the signer.
    #[serde(default)]
    pub accepts: AcceptedRisks,
}

impl ListShared {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        vec![&self.directory]
    }
}

impl ImportCheckpoint {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        vec![&self.directory]
    }
}

impl TakeOverRun {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        vec![&self.directory]
    }
}

/// The checkpoints of one run, saved snapshots, and shared runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CheckpointList {
    /// The positions in journals of the run.
    pub checkpoints: Vec<Checkpoint>,
    /// The snapshots in the data directory.
    pub saved: Vec<SavedSnapshot>,
    /// The keys on the shared server.
    pub shared: Vec<String>,
}

/// A snapshot of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointDocument {
    /// The document, in the form of an export.
    pub snapshot: Value,
}

/// The origin of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SnapshotOrigin {
    /// A run with its plan.
    Plan {
        /// Planned features.
        features: usize,
        /// Passing features.
        passing: usize,
    },
    /// An agent's work.
    Agent {
        /// Its table, for example `agents.code`.
        agent_id: String,
        /// The invocation.
        invocation: InvocationId,
        /// Steps that it made.
        step: u32,
        /// The ids of the approvals that it waits for.
        pending: Vec<String>,
    },
}

/// The facts about a snapshot, for a person who decides about it.
#[derive(Clone, Debug)]
pub struct CheckpointDescription {
    /// The key that the snapshot was requested by.
    pub key: String,
    /// The origin.
    pub origin: SnapshotOrigin,
    /// The id of the run.
    pub run: RunId,
    /// The name of its project.
    pub project: String,
    /// Its status, in a word.
    pub status: String,
    /// Its branch.
    pub branch: String,
    /// The paths of its trees that the snapshot leaves out, because they are no files.
    pub left_out: Vec<String>,
    /// The signer. None: the snapshot is of this data directory, and has no signature yet.
    pub signer: Option<Signer>,
    /// The powers that the longhaul.toml of the run asks for. An import uses none of them.
    pub powers: Vec<String>,
}

/// An imported run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportedRun {
    /// The id of the run.
    pub run: RunId,
    /// The public key of the signer.
    pub signer: String,
    /// The powers that the imported longhaul.toml asks for beyond the tree of a run. None of them is granted here.
    pub powers: Vec<String>,
}

/// A position from which work can be continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The key: `RUN:PART`.
    pub key: String,
    /// The id of the invocation.
    pub invocation: InvocationId,
    /// The number of replies of models before it.
    pub step: u32,
    /// The number of journal entries before it.
    pub entries: u32,
    /// The reason for the checkpoint.
    pub cause: CheckpointCause,
    /// The time of the checkpoint, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// True when the invocation can continue from here. False: it has ended.
    pub open: bool,
}

/// The facts about a saved snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSnapshot {
    /// The key of the snapshot.
    pub key: String,
    /// The time of saving, in milliseconds since 1970-01-01 UTC.
    pub saved_ms: u64,
    /// The time of expiry, in milliseconds since 1970-01-01 UTC.
    pub until_ms: u64,
    /// The length in bytes.
    pub bytes: u64,
}
