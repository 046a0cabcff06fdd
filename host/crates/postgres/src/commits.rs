//! The number of commits of a store, as its owner knows them to be durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of commits of a store, which goes up while the store is used, and stays with whoever asked for it.
#[derive(Clone, Debug)]
pub struct CommitCount(Arc<AtomicU64>);

impl CommitCount {
    pub(crate) fn of(head: i64) -> Self {
        let count = Self(Arc::default());
        count.set(head);
        count
    }

    /// Takes over the head of the store after a commit that is known to have landed.
    pub(crate) fn set(&self, head: i64) {
        self.0.store(u64::try_from(head).unwrap_or(0), Ordering::Relaxed);
    }

    /// The number now.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
