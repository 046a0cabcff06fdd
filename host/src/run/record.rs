//! What the store holds of a run.

mod parts;

use super::until::Until;
use super::{decisions, ledger};
use crate::cast::Pins;
use crate::config::Config;
use crate::memory;
use crate::notify;
use crate::wiring::ModelOptions;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::journal::Question;
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::work::{FeatureStatus, Plan};
use longhaul_core::{Digest, RunId};
use longhaul_harness::state::WaitFor;
use longhaul_harness::{Dispatch, HarnessLimits, Lane, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Digits of a commit's name in the progress.
const SHORT: usize = 10;

/// Runs that are listed at once.
const RUNS_MAX: usize = 10_000;

/// What a run was started with. Written once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub run: RunId,
    /// The project's name.
    pub project: String,
    /// The project's id, see `identity.rs`. Empty in runs of before, which know their project by its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The project's directory.
    pub directory: PathBuf,
    /// The branch that it commits to; empty for an ask, which commits nothing.
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    /// `longhaul.toml` as it was.
    pub config: String,
    /// The goal as it was.
    pub goal: String,
    /// The plugins, by table.
    pub pins: Pins,
    /// What is done to its models.
    pub models: ModelOptions,
    /// The plan that it follows; none: a planner is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Who answers, if it is an ask: a run without a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Dispatch>,
    /// Features that pass in the run before on this branch, by their ids, each with the digest of what it asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passed_before: BTreeMap<String, Digest>,
    /// When it was asked for.
    pub created_ms: u64,
}

impl RunRecord {
    /// The caps of such a run in a configuration.
    pub fn limits_in(&self, config: &Config) -> HarnessLimits {
        if self.ask.is_some() { config.ask_limits() } else { config.run.limits.clone() }
    }

    /// What is kept of the project is found by this.
    pub fn scope(&self) -> &str {
        if self.id.is_empty() { &self.project } else { &self.id }
    }

    /// Refuses what only a run with a branch can do.
    pub fn expect_branch(&self) -> fault::Result<()> {
        if self.ask.is_some() {
            bail!(Fault::conflict(format!(
                "run {} is an ask, which has no branch; name a run of `longhaul run`",
                self.run
            )));
        }
        Ok(())
    }

    /// The configuration that the run was started with.
    pub fn config(&self) -> fault::Result<Config> {
        let pinned = Config::parse_pinned(&self.config).context("the configuration that the run was started with");
        pinned.map(|pinned| self.with_id(pinned))
    }

    fn with_id(&self, mut config: Config) -> Config {
        config.project.id.clone_from(&self.id);
        config
    }

    /// The configuration for the work that is still to be done: what the file says now, so that a grant
    /// or a limit that was mended holds. A run pins two things of the file that it began with, since journals and
    /// verdicts depend on them: `[checks]`, and the `settings` of each plugin. Where the file is gone, what the run
    /// began with is left without its powers, for nobody stands by them any more.
    ///
    /// # Errors
    /// The file is that of another project, or cannot be read.
    pub fn config_now(&self) -> fault::Result<Config> {
        let pinned = self.config()?;
        if !self.directory.join(crate::config::FILE).exists() {
            return Ok(pinned.without_powers());
        }
        let mut now = self.with_id(Config::read(&self.directory)?);
        if now.project.name != self.project || pinned.project.name != self.project {
            let other = if now.project.name == self.project { pinned.project.name } else { now.project.name };
            bail!(Fault::conflict(format!(
                "run {} is of project `{}`, and longhaul.toml in `{}` is of `{}`; to go on with it, set [project] name back",
                self.run,
                self.project,
                self.directory.display(),
                longhaul_core::text::printable(&other, 80)
            )));
        }
        now.checks = pinned.checks.clone();
        now.keep_settings_of(&pinned);
        Ok(now)
    }

    pub(super) fn key(run: &RunId) -> Key {
        Key::of(run.as_str())
    }

    /// Writes the record.
    pub fn insert(&self, batch: Batch) -> fault::Result<Batch> {
        Ok(batch.insert(Table::Runs, Self::key(&self.run), serde_json::to_vec(self)?))
    }
}

/// A run as it stands.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// What it was started with.
    pub record: RunRecord,
    /// Where it is.
    pub state: State,
}

