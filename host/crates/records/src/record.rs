//! The stored rows of a run: its record, its state, its events, and the rows beside them.
//!
//! A state and the events of the step that led to it are one transaction, which the caller makes and commits. This
//! module gives events no meaning for notifications, memory or the progress of a project.

mod carried;
mod contents;
mod earlier_parts;
mod events;
mod fork;
mod parts;
mod past;
mod place;
mod run;
mod tree_past;

pub use carried::{
    CarriedCommits, CarriedTree, UncarriedFile, carried_commits, carried_tree, forget_carried, forget_carried_commits,
    forget_carried_tree, forget_carried_trees, is_carried, put_carried_commits, put_carried_tree,
};
pub use events::{event_ms, events_after, last_event, last_event_ms, last_event_until, put_events};
pub use fork::{ForkedFrom, begin_removal, forked, forks, hand_over, is_of_forks, put_fork};
pub use parts::{history_begins, put as put_state, state_at, step_of};
pub use place::{TreePlace, forget_tree_place, move_tree_place, put_tree_place, tree_place};
pub use run::RunRecord;
pub use tree_past::{TimedTree, newest_tree, put_tree_past, tree_at};

use crate::stop_condition::StopCondition;
use longhaul_core::fault::{self, Context as _, Fault};
use longhaul_core::journal::EffectQuestion;
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::{Digest, RunId};
use longhaul_harness::state::WaitFor;
use longhaul_harness::{Lane, RunState};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Rows that one read returns. All of them are read, page by page.
const PAGE_ROWS: usize = 1_000;

/// Projects that are listed.
const PROJECTS_MAX: usize = 10_000;

/// A run with its current state.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The record that it was started with.
    pub record: RunRecord,
    /// The state of the run.
    pub state: RunState,
}

/// The record of a run; none if there is no such run.
pub fn record(store: &dyn Store, run: &RunId) -> fault::Result<Option<RunRecord>> {
    let bytes = store.get(Table::Runs, &RunRecord::key(run))?;
    let damaged = || format!("the record of run {run} is damaged");
    bytes.map(|bytes| serde_json::from_slice(&bytes).or_internal(damaged)).transpose()
}

/// Reads a run; none if there is no such run.
pub fn load(store: &dyn Store, run: &RunId) -> fault::Result<Option<StoredRun>> {
    let Some(record) = record(store, run)? else { return Ok(None) };
    let row = store.get(Table::States, &RunRecord::key(run))?.or_internal(|| format!("run {run} has no state"))?;
    Ok(Some(StoredRun { record, state: parts::load(store, run, &row)? }))
}

/// Every run, oldest first.
pub fn list(store: &dyn Store) -> fault::Result<Vec<StoredRun>> {
    let runs = records(store)?.into_iter().map(|record| load(store, &record.run));
    runs.filter_map(fault::Result::transpose).collect()
}

/// The records of every run, oldest first, without their states.
pub fn records(store: &dyn Store) -> fault::Result<Vec<RunRecord>> {
    let mut records: Vec<RunRecord> = all_as(store)?;
    records.sort_by_key(|record| record.created_ms);
    Ok(records)
}

/// The part of a record that lists and searches read: the texts of the configuration, the goal and the plan are passed
/// over.
#[derive(Clone, Debug, Deserialize)]
pub struct RunHead {
    /// The id of the run.
    pub run: RunId,
    /// The project's directory.
    pub directory: PathBuf,
    /// Present if the run is an ask.
    #[serde(default)]
    ask: Option<serde::de::IgnoredAny>,
    /// The branch that it commits to; empty for an ask.
    #[serde(default)]
    pub branch: String,
    /// The time of the request, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
}

/// The heads of every run, oldest first.
pub fn heads(store: &dyn Store) -> fault::Result<Vec<RunHead>> {
    let mut heads: Vec<RunHead> = all_as(store)?;
    heads.sort_by_key(|head| head.created_ms);
    Ok(heads)
}

/// Every record, in the order of the keys.
fn all_as<T: serde::de::DeserializeOwned>(store: &dyn Store) -> fault::Result<Vec<T>> {
    let mut all = Vec::new();
    let mut after: Option<Vec<u8>> = None;
    loop {
        let mut page = store.scan(Table::Runs, &Key::default(), after.as_deref(), PAGE_ROWS)?;
        for (_, bytes) in &page {
            all.push(serde_json::from_slice(bytes).or_internal(|| "the record of a run is damaged")?);
        }
        match page.pop() {
            Some((key, _)) if page.len() + 1 == PAGE_ROWS => after = Some(key),
            _ => return Ok(all),
        }
    }
}

