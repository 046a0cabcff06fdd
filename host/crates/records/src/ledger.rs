//! The usage of a run and its remaining budget: one ledger for each run, with a row for each invocation and sub-agent.
//!
//! A row is written in the transaction of the answer that was paid for, so the ledger is as old as the journals and
//! survives a kill with them. A model call reserves its highest possible cost before it is sent, so parallel calls
//! cannot pass a cap together. Reservations are written in transactions that happen anyway, those of other answers and
//! of the run's own steps. An interrupted call stays charged with its reservation, and counts as possibly paid twice:
//! at once when the process continues; after a kill when the ledger is opened, or, if the reservation had not reached
//! the store yet, before the call is made again. The same usage is counted by the days of the project, whose caps hold
//! over all of its runs, see `ledger/day.rs`. Refuses to guess a price: a model without a price costs nothing.

mod book;
mod caps;
mod day;
mod day_gate;
mod row;
#[cfg(test)]
mod tests;

pub use caps::RunCaps;
pub use day::{DayCaps, ProjectDay};
pub use row::LedgerRow;

use crate::record::RunRecord;
use book::{Capacity, LedgerBook, lock};
use day::DayBook;
use day_gate::DayGate;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::model::Usage;
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::supervisor::{InvocationTotals, InvocationUsage, Reservation, Supervisor, UsageDelta};
use longhaul_core::text::truncate;
use longhaul_core::work::FeatureStatus;
use longhaul_core::{InvocationId, LimitHit, RunId};
use longhaul_harness::{HarnessLimits, RunState};
use row::HeldRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Rows of one run that are read: more than any run has invocations.
const ROWS_MAX: usize = 1_000_000;

/// Corrections that an invocation receives at once; the others follow at its next step.
const CORRECTIONS_MAX: usize = 20;

/// The current ledger of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LedgerView {
    /// The sum of all rows.
    pub total: InvocationUsage,
    /// The highest possible cost of the model calls in flight.
    #[serde(default)]
    pub held: Usage,
    /// The time that the run worked, in milliseconds, while work was under way.
    pub wall_ms: u64,
    /// The number of times that its planner planned again.
    pub replans: u32,
    /// The peak memory of its components together, in bytes.
    #[serde(default)]
    pub memory_bytes_at_once_peak: u64,
    /// The cap of `wall_ms`; none: no cap.
    pub wall_ms_max: Option<u64>,
    /// The other caps.
    #[serde(flatten)]
    pub caps: RunCaps,
    /// A row for each invocation with any usage.
    pub rows: Vec<LedgerRow>,
}

/// Calls of models that were interrupted, and may have been paid although their answers were lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct PossiblyPaidTwice {
    /// The number of calls.
    pub calls: u32,
    /// The most that they used.
    pub usage_max: Usage,
}

impl LedgerView {
    /// The calls that invocations possibly paid twice. Every surface takes them from here: the usage in an event is
    /// what one attempt knew at its end, and an attempt that was killed has no such event.
    #[must_use]
    pub fn possibly_paid_twice(&self, is_meant: impl Fn(&InvocationId) -> bool) -> PossiblyPaidTwice {
        let meant = self.rows.iter().filter(|row| is_meant(&row.invocation));
        meant.fold(PossiblyPaidTwice::default(), |sum, LedgerRow { spent, .. }| PossiblyPaidTwice {
            calls: sum.calls.saturating_add(spent.possibly_paid_twice),
            usage_max: sum.usage_max.plus(spent.cut_off),
        })
    }
}

/// The ledger of a run under work.
pub struct Ledger {
    run: RunId,
    store: Arc<dyn Store>,
    room: LedgerState,
    gate: DayGate,
    /// Deletes rows of days that are over, with the next transaction that happens anyway.
    over: Mutex<Batch>,
}

impl Ledger {
    /// Opens the stored ledger of a run of a project. Calls that were in flight are charged.
    pub fn open(store: Arc<dyn Store>, run: &RunId, project: ProjectDay) -> fault::Result<Self> {
        let over = Mutex::new(day::delete_old(&*store, &project)?);
        let mut book = LedgerBook::new(rows(&*store, run)?, held(&*store, run)?);
        book.day = DayBook::open(&*store, run, project)?;
        let room = LedgerState { book: Arc::new(Mutex::new(book)), freed: Arc::default() };
        let (book, freed) = (Arc::clone(&room.book), Arc::clone(&room.freed));
        let gate = DayGate { run: run.clone(), store: Arc::clone(&store), book, freed };
        Ok(Self { run: run.clone(), store, room, gate, over })
    }