/// What a run was started with; none if there is no such run.
pub fn record(store: &dyn Store, run: &RunId) -> fault::Result<Option<RunRecord>> {
    let bytes = store.get(Table::Runs, &RunRecord::key(run))?;
    let damaged = || format!("the record of run {run} is damaged");
    bytes.map(|bytes| serde_json::from_slice(&bytes).with_context(damaged)).transpose()
}

/// Reads a run; none if there is no such run.
pub fn load(store: &dyn Store, run: &RunId) -> fault::Result<Option<StoredRun>> {
    let Some(record) = record(store, run)? else { return Ok(None) };
    let row = store.get(Table::States, &RunRecord::key(run))?.with_context(|| format!("run {run} has no state"))?;
    Ok(Some(StoredRun { record, state: parts::load(store, run, &row)? }))
}

/// Every run, oldest first.
pub fn list(store: &dyn Store) -> fault::Result<Vec<StoredRun>> {
    let runs = records(store)?.into_iter().map(|record| load(store, &record.run));
    runs.filter_map(fault::Result::transpose).collect()
}

/// What every run was started with, oldest first: their states are not read.
pub fn records(store: &dyn Store) -> fault::Result<Vec<RunRecord>> {
    let found = store.scan(Table::Runs, &Key::default(), None, RUNS_MAX)?;
    let read =
        |(_, bytes): &(Vec<u8>, Vec<u8>)| serde_json::from_slice(bytes).context("the record of a run is damaged");
    let mut records = found.iter().map(read).collect::<fault::Result<Vec<RunRecord>>>()?;
    records.sort_by_key(|record| record.created_ms);
    Ok(records)
}

/// The newest run of the project in a directory.
pub fn newest_in(store: &dyn Store, directory: &Path) -> fault::Result<Option<StoredRun>> {
    let newest = records(store)?.into_iter().rfind(|record| record.directory == directory);
    newest.map_or(Ok(None), |record| load(store, &record.run))
}

/// The newest run of the project in a directory that commits to its branch.
pub fn newest_on_branch(store: &dyn Store, directory: &Path) -> fault::Result<Option<StoredRun>> {
    let is_one = |record: &RunRecord| record.directory == directory && record.ask.is_none();
    let newest = records(store)?.into_iter().rfind(is_one);
    newest.map_or(Ok(None), |record| load(store, &record.run))
}

/// Events of a run after a number, at most `limit`.
pub fn events_after(store: &dyn Store, run: &RunId, after: u64, limit: usize) -> fault::Result<Vec<RunEvent>> {
    let prefix = RunRecord::key(run);
    let last = prefix.clone().number(after);
    let found = store.scan(Table::Events, &prefix, Some(last.as_bytes()), limit)?;
    found.iter().map(|(_, bytes)| serde_json::from_slice(bytes).context("an event is damaged")).collect()
}

/// The number of the last event.
pub fn last_event(store: &dyn Store, run: &RunId) -> fault::Result<u64> {
    let last = store.last(Table::Events, &RunRecord::key(run), 1)?;
    Ok(last.first().and_then(|(key, _)| Key::last_number(key)).unwrap_or(0))
}

/// When something last happened in a run.
pub fn last_event_ms(store: &dyn Store, run: &RunId) -> fault::Result<Option<u64>> {
    let last = last_event(store, run)?;
    let event = events_after(store, run, last.saturating_sub(1), 1)?;
    Ok(event.first().map(|event| event.at_ms))
}

/// Adds events that change nothing but themselves to a batch.
pub fn put_events(batch: &mut Batch, run: &RunId, events: &[RunEvent]) -> fault::Result<()> {
    for event in events {
        let key = RunRecord::key(run).number(event.number);
        *batch = std::mem::take(batch).insert(Table::Events, key, serde_json::to_vec(event)?);
    }
    Ok(())
}

/// Adds the state, the events and what they mean for the project's progress and decisions to a batch.
pub fn put_step(
    store: &dyn Store,
    batch: &mut Batch,
    record: &RunRecord,
    state: &State,
    events: &[RunEvent],
) -> fault::Result<()> {
    let key = RunRecord::key(&record.run);
    for over in questions_over(store, &record.run, state)? {
        batch.push(Op::Delete(Table::States, over));
    }
    let mut filled = parts::put(store, std::mem::take(batch), &record.run, state)?;
    for event in events {
        tracing::trace!(number = event.number, "run.event");
        filled = filled.insert(Table::Events, key.clone().number(event.number), serde_json::to_vec(event)?);
        if let Event::Steered { feature, text } = &event.event {
            filled = ledger::put_correction(filled, &record.run, feature.as_deref(), event.number, text);
        }
        if let Some(progress) = progress(event).filter(|_| record.ask.is_none()) {
            let key = Key::of(record.scope()).number(event.at_ms).and(&format!("{}/{}", record.run, event.number));
            filled = filled.put(Table::Progress, key, serde_json::to_vec(&progress)?);
        }
    }
    let filled = notify::put_letters(filled, record, events)?;
    let filled = memory::put_due(filled, record, events)?;
    *batch = decisions::put_of_events(filled, store, record, state, events)?;
    Ok(())
}

