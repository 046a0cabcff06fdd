//! An index of runs, kept in memory: reading the state of each run for every list would cost more than the list.
//!
//! It holds nothing that is not in the store. [`ChangeTrackingStore`] wraps the store and notes the runs that were
//! written to; the next query reads those again, and the first query reads all. It also has the sums of a run stored
//! with the events that they count.

use crate::{ledger, long_lock, sums};
use longhaul_core::Digest;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_core::store::{
    Batch, CollectedContent, Key, Names, Op, ReadTotals, Row, Store, StoreError, StoreMetrics, Table,
};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A store that notes the runs that are written to.
pub struct ChangeTrackingStore {
    store: Arc<dyn Store>,
    changed_runs: Arc<ChangedRuns>,
}

/// Runs that were written to since the last query.
#[derive(Default)]
pub struct ChangedRuns(Mutex<Changes>);

/// The extent of the changes of a run since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunChange {
    /// Only events, and rows of the ledger: what a run at work writes with each step of an agent.
    Progress,
    /// Any row.
    Whole,
}

type RunChanges = HashMap<RunId, RunChange>;

#[derive(Default)]
struct Changes {
    runs: RunChanges,
    /// Runs of commits whose callers were cancelled, with the number of commits that had begun by then. Such a batch
    /// may still be written, so each query reads its runs until a later one was written: a store decides about batches
    /// in their order. One that was refused proves nothing, since others of its group may be tried again after it.
    cancelled: Vec<(u64, RunId)>,
    /// The number of commits that began.
    begun: u64,
}

/// The runs of a commit that is under way.
struct CommitNote<'a> {
    changed_runs: &'a ChangedRuns,
    number: u64,
    runs: RunChanges,
    /// True when the batch has rows. One without any, or with known content alone, waits in no queue.
    has_rows: bool,
}

impl ChangedRuns {
    fn begin(&self, batch: &Batch) -> CommitNote<'_> {
        let mut runs = RunChanges::new();
        batch.ops.iter().filter_map(change_of).for_each(|(run, change)| note(&mut runs, run, change));
        let has_rows = batch.ops.iter().any(|op| !matches!(op, Op::Blob(..)));
        let mut changes = lock(&self.0);
        changes.begun += 1;
        CommitNote { changed_runs: self, number: changes.begun, runs, has_rows }
    }

    fn add(&self, runs: RunChanges) {
        let mut changes = lock(&self.0);
        runs.into_iter().for_each(|(run, change)| note(&mut changes.runs, run, change));
    }

    /// The changes since the last time.
    fn take(&self) -> RunChanges {
        let mut changes = lock(&self.0);
        let mut taken = std::mem::take(&mut changes.runs);
        taken.extend(changes.cancelled.iter().map(|(_, run)| (run.clone(), RunChange::Whole)));
        taken
    }
}

impl CommitNote<'_> {
    /// The commit has ended. Once its batch is written, no batch before it is written any more.
    fn settle(mut self, is_written: bool) {
        self.changed_runs.add(std::mem::take(&mut self.runs));
        if !is_written || !self.has_rows {
            return;
        }
        let mut changes = lock(&self.changed_runs.0);
        let over: Vec<_> = changes.cancelled.extract_if(.., |(begun, _)| *begun < self.number).collect();
        over.into_iter().for_each(|(_, run)| note(&mut changes.runs, run, RunChange::Whole));
    }
}

impl Drop for CommitNote<'_> {
    /// Notes the runs of a cancelled commit. One that has ended has none left.
    fn drop(&mut self) {
        let runs = std::mem::take(&mut self.runs);
        if !runs.is_empty() {
            let mut changes = lock(&self.changed_runs.0);
            let begun = changes.begun;
            changes.cancelled.extend(runs.into_keys().map(|run| (begun, run)));
        }
    }
}

