//! Checkpoints, as they are asked for and listed. A snapshot of a run is a document here: what is in it is known to those
//! who write and read it, and nothing of it is looked at on the way.

use crate::runs::RunRef;
use longhaul_core::event::CheckpointCause;
use longhaul_core::{InvocationId, RunId};
use longhaul_security::signing::AcceptedRisks;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// List the checkpoints of a run, and what is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCheckpoints {
    /// The run.
    pub run: RunRef,
    /// Each so many steps; none: as configured.
    pub every: Option<u32>,
}

/// List what is on the shared server of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListShared {
    /// The project.
    pub directory: PathBuf,
}

/// Take a snapshot of what a key names, also while it is worked on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowCheckpoint {
    /// The key.
    pub key: String,
}

/// Take a signed snapshot of a run, or of an agent's part of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportCheckpoint {
    /// The key.
    pub key: String,
}

/// Keep a snapshot in the data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SaveCheckpoint {
    /// The key.
    pub key: String,
    /// What it is called here.
    pub name: String,
    /// For how long, in seconds.
    pub ttl_s: u64,
}

/// Read a snapshot that was saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowSaved {
    /// What it is called.
    pub name: String,
}

/// Put a run here as a snapshot has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportCheckpoint {
    /// The snapshot, as the document that an export is.
    pub snapshot: Value,
    /// The project.
    pub directory: PathBuf,
    /// Also when the run is here.
    pub replace: bool,
    /// What is accepted of who signed it.
    #[serde(default)]
    pub accepts: AcceptedRisks,
}

/// Put a run here as the shared server has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TakeOverRun {
    /// The key on the server.
    pub key: String,
    /// The project.
    pub directory: PathBuf,
    /// Also when the run is here.
    pub replace: bool,
    /// What is accepted of who signed it.
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

/// Checkpoints of one run, saved ones, and shared ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CheckpointList {
    /// Positions in journals.
    pub checkpoints: Vec<Checkpoint>,
    /// What is saved in the data directory.
    pub saved: Vec<SavedSnapshot>,
    /// What is on the server.
    pub shared: Vec<String>,
}

/// A run as it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckpointDocument {
    /// All of it, as the document that an export is.
    pub snapshot: Value,
}

/// A run that came from elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportedRun {
    /// Its name.
    pub run: RunId,
    /// Who signed it.
    pub signer: String,
    /// What the longhaul.toml in it asks for beyond the tree of a run. None of it counts here.
    pub powers: Vec<String>,
}

/// A position that can be gone on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// `RUN:PART`.
    pub key: String,
    /// The invocation.
    pub invocation: InvocationId,
    /// Steps that were made before it.
    pub step: u32,
    /// Entries of the journal before it.
    pub entries: u32,
    /// Why.
    pub cause: CheckpointCause,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Whether its invocation goes on from here; one that has ended is history.
    pub open: bool,
}

/// What a saved snapshot is known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSnapshot {
    /// The key.
    pub key: String,
    /// When it was saved, in milliseconds since 1970-01-01 UTC.
    pub saved_ms: u64,
    /// When it is over.
    pub until_ms: u64,
    /// Its length.
    pub bytes: u64,
}
