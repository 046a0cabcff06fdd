//! What the store holds of a run.

use crate::cast::Pins;
use crate::config::Config;
use crate::wiring::ModelOptions;
use anyhow::Context;
use longhaul_core::event::RunEvent;
use longhaul_core::journal::Question;
use longhaul_core::store::{Batch, Key, Store, Table};
use longhaul_core::{Digest, RunId};
use longhaul_harness::State;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Runs that are listed at once.
const RUNS_MAX: usize = 10_000;

/// What a run was started with. Written once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub run: RunId,
    /// The project's name.
    pub project: String,
    /// The project's directory.
    pub directory: PathBuf,
    /// The branch that it commits to.
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
    /// When it was asked for.
    pub created_ms: u64,
}

impl RunRecord {
    /// The configuration that the run was started with.
    pub fn config(&self) -> anyhow::Result<Config> {
        Config::parse(&self.config).context("the configuration that the run was started with")
    }

    fn key(run: &RunId) -> Key {
        Key::of(run.as_str())
    }

    /// Writes the record.
    pub fn insert(&self, batch: Batch) -> anyhow::Result<Batch> {
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

/// Reads a run; none if there is no such run.
pub fn load(store: &dyn Store, run: &RunId) -> anyhow::Result<Option<StoredRun>> {
    let Some(bytes) = store.get(Table::Runs, &RunRecord::key(run))? else { return Ok(None) };
    let record = serde_json::from_slice(&bytes).with_context(|| format!("the record of run {run} is damaged"))?;
    let text = store.get(Table::States, &RunRecord::key(run))?.with_context(|| format!("run {run} has no state"))?;
    let text = String::from_utf8(text).with_context(|| format!("the state of run {run} is damaged"))?;
    Ok(Some(StoredRun { record, state: State::from_json(&text)? }))
}

/// Every run, oldest first.
pub fn list(store: &dyn Store) -> anyhow::Result<Vec<StoredRun>> {
    let found = store.scan(Table::Runs, &Key::default(), None, RUNS_MAX)?;
    let mut runs = Vec::new();
    for (_, bytes) in found {
        let record: RunRecord = serde_json::from_slice(&bytes).context("the record of a run is damaged")?;
        runs.extend(load(store, &record.run)?);
    }
    runs.sort_by_key(|stored| stored.record.created_ms);
    Ok(runs)
}

/// Events of a run after a number, at most `limit`.
pub fn events_after(store: &dyn Store, run: &RunId, after: u64, limit: usize) -> anyhow::Result<Vec<RunEvent>> {
    let prefix = RunRecord::key(run);
    let last = prefix.clone().number(after);
    let found = store.scan(Table::Events, &prefix, Some(last.as_bytes()), limit)?;
    found.iter().map(|(_, bytes)| serde_json::from_slice(bytes).context("an event is damaged")).collect()
}

/// The number of the last event.
pub fn last_event(store: &dyn Store, run: &RunId) -> anyhow::Result<u64> {
    let mut last = 0;
    loop {
        let page = events_after(store, run, last, 1_000)?;
        match page.last() {
            Some(event) => last = event.number,
            None => return Ok(last),
        }
    }
}

/// Adds the state and the events to a batch.
pub fn put_step(batch: &mut Batch, run: &RunId, state: &State, events: &[RunEvent]) -> anyhow::Result<()> {
    let taken = std::mem::take(batch);
    let mut filled = taken.put(Table::States, RunRecord::key(run), state.to_json().into_bytes());
    for event in events {
        filled = filled.insert(Table::Events, RunRecord::key(run).number(event.number), serde_json::to_vec(event)?);
    }
    *batch = filled;
    Ok(())
}

/// The question about an effect that a run waits with, if it does.
pub fn question(store: &dyn Store, run: &RunId) -> anyhow::Result<Option<Question>> {
    let bytes = store.get(Table::States, &RunRecord::key(run).and("question"))?;
    bytes.map(|bytes| serde_json::from_slice(&bytes).context("the question of a run is damaged")).transpose()
}

/// Keeps the question with the step that parks the run.
pub fn put_question(batch: Batch, run: &RunId, question: &Question) -> anyhow::Result<Batch> {
    Ok(batch.put(Table::States, RunRecord::key(run).and("question"), serde_json::to_vec(question)?))
}

/// Where the text of a run's best effort for a feature is found.
pub fn put_best_effort(mut batch: Batch, run: &RunId, feature: &str, bytes: Vec<u8>) -> (Batch, Digest) {
    let digest = batch.blob(bytes);
    let key = RunRecord::key(run).and("best-effort").and(feature);
    (batch.put(Table::States, key, digest.to_string()), digest)
}
