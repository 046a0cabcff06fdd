//! The sums of a run, kept beside its events: the counts of metrics, and the usage of models by day, model and agent.
//! Lists and totals over many runs are made of them, so that no list reads all events.
//!
//! The row is written in the batch of the events that it counts, so a kill leaves both or neither. It names the last
//! event that it has; events after that one are added when it is read, which is also how the row of a run of an earlier
//! version comes to be. It never makes a batch fail: a row that cannot be read is made anew.

use crate::record;
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault;
use longhaul_core::model::Usage;
use longhaul_core::store::{Batch, Key, Op, Store, StoreError, Table};
use longhaul_telemetry::Totals;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
        while self.last < until {
            let before = self.last;
            let page = record::events_after(store, run, before, PAGE)?;
            // An import may bring events with other numbers than their keys have. Each page has to lead on.
            let is_next = page.first().is_some_and(|first| first.number > before);
            if !is_next || !page.is_sorted_by(|one, next| one.number < next.number) {
                break;
            }
            page.iter().filter(|event| event.number <= until).for_each(|event| self.add(event));
            if self.last == before {
                break;
            }
        }
        Ok(())
    }
}

/// The sums of a run up to its last event.
pub fn read(store: &dyn Store, run: &RunId) -> fault::Result<FreshSums> {
    let row = store.get(Table::States, &key(run))?;
    let stored = row.as_deref().and_then(parsed);
    let before = stored.as_ref().map_or(0, |stored| stored.last);
    let sums = up_to(store, run, stored, record::last_event(store, run)?)?;
    if sums.last == before {
        return Ok(FreshSums { sums, repair: None });
    }
    let value = serde_json::to_vec(&sums)?;
    let repair = Op::replace(Table::States, key(run), row.as_deref(), value);
    Ok(FreshSums { sums, repair: Some(repair) })
}

/// The sums of a run up to an event.
pub fn until(store: &dyn Store, run: &RunId, event: u64) -> fault::Result<RunSums> {
    let row = store.get(Table::States, &key(run))?;
    up_to(store, run, row.as_deref().and_then(parsed), event)
}

/// Adds the sums of each run to which the batch appends events. Those of a run whose events it replaces begin anew, and
/// those of a run that it deletes are deleted.
pub(crate) fn ride(store: &dyn Store, batch: &mut Batch) {
    let mut runs: BTreeMap<RunId, Option<RunSums>> = BTreeMap::new();
    let (mut replaced, mut deleted) = (BTreeSet::<RunId>::new(), BTreeSet::<RunId>::new());
    for op in &batch.ops {
        match op {
            Op::Insert(Table::Events, key, bytes) => {
                // By the key: an event may say that it is of another run.
                let Some(run) = run_of(key) else { continue };
                let Ok(event) = serde_json::from_slice::<RunEvent>(bytes) else { continue };
                let sums = runs.entry(run).or_insert_with_key(|run| before(store, run, event.number));
                if let Some(sums) = sums {
                    sums.add(&event);
                }
            }
            Op::Put(Table::Events, key, _) | Op::Swap(Table::Events, key, ..) => replaced.extend(run_of(key)),
            Op::Delete(Table::Runs | Table::Events, key) => deleted.extend(run_of(key)),
            _ => {}
        }
    }
    runs.retain(|run, _| !replaced.contains(run) && !deleted.contains(run));
    batch.ops.extend(deleted.difference(&replaced).map(|run| Op::Delete(Table::States, key(run))));
    // A row without events, and not none: sums that somebody has just read must not be stored as the first ones.
    let anew = replaced.into_iter().map(|run| (run, RunSums::default()));
    let kept = runs.into_iter().filter_map(|(run, sums)| Some((run, sums?)));
    // Plain data always converts to JSON.
    let put = |(run, sums): (RunId, RunSums)| {
        Op::Put(Table::States, key(&run), serde_json::to_vec(&sums).unwrap_or_default())
    };
    batch.ops.extend(anew.chain(kept).map(put));
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

/// The sums before an event that is about to be stored. None: the events before it cannot be read, or are not stored
/// yet, so the row stays as it is, and the next reader adds what it lacks.
fn before(store: &dyn Store, run: &RunId, number: u64) -> Option<RunSums> {
    let row = store.get(Table::States, &key(run)).ok()?;
    let before = number.saturating_sub(1);
    match up_to(store, run, row.as_deref().and_then(parsed), before) {
        Ok(sums) => (sums.last == before).then_some(sums),
        Err(error) => {
            tracing::warn!(%run, "the sums of the run are behind: {error:#}");
            None
        }
    }
}

/// The sums of the stored events up to `until`. A row that has more of them counts other events than there are now.
fn up_to(store: &dyn Store, run: &RunId, stored: Option<RunSums>, until: u64) -> fault::Result<RunSums> {
    let mut sums = stored.filter(|stored| stored.last <= until).unwrap_or_default();
    sums.catch_up(store, run, until)?;
    Ok(sums)
}

fn parsed(row: &[u8]) -> Option<RunSums> {
    serde_json::from_slice(row).ok()
}

fn key(run: &RunId) -> Key {
    Key::of("sums").and(run.as_str())
}

#[cfg(test)]
mod tests;
