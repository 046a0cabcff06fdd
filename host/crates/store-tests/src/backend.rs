//! The part of the tests that a backend brings: new stores, and the ways in which a rule disturbs them.

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Store};
use std::sync::Arc;
use std::time::Duration;

/// The longest time for one rule. The slowest ones open twenty stores after crashes, or commit some thousand batches.
const RULE_MAX: Duration = Duration::from_secs(300);

/// The moment of a crash beside a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMoment {
    /// The batch is complete, and nothing of it is durable.
    BeforeCommit,
    /// The batch is durable, and its caller was not told.
    AfterCommit,
}

/// A kind of store under test.
///
/// The methods that return an `Option` have a default that returns `None`, for a backend that cannot do the thing; its
/// rule then checks nothing, or only the refusal.
#[async_trait::async_trait]
pub trait Backend: Send + Sync {
    /// Opens a new, empty store.
    async fn open(&self) -> Arc<dyn Store>;

    /// Closes a store, of which the caller has the only reference, and opens it again.
    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store>;

    /// Commits `batches` one after the other in a new store whose process ends at `moment` of the last one. Returns the
    /// store as the next process opens it.
    ///
    /// The ended process may stay in memory as long as it does nothing any more. Where it holds a lease, the backend
    /// may end the lease by hand, so that the rule does not wait for it.
    async fn crash(&self, _batches: Vec<Batch>, _moment: CrashMoment) -> Option<Arc<dyn Store>> {
        None
    }

    /// Closes a store as [`Backend::reopen`] does, replaces the stored content that has this digest by `content`
    /// without changing its digest, and opens the store again.
    async fn damage(&self, _store: Arc<dyn Store>, _digest: &Digest, _content: &[u8]) -> Option<Arc<dyn Store>> {
        None
    }

    /// Copies a store with [`Store::copy_to`], and opens the copy.
    async fn open_copy(&self, _store: &dyn Store) -> Option<Arc<dyn Store>> {
        None
    }
}

/// Awaits a rule. The macro [`conformance`](crate::conformance) puts it around each.
///
/// # Panics
/// When the rule takes longer than five minutes.
pub async fn bounded(rule: impl Future<Output = ()>) {
    assert!(tokio::time::timeout(RULE_MAX, rule).await.is_ok(), "the rule did not end within {RULE_MAX:?}");
}
