//! The store of a server that works for a leader, and may come to lead.
//!
//! It commits by the seat of a worker until then, and as the owner of the database from then on. No commit by the seat
//! comes after one by the owner. Reads are the same ones, whoever asks.

use longhaul_core::Digest;
use longhaul_core::store::{
    Batch, CollectedContent, Key, Names, ReadTotals, Row, Seat, Seats, Store, StoreError, StoreMetrics, Table,
};
use longhaul_postgres::PostgresStore;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The pause between two looks for reads that still go over the seat, which take milliseconds.
const PAUSE: Duration = Duration::from_millis(2);

/// A store that a process commits to by one right after the other.
pub(crate) struct ClusterStore {
    reads: std::sync::RwLock<Right>,
    /// Held by each commit, and exclusively while the right changes.
    commits: tokio::sync::RwLock<Right>,
}

/// The right by which this process works with the database.
#[derive(Clone)]
enum Right {
    Seat(Arc<PostgresStore>),
    Owner(OwnedStore),
}

/// A store that this process owns, and the seats of others in it.
#[derive(Clone)]
pub(crate) struct OwnedStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) seats: Arc<dyn Seats>,
}

impl Right {
    fn store(&self) -> &dyn Store {
        match self {
            Self::Seat(seat) => &**seat,
            Self::Owner(owned) => &*owned.store,
        }
    }

    fn seats(&self) -> &dyn Seats {
        match self {
            Self::Seat(seat) => &**seat,
            Self::Owner(owned) => &*owned.seats,
        }
    }
}

impl ClusterStore {
    /// A store that is committed to by the seat of a worker.
    pub(crate) fn new(seat: PostgresStore) -> Self {
        let right = Right::Seat(Arc::new(seat));
        Self { reads: std::sync::RwLock::new(right.clone()), commits: tokio::sync::RwLock::new(right) }
    }

    /// Commits as the owner from now on, and gives the seat back. Blocks until what was committed by the seat is
    /// decided.
    pub(crate) fn own(&self, owned: OwnedStore) {
        let mut commits = self.commits.blocking_write();
        let before = std::mem::replace(&mut *commits, Right::Owner(owned.clone()));
        *self.reads.write().unwrap_or_else(PoisonError::into_inner) = Right::Owner(owned);
        let Right::Seat(mut seat) = before else { return };
        // Its end waits for batches whose callers have gone, too.
        loop {
            match Arc::try_unwrap(seat) {
                Ok(seat) => return drop(seat),
                Err(shared) => seat = shared,
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn right(&self) -> Right {
        self.reads.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait::async_trait]
impl Store for ClusterStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.right().store().get(table, key)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.right().store().scan(table, prefix, after, limit)
    }

    fn last(&self, table: Table, prefix: &Key, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.right().store().last(table, prefix, limit)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.right().store().blob(digest)
    }

    fn copy_to(&self, file: &Path) -> Result<ReadTotals, StoreError> {
        self.right().store().copy_to(file)
    }

    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        self.right().store().read_all()
    }

    async fn collect(&self, names: &Names, dry_run: bool) -> Result<CollectedContent, StoreError> {
        let right = self.commits.read().await;
        right.store().collect(names, dry_run).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let right = self.commits.read().await;
        right.store().commit(batch).await
    }

    fn lease_left_ms(&self) -> Option<u64> {
        self.right().store().lease_left_ms()
    }

    fn is_shared(&self) -> bool {
        self.right().store().is_shared()
    }

    fn metrics(&self) -> Option<StoreMetrics> {
        self.right().store().metrics()
    }
}

#[async_trait::async_trait]
impl Seats for ClusterStore {
    fn seats(&self) -> Result<Vec<Seat>, StoreError> {
        self.right().seats().seats()
    }

    async fn evict(&self, seat: &Seat) -> Result<bool, StoreError> {
        let right = self.right();
        right.seats().evict(seat).await
    }
}
