//! Runs that several machines share: snapshots with an expiry, and leases that decide who may continue a run.
//!
//! A lease has a fencing number that grows with each new lease. A write names its number, and an outdated number writes
//! nothing: so a process that wakes from a long sleep changes nothing any more. The holder of the run gets the next
//! lease. Another machine has to request a takeover, and holds the run once it claims it.

use crate::Outage;

/// The right to continue a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The key of the run.
    pub key: String,
    /// The name of the holder.
    pub holder: String,
    /// The fence: a number that each new lease increases.
    pub fence: u64,
}

/// The reason for which an operation on a shared run failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SharedError {
    /// The server is unavailable.
    #[error(transparent)]
    Unavailable(Outage),
    /// Another holder works on this run.
    #[error("`{key}` is worked on by {holder} for another {left_ms} ms at least; wait, or stop it there")]
    Held {
        /// The key of the run.
        key: String,
        /// The name of the holder.
        holder: String,
        /// Time until its lease ends without renewal, in milliseconds.
        left_ms: u64,
    },
    /// Another holder worked on this run last.
    #[error("{holder} has gone on with `{key}`; take it over from there")]
    Moved {
        /// The key of the run.
        key: String,
        /// The name of the last holder.
        holder: String,
    },
    /// Another holder has taken over the run since.
    #[error("`{key}` was taken over by another process since (fencing number {fence}); nothing was written")]
    Fenced {
        /// The key of the run.
        key: String,
        /// The fence of the outdated lease.
        fence: u64,
    },
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
}

impl SharedError {
    /// True when the same call may succeed later without anyone changing a file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Held { .. } => true,
            Self::Moved { .. } | Self::Fenced { .. } | Self::Failed(_) => false,
        }
    }
}

/// A server that shares runs. It may lose data, because the store of the lease's holder is the source of truth.
#[async_trait::async_trait]
pub trait RunShare: Send + Sync {
    /// Acquires the lease of a run for this time, or renews it. A holder that takes over holds the run once it calls
    /// [`Self::claim`].
    ///
    /// # Errors
    /// [`SharedError::Held`] when another holder has the lease, and [`SharedError::Moved`] when another holder has the
    /// run and this one does not take over.
    async fn acquire(&self, key: &str, holder: &str, for_ms: u64, takes_over: bool) -> Result<Lease, SharedError>;

    /// Claims the run for this holder: others can continue it only by a takeover.
    ///
    /// # Errors
    /// [`SharedError::Fenced`] when another holder has taken over the run since.
    async fn claim(&self, lease: &Lease) -> Result<(), SharedError>;

    /// Releases the lease, if it is still this holder's.
    ///
    /// # Errors
    /// [`SharedError::Unavailable`].
    async fn release(&self, lease: &Lease) -> Result<(), SharedError>;

    /// Stores a snapshot, in place of the one before.
    ///
    /// # Errors
    /// [`SharedError::Fenced`] when another holder has taken over the run since.
    async fn put(&self, lease: &Lease, snapshot: &[u8]) -> Result<(), SharedError>;

    /// The snapshot of a run, unless it has expired.
    ///
    /// # Errors
    /// [`SharedError::Unavailable`].
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, SharedError>;

    /// Runs that have a snapshot, at most 1,000, in the order of their keys.
    ///
    /// # Errors
    /// [`SharedError::Unavailable`].
    async fn list(&self) -> Result<Vec<String>, SharedError>;

    /// Removes a snapshot, when its run is over.
    ///
    /// # Errors
    /// [`SharedError::Unavailable`].
    async fn delete(&self, key: &str) -> Result<(), SharedError>;
}