/// The entry of the project's progress that an event makes: a commit, a feature that was given up, a revert.
fn progress(event: &RunEvent) -> Option<serde_json::Value> {
    let (action, outcome, files) = match &event.event {
        Event::Committed { feature, commit, files, .. } => {
            (format!("committed {feature}"), commit.clone(), files.clone())
        }
        Event::Feature { feature, status: FeatureStatus::Failing, why } => {
            (format!("gave up on {feature}"), why.clone(), Vec::new())
        }
        Event::Reverted { to, features, .. } => {
            let (to, back) = (&to[..to.floor_char_boundary(SHORT)], features.join(", "));
            (
                format!("reverted to {to}"),
                format!("taken back: {}", if back.is_empty() { "nothing" } else { &back }),
                Vec::new(),
            )
        }
        _ => return None,
    };
    Some(serde_json::json!({
        "at_ms": event.at_ms, "plugin": "longhaul", "action": action, "outcome": outcome, "files": files,
    }))
}

/// The newest entries of a project's progress, oldest first, as they were kept.
pub fn progress_last(store: &dyn Store, project: &str, count: usize) -> fault::Result<Vec<serde_json::Value>> {
    let mut found = store.last(Table::Progress, &Key::of(project), count)?;
    found.reverse();
    found.iter().map(|(_, bytes)| serde_json::from_slice(bytes).context("an entry of progress is damaged")).collect()
}

/// A project as it was made: what is known of it before its first run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRecord {
    /// Its name.
    pub project: String,
    /// Where it is.
    pub directory: PathBuf,
    /// When it was made.
    pub created_ms: u64,
}

impl ProjectRecord {
    fn prefix() -> Key {
        Key::of("projects")
    }

    /// Writes the record, over that of a project that was here before.
    pub fn put(&self, batch: Batch) -> fault::Result<Batch> {
        let key = Self::prefix().and(&self.directory.to_string_lossy());
        Ok(batch.put(Table::States, key, serde_json::to_vec(self)?))
    }

    /// Every project that was made with `new` or `init`.
    pub fn list(store: &dyn Store) -> fault::Result<Vec<Self>> {
        let found = store.scan(Table::States, &Self::prefix(), None, RUNS_MAX)?;
        found
            .iter()
            .map(|(_, bytes)| serde_json::from_slice(bytes).context("the record of a project is damaged"))
            .collect()
    }
}

/// The questions about effects that lanes wait with.
pub fn questions(store: &dyn Store, run: &RunId, state: &State) -> fault::Result<Vec<Question>> {
    kept_of(store, run, state.lanes.iter().filter(|lane| asks(lane)))
}

/// The questions that were answered, of work that may not have come to its effect again.
pub fn questions_answered(store: &dyn Store, run: &RunId, state: &State) -> fault::Result<Vec<Question>> {
    kept_of(store, run, state.lanes.iter().filter(|lane| lane.wait.is_none()))
}

fn kept_of<'a>(store: &dyn Store, run: &RunId, lanes: impl Iterator<Item = &'a Lane>) -> fault::Result<Vec<Question>> {
    let kept = lanes.map(|lane| store.get(Table::States, &question_key(run, &lane.work.key())));
    let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).context("the question of a run is damaged");
    kept.filter_map(|row| row.map(|bytes| bytes.map(read)).map_err(Fault::from).transpose())
        .map(|row| row.and_then(|read| read))
        .collect()
}

/// Keeps the question with the step that parks the work of this key.
pub fn put_question(batch: Batch, run: &RunId, work: &str, question: &Question) -> fault::Result<Batch> {
    Ok(batch.put(Table::States, question_key(run, work), serde_json::to_vec(question)?))
}