/// The newest run of the project in a directory.
pub fn newest_in(store: &dyn Store, directory: &Path) -> fault::Result<Option<StoredRun>> {
    let newest = heads(store)?.into_iter().rfind(|head| head.directory == directory);
    newest.map_or(Ok(None), |head| load(store, &head.run))
}

/// The newest run of the project in a directory that commits to this branch. A fork has a branch of its own.
pub fn newest_on_branch(store: &dyn Store, directory: &Path, branch: &str) -> fault::Result<Option<StoredRun>> {
    let is_one = |head: &RunHead| head.directory == directory && head.ask.is_none() && head.branch == branch;
    let newest = heads(store)?.into_iter().rfind(is_one);
    newest.map_or(Ok(None), |head| load(store, &head.run))
}

/// The newest stored entries of a project's progress, oldest first.
pub fn progress_last(store: &dyn Store, project: &str, count: usize) -> fault::Result<Vec<serde_json::Value>> {
    let mut found = store.last(Table::Progress, &Key::of(project), count)?;
    found.reverse();
    found
        .iter()
        .map(|(_, bytes)| serde_json::from_slice(bytes).or_internal(|| "an entry of progress is damaged"))
        .collect()
}

/// A project as created: everything that is known of it before its first run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRecord {
    /// The name of the project.
    pub project: String,
    /// The directory of the project.
    pub directory: PathBuf,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
}

impl ProjectRecord {
    fn prefix() -> Key {
        Key::of("projects")
    }

    /// Writes the record, over that of an earlier project.
    pub fn put(&self, batch: Batch) -> fault::Result<Batch> {
        let key = Self::prefix().and(&self.directory.to_string_lossy());
        Ok(batch.put(Table::States, key, serde_json::to_vec(self)?))
    }

    /// Every project that was made with `new` or `init`.
    pub fn list(store: &dyn Store) -> fault::Result<Vec<Self>> {
        let found = store.scan(Table::States, &Self::prefix(), None, PROJECTS_MAX)?;
        found
            .iter()
            .map(|(_, bytes)| serde_json::from_slice(bytes).or_internal(|| "the record of a project is damaged"))
            .collect()
    }
}

/// The open questions about effects of parked lanes.
pub fn questions(store: &dyn Store, run: &RunId, state: &RunState) -> fault::Result<Vec<EffectQuestion>> {
    kept_of(store, run, state.lanes.iter().filter(|lane| asks(lane)))
}

/// The answered questions of work that may not have reached its effect again.
pub fn questions_answered(store: &dyn Store, run: &RunId, state: &RunState) -> fault::Result<Vec<EffectQuestion>> {
    kept_of(store, run, state.lanes.iter().filter(|lane| lane.wait.is_none()))
}

fn kept_of<'a>(
    store: &dyn Store,
    run: &RunId,
    lanes: impl Iterator<Item = &'a Lane>,
) -> fault::Result<Vec<EffectQuestion>> {
    let kept = lanes.map(|lane| store.get(Table::States, &question_key(run, &lane.work.key())));
    let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).or_internal(|| "the question of a run is damaged");
    kept.filter_map(|row| row.map(|bytes| bytes.map(read)).map_err(Fault::from).transpose())
        .map(|row| row.and_then(|read| read))
        .collect()
}

/// Stores the question with the step that parks the work of this key.
pub fn put_question(batch: Batch, run: &RunId, work: &str, question: &EffectQuestion) -> fault::Result<Batch> {
    Ok(batch.put(Table::States, question_key(run, work), serde_json::to_vec(question)?))
}

/// Deletes the question with the step that parks the work for another reason.
pub fn forget_question(mut batch: Batch, run: &RunId, work: &str) -> Batch {
    batch.push(Op::Delete(Table::States, question_key(run, work)));
    batch
}

fn question_key(run: &RunId, work: &str) -> Key {
    RunRecord::key(run).and("question").and(work)
}

