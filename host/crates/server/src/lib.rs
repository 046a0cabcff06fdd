//! The servers of the process that owns the data directory, and the recovery of runs while it serves.
//!
//! | module | holds |
//! |---|---|
//! | `http` | the HTTP API and the web page, with the feature `http` |
//! | [`socket`] | the Unix socket of the other processes of the same user |
//! | `recovery` | resumes runs that a kill or a shutdown interrupted, with the feature `http` |
//!
//! They ask the service and take no decision about a run. They open no data directory and print nothing.

#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
pub mod recovery;
pub mod socket;
