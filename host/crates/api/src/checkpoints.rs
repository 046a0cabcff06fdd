//! Checkpoints, as they are asked for and listed. A snapshot of a run is a document here: what is in it is known to those
//! who write and read it, and nothing of it is looked at on the way.

use crate::runs::RunRef;
use longhaul_core::InvocationId;
use longhaul_core::event::CheckpointCause;
use longhaul_security::signing::AcceptedRisks;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// What is asked of checkpoints.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointRequest {
    /// The checkpoints of a run, and what is saved.
    List {
        /// The run.
        run: RunRef,
        /// Each so many steps; none: as configured.
        every: Option<u32>,
    },
    /// What is on the server of a project.
    ListShared {
        /// The project.
        directory: PathBuf,
    },
    /// What a key names, and how it stands, also while it is worked on.
    Show {
        /// The key.
        key: String,
    },
    /// A snapshot of a key: a run, or an agent's part of it.
    Export {
        /// The key.
        key: String,
    },
    /// Keeps a snapshot of a key in the data directory.
    Save {
        /// The key.
        key: String,
        /// What it is called here.
        name: String,
        /// For how long, in seconds.
        ttl_s: u64,
    },
    /// A snapshot that was saved.
    Saved {
        /// What it is called.
        name: String,
    },
    /// Puts a run here as a snapshot has it.
    Import {
        /// The snapshot, as the document that an export is.
        snapshot: Value,
        /// The project.
        directory: PathBuf,
        /// Also when the run is here.
        replace: bool,
        /// What is accepted of who signed it.
        #[serde(default)]
        accepts: AcceptedRisks,
    },
    /// The same with what is on the server, which others then have to leave alone.
    TakeOver {
        /// The key on the server.
        key: String,
        /// The project.
        directory: PathBuf,
        /// Also when the run is here.
        replace: bool,
        /// What is accepted of who signed it.
        #[serde(default)]
        accepts: AcceptedRisks,
    },
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
