//! Locks by which one task at a time starts or changes a run, or starts one of a project.
//!
//! Two orders of one run, or two runs of one project, go one after the other: each looks at what is there before it
//! changes it. Others do not wait for them: one may have a memory to ask that does not answer, or a component to
//! compile.

use longhaul_core::RunId;
use longhaul_records::record::RunRecord;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// The turns of a service.
#[derive(Default)]
pub(super) struct KeyedLock {
    waiting: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    begun: Mutex<HashSet<RunId>>,
}

/// One's turn, as long as it is held.
pub(super) struct KeyedLockGuard(
    #[expect(dead_code, reason = "held, and let go of when it is dropped")] Vec<OwnedMutexGuard<()>>,
);

impl KeyedLock {
    /// Waits until no other task holds any of these.
    pub(super) async fn take(&self, names: impl IntoIterator<Item = String>) -> KeyedLockGuard {
        // Every task takes them in the same order, or two tasks that need several would wait for each other.
        let names: BTreeSet<String> = names.into_iter().collect();
        let locks: Vec<_> = {
            let mut waiting = lock(&self.waiting);
            // Drops the locks that no task holds or waits for any more.
            waiting.retain(|_, one| Arc::strong_count(one) > 1);
            names.into_iter().map(|name| Arc::clone(waiting.entry(name).or_default())).collect()
        };
        let mut held = Vec::with_capacity(locks.len());
        for one in locks {
            held.push(one.lock_owned().await);
        }
        KeyedLockGuard(held)
    }

    /// The number of locks that are held or waited for, and of runs that are being made.
    pub(super) fn len(&self) -> usize {
        let mut waiting = lock(&self.waiting);
        waiting.retain(|_, one| Arc::strong_count(one) > 1);
        waiting.len() + lock(&self.begun).len()
    }

    /// Notes that a run is being made, whose trees may be there before it is.
    pub(super) fn begin(&self, run: &RunId) -> RunCreation<'_> {
        lock(&self.begun).insert(run.clone());
        RunCreation(self, run.clone())
    }

    /// The runs that are being made.
    pub(super) fn begun(&self) -> HashSet<RunId> {
        lock(&self.begun).clone()
    }
}

/// A run that is being made, until it is there or nothing came of it.
pub(super) struct RunCreation<'a>(&'a KeyedLock, RunId);

impl Drop for RunCreation<'_> {
    fn drop(&mut self) {
        lock(&self.0.begun).remove(&self.1);
    }
}

/// The turns that an order of a run needs: its own, and its project's, whose branch it may move. An ask moves none.
pub(super) fn of_run(record: &RunRecord) -> Vec<String> {
    let own = of(&record.run);
    if record.ask.is_some() { vec![own] } else { vec![own, of_directory(&record.directory)] }
}

/// The turn of a run alone.
pub(super) fn of(run: &RunId) -> String {
    format!("run {run}")
}

/// The turn of the project in a directory.
pub(super) fn of_directory(directory: &Path) -> String {
    format!("project {}", directory.display())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_kept_of_a_turn_that_is_over() {
        let locks = KeyedLock::default();
        let turns = locks.take(["run r-1".to_owned(), "project p".to_owned()]).await;
        let made = locks.begin(&RunId::from_text("r-2"));
        assert_eq!(locks.len(), 3);
        drop((turns, made));
        assert_eq!(locks.len(), 0);
    }
}
