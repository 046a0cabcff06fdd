//! State in redb: tables, group commit, content by digest.
//!
//! [`RedbStore`] is the embedded [`Store`](longhaul_core::store::Store): one file in one data directory,
//! held by one process. `tables.rs` is the document of the file format, `blob.rs` of stored content.
//!
//! This crate gives no meaning to the values it keeps, hands out no open transaction, and repairs nothing by guessing:
//! data that cannot be read back as it was written is reported as damaged.

mod blob;
mod database;
mod disk;
mod group;
mod maintain;
mod read;
mod redb_store;
mod tables;
mod writer;

pub use redb_store::{RedbStore, StoreOptions};
pub use tables::{FORMAT, STATE_FILE};
pub use writer::CrashHook;
