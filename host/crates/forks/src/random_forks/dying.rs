//! The store of one life of a process: it stops at a commit, and what was committed stays.

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Row, Store, StoreError, Table};
use longhaul_testkit::MemoryStore;
use std::sync::{Arc, Mutex, PoisonError};

/// The moment of a death.
#[derive(Clone, Copy, Debug)]
pub(super) enum Death {
    /// After so many commits: the next one is not made.
    Before(u32),
    /// In the commit of this number: it is made, and nobody hears of it.
    Within(u32),
}

/// A store that goes with its process.
pub(super) struct DyingStore {
    kept: Arc<MemoryStore>,
    death: Option<Death>,
    /// Commits so far; none: it is dead.
    alive: Mutex<Option<u32>>,
}

/// The fate of a commit.
enum Commit {
    Made,
    MadeUnheard,
    Lost,
}

impl DyingStore {
    pub(super) fn new(kept: &Arc<MemoryStore>, death: Option<Death>) -> Self {
        Self { kept: Arc::clone(kept), death, alive: Mutex::new(Some(0)) }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn next(&self) -> Commit {
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(made) = *alive else { return Commit::Lost };
        let outcome = match self.death {
            Some(Death::Before(commits)) if made >= commits => Commit::Lost,
            Some(Death::Within(number)) if made + 1 >= number => Commit::MadeUnheard,
            _ => Commit::Made,
        };
        *alive = matches!(outcome, Commit::Made).then_some(made + 1);
        outcome
    }
}

fn killed() -> StoreError {
    StoreError::Failed { path: "memory".to_owned(), detail: "killed".to_owned() }
}

#[async_trait::async_trait]
impl Store for DyingStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.kept.get(table, key)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.kept.scan(table, prefix, after, limit)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.kept.blob(digest)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        match self.next() {
            Commit::Made => self.kept.commit(batch).await,
            Commit::MadeUnheard => {
                self.kept.commit(batch).await?;
                Err(killed())
            }
            Commit::Lost => Err(killed()),
        }
    }
}
