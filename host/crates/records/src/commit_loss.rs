//! Runs and tasks in doubt, because the newest commits of the store may be lost by a failover or a restore.
//!
//! The store keeps the timeline of the server that it was used on, and the id of its history; a data directory
//! remembers that id with the newest commit that it saw. Where a process finds another timeline, an older commit or a
//! history that does not contain the remembered one, every run that has not ended gets a note, in one batch with a new
//! history, and the scheduler gets one for its tasks. Which of them came further than their journals say, nobody can
//! know. So a run with a note goes on only when a person resumes it. A history names the earlier ones, so that a loss
//! is noted once, however many data directories remember what was before it. Refuses to guess from times which runs
//! were at work.

use crate::record::{self, RunRecord, StoredRun};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_harness::state::Phase;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The reason why commits of a store may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitLoss {
    /// The database is on another server, which may lack the newest commits.
    Failover {
        /// The timeline of the former server.
        from: i32,
        /// The timeline of the present one.
        to: i32,
    },
    /// The database is at an older commit than before, as after a restore.
    Restored {
        /// The commit that was seen before.
        seen: u64,
        /// Its newest commit now.
        found: u64,
    },
    /// The database has a history without the one that was seen before, as after a restore from before a failover.
    OtherHistory,
}

impl fmt::Display for CommitLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failover { from, to } => write!(
                f,
                "the database is on another server (timeline {from} to {to}), which may lack the newest commits"
            ),
            Self::Restored { seen, found } => write!(
                f,
                "the database is at an older moment than before (commit {found}, and {seen} was there), as after a \
                 restore, and lacks the newest commits"
            ),
            Self::OtherHistory => f.write_str(
                "the database has another history than before, as after a restore, and may lack the newest commits",
            ),
        }
    }
}

impl CommitLoss {
    /// The sentence about a run that waits because of it.
    #[must_use]
    pub fn of_run(&self, run: &RunId) -> String {
        format!(
            "{self}, so run {run} may have finished effects that it would repeat; look at what it did last, then go on \
             with: longhaul resume {run}"
        )
    }
}

/// The newest commit of a store that a data directory saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenCommit {
    /// The id of the history of the store then.
    pub history: String,
    /// The number of commits.
    pub commits: u64,
}

/// A store as its new owner finds it, and what was known of it before.
#[derive(Clone, Debug, Default)]
pub struct OpenedStore {
    /// The timeline of its server.
    pub timeline: i32,
    /// The timeline of the claim before, for a store that keeps none yet.
    pub claimed_before: Option<i32>,
    /// The number of its commits.
    pub commits: u64,
    /// The newest commit of it that the data directory remembers.
    pub remembered: Option<SeenCommit>,
    /// The number of its commits when this process last saw it in the hands of another one.
    pub watched: Option<u64>,
    /// A random id, for a history that begins now.
    pub fresh_id: String,
}

/// The history of a store, which goes on until commits may be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct History {
    id: String,
    /// The ids of those that ended in it, or that a data directory remembered instead of them.
    before: Vec<String>,
}

impl History {
    fn contains(&self, id: &str) -> bool {
        self.before.iter().any(|before| before == id)
    }
}

/// The result of [`note`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The id of the present history.
    pub history: String,
    /// The loss that was noted now, and the number of runs that wait for a person because of it.
    pub loss: Option<(CommitLoss, usize)>,
}

/// Keeps the timeline that the store is used on and its history, and notes a loss of commits since it was used before.
///
/// # Errors
/// When the store can neither be read nor be written.
pub async fn note(store: &dyn Store, opened: &OpenedStore) -> fault::Result<Noted> {
    let timeline: Option<i32> = read(store, &timeline_key())?;
    let history: Option<History> = read(store, &history_key())?;
    let loss = opened.loss(timeline, history.as_ref());
    let history = match history {
        Some(history) if loss.is_none() && timeline == Some(opened.timeline) => {
            return Ok(Noted { history: history.id, loss: None });
        }
        Some(history) if loss.is_none() => history,
        before => opened.new_history(before),
    };
    let (on, within) = (serde_json::to_vec(&opened.timeline)?, serde_json::to_vec(&history)?);
    let mut batch = Batch::new().put(Table::States, timeline_key(), on).put(Table::States, history_key(), within);
    let noted = match loss {
        None => None,
        Some(loss) => {
            let (with_notes, count) = put_notes(batch, store, loss)?;
            batch = with_notes;
            Some((loss, count))
        }
    };
    store.commit(batch).await?;
    Ok(Noted { history: history.id, loss: noted })
}

