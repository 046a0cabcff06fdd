//! Checkpoints of runs, saved snapshots, and imported runs. The document of an export is no type of this module: an
//! import reads it again, byte for byte.

use super::words;
use crate::checkpoints::{
    Checkpoint, CheckpointDescription, CheckpointList, ImportedRun, SavedSnapshot, SnapshotOrigin,
};
use longhaul_security::signing::Signer;
use serde::{Deserialize, Serialize};

words! {
    /// The reason for a checkpoint.
    CheckpointReason of longhaul_core::event::CheckpointCause as InnerCause {
        /// The configured number of steps was made.
        Step,
        /// A person is, or was, asked about a call.
        Approval,
    }
}

/// A position from which work can be continued.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointPositionView {
    /// The key: `RUN:PART`.
    pub key: String,
    /// The id of the invocation.
    pub invocation: String,
    /// Number of replies of models before it.
    pub step: u32,
    /// Number of journal entries before it.
    pub entries: u32,
    /// The reason for the checkpoint.
    pub cause: CheckpointReason,
    /// Time of the checkpoint, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// True when the invocation can continue from here. False: it has ended.
    pub open: bool,
}

impl From<Checkpoint> for CheckpointPositionView {
    fn from(inner: Checkpoint) -> Self {
        let Checkpoint { key, invocation, step, entries, cause, at_ms, open } = inner;
        Self { key, invocation: invocation.to_string(), step, entries, cause: cause.into(), at_ms, open }
    }
}

/// A snapshot that is saved in the data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedSnapshotView {
    /// The key that it is saved under.
    pub key: String,
    /// Time of saving, in milliseconds since 1970-01-01 UTC.
    pub saved_ms: u64,
    /// Time of expiry, in milliseconds since 1970-01-01 UTC.
    pub until_ms: u64,
    /// Its length, in bytes.
    pub bytes: u64,
}

impl From<SavedSnapshot> for SavedSnapshotView {
    fn from(inner: SavedSnapshot) -> Self {
        let SavedSnapshot { key, saved_ms, until_ms, bytes } = inner;
        Self { key, saved_ms, until_ms, bytes }
    }
}

/// The checkpoints of one run, saved snapshots, and shared runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointListing {
    /// The positions in journals of the run.
    pub checkpoints: Vec<CheckpointPositionView>,
    /// The snapshots in the data directory.
    pub saved: Vec<SavedSnapshotView>,
    /// The keys on the shared server.
    pub shared: Vec<String>,
}

impl From<CheckpointList> for CheckpointListing {
    fn from(inner: CheckpointList) -> Self {
        let CheckpointList { checkpoints, saved, shared } = inner;
        Self {
            checkpoints: checkpoints.into_iter().map(Into::into).collect(),
            saved: saved.into_iter().map(Into::into).collect(),
            shared,
        }
    }
}

/// The origin of a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SnapshotOriginView {
    /// A run with its plan.
    Plan {
        /// Number of planned features.
        features: usize,
        /// Number of passing features.
        passing: usize,
    },
    /// The work of an agent.
    Agent {
        /// The table of the agent, for example `agents.code`.
        agent_id: String,
        /// The id of the invocation.
        invocation: String,
        /// Number of steps that it made.
        step: u32,
        /// The ids of the approvals that it waits for.
        pending: Vec<String>,
    },
}

impl From<SnapshotOrigin> for SnapshotOriginView {
    fn from(inner: SnapshotOrigin) -> Self {
        match inner {
            SnapshotOrigin::Plan { features, passing } => Self::Plan { features, passing },
            SnapshotOrigin::Agent { agent_id, invocation, step, pending } => {
                Self::Agent { agent_id, invocation: invocation.to_string(), step, pending }
            }
        }
    }
}

/// The facts about a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointView {
    /// The key that it was requested by.
    pub key: String,
    /// The id of the run.
    pub run: String,
    /// The name of the project.
    pub project: String,
    /// The status of the run, in a word.
    pub status: String,
    /// The branch of the run. Empty: the run is an ask.
    pub branch: String,
    /// Its origin.
    #[serde(flatten)]
    pub origin: SnapshotOriginView,
    /// Its signer; null: it is of this data directory, and has no signature yet.
    pub signer: Option<Signer>,
    /// The powers that the longhaul.toml of the run asks for, one line each. An import uses none of them.
    pub powers: Vec<String>,
}

impl From<CheckpointDescription> for CheckpointView {
    fn from(inner: CheckpointDescription) -> Self {
        let CheckpointDescription { key, origin, run, project, status, branch, left_out: _, signer, powers } = inner;
        Self { key, run: run.to_string(), project, status, branch, origin: origin.into(), signer, powers }
    }
}

/// An imported run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportedRunView {
    /// The id of the run.
    pub run: String,
    /// The signer, in words, with the public key.
    pub signer: String,
    /// The powers beyond the tree of a run that the imported longhaul.toml asks for, one line each. None of them is
    /// granted here.
    pub powers: Vec<String>,
}

impl From<ImportedRun> for ImportedRunView {
    fn from(inner: ImportedRun) -> Self {
        let ImportedRun { run, signer, powers } = inner;
        Self { run: run.to_string(), signer, powers }
    }
}