    /// Sets new caps of the project's days. Calls that wait for budget check again.
    pub fn set_day_caps(&self, caps: DayCaps) {
        self.book().day.set_caps(caps);
        self.room.freed.notify_waiters();
    }

    /// Sets new caps. Calls that wait for budget check again.
    pub fn set_caps(&self, limits: &HarnessLimits) {
        self.book().caps = RunCaps::of(limits);
        self.room.freed.notify_waiters();
    }

    /// An invocation is at rest: its row holds its total work and usage.
    pub fn close(&self, invocation: &InvocationId, done: InvocationTotals, more: UsageDelta) -> Batch {
        let row = self.book().close(invocation, done, more);
        self.put(Batch::new(), &row)
    }

    /// Adds the rows that no transaction has written yet: rows of interrupted invocations, and the reservations of
    /// calls in flight. Only the actor that starts invocations may call this, between two of its steps: a row must not
    /// be older than a later one of the same invocation.
    pub fn ride(&self, batch: Batch) -> Batch {
        let rows = self.book().take_rows();
        let mut batch = rows.iter().fold(batch, |batch, row| self.put(batch, row));
        batch.ops.append(&mut self.over.lock().unwrap_or_else(PoisonError::into_inner).ops);
        self.ride_held(batch)
    }

    /// Charges fuel of a tool to the invocation that called it.
    pub fn tool_used(&self, caller: &InvocationId, fuel: u64) {
        self.book().tell(caller, InvocationTotals::default(), UsageDelta { tool_fuel: fuel, ..UsageDelta::default() });
    }

    /// The cap that refused bytes of an invocation's tool since the last query.
    pub fn refused_bytes(&self, caller: &InvocationId) -> Option<LimitHit> {
        self.book().refused.remove(caller)
    }

    /// The row of an invocation, for the transaction of an answer.
    fn put(&self, batch: Batch, row: &LedgerRow) -> Batch {
        // Plain data always converts to JSON.
        let bytes = serde_json::to_vec(row).unwrap_or_default();
        let batch = batch.put(Table::States, rows_key(&self.run).and(row.invocation.as_str()), bytes);
        self.book().day.put(batch, &self.run, &row.invocation)
    }

    fn ride_held(&self, batch: Batch) -> Batch {
        let held = self.book().take_held();
        let put = |batch: Batch, held: &HeldRow| {
            let bytes = serde_json::to_vec(held).unwrap_or_default();
            batch.put(Table::States, held_key(&self.run).and(held.invocation.as_str()), bytes)
        };
        held.iter().fold(batch, put)
    }

    fn book(&self) -> MutexGuard<'_, LedgerBook> {
        lock(&self.room.book)
    }

    /// Charges the reservation of an interrupted call before it is made again, in a transaction of its own: another
    /// kill must find it.
    async fn charge_cut_off(&self, invocation: &InvocationId, most: Usage, again: bool) -> bool {
        let row = self.book().charge_cut_off(invocation, most, again);
        if let Some(row) = &row
            && let Err(error) = self.store.commit(self.put(Batch::new(), row)).await
        {
            // The answer will not be stored either, and that ends the invocation.
            tracing::warn!(%invocation, "the reservation of an interrupted call could not be stored: {error}");
        }
        row.is_some()
    }
}

/// The reservation of a call in flight.
struct HeldCharge {
    invocation: InvocationId,
    number: u64,
    most: Usage,
    again: bool,
    room: LedgerState,
    gate: DayGate,
    is_settled: bool,
}

#[async_trait::async_trait]
impl Reservation for HeldCharge {
    fn was_cut_off(&self) -> bool {
        self.again
    }

    async fn again(&self, wasted: Usage) -> Result<(), LimitHit> {
        // A waiting call reserves no more than its usage so far: two calls that each wait for the other's reservation
        // would wait for ever.
        {
            let mut book = lock(&self.room.book);
            book.holds(&self.invocation, self.number, wasted);
            book.day.lower(&self.invocation, wasted);
        }
        self.room.freed.notify_waiters();
        let most = wasted.plus(self.most);
        self.room.wait(|book| book.hold_again(&self.invocation, self.number, most)).await?;
        self.gate.pass(&self.invocation, wasted, self.most).await
    }

    fn settle(mut self: Box<Self>) {
        self.is_settled = true;
    }
}

impl Drop for HeldCharge {
    fn drop(&mut self) {
        lock(&self.room.book).over(&self.invocation, self.number, self.is_settled);
        self.room.freed.notify_waiters();
    }
}