/// True when its work waits for a person to report on an effect.
fn asks(lane: &Lane) -> bool {
    lane.wait.as_ref().is_some_and(|wait| wait.wait == WaitFor::Work)
}

/// The keys of the questions of work that is over. An answered question stays until then: the answer may be withdrawn.
pub fn questions_over(store: &dyn Store, run: &RunId, state: &RunState) -> fault::Result<Vec<Key>> {
    let open: Vec<_> = state.lanes.iter().map(|lane| question_key(run, &lane.work.key())).collect();
    let kept = store.scan(Table::States, &RunRecord::key(run).and("question"), None, QUESTIONS_MAX)?;
    let kept = kept.into_iter().map(|(key, _)| Key::from_bytes(key));
    Ok(kept.filter(|key| !open.contains(key)).collect())
}

/// Questions of a run that one read returns: more than any run has lanes.
const QUESTIONS_MAX: usize = 1_000;

/// The stored stop condition of a run; without one it goes to its end.
pub fn until(store: &dyn Store, run: &RunId) -> fault::Result<StopCondition> {
    let bytes = store.get(Table::States, &until_key(run))?;
    let damaged = || format!("how far run {run} was asked to go is damaged");
    bytes.map_or(Ok(StopCondition::End), |bytes| serde_json::from_slice(&bytes).or_internal(damaged))
}

/// Stores it with the step that begins the run, resumes it, or changes it.
pub fn put_until(mut batch: Batch, run: &RunId, until: StopCondition) -> fault::Result<Batch> {
    if until == StopCondition::End {
        batch.push(Op::Delete(Table::States, until_key(run)));
        return Ok(batch);
    }
    Ok(batch.put(Table::States, until_key(run), serde_json::to_vec(&until)?))
}

fn until_key(run: &RunId) -> Key {
    RunRecord::key(run).and("until")
}

/// The time from which a run waits for its turn, in milliseconds since 1970-01-01 UTC; none if it does not wait. It is
/// kept so that a resume after a kill finds its place in the order.
pub fn queued_ms(store: &dyn Store, run: &RunId) -> fault::Result<Option<u64>> {
    let bytes = store.get(Table::States, &queued_key(run))?;
    let damaged = || format!("since when run {run} waits for its turn is damaged");
    bytes.map(|bytes| serde_json::from_slice(&bytes).or_internal(damaged)).transpose()
}

/// Stores it with the event that tells of the wait.
pub fn put_queued(batch: Batch, run: &RunId, since_ms: u64) -> Batch {
    batch.put(Table::States, queued_key(run), since_ms.to_string())
}

/// Deletes it with the step by which the wait ends.
pub fn forget_queued(mut batch: Batch, run: &RunId) -> Batch {
    batch.push(Op::Delete(Table::States, queued_key(run)));
    batch
}

fn queued_key(run: &RunId) -> Key {
    RunRecord::key(run).and("queued")
}

/// The time at which a run was archived, in milliseconds since 1970-01-01 UTC; none if it is not in the archive. A run
/// of an earlier version has no such row, and so is not.
pub fn archived_ms(store: &dyn Store, run: &RunId) -> fault::Result<Option<u64>> {
    let bytes = store.get(Table::States, &archived_key(run))?;
    let damaged = || format!("since when run {run} is archived is damaged");
    bytes.map(|bytes| serde_json::from_slice(&bytes).or_internal(damaged)).transpose()
}

/// Stores that the run is archived. Nothing else of the run changes.
pub fn put_archived(batch: Batch, run: &RunId, at_ms: u64) -> Batch {
    batch.put(Table::States, archived_key(run), at_ms.to_string())
}

/// Deletes what [`put_archived`] stored.
pub fn forget_archived(mut batch: Batch, run: &RunId) -> Batch {
    batch.push(Op::Delete(Table::States, archived_key(run)));
    batch
}

/// The key of the row that says that a run is archived.
pub fn archived_key(run: &RunId) -> Key {
    RunRecord::key(run).and("archived")
}

/// Stores the digest of everything that would be committed, as the evaluator judged it for a feature.
pub fn put_judged(batch: Batch, run: &RunId, feature: &str, subject: Digest) -> Batch {
    batch.put(Table::States, RunRecord::key(run).and("judged").and(feature), subject.to_string())
}