/// Forgets the question with the step that parks the work for another reason.
pub fn forget_question(mut batch: Batch, run: &RunId, work: &str) -> Batch {
    batch.push(Op::Delete(Table::States, question_key(run, work)));
    batch
}

fn question_key(run: &RunId, work: &str) -> Key {
    RunRecord::key(run).and("question").and(work)
}

/// Whether its work waits for a person who knows about an effect.
fn asks(lane: &Lane) -> bool {
    lane.wait.as_ref().is_some_and(|wait| wait.wait == WaitFor::Work)
}

/// Questions of work that is over. One that was answered stays until then: the answer may be taken back.
fn questions_over(store: &dyn Store, run: &RunId, state: &State) -> fault::Result<Vec<Key>> {
    let open: Vec<_> = state.lanes.iter().map(|lane| question_key(run, &lane.work.key())).collect();
    let kept = store.scan(Table::States, &RunRecord::key(run).and("question"), None, QUESTIONS_MAX)?;
    let kept = kept.into_iter().map(|(key, _)| Key::from_bytes(key));
    Ok(kept.filter(|key| !open.contains(key)).collect())
}

/// Questions of a run that are looked at: more lanes than any run has.
const QUESTIONS_MAX: usize = 1_000;

/// How far a run was asked to go; to its end where nothing else was kept.
pub fn until(store: &dyn Store, run: &RunId) -> fault::Result<Until> {
    let bytes = store.get(Table::States, &until_key(run))?;
    let damaged = || format!("how far run {run} was asked to go is damaged");
    bytes.map_or(Ok(Until::End), |bytes| serde_json::from_slice(&bytes).with_context(damaged))
}

/// Keeps it with the step that begins the run, resumes it, or changes it.
pub fn put_until(mut batch: Batch, run: &RunId, until: Until) -> fault::Result<Batch> {
    if until == Until::End {
        batch.push(Op::Delete(Table::States, until_key(run)));
        return Ok(batch);
    }
    Ok(batch.put(Table::States, until_key(run), serde_json::to_vec(&until)?))
}

fn until_key(run: &RunId) -> Key {
    RunRecord::key(run).and("until")
}

/// What the evaluator judged of a feature, by the digest of all that would be committed.
pub fn put_judged(batch: Batch, run: &RunId, feature: &str, subject: Digest) -> Batch {
    batch.put(Table::States, RunRecord::key(run).and("judged").and(feature), subject.to_string())
}

/// See [`put_judged`].
pub fn judged(store: &dyn Store, run: &RunId, feature: &str) -> fault::Result<Option<Digest>> {
    let bytes = store.get(Table::States, &RunRecord::key(run).and("judged").and(feature))?;
    bytes.map(|bytes| Ok(String::from_utf8_lossy(&bytes).parse()?)).transpose()
}

/// Where the text of a run's best effort for a feature is found.
pub fn put_best_effort(mut batch: Batch, run: &RunId, feature: &str, bytes: Vec<u8>) -> (Batch, Digest) {
    let digest = batch.blob(bytes);
    let key = RunRecord::key(run).and("best-effort").and(feature);
    (batch.put(Table::States, key, digest.to_string()), digest)
}

/// See [`put_best_effort`]. None where nothing was kept under that name.
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
        assert_eq!(until(&store, &run).unwrap(), Until::End);
        for one in [Until::Plan, Until::Sessions(2), Until::Session(7), Until::End] {
            keep(one).await;
            assert_eq!(until(&store, &run).unwrap(), one);
        }
        let rows = store.scan(Table::States, &RunRecord::key(&run), None, 10).unwrap();
        assert!(rows.is_empty(), "nothing is kept of a run that goes to its end");
    }

    #[test]
    fn a_revert_is_an_entry_of_the_progress_and_takes_none_away() {
        let of = |event| progress(&RunEvent { run: RunId::from_text("r-1"), number: 9, at_ms: 5, event });
        let reverted = |features: &[&str]| Event::Reverted {
            to: "0123456789abcdef".into(),
            kept_as: None,
            left: Vec::new(),
            features: features.iter().map(|id| (*id).to_owned()).collect(),
        };
        let entry = of(reverted(&["a", "b"])).expect("an entry");
        assert_eq!(
            (&entry["action"], &entry["outcome"]),
            (&"reverted to 0123456789".into(), &"taken back: a, b".into())
        );
        assert_eq!(of(reverted(&[])).expect("an entry")["outcome"], "taken back: nothing");
        assert_eq!(of(Event::Paused), None);
    }
}
