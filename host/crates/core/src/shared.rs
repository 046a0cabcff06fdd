//! Runs that several machines know of: snapshots with a lifetime, and leases that say who may go on with one.
//!
//! A lease has a fencing number that grows with each new lease. Whoever writes says its number, and a number that is
//! not the newest writes nothing: so a process that comes back from a long sleep changes nothing any more. Who has the
//! run gets the next lease. Another one has to say that it takes over, and has the run once it says that it did.

use crate::Outage;

/// The right to go on with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub key: String,
    /// Who has it.
    pub holder: String,
    /// Grows with each new lease.
    pub fence: u64,
}

/// Why something was not done with a run that is shared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SharedError {
    /// Where runs are shared is not there now.
    #[error(transparent)]
    Unavailable(Outage),
    /// Somebody else works on this run.
    #[error("`{key}` is worked on by {holder} for another {left_ms} ms at least; wait, or stop it there")]
    Held {
        /// The run.
        key: String,
        /// Who works on it.
        holder: String,
        /// When its lease ends unless it is renewed.
        left_ms: u64,
    },
    /// Somebody else worked on this run last.
    #[error("{holder} has gone on with `{key}`; take it over from there")]
    Moved {
        /// The run.
        key: String,
        /// Who worked on it.
        holder: String,
    },
    /// Somebody else has taken the run over since.
    #[error("`{key}` was taken over by another process since (fencing number {fence}); nothing was written")]
    Fenced {
        /// The run.
        key: String,
        /// The number that is too old.
        fence: u64,
    },
    /// Anything else.
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

/// Where runs are shared. It forgets, and is the only place of nothing: the truth is the store of who holds the lease.
#[async_trait::async_trait]
pub trait RunShare: Send + Sync {
    /// Takes the right to go on with a run for so long, or renews it. Who takes over has the run once it says so with
    /// [`Self::claim`].
    ///
    /// # Errors
    /// [`SharedError::Held`] when somebody else has it, and [`SharedError::Moved`] when somebody else has the run and
    /// this holder does not take over.
    async fn acquire(&self, key: &str, holder: &str, for_ms: u64, takes_over: bool) -> Result<Lease, SharedError>;

    /// Says that the run is here from now on: nobody else goes on with it who does not take over.
    ///
    /// # Errors
    /// [`SharedError::Fenced`] when somebody else has taken the run over since.
    async fn claim(&self, lease: &Lease) -> Result<(), SharedError>;

    /// Gives the right back, if it is still this holder's.
    ///
    /// # Errors
    /// [`SharedError::Unavailable`].
    async fn release(&self, lease: &Lease) -> Result<(), SharedError>;

    /// Keeps a snapshot, in place of the one before.
    ///
    /// # Errors
    /// [`SharedError::Fenced`] when somebody else has taken the run over since.
    async fn put(&self, lease: &Lease, snapshot: &[u8]) -> Result<(), SharedError>;

    /// The snapshot of a run, if it is not over.
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
