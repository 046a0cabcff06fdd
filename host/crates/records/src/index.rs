//! An index of runs, kept in memory: reading the state of each run for every list would cost more than the list.
//!
//! It holds nothing that is not in the store. [`ChangeTrackingStore`] wraps the store and notes the runs that were
//! written to; the next query reads those again, and the first query reads all. It also has the sums of a run stored
//! with the events that they count.

use crate::sums;
use longhaul_core::Digest;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_core::store::{Batch, CollectedContent, Key, Names, Op, ReadTotals, Row, Store, StoreError, Table};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A store that notes the runs that are written to.
pub struct ChangeTrackingStore {
    store: Arc<dyn Store>,
    changed_runs: Arc<ChangedRuns>,
}

/// Runs that were written to since the last query.
#[derive(Default)]
pub struct ChangedRuns(Mutex<HashSet<RunId>>);

impl ChangeTrackingStore {
    /// Wraps a store.
    pub fn new(store: Arc<dyn Store>) -> (Self, Arc<ChangedRuns>) {
        let changed_runs = Arc::new(ChangedRuns::default());
        (Self { store, changed_runs: Arc::clone(&changed_runs) }, changed_runs)
    }
}

#[async_trait::async_trait]
impl Store for ChangeTrackingStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(table, key)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.store.scan(table, prefix, after, limit)
    }

    fn last(&self, table: Table, prefix: &Key, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.store.last(table, prefix, limit)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.blob(digest)
    }

    fn copy_to(&self, file: &Path) -> Result<ReadTotals, StoreError> {
        self.store.copy_to(file)
    }

    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        self.store.read_all()
    }

    async fn collect(&self, names: &Names, dry_run: bool) -> Result<CollectedContent, StoreError> {
        self.store.collect(names, dry_run).await
    }

    async fn commit(&self, mut batch: Batch) -> Result<(), StoreError> {
        sums::ride(&*self.store, &mut batch);
        let changed_runs: HashSet<RunId> = batch.ops.iter().filter_map(run_of).collect();
        let committed = self.store.commit(batch).await;
        // Also after a failed commit: reading an unchanged run again does no harm.
        lock(&self.changed_runs.0).extend(changed_runs);
        committed
    }
}

/// The run that a change belongs to.
fn run_of(op: &Op) -> Option<RunId> {
    let (Op::Put(table, key, _) | Op::Insert(table, key, _) | Op::Swap(table, key, ..) | Op::Delete(table, key)) = op
    else {
        return None;
    };
    if !matches!(table, Table::Runs | Table::States | Table::Events) {
        return None;
    }
    sums::run_of(key)
}

/// The indexed value of each run.
pub struct RunIndex<T> {
    changed_runs: Arc<ChangedRuns>,
    /// None before the first query.
    known: Mutex<Option<BTreeMap<RunId, T>>>,
}

impl<T: Clone> RunIndex<T> {
    /// An index over the runs that the store notes as changed.
    pub fn new(changed_runs: Arc<ChangedRuns>) -> Self {
        Self { changed_runs, known: Mutex::default() }
    }

    /// The current values of all runs: `all` lists them for the first query, and `read` reads one; none: it no longer
    /// exists.
    pub fn fresh(
        &self,
        all: impl FnOnce() -> fault::Result<Vec<RunId>>,
        read: impl Fn(&RunId) -> fault::Result<Option<T>>,
    ) -> fault::Result<Vec<T>> {
        let mut known = lock(&self.known);
        let changed_runs = std::mem::take(&mut *lock(&self.changed_runs.0));
        let mut now = known.take();
        let wanted: Vec<RunId> = match &now {
            None => all()?,
            Some(_) => changed_runs.into_iter().collect(),
        };
        let runs = now.get_or_insert_default();
        for run in &wanted {
            // After a failed read nothing counts as known, and all runs are read again.
            match read(run)? {
                Some(one) => drop(runs.insert(run.clone(), one)),
                None => drop(runs.remove(run)),
            }
        }
        let found = runs.values().cloned().collect();
        *known = now;
        Ok(found)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_testkit::MemoryStore;
    use std::cell::RefCell;

    #[tokio::test]
    async fn a_run_is_read_again_once_something_of_it_was_written_and_no_other_one() {
        let (tracking_store, changed_runs) = ChangeTrackingStore::new(Arc::new(MemoryStore::new()));
        let index = RunIndex::new(changed_runs);
        let read = RefCell::new(Vec::new());
        let look = || {
            read.borrow_mut().clear();
            let all = || Ok(["r-1", "r-2"].map(RunId::from_text).to_vec());
            let one = |run: &RunId| {
                read.borrow_mut().push(run.to_string());
                let value = tracking_store.get(Table::States, &Key::of(run.as_str()))?;
                Ok(value.map(|value| String::from_utf8(value).unwrap()))
            };
            index.fresh(all, one).unwrap()
        };
        let put = |run: &str, value: &str| tracking_store.commit(Batch::new().put(Table::States, Key::of(run), value));
        put("r-1", "a").await.unwrap();
        assert_eq!((look(), read.borrow().len()), (vec!["a".to_owned()], 2));
        assert_eq!((look(), read.borrow().len()), (vec!["a".to_owned()], 0));
        put("r-3", "b").await.unwrap();
        tracking_store.commit(Batch::new().put(Table::Memory, Key::of("r-1"), "x")).await.unwrap();
        tracking_store.commit(Batch::new().put(Table::States, Key::of("letters").and("r-1"), "x")).await.unwrap();
        assert_eq!(look(), ["a", "b"]);
        assert_eq!(*read.borrow(), ["r-3"]);
        let mut gone = Batch::new();
        gone.push(Op::Delete(Table::States, Key::of("r-1").and("x")));
        gone.push(Op::Delete(Table::States, Key::of("r-1")));
        tracking_store.commit(gone).await.unwrap();
        assert_eq!(look(), ["b"]);
    }
}
