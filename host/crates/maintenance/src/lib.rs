//! Maintenance of a data directory: backup, restore, and the deletion of expired data.
//!
//! | module | holds |
//! |---|---|
//! | [`backup`] | backup of a data directory into one file while it is in use, and restore |
//! | [`gc`] | deletion of old runs, orphaned trees, and compiled code that was not used for long |
//! | [`transfer`] | the copy of all state from one store into another one |
//!
//! Each function does one thing when it is called, and reports it. This crate opens no store: it works on the caller's
//! store, and the caller prepares a restored one. It refuses to decide when any of this is done, to write over a file,
//! and to restore into a directory that holds anything.

pub mod backup;
pub mod gc;
pub mod transfer;
