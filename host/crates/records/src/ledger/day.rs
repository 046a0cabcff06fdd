//! The usage of a project on one UTC day, over all its runs and on all servers: rows, reservations, and caps.
//!
//! | row of `states` | holds |
//! |---|---|
//! | `project-day`, project, day, run, invocation | the usage of the invocation on that day |
//! | the same, `call` | its model call in flight, with the most that it may use |
//!
//! Each invocation writes its own rows alone, so that servers never contend for one. A reservation is committed before
//! its call is made, and the sum over the day is read after that commit: of several calls that are made at once, the
//! last one to commit sees all others. A call counts on the day on which it was reserved, also where its answer comes
//! after midnight. One whose process was killed stays charged. Stores nothing and never waits: `day_gate.rs` does.

use super::caps::{microdollars, over};
use crate::record::RunRecord;
use longhaul_config::{Config, ProjectConfig};
use longhaul_core::fault::{self, Context as _};
use longhaul_core::model::Usage;
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::{Clock, InvocationId, LimitHit, RunId};
use longhaul_harness::day;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of one day that are read: more than any project has invocations in one.
const ROWS_MAX: usize = 1_000_000;

/// Rows of earlier days that are deleted at once. The next ledger of the project deletes more.
const OLD_ROWS_MAX: usize = 1_000;

/// The age from which a call in flight counts as used: its process is gone, and nobody went on with its run. Until then
/// others wait for its end.
const STALE_MS: u64 = 30 * 60_000;

/// The caps of a project's day; none: no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayCaps {
    /// Money, in millionths of a US dollar.
    pub cost_microdollars_max: Option<u64>,
    /// Input and output tokens.
    pub tokens_max: Option<u64>,
}

impl DayCaps {
    /// The caps in `[project]`.
    pub fn of(project: &ProjectConfig) -> Self {
        Self { cost_microdollars_max: project.cost_microdollars_per_day_max, tokens_max: project.tokens_per_day_max }
    }

    /// The cap that this sum passes.
    fn over(self, sum: DaySum) -> Option<LimitHit> {
        over(day::TOKENS_MAX, sum.tokens, self.tokens_max)
            .or_else(|| over(day::COST_MAX, microdollars(sum.cost_microdollars), self.cost_microdollars_max))
    }
}

/// The project whose days a ledger counts.
#[derive(Clone)]
pub struct ProjectDay {
    /// The key under which data of the project is stored.
    pub project: String,
    /// The caps of a day.
    pub caps: DayCaps,
    /// The clock that says which day it is.
    pub clock: Arc<dyn Clock>,
}

impl ProjectDay {
    /// The days of the project of a run, with the caps of a configuration.
    pub fn of(record: &RunRecord, config: &Config, clock: Arc<dyn Clock>) -> Self {
        Self { project: record.scope().to_owned(), caps: DayCaps::of(&config.project), clock }
    }
}

/// The usage of an invocation on a day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DayUsage {
    invocation: InvocationId,
    used: Usage,
    /// The number of its last call with a known end, from 1.
    #[serde(default)]
    settled: u64,
}

/// A call of an invocation that is in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DayCall {
    invocation: InvocationId,
    /// Counts up within the invocation and the day.
    number: u64,
    /// The usage of its attempts so far.
    wasted: Usage,
    /// The most that it may use beside that.
    most: Usage,
    since_ms: u64,
    /// The day of its row.
    #[serde(skip)]
    day: u64,
    /// True while the store has it as it is here.
    #[serde(skip)]
    is_stored: bool,
}

/// A row of a day.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DayRow {
    Used(DayUsage),
    Call(DayCall),
}

/// A sum of usage. The tokens of many invocations are more than a [`Usage`] can count.
#[derive(Clone, Copy, Debug, Default)]
struct DaySum {
    tokens: u64,
    cost_microdollars: f64,
}

impl DaySum {
    fn plus(self, usage: Usage) -> Self {
        Self {
            tokens: self.tokens.saturating_add(usage.tokens()),
            cost_microdollars: self.cost_microdollars + usage.cost_microdollars,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost_microdollars: self.cost_microdollars + other.cost_microdollars,
        }
    }
}

/// The answer to a request for budget of a day.
#[derive(Debug, PartialEq)]
pub(super) enum DayVerdict {
    Room,
    /// No budget while other reservations last.
    Taken,
    Over(LimitHit),
}

/// The days of one run: its own rows, which are newer here than in the store.
#[derive(Default)]
pub(super) struct DayBook {
    /// None: no day is counted.
    of: Option<ProjectDay>,
    rows: BTreeMap<(InvocationId, u64), DayUsage>,
    /// An invocation makes one call at a time.
    calls: BTreeMap<InvocationId, DayCall>,
}

