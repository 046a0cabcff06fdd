//! The servers of the process that owns the data directory, and the recovery of runs while it serves.

#[cfg(feature = "server")]
pub(crate) mod http;
#[cfg(feature = "server")]
pub(crate) mod recovery;
pub mod socket;
#[cfg(feature = "server")]
pub(crate) mod supervisor;
