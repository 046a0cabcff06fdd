//! The servers of the process that owns the data directory, and the recovery of runs while it serves.

pub(crate) mod http;
pub(crate) mod recovery;
pub mod socket;
pub(crate) mod supervisor;
