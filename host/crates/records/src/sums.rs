//! The sums of a run, kept beside its events: what was counted for metrics, and what models used by day, model and
//! agent. Lists and totals over many runs are made of them, so that no list reads all events.
//!
//! The row is written in the batch of the events that it counts, so a kill leaves both or neither. It names the last
//! event that it has; events after that one are added when it is read, which is also how the row of a run of an earlier
//! version comes to be. It never makes a batch fail: a row that cannot be read is made anew.

use crate::record;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault;
use longhaul_core::model::Usage;
use longhaul_core::store::{Batch, Key, Op, Store, StoreError, Table};
use longhaul_core::{Digest, RunId};
use longhaul_telemetry::Totals;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Events that are read at once.
const PAGE: usize = 1_000;

/// Entries of `spent` in one run; what would be one more is added to one of its day, for the model and the agent
/// [`OTHER`].
const SPENT_MAX: usize = 500;

/// The name of all models and agents beyond that.
const OTHER: &str = "other";

const DAY_MS: u64 = 86_400_000;

/// The sums of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSums {
    /// The number of the last event that is in them.
    pub last: u64,
    /// Counts for metrics.
    pub totals: Totals,
    /// The usage of models.
    pub spent: Vec<SpentSum>,
}

/// The usage of one model by one agent on one day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpentSum {
    /// The day, counted from 1970-01-01 UTC.
    pub day: u64,
    /// The name of the model in `longhaul.toml`.
    pub model: String,
    /// The table of the agent.
    pub agent: String,
    /// The number of replies.
    pub replies: u64,
    /// Their tokens and cost.
    pub usage: Usage,
}

/// The sums of a run as they are now, and how far the stored row is behind.
pub struct FreshSums {
    /// The sums, up to the last stored event.
    pub sums: RunSums,
    /// The change that stores them, where the row is missing or older; it fails if somebody wrote the row since.
    pub repair: Option<Op>,
}

impl RunSums {
    /// Adds the next event. One that is in the sums already changes nothing.
    pub fn add(&mut self, event: &RunEvent) {
        if event.number <= self.last {
            return;
        }
        self.last = event.number;
        self.totals.add(event);
        if let Event::Thought { agent, model, usage, .. } = &event.event {
            self.spend(event.at_ms / DAY_MS, model, agent, *usage);
        }
    }

    fn spend(&mut self, day: u64, model: &str, agent: &str, usage: Usage) {
        let at = |sums: &Self, model: &str, agent: &str| {
            sums.spent.iter().position(|one| one.day == day && one.model == model && one.agent == agent)
        };
        let found = at(self, model, agent);
        let (model, agent) =
            if found.is_none() && self.spent.len() >= SPENT_MAX { (OTHER, OTHER) } else { (model, agent) };
        let found = found.or_else(|| at(self, model, agent));
        let at = found.unwrap_or_else(|| {
            let (model, agent) = (model.to_owned(), agent.to_owned());
            self.spent.push(SpentSum { day, model, agent, replies: 0, usage: Usage::default() });
            self.spent.len() - 1
        });
        let one = &mut self.spent[at];
        one.replies += 1;
        one.usage = one.usage.plus(usage);
    }

    /// Adds stored events after the last one that is in the sums, up to `until`.
    fn catch_up(&mut self, store: &dyn Store, run: &RunId, until: u64) -> fault::Result<()> {
        loop {
            let before = self.last;
            let page = record::events_after(store, run, before, PAGE)?;
            page.iter().filter(|event| event.number <= until).for_each(|event| self.add(event));
            if self.last >= until || self.last == before {
                return Ok(());
            }
        }
    }
}

/// The sums of a run up to its last event.
pub fn read(store: &dyn Store, run: &RunId) -> fault::Result<FreshSums> {
    let row = store.get(Table::States, &key(run))?;
    let mut sums: RunSums = row.as_deref().and_then(|row| serde_json::from_slice(row).ok()).unwrap_or_default();
    let (before, last) = (sums.last, record::last_event(store, run)?);
    sums.catch_up(store, run, last)?;
    if sums.last == before {
        return Ok(FreshSums { sums, repair: None });
    }
    let value = serde_json::to_vec(&sums)?;
    let repair = match row {
        Some(row) => Op::Swap(Table::States, key(run), Digest::of(&row), value),
        None => Op::Insert(Table::States, key(run), value),
    };
    Ok(FreshSums { sums, repair: Some(repair) })
}

/// Adds the sums of each run that has events in the batch, and deletes those of each run whose record it deletes.
pub(crate) fn ride(store: &dyn Store, batch: &mut Batch) {
    let mut runs: BTreeMap<RunId, Option<RunSums>> = BTreeMap::new();
    let mut more = Vec::new();
    for op in &batch.ops {
        match op {
            Op::Insert(Table::Events, _, bytes) | Op::Put(Table::Events, _, bytes) => {
                let Ok(event) = serde_json::from_slice::<RunEvent>(bytes) else { continue };
                let sums = runs.entry(event.run.clone()).or_insert_with(|| before(store, &event));
                if let Some(sums) = sums {
                    sums.add(&event);
                }
            }
            Op::Delete(Table::Runs, run) => more.extend(run_of(run).map(|run| Op::Delete(Table::States, key(&run)))),
            _ => {}
        }
    }
    for (run, sums) in runs.into_iter().filter_map(|(run, sums)| Some((run, sums?))) {
        // Plain data always converts to JSON.
        more.push(Op::Put(Table::States, key(&run), serde_json::to_vec(&sums).unwrap_or_default()));
    }
    batch.ops.extend(more);
}

/// Stores sums that were missing or behind. Those that somebody wrote meanwhile are left as they are.
pub async fn repair(store: &dyn Store, repairs: Vec<Op>) {
    let whole = store.commit(Batch { ops: repairs.clone() }).await;
    if !matches!(whole, Err(StoreError::Conflict { .. })) {
        return;
    }
    for op in repairs {
        // Whatever fails here is repaired by the next process.
        let _ = store.commit(Batch { ops: vec![op] }).await;
    }
}

/// The run that a key belongs to; none where it belongs to no run.
pub(crate) fn run_of(key: &Key) -> Option<RunId> {
    let first = key.as_bytes().split(|byte| *byte == 0).next()?;
    let name = std::str::from_utf8(first).ok().filter(|name| name.starts_with("r-"))?;
    Some(RunId::from_text(name))
}

/// The sums before an event that is about to be stored. None: the events before it cannot be read, so the row stays as
/// it is, and the next reader adds what it lacks.
fn before(store: &dyn Store, event: &RunEvent) -> Option<RunSums> {
    let row = store.get(Table::States, &key(&event.run)).ok()?;
    let mut sums: RunSums = row.and_then(|row| serde_json::from_slice(&row).ok()).unwrap_or_default();
    let before = event.number.saturating_sub(1);
    if sums.last < before
        && let Err(error) = sums.catch_up(store, &event.run, before)
    {
        tracing::warn!(run = %event.run, "the sums of the run are behind: {error:#}");
        return None;
    }
    Some(sums)
}

fn key(run: &RunId) -> Key {
    Key::of("sums").and(run.as_str())
}

#[cfg(test)]
mod tests;