impl OpenedStore {
    fn loss(&self, timeline: Option<i32>, history: Option<&History>) -> Option<CommitLoss> {
        if let Some(from) = timeline.or(self.claimed_before).filter(|from| *from != self.timeline) {
            return Some(CommitLoss::Failover { from, to: self.timeline });
        }
        let restored = |seen: u64| (seen > self.commits).then_some(CommitLoss::Restored { seen, found: self.commits });
        let of_memory = self.remembered.as_ref().and_then(|seen| match history {
            // The loss was noted when the present history began.
            Some(history) if history.contains(&seen.history) => None,
            Some(history) if history.id == seen.history => restored(seen.commits),
            _ => restored(seen.commits).or(Some(CommitLoss::OtherHistory)),
        });
        of_memory.or_else(|| self.watched.and_then(restored))
    }

    fn new_history(&self, before: Option<History>) -> History {
        let mut ended = Vec::new();
        if let Some(History { id, before }) = before {
            ended = before;
            ended.push(id);
        }
        let remembered = self.remembered.iter().map(|seen| seen.history.clone());
        let unknown: Vec<String> = remembered.filter(|id| !ended.contains(id)).collect();
        ended.extend(unknown);
        History { id: self.fresh_id.clone(), before: ended }
    }
}

fn put_notes(batch: Batch, store: &dyn Store, loss: CommitLoss) -> fault::Result<(Batch, usize)> {
    let written = serde_json::to_vec(&loss)?;
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

/// The loss because of which a run waits for a person.
///
/// # Errors
/// When the store, or the note, cannot be read.
pub fn of_run(store: &dyn Store, run: &RunId) -> fault::Result<Option<CommitLoss>> {
    read(store, &run_key(run))
}

/// Deletes the note of a run, which a person resumed.
pub fn forget_run(batch: &mut Batch, run: &RunId) {
    batch.push(Op::Delete(Table::States, run_key(run)));
}

/// The loss that the scheduler has not heard of yet.
///
/// # Errors
/// When the store, or the note, cannot be read.
pub fn of_tasks(store: &dyn Store) -> fault::Result<Option<CommitLoss>> {
    read(store, &tasks_key())
}

/// Deletes the note of the scheduler, with the tasks that it ends because of it.
pub fn forget_tasks(batch: &mut Batch) {
    batch.push(Op::Delete(Table::States, tasks_key()));
}

/// True for the keys of the timeline and of the history, which are of a store alone: a copy of its state has others.
#[must_use]
pub fn is_of_one_store(table: Table, key: &[u8]) -> bool {
    table == Table::States && (key == timeline_key().as_bytes() || key == history_key().as_bytes())
}

fn read<T: DeserializeOwned>(store: &dyn Store, key: &Key) -> fault::Result<Option<T>> {
    let bytes = store.get(Table::States, key)?;
    let damaged = || "the note of a loss of commits is damaged";
    bytes.map(|bytes| serde_json::from_slice(&bytes).or_internal(damaged)).transpose()
}

fn timeline_key() -> Key {
    Key::of("timeline")
}

fn history_key() -> Key {
    Key::of("history")
}

fn tasks_key() -> Key {
    Key::of("loss")
}

fn run_key(run: &RunId) -> Key {
    RunRecord::key(run).and("loss")
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

    /// A store on a timeline, with a number of commits.
    fn opened(timeline: i32, commits: u64) -> OpenedStore {
        OpenedStore {
            timeline,
            commits,
            fresh_id: format!("history of {timeline} from {commits}"),
            ..OpenedStore::default()
        }
    }

    /// As [`opened`], by a data directory that remembers a commit.
    fn remembering(timeline: i32, commits: u64, (history, seen): (&str, u64)) -> OpenedStore {
        let remembered = Some(SeenCommit { history: history.to_owned(), commits: seen });
        OpenedStore { remembered, ..opened(timeline, commits) }
    }

    async fn loss(store: &MemoryStore, opened: OpenedStore) -> Option<CommitLoss> {
        note(store, &opened).await.unwrap().loss.map(|(loss, _)| loss)
    }

    #[tokio::test]
    async fn a_failover_is_noted_once_and_stays_until_a_person_resumes_the_run() {
        let (store, run) = with_a_run().await;
        assert_eq!(loss(&store, opened(1, 0)).await, None);
        assert_eq!(loss(&store, opened(1, 1)).await, None);
        assert_eq!((of_run(&store, &run).unwrap(), of_tasks(&store).unwrap()), (None, None));
        let failover = CommitLoss::Failover { from: 1, to: 2 };
        // A process that was killed before it told anybody leaves what the next one finds.
        let second = OpenedStore { claimed_before: Some(1), ..opened(2, 2) };
        let noted = note(&store, &second).await.unwrap();
        assert_eq!(noted, Noted { history: "history of 2 from 2".to_owned(), loss: Some((failover, 1)) });
        assert_eq!(loss(&store, opened(2, 3)).await, None);
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
        assert_eq!((of_tasks(&store).unwrap(), loss(&store, second).await), (None, None));
    }

    #[tokio::test]
    async fn the_claim_before_tells_of_a_failover_where_the_store_keeps_no_timeline_yet() {
        let (store, run) = with_a_run().await;
        let found = OpenedStore { claimed_before: Some(2), ..opened(3, 0) };
        assert_eq!(loss(&store, found).await, Some(CommitLoss::Failover { from: 2, to: 3 }));
        assert!(of_run(&store, &run).unwrap().is_some());
    }

    #[tokio::test]
    async fn a_store_below_the_commit_that_was_seen_is_noted_once_for_all_that_saw_it() {
        let (store, run) = with_a_run().await;
        let first = note(&store, &opened(1, 0)).await.unwrap().history;
        assert_eq!(loss(&store, remembering(1, 500, (&first, 500))).await, None);
        let restored = CommitLoss::Restored { seen: 500, found: 499 };
        assert_eq!(loss(&store, remembering(1, 499, (&first, 500))).await, Some(restored));
        assert_eq!(of_run(&store, &run).unwrap(), Some(restored));
        let told = restored.of_run(&run);
        assert!(told.contains("commit 499, and 500 was there") && told.ends_with("longhaul resume r-1"), "{told}");
        // Another machine saw more of what was lost.
        assert_eq!(loss(&store, remembering(1, 500, (&first, 700))).await, None);
        let second = "history of 1 from 499";
        assert_eq!(loss(&store, remembering(1, 501, (second, 500))).await, None);
        let again = CommitLoss::Restored { seen: 600, found: 520 };
        assert_eq!(loss(&store, remembering(1, 520, (second, 600))).await, Some(again));
    }

    #[tokio::test]
    async fn a_store_without_the_history_that_was_seen_is_noted_once_however_far_it_is() {
        let (store, _) = with_a_run().await;
        note(&store, &opened(1, 0)).await.unwrap();
        assert_eq!(loss(&store, remembering(1, 900, ("unknown", 500))).await, Some(CommitLoss::OtherHistory));
        assert_eq!(loss(&store, remembering(1, 901, ("unknown", 500))).await, None);
        let (empty, _) = with_a_run().await;
        let found = remembering(1, 9, ("unknown", 500));
        assert_eq!(loss(&empty, found).await, Some(CommitLoss::Restored { seen: 500, found: 9 }));
    }

    #[tokio::test]
    async fn a_process_that_stood_by_notices_a_restore_under_its_eyes() {
        let (store, _) = with_a_run().await;
        let watched = |watched, commits| OpenedStore { watched: Some(watched), ..opened(1, commits) };
        assert_eq!(loss(&store, watched(40, 40)).await, None);
        assert_eq!(loss(&store, watched(41, 40)).await, Some(CommitLoss::Restored { seen: 41, found: 40 }));
    }
}