impl DayBook {
    /// The days of a run, with its stored rows of today. Calls that were in flight are charged.
    pub(super) fn open(store: &dyn Store, run: &RunId, of: ProjectDay) -> fault::Result<Self> {
        let today = day::number(of.clock.now_ms());
        let rows = read(store, &day_key(&of.project, today).and(run.as_str()))?;
        let mut book = Self { of: Some(of), ..Self::default() };
        let mut calls = Vec::new();
        for row in rows {
            match row {
                DayRow::Used(row) => drop(book.rows.insert((row.invocation.clone(), today), row)),
                DayRow::Call(call) => calls.push(DayCall { day: today, ..call }),
            }
        }
        for call in calls {
            let invocation = call.invocation.clone();
            if call.number > book.row(&invocation, today).settled {
                book.calls.insert(invocation.clone(), call);
                book.end(&invocation, false);
            }
        }
        Ok(book)
    }

    /// The project, and today. None: nothing is counted.
    fn now(&self) -> Option<(&ProjectDay, u64)> {
        self.of.as_ref().map(|of| (of, day::number(of.clock.now_ms())))
    }

    /// The project and today, while a cap holds.
    pub(super) fn capped(&self) -> Option<(String, u64)> {
        let (of, today) = self.now()?;
        (of.caps != DayCaps::default()).then(|| (of.project.clone(), today))
    }

    pub(super) fn set_caps(&mut self, caps: DayCaps) {
        if let Some(of) = &mut self.of {
            of.caps = caps;
        }
    }

    /// Counts usage: that of a call in flight on the day of its reservation.
    pub(super) fn used(&mut self, invocation: &InvocationId, usage: Usage) {
        let Some((_, today)) = self.now() else { return };
        if usage == Usage::default() {
            return;
        }
        let day = self.calls.get(invocation).map_or(today, |call| call.day);
        let row = self.row(invocation, day);
        row.used = row.used.plus(usage);
    }

    /// The verdict on a call that used `wasted` so far and may use `most` more. `stored` are all rows of the day.
    pub(super) fn verdict(
        &self,
        (invocation, day): (&InvocationId, u64),
        (wasted, most): (Usage, Usage),
        stored: Vec<DayRow>,
    ) -> DayVerdict {
        let Some(of) = &self.of else { return DayVerdict::Room };
        let (mut rows, mut calls) = (BTreeMap::new(), BTreeMap::new());
        for row in stored {
            match row {
                DayRow::Used(row) => drop(rows.insert(row.invocation.clone(), row)),
                DayRow::Call(call) => drop(calls.insert(call.invocation.clone(), call)),
            }
        }
        let own = self.rows.iter().filter(|((_, of), _)| *of == day);
        rows.extend(own.map(|((invocation, _), row)| (invocation.clone(), row.clone())));
        let own = self.calls.iter().filter(|(_, call)| call.day == day);
        calls.extend(own.map(|(invocation, call)| (invocation.clone(), call.clone())));
        calls.remove(invocation);
        let now_ms = of.clock.now_ms();
        let mut charged = rows.values().fold(DaySum::default(), |sum, row| sum.plus(row.used));
        let mut held = DaySum::default();
        for (invocation, call) in &calls {
            if rows.get(invocation).is_some_and(|row| call.number <= row.settled) {
                continue;
            }
            charged = charged.plus(call.wasted);
            // In either direction: a clock may be set back.
            let is_stale = now_ms.abs_diff(call.since_ms) >= STALE_MS;
            let sum = if is_stale { &mut charged } else { &mut held };
            *sum = sum.plus(call.most);
        }
        let own = charged.plus(wasted).plus(most);
        if let Some(hit) = of.caps.over(own) {
            return DayVerdict::Over(hit);
        }
        of.caps.over(own.and(held)).map_or(DayVerdict::Room, |_| DayVerdict::Taken)
    }

    /// Notes a call that is about to be made, or made again. The batch has the rows that others must see before that.
    pub(super) fn announce(
        &mut self,
        run: &RunId,
        (invocation, today): (&InvocationId, u64),
        (wasted, most): (Usage, Usage),
    ) -> Batch {
        let mut batch = Batch::new();
        let Some(of) = self.of.clone() else { return batch };
        // A call that is made again on another day counts there as a whole.
        if let Some(call) = self.calls.get(invocation).cloned().filter(|call| call.day != today) {
            self.end(invocation, true);
            batch.push(Op::Delete(Table::States, call_key(&of.project, call.day, run, invocation)));
        }
        let number = self.row(invocation, today).settled.saturating_add(1);
        let call = DayCall {
            invocation: invocation.clone(),
            number,
            wasted,
            most,
            since_ms: of.clock.now_ms(),
            day: today,
            is_stored: true,
        };
        self.calls.insert(invocation.clone(), call.clone());
        // Charges that a killed process left, too: its call had the row that this one takes.
        let batch = self.put(batch, run, invocation);
        put(batch, call_key(&of.project, today, run, invocation), &DayRow::Call(call))
    }

