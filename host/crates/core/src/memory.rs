//! The trait that every memory backend implements, and the types that its methods take and return.
//!
//! | file | holds |
//! |---|---|
//! | `memory/entry.rs` | entries, hits of a search, and the errors of a backend |
//! | `memory/embedded.rs` | the backend over the store, which is the default |
//! | `memory/note.rs` | notes: author, trust, and replaced values |
//! | `memory/episode.rs` | outcomes of runs, and their similarity |
//! | `memory/rank.rs` | the ranking of entries for a question: by full text, or by meaning too |
//!
//! A backend stores what it gets and judges nothing: trust and conflicts are in the notes that callers put.

mod embedded;
mod entry;
mod episode;
mod note;
mod rank;

pub use embedded::Embedded;
pub use entry::{MemoryEntry, MemoryError, MemoryHit};
pub use episode::{Episode, closest, jaccard};
pub use note::{MemoryNote, ReplacedValue, Trust};
pub use rank::{EMBEDDED_MAX, Embedder, FullText, Hybrid, Ranking, SEARCHED_BYTES_MAX, SEARCHED_MAX, ranked};

use crate::store::Batch;
use serde::{Deserialize, Serialize};

/// A store of entries. A namespace sees nothing of another; an expired entry is neither returned, listed nor found.
#[async_trait::async_trait]
pub trait MemoryBackend: Send + Sync {
    /// Stores an entry, in place of one with the same key. Putting the same entry again changes nothing. One whose
    /// expiry is not in the future expires at once.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] for a value that is no JSON, [`MemoryError::Limit`] for one that is too long, and
    /// [`MemoryError::Unavailable`] when the same call may succeed later.
    async fn put(&self, namespace: &str, entry: MemoryEntry) -> Result<(), MemoryError>;

    /// The entry of a key.
    ///
    /// # Errors
    /// [`MemoryError::Unavailable`] or [`MemoryError::Failed`].
    async fn get(&self, namespace: &str, key: &str) -> Result<Option<MemoryEntry>, MemoryError>;

    /// At most `limit` entries that fit `query`, the best first.
    ///
    /// # Errors
    /// [`MemoryError::Unavailable`] or [`MemoryError::Failed`].
    async fn search(&self, namespace: &str, query: &str, limit: u32) -> Result<Vec<MemoryHit>, MemoryError>;

    /// Deletes an entry. True when there was one.
    ///
    /// # Errors
    /// [`MemoryError::Unavailable`] or [`MemoryError::Failed`].
    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, MemoryError>;

    /// At most `limit` keys that start with `prefix`, from the one behind `after`.
    ///
    /// # Errors
    /// [`MemoryError::Unavailable`] or [`MemoryError::Failed`].
    async fn list(
        &self,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<KeyPage, MemoryError>;

    /// Stores an entry if the stored one under its key is still `before`; returns whether it was, so that of two
    /// concurrent writers neither is lost. A backend that cannot compare stores it in any case.
    ///
    /// # Errors
    /// As [`Self::put`].
    async fn replace(
        &self,
        namespace: &str,
        before: Option<&MemoryEntry>,
        entry: MemoryEntry,
    ) -> Result<bool, MemoryError> {
        let _ = before;
        self.put(namespace, entry).await.map(|()| true)
    }

    /// Deletes an entry if the stored one is still `before`; returns whether it was. A backend that cannot compare
    /// deletes it in any case.
    ///
    /// # Errors
    /// As [`Self::delete`].
    async fn remove(&self, namespace: &str, before: &MemoryEntry) -> Result<bool, MemoryError> {
        self.delete(namespace, &before.key).await.map(|_| true)
    }

    /// The rows of a `put`, if entries are rows of the host's own store: then it commits in one transaction with its
    /// caller's rows. None if they are stored elsewhere.
    ///
    /// # Errors
    /// As [`Self::put`].
    fn staged(&self, _namespace: &str, _entry: &MemoryEntry) -> Result<Option<Batch>, MemoryError> {
        Ok(None)
    }

    /// The rows of a `replace`, for the transaction of its caller. Where another writer stores another entry of the key
    /// before that transaction, it fails with [`StoreError::Conflict`](crate::store::StoreError::Conflict) in
    /// [`Table::Memory`](crate::store::Table::Memory) and writes nothing: its caller reads the entry again. A backend
    /// whose entries are stored elsewhere stages nothing, and compares in [`Self::replace`] if it can.
    ///
    /// # Errors
    /// As [`Self::put`].
    fn staged_replace(
        &self,
        _namespace: &str,
        _before: Option<&MemoryEntry>,
        _entry: &MemoryEntry,
    ) -> Result<StagedEntry, MemoryError> {
        Ok(StagedEntry::Elsewhere)
    }
}

/// The rows of a [`MemoryBackend::staged_replace`].
#[derive(Clone, Debug)]
pub enum StagedEntry {
    /// They store the entry, unless another writer comes first.
    Rows(Batch),
    /// Another writer came first already.
    Changed,
    /// Entries are stored elsewhere.
    Elsewhere,
}

/// A page of a list of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPage {
    /// The keys, in the backend's order.
    pub keys: Vec<String>,
    /// Pass it as `after` to get the next page; none at the end.
    pub next: Option<String>,
}
