//! Errors by which the host ends an invocation. Nothing here ends one.

use longhaul_core::journal::JournalError;
use longhaul_core::{Denial, LimitHit, Outage};

/// The reason why an invocation ends from the host's side. It is carried through the guest as a trap, which the guest
/// cannot catch, and comes out of the engine as a typed error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// The journal ends it: divergence, a question for a person, a full journal, a failing store.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A cap was reached.
    #[error(transparent)]
    Limit(#[from] LimitHit),
    /// A service that the run cannot do without is unavailable: the same call is made again later, so the outage is not
    /// journaled and the guest never sees it.
    #[error(transparent)]
    Unavailable(#[from] Outage),
    /// The store or a record in it is damaged.
    #[error("{0}")]
    Broken(String),
    /// A provider, or a file that a person wrote, blocks the call permanently: the same call is made again once a
    /// person has corrected what the error names, so it is not journaled and the guest never sees it.
    #[error(transparent)]
    Rejected(Denial),
    /// A cap of the run has no budget for the call: the same call is made again after a resume with a higher one, so it
    /// is not journaled and the guest never sees it.
    #[error("{0}")]
    Budget(LimitHit),
    /// The run was cancelled, or is to pause.
    #[error("cancelled")]
    Cancelled,
}
