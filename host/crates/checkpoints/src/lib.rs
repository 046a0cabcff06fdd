//! Checkpoints: the state of a run as one JSON value, from which another data directory or another machine can
//! continue.
//!
//! The journal remains the source of truth. A checkpoint is a position in it: before each `checkpoint_every`th step of
//! an agent, and before each approval. Checkpoints are found by reading and never written, so that none can be missing
//! or wrong and none costs a byte. Only an export or a save writes a snapshot.
//!
//! | module | holds |
//! |---|---|
//! | `positions` | the checkpoints of a run, and the keys that name them |
//! | `snapshot` | a run as JSON, and its restoration |
//! | `files` | the files of its trees |
//! | `snapshot_store` | snapshots saved under a key, with an expiry |
//! | `shared` | snapshots on a server, and the leases of runs |
//!
//! This crate refuses to restore approvals that a person gave elsewhere, and to resume a run: it stores the state that
//! the next resume reads.

mod files;
mod positions;
mod shared;
mod snapshot;
mod snapshot_store;

pub use positions::{CheckpointKey, list, newest_of};
pub use shared::{RunShareFactory, SharedServer, of_record};
pub use snapshot::{Snapshot, digests, removal, restore, rows_of_run, take};
pub use snapshot_store::SnapshotStore;