/// The ledger, and the notifier of freed budget.
#[derive(Clone)]
struct LedgerState {
    book: Arc<Mutex<LedgerBook>>,
    /// A reservation was released, or a cap was raised.
    freed: Arc<Notify>,
}

impl LedgerState {
    /// Waits until there is budget; returns the number of the reservation.
    async fn wait(&self, hold: impl Fn(&mut LedgerBook) -> Capacity) -> Result<u64, LimitHit> {
        loop {
            // Registers before it checks, so that no release in between is missed.
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let room = hold(&mut lock(&self.book));
            match room {
                Capacity::Over(hit) => return Err(hit),
                Capacity::Taken => freed.await,
                Capacity::Held(number) => return Ok(number),
            }
        }
    }
}

#[async_trait::async_trait]
impl Supervisor for Ledger {
    fn go_on(&self, invocation: &InvocationId, done: InvocationTotals, more: UsageDelta) -> Result<(), LimitHit> {
        self.book().go_on(invocation, done, more)
    }

    async fn reserve(
        &self,
        invocation: &InvocationId,
        most: Usage,
        again: bool,
    ) -> Result<Box<dyn Reservation>, LimitHit> {
        let again = self.charge_cut_off(invocation, most, again).await;
        let number = self.room.wait(|book| book.hold(invocation, most)).await?;
        let (room, gate) = (self.room.clone(), self.gate.clone());
        // Nothing is sent yet: a call that the day refuses, or whose caller goes away, costs nothing.
        let mut held = HeldCharge { invocation: invocation.clone(), number, most, again, room, gate, is_settled: true };
        self.gate.pass(invocation, Usage::default(), most).await?;
        held.is_settled = false;
        Ok(Box::new(held))
    }

    fn spent(&self, invocation: &InvocationId, done: InvocationTotals, more: UsageDelta) -> Batch {
        let (row, batch) = {
            let mut book = self.book();
            let row = book.spend(invocation, done, more);
            (row, book.day.settle(Batch::new(), &self.run, invocation))
        };
        let mut batch = self.ride_held(self.put(batch, &row));
        // The reservation of the call ends with this transaction. An earlier transaction that commits later may store
        // it again, under a number that the row has as settled.
        batch.push(Op::Delete(Table::States, held_key(&self.run).and(invocation.as_str())));
        batch
    }

    fn sends(&self, invocation: &InvocationId, bytes: u64) -> Result<(), LimitHit> {
        self.book().send(invocation, bytes)
    }

    /// An evaluator is never corrected, and a sub-agent is its caller's to correct.
    fn corrections(&self, invocation: &InvocationId) -> (Vec<String>, Batch) {
        let Some(addressee) = addressee(invocation) else { return Default::default() };
        let key = corrections_key(&self.run, addressee);
        // Corrections that cannot be read now arrive at the next step.
        let rows = self.store.scan(Table::States, &key, None, CORRECTIONS_MAX).unwrap_or_default();
        let mut forgets = Batch::new();
        let mut said = Vec::with_capacity(rows.len());
        for (key, text) in rows {
            said.push(String::from_utf8_lossy(&text).into_owned());
            forgets.push(Op::Delete(Table::States, Key::from_bytes(key)));
        }
        (said, forgets)
    }
}

/// The feature whose agent an invocation is, or an empty text for the planner.
fn addressee(invocation: &InvocationId) -> Option<&str> {
    let action = invocation.action();
    let is_planner = ["plan", "replan"].contains(&action.split('/').next().unwrap_or_default());
    match invocation.feature() {
        _ if invocation.depth() > 0 => None,
        Some(feature) => action.contains("/generate").then_some(feature),
        None => is_planner.then_some(""),
    }
}

/// Keeps a person's correction until its invocation receives it.
pub fn put_correction(batch: Batch, run: &RunId, feature: Option<&str>, number: u64, text: &str) -> Batch {
    batch.put(Table::States, corrections_key(run, feature.unwrap_or_default()).number(number), text)
}

