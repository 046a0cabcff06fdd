//! Maintenance of a data directory: backup, restore, and the deletion of what has expired.
//!
//! | module | holds |
//! |---|---|
//! | [`backup`] | a data directory as one file, made while it is in use, and put back |
//! | [`gc`] | runs that ended long ago, trees of no run, compiled code that was not used for long |
//!
//! Each function does one thing when it is asked, and says what it did. This crate opens no store: it works on the one
//! that its caller holds, and a restored one is prepared by the caller. It refuses to decide when any of this is done,
//! to write over a file, and to restore into a directory that holds anything.

pub mod backup;
pub mod gc;