    /// Reserves no more than what the call used so far. Two calls that each wait for the other's reservation would wait
    /// for ever.
    pub(super) fn lower(&mut self, invocation: &InvocationId, wasted: Usage) {
        let none = Usage::default();
        if let Some(call) = self.calls.get_mut(invocation)
            && (call.wasted, call.most) != (wasted, none)
        {
            (call.wasted, call.most, call.is_stored) = (wasted, none, false);
        }
    }

    /// The row of a call that was lowered since it was stored.
    pub(super) fn lowered(&mut self, run: &RunId, invocation: &InvocationId) -> Batch {
        let Some(of) = &self.of else { return Batch::new() };
        match self.calls.get_mut(invocation) {
            Some(call) if !call.is_stored => {
                call.is_stored = true;
                let key = call_key(&of.project, call.day, run, invocation);
                put(Batch::new(), key, &DayRow::Call(call.clone()))
            }
            _ => Batch::new(),
        }
    }

    /// Ends a call. One that is not settled was interrupted, and stays charged. Returns its day.
    pub(super) fn end(&mut self, invocation: &InvocationId, is_settled: bool) -> Option<u64> {
        let call = self.calls.remove(invocation)?;
        let row = self.row(invocation, call.day);
        row.settled = row.settled.max(call.number);
        if !is_settled {
            row.used = row.used.plus(call.wasted).plus(call.most);
        }
        Some(call.day)
    }

    /// As [`Self::end`] of a settled call, whose row the batch deletes.
    pub(super) fn settle(&mut self, mut batch: Batch, run: &RunId, invocation: &InvocationId) -> Batch {
        if let (Some(day), Some(of)) = (self.end(invocation, true), &self.of) {
            batch.push(Op::Delete(Table::States, call_key(&of.project, day, run, invocation)));
        }
        batch
    }

    /// Adds the usage of an invocation, for the transaction that stores what was paid for.
    pub(super) fn put(&self, batch: Batch, run: &RunId, invocation: &InvocationId) -> Batch {
        let Some(of) = &self.of else { return batch };
        let own = self.rows.range((invocation.clone(), 0)..=(invocation.clone(), u64::MAX));
        own.fold(batch, |batch, ((_, day), row)| {
            put(batch, usage_key(&of.project, *day, run, invocation), &DayRow::Used(row.clone()))
        })
    }

    fn row(&mut self, invocation: &InvocationId, day: u64) -> &mut DayUsage {
        // A row of the day before may still be told something; no older one is.
        let is_over = |of: &InvocationId, at: u64| of == invocation && at.saturating_add(1) < day;
        self.rows.retain(|(of, at), _| !is_over(of, *at));
        self.rows.entry((invocation.clone(), day)).or_insert_with(|| DayUsage {
            invocation: invocation.clone(),
            used: Usage::default(),
            settled: 0,
        })
    }
}

/// All rows of a project's day.
pub(super) fn rows(store: &dyn Store, project: &str, day: u64) -> fault::Result<Vec<DayRow>> {
    read(store, &day_key(project, day))
}

/// Deletes rows of days before yesterday, of which nobody asks anything any more.
pub(super) fn delete_old(store: &dyn Store, of: &ProjectDay) -> fault::Result<Batch> {
    let (mut batch, prefix) = (Batch::new(), project_key(&of.project));
    let yesterday = day::number(of.clock.now_ms()).saturating_sub(1);
    let first_kept = prefix.clone().number(yesterday);
    for (key, _) in store.scan(Table::States, &prefix, None, OLD_ROWS_MAX)? {
        if key.as_slice() >= first_kept.as_bytes() {
            break;
        }
        batch.push(Op::Delete(Table::States, Key::from_bytes(key)));
    }
    Ok(batch)
}

fn read(store: &dyn Store, prefix: &Key) -> fault::Result<Vec<DayRow>> {
    let found = store.scan(Table::States, prefix, None, ROWS_MAX)?;
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).or_internal(|| "a row of a project's day is damaged");
    found.iter().map(|(_, bytes)| read(bytes)).collect()
}

fn put(batch: Batch, key: Key, row: &DayRow) -> Batch {
    // Plain data always converts to JSON.
    batch.put(Table::States, key, serde_json::to_vec(row).unwrap_or_default())
}

fn project_key(project: &str) -> Key {
    Key::of("project-day").and(project)
}

fn day_key(project: &str, day: u64) -> Key {
    project_key(project).number(day)
}

fn usage_key(project: &str, day: u64, run: &RunId, invocation: &InvocationId) -> Key {
    day_key(project, day).and(run.as_str()).and(invocation.as_str())
}

fn call_key(project: &str, day: u64, run: &RunId, invocation: &InvocationId) -> Key {
    usage_key(project, day, run, invocation).and("call")
}

#[cfg(test)]
mod tests;