/// Corrections to tasks, or to a run, that ended before they arrived: their authors are notified. Those that a resume
/// may still deliver are kept; the batch deletes the rest.
pub fn unheard(
    store: &dyn Store,
    run: &RunId,
    state: &RunState,
    events: &[Event],
    mut batch: Batch,
) -> fault::Result<(Vec<Event>, Batch)> {
    let is_over = |status: FeatureStatus| matches!(status, FeatureStatus::Passing | FeatureStatus::Dropped);
    let mut told = Vec::new();
    for event in events {
        let addressees: Vec<&str> = match event {
            Event::Feature { feature, status, .. } if is_over(*status) => vec![feature.as_str()],
            Event::RunEnded { .. } => {
                let open = state.features.iter().filter(|feature| !is_over(feature.status));
                open.map(|feature| feature.spec.id.as_str()).chain([""]).collect()
            }
            _ => continue,
        };
        for addressee in addressees {
            let ended = if addressee.is_empty() { "the run" } else { addressee };
            for (key, text) in store.scan(Table::States, &corrections_key(run, addressee), None, CORRECTIONS_MAX)? {
                let text = truncate(&String::from_utf8_lossy(&text), 200);
                let text = format!("{ended} ended before it was told: `{text}`");
                told.push(Event::Warning { text });
                if !matches!(event, Event::RunEnded { .. }) {
                    batch.push(Op::Delete(Table::States, Key::from_bytes(key)));
                }
            }
        }
    }
    Ok((told, batch))
}

fn corrections_key(run: &RunId, feature: &str) -> Key {
    RunRecord::key(run).and("steer").and(feature)
}

fn rows_key(run: &RunId) -> Key {
    RunRecord::key(run).and("ledger")
}

fn held_key(run: &RunId) -> Key {
    RunRecord::key(run).and("ledger-held")
}

fn rows(store: &dyn Store, run: &RunId) -> fault::Result<Vec<LedgerRow>> {
    let found = store.scan(Table::States, &rows_key(run), None, ROWS_MAX)?;
    found
        .iter()
        .map(|(_, bytes)| serde_json::from_slice(bytes).or_internal(|| "a row of the ledger is damaged"))
        .collect()
}

fn held(store: &dyn Store, run: &RunId) -> fault::Result<Vec<HeldRow>> {
    let found = store.scan(Table::States, &held_key(run), None, ROWS_MAX)?;
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).or_internal(|| "what a call of a model holds is damaged");
    found.iter().map(|(_, bytes)| read(bytes)).collect()
}

/// The ledger of a run. `is_worked_on`: calls with a reservation are in flight, and not interrupted.
pub fn view(
    store: &dyn Store,
    run: &RunId,
    limits: &HarnessLimits,
    replans: u32,
    is_worked_on: bool,
) -> fault::Result<LedgerView> {
    let (rows, held) = (rows(store, run)?, held(store, run)?);
    let at_once = rows.iter().map(|row| row.at_once_bytes).max().unwrap_or(0);
    let settled: BTreeMap<_, _> = rows.iter().map(|row| (row.invocation.clone(), row.settled)).collect();
    let is_open = |held: &&HeldRow| settled.get(&held.invocation).is_none_or(|settled| held.number > *settled);
    let under_way = held.iter().filter(is_open).filter(|_| is_worked_on);
    let under_way = under_way.fold(Usage::default(), |sum, held| sum.plus(held.most));
    let book = LedgerBook::new(rows, if is_worked_on { Vec::new() } else { held });
    Ok(LedgerView {
        total: book.total(),
        held: under_way,
        wall_ms: wall_ms(store, run)?,
        replans,
        memory_bytes_at_once_peak: at_once,
        wall_ms_max: limits.wall_ms_max,
        caps: RunCaps::of(limits),
        rows: book.into_rows(),
    })
}

/// The usage of a run in all, as [`view`] has it.
pub fn total(store: &dyn Store, run: &RunId, is_worked_on: bool) -> fault::Result<InvocationUsage> {
    let held = if is_worked_on { Vec::new() } else { held(store, run)? };
    Ok(LedgerBook::new(rows(store, run)?, held).total())
}

/// True for the key of a row that a run at work writes beside its events: of an invocation, a reservation or its time.
pub(crate) fn is_row(run: &RunId, key: &Key) -> bool {
    let own = [rows_key(run), held_key(run), wall_key(run)];
    own.iter().any(|own| key.as_bytes().starts_with(own.as_bytes()))
}

/// The time that a run worked before this process.
pub fn wall_ms(store: &dyn Store, run: &RunId) -> fault::Result<u64> {
    let bytes = store.get(Table::States, &wall_key(run))?;
    Ok(bytes.and_then(|bytes| String::from_utf8_lossy(&bytes).parse().ok()).unwrap_or(0))
}

/// Stores how long the run has worked by now.
pub fn put_wall(batch: Batch, run: &RunId, wall_ms: u64) -> Batch {
    batch.put(Table::States, wall_key(run), wall_ms.to_string())
}

fn wall_key(run: &RunId) -> Key {
    RunRecord::key(run).and("wall")
}
