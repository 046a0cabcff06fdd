//! What a failover of the database leaves in doubt: the newest commits of its former server may be missing.
//!
//! The store keeps the timeline of the server that it was used on. Where a process finds another one, every run that has
//! not ended gets a note, in one batch with the new timeline, and the scheduler gets one for its tasks. Which of them
//! came further than their journals say, nobody can know. So a run with a note goes on only when a person resumes it.
//! Refuses to guess from times which runs were at work.

use crate::record::{self, RunRecord, StoredRun};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_harness::state::Phase;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change of the server of a store, by which commits may have been lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failover {
    /// The timeline of the former server.
    pub from: i32,
    /// The timeline of the present one.
    pub to: i32,
}

impl fmt::Display for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the database is on another server (timeline {} to {}), which may lack the newest commits",
            self.from, self.to
        )
    }
}

impl Failover {
    /// The sentence about a run that waits because of it.
    #[must_use]
    pub fn of_run(&self, run: &RunId) -> String {
        format!(
            "{self}, so run {run} may have finished effects that it would repeat; look at what it did last, then go on \
             with: longhaul resume {run}"
        )
    }
}

/// Keeps the timeline that the store is used on, and notes a failover since it was used before. `claimed_before` is the
/// timeline of the claim before, for a store that keeps none yet. Returns the failover, and the number of runs that wait
/// for a person because of it.
///
/// # Errors
/// When the store can neither be read nor be written.
pub async fn note(
    store: &dyn Store,
    timeline: i32,
    claimed_before: Option<i32>,
) -> fault::Result<Option<(Failover, usize)>> {
    let known: Option<i32> = read(store, &timeline_key())?;
    if known == Some(timeline) {
        return Ok(None);
    }
    let mut batch = Batch::new().put(Table::States, timeline_key(), serde_json::to_vec(&timeline)?);
    let noted = match known.or(claimed_before).filter(|from| *from != timeline) {
        None => None,
        Some(from) => {
            let failover = Failover { from, to: timeline };
            let (with_notes, count) = put_notes(batch, store, failover)?;
            batch = with_notes;
            Some((failover, count))
        }
    };
    store.commit(batch).await?;
    Ok(noted)
}

fn put_notes(batch: Batch, store: &dyn Store, failover: Failover) -> fault::Result<(Batch, usize)> {
    let written = serde_json::to_vec(&failover)?;
    let mut batch = batch.put(Table::States, tasks_key(), written.clone());
    let mut count = 0;
    for head in record::heads(store)? {
        // A state that cannot be read is no reason to leave the others without a note.
        if !matches!(record::load(store, &head.run), Ok(Some(stored)) if is_over(&stored)) {
            batch = batch.put(Table::States, run_key(&head.run), written.clone());
            count += 1;
        }
    }
    Ok((batch, count))
}

fn is_over(stored: &StoredRun) -> bool {
    matches!(stored.state.phase, Phase::Ended { .. })
}

/// The failover because of which a run waits for a person.
///
/// # Errors
/// When the store, or the note, cannot be read.
pub fn of_run(store: &dyn Store, run: &RunId) -> fault::Result<Option<Failover>> {
    read(store, &run_key(run))
}

/// Deletes the note of a run, which a person resumed.
pub fn forget_run(batch: &mut Batch, run: &RunId) {
    batch.push(Op::Delete(Table::States, run_key(run)));
}

/// The failover that the scheduler has not heard of yet.
///
/// # Errors
/// When the store, or the note, cannot be read.
pub fn of_tasks(store: &dyn Store) -> fault::Result<Option<Failover>> {
    read(store, &tasks_key())
}

/// Deletes the note of the scheduler, with the tasks that it ends because of it.
pub fn forget_tasks(batch: &mut Batch) {
    batch.push(Op::Delete(Table::States, tasks_key()));
}

/// True for the key of the timeline, which is of a store alone: a copy of its state has another one.
#[must_use]
pub fn is_timeline(table: Table, key: &[u8]) -> bool {
    table == Table::States && key == timeline_key().as_bytes()
}

fn read<T: DeserializeOwned>(store: &dyn Store, key: &Key) -> fault::Result<Option<T>> {
    let bytes = store.get(Table::States, key)?;
    let damaged = || "the note of a failover of the database is damaged";
    bytes.map(|bytes| serde_json::from_slice(&bytes).or_internal(damaged)).transpose()
}

fn timeline_key() -> Key {
    Key::of("timeline")
}

fn tasks_key() -> Key {
    Key::of("failover")
}

fn run_key(run: &RunId) -> Key {
    RunRecord::key(run).and("failover")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_testkit::MemoryStore;

    /// A store with a run whose state cannot be read, which counts as one that has not ended.
    async fn with_a_run() -> (MemoryStore, RunId) {
        let (store, run) = (MemoryStore::new(), RunId::from_text("r-1"));
        let head = serde_json::json!({ "run": "r-1", "directory": "/p", "created_ms": 1 });
        let batch = Batch::new().put(Table::Runs, RunRecord::key(&run), head.to_string());
        store.commit(batch).await.unwrap();
        (store, run)
    }

    #[tokio::test]
    async fn a_failover_is_noted_once_and_stays_until_a_person_resumes_the_run() {
        let (store, run) = with_a_run().await;
        assert_eq!(note(&store, 1, None).await.unwrap(), None);
        assert_eq!(note(&store, 1, None).await.unwrap(), None);
        assert_eq!((of_run(&store, &run).unwrap(), of_tasks(&store).unwrap()), (None, None));
        let failover = Failover { from: 1, to: 2 };
        // A process that was killed before it told anybody leaves what the next one finds.
        assert_eq!(note(&store, 2, Some(1)).await.unwrap(), Some((failover, 1)));
        assert_eq!(note(&store, 2, None).await.unwrap(), None);
        assert_eq!(of_run(&store, &run).unwrap(), Some(failover));
        let told = failover.of_run(&run);
        assert!(told.contains("timeline 1 to 2") && told.ends_with("longhaul resume r-1"), "{told}");
        let mut batch = Batch::new();
        forget_run(&mut batch, &run);
        store.commit(batch).await.unwrap();
        assert_eq!((of_run(&store, &run).unwrap(), of_tasks(&store).unwrap()), (None, Some(failover)));
        let mut batch = Batch::new();
        forget_tasks(&mut batch);
        store.commit(batch).await.unwrap();
        assert_eq!((of_tasks(&store).unwrap(), note(&store, 2, Some(1)).await.unwrap()), (None, None));
    }

    #[tokio::test]
    async fn the_claim_before_tells_of_a_failover_where_the_store_keeps_no_timeline_yet() {
        let (store, run) = with_a_run().await;
        assert_eq!(note(&store, 3, Some(2)).await.unwrap(), Some((Failover { from: 2, to: 3 }, 1)));
        assert!(of_run(&store, &run).unwrap().is_some());
    }
}