/// The digest that [`put_judged`] stored.
pub fn judged(store: &dyn Store, run: &RunId, feature: &str) -> fault::Result<Option<Digest>> {
    let bytes = store.get(Table::States, &RunRecord::key(run).and("judged").and(feature))?;
    bytes.map(|bytes| Ok(String::from_utf8_lossy(&bytes).parse()?)).transpose()
}

/// Stores the text of a run's best effort for a feature.
pub fn put_best_effort(mut batch: Batch, run: &RunId, feature: &str, bytes: Vec<u8>) -> (Batch, Digest) {
    let digest = batch.blob(bytes);
    let key = RunRecord::key(run).and("best-effort").and(feature);
    (batch.put(Table::States, key, digest.to_string()), digest)
}

/// The text that [`put_best_effort`] stored; none if there is none under that name.
pub fn best_effort(store: &dyn Store, run: &RunId, feature: &str) -> fault::Result<Option<Vec<u8>>> {
    let Some(bytes) = store.get(Table::States, &RunRecord::key(run).and("best-effort").and(feature))? else {
        return Ok(None);
    };
    let digest: Digest = String::from_utf8_lossy(&bytes).parse()?;
    Ok(store.blob(&digest)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_goes_to_its_end_unless_something_else_is_kept() {
        let (store, run) = (longhaul_testkit::MemoryStore::new(), RunId::from_text("r-1"));
        let keep = async |until| store.commit(put_until(Batch::new(), &run, until).unwrap()).await.unwrap();
        assert_eq!(until(&store, &run).unwrap(), StopCondition::End);
        for one in [StopCondition::Plan, StopCondition::Sessions(2), StopCondition::Session(7), StopCondition::End] {
            keep(one).await;
            assert_eq!(until(&store, &run).unwrap(), one);
        }
        let rows = store.scan(Table::States, &RunRecord::key(&run), None, 10).unwrap();
        assert!(rows.is_empty(), "nothing is kept of a run that goes to its end");
    }

    #[tokio::test]
    async fn every_run_is_listed_however_many_there_are() {
        let store = longhaul_testkit::MemoryStore::new();
        let mut batch = Batch::new();
        for number in 0..PAGE_ROWS * 2 {
            let run = RunId::from_text(format!("r-{number:06}"));
            let ask = if number % 2 == 0 { serde_json::json!(null) } else { serde_json::json!({ "agent": "one" }) };
            let row = serde_json::json!({
                "run": run, "directory": "/p", "created_ms": PAGE_ROWS * 2 - number, "config": "x", "ask": ask,
            });
            batch = batch.put(Table::Runs, RunRecord::key(&run), row.to_string());
        }
        store.commit(batch).await.unwrap();
        let heads = heads(&store).unwrap();
        assert_eq!(heads.len(), PAGE_ROWS * 2);
        assert!(heads.is_sorted_by_key(|head| head.created_ms));
        assert_eq!(heads.iter().filter(|head| head.ask.is_some()).count(), PAGE_ROWS);
    }

    #[tokio::test]
    async fn a_run_is_archived_from_a_time_on_until_it_is_taken_back() {
        let (store, run) = (longhaul_testkit::MemoryStore::new(), RunId::from_text("r-1"));
        assert_eq!(archived_ms(&store, &run).unwrap(), None, "a run of an earlier version has no row");
        store.commit(put_archived(Batch::new(), &run, 7)).await.unwrap();
        assert_eq!(archived_ms(&store, &run).unwrap(), Some(7));
        assert_eq!(archived_ms(&store, &RunId::from_text("r-12")).unwrap(), None);
        store.commit(forget_archived(Batch::new(), &run)).await.unwrap();
        assert_eq!(archived_ms(&store, &run).unwrap(), None);
    }

    #[tokio::test]
    async fn the_time_of_a_wait_is_kept_until_the_wait_ends() {
        let (store, run) = (longhaul_testkit::MemoryStore::new(), RunId::from_text("r-1"));
        assert_eq!(queued_ms(&store, &run).unwrap(), None);
        store.commit(put_queued(Batch::new(), &run, 7)).await.unwrap();
        assert_eq!(queued_ms(&store, &run).unwrap(), Some(7));
        store.commit(forget_queued(Batch::new(), &run)).await.unwrap();
        assert_eq!(queued_ms(&store, &run).unwrap(), None);
    }
}