fn note(runs: &mut RunChanges, run: RunId, change: RunChange) {
    let known = runs.entry(run).or_insert(change);
    *known = change.max(*known);
}

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
        let note = self.changed_runs.begin(&batch);
        let committed = self.store.commit(batch).await;
        // Also after a failed commit: reading an unchanged run again does no harm.
        note.settle(committed.is_ok());
        committed
    }

    fn lease_left_ms(&self) -> Option<u64> {
        self.store.lease_left_ms()
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn metrics(&self) -> Option<StoreMetrics> {
        self.store.metrics()
    }
}

/// The run that a change belongs to, and its extent.
fn change_of(op: &Op) -> Option<(RunId, RunChange)> {
    let (Op::Put(table, key, _) | Op::Insert(table, key, _) | Op::Swap(table, key, ..) | Op::Delete(table, key)) = op
    else {
        return None;
    };
    if !matches!(table, Table::Runs | Table::States | Table::Events) {
        return None;
    }
    let run = sums::run_of(key)?;
    let is_progress = *table == Table::Events || (*table == Table::States && ledger::is_row(&run, key));
    Some((run, if is_progress { RunChange::Progress } else { RunChange::Whole }))
}

/// The values of all runs, and what follows from them.
pub trait IndexedRuns: Default {
    /// The value of one run.
    type Value;

    /// The value of a run, if there is one.
    fn get(&self, run: &RunId) -> Option<&Self::Value>;

    /// Replaces the value of a run. None: the run no longer exists.
    fn set(&mut self, run: &RunId, value: Option<Self::Value>);
}

/// The indexed values of all runs.
pub struct RunIndex<T> {
    changed_runs: Arc<ChangedRuns>,
    /// None before the first query.
    known: Mutex<Option<T>>,
}

impl<T: IndexedRuns> RunIndex<T> {
    /// An index over the runs that the store notes as changed.
    pub fn new(changed_runs: Arc<ChangedRuns>) -> Self {
        Self { changed_runs, known: Mutex::default() }
    }

    /// Has the next query read all of a run again, which another process wrote to.
    pub fn changed(&self, run: &RunId) {
        self.changed_runs.add(RunChanges::from([(run.clone(), RunChange::Whole)]));
    }

    /// Has the next query read a run again although nothing of it was written, where its value depends on more than the
    /// store.
    pub fn reread(&self, run: &RunId) {
        self.changed_runs.add(RunChanges::from([(run.clone(), RunChange::Progress)]));
    }

    /// An answer from the current values of all runs. `all` lists the runs for the first query. `read` reads one, with
    /// its known value where only [`RunChange::Progress`] followed it; none: the run no longer exists. Other queries
    /// wait for all three.
    pub fn query<A>(
        &self,
        all: impl FnOnce() -> fault::Result<Vec<RunId>>,
        read: impl Fn(&RunId, Option<&T::Value>) -> fault::Result<Option<T::Value>>,
        answer: impl FnOnce(&T) -> A,
    ) -> fault::Result<A> {
        let mut known = long_lock::lock(&self.known);
        // Before anything is read, so that what is written meanwhile is read by the next query.
        let changes = self.changed_runs.take();
        if let Some(runs) = &mut *known {
            let updated = changes.iter().try_for_each(|(run, change)| update(runs, run, *change, &read));
            if let Err(error) = updated {
                self.changed_runs.add(changes);
                return Err(error);
            }
            return Ok(answer(runs));
        }
        let mut runs = T::default();
        for run in all()? {
            let value = read(&run, None)?;
            runs.set(&run, value);
        }
        Ok(answer(known.insert(runs)))
    }
}

fn update<T: IndexedRuns>(
    runs: &mut T,
    run: &RunId,
    change: RunChange,
    read: &impl Fn(&RunId, Option<&T::Value>) -> fault::Result<Option<T::Value>>,
) -> fault::Result<()> {
    let known = runs.get(run).filter(|_| change == RunChange::Progress);
    let value = read(run, known)?;
    runs.set(run, value);
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
