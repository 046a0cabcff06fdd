//! State in redb: tables, group commit, content by digest.
//!
//! [`RedbStore`] is the embedded [`Store`](longhaul_core::store::Store): one database in one data directory, held by
//! one process, and while it is in use two logs beside it. `tables.rs` is the document of the file format, `log.rs` of
//! the logs, `blob.rs` of stored content.
//!
//! This crate gives no meaning to the values it keeps, hands out no open transaction, and repairs nothing by guessing:
//! data that cannot be read back as it was written is reported as damaged.

mod blob;
mod database;
mod disk;
mod group;
mod log;
mod logs;
mod maintain;
mod read;
mod recent;
mod redb_store;
mod shared;
mod tables;
mod writer;

pub use redb_store::{RedbStore, StoreOptions};
pub use shared::CrashHook;
pub use tables::{FORMAT, STATE_FILE};
