//! Checkpoints: a run as it stands, as one JSON value that another data directory, or another machine, can go on from.
//!
//! The journal stays the truth. A checkpoint is a position in it: before each `checkpoint_every`th step of an agent,
//! and before each approval, found by reading and never written, so that none can be missing or wrong and none costs a
//! byte. What is written is a snapshot, when somebody exports or saves one.
//!
//! | module | holds |
//! |---|---|
//! | `positions` | the checkpoints of a run, and what a key names |
//! | `snapshot` | a run as JSON, and back |
//! | `files` | the files of its trees |
//! | `snapshot_store` | snapshots that are saved under a key, for a time |
//! | `shared` | snapshots on a server, and who may go on with one |
//!
//! This crate refuses to put back what a person allowed elsewhere, and to go on with a run: it stores what the next resume
//! finds.

mod files;
mod positions;
mod shared;
mod snapshot;
mod snapshot_store;

pub use longhaul_core::event::CheckpointCause as Cause;
pub use positions::{CheckpointKey, list, newest_of};
pub use shared::{RunShareFactory, SharedServer, of_record};
pub use snapshot::{Snapshot, SnapshotOrigin, digests, removal, restore, take};
pub use snapshot_store::SnapshotStore;
