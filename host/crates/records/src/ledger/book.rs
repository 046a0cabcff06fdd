//! The arithmetic of a ledger: rows, reservations, and caps. Stores nothing and never waits.

use super::caps::{RunCaps, full, over};
use super::day::DayBook;
use super::row::{HeldRow, LedgerRow};
use longhaul_core::model::Usage;
use longhaul_core::supervisor::{InvocationTotals, InvocationUsage, UsageDelta};
use longhaul_core::{InvocationId, LimitHit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The rows of a run, and the reservations of model calls.
#[derive(Default)]
pub(super) struct LedgerBook {
    rows: BTreeMap<InvocationId, LedgerRow>,
    total: InvocationUsage,
    pub(super) caps: RunCaps,
    /// Reservations of calls in flight. An invocation makes one at a time.
    held: BTreeMap<InvocationId, HeldRow>,
    /// The reservations that no transaction has written yet.
    held_fresh: BTreeSet<InvocationId>,
    /// Rows of invocations at rest that no transaction has written yet.
    rows_fresh: BTreeSet<InvocationId>,
    /// The end of the last call of each invocation, if it ended in this process or was found interrupted.
    ended: BTreeMap<InvocationId, CallEnd>,
    /// Memory of the running invocations.
    memory: BTreeMap<InvocationId, u64>,
    /// Caps that refused bytes of an invocation's tools.
    pub(super) refused: BTreeMap<InvocationId, LimitHit>,
    /// The same usage, by the days of the project.
    pub(super) day: DayBook,
}

/// Locks a book. A panic of a holder is no reason to refuse it.
pub(super) fn lock(book: &Mutex<LedgerBook>) -> MutexGuard<'_, LedgerBook> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallEnd {
    Settled,
    Charged,
}

/// The answer to a request for budget.
pub(super) enum Capacity {
    /// Reserved under this number.
    Held(u64),
    /// No budget while other reservations last.
    Taken,
    Over(LimitHit),
}

impl LedgerBook {
    /// A stored ledger, with the calls that were interrupted if their end is not in their row.
    pub(super) fn new(rows: Vec<LedgerRow>, held: Vec<HeldRow>) -> Self {
        let mut book = Self::default();
        book.rows = rows.into_iter().map(|row| (row.invocation.clone(), row)).collect();
        book.total = book.rows.values().fold(InvocationUsage::default(), |sum, row| sum.plus(row.spent));
        for HeldRow { invocation, number, most } in held {
            if number > book.row(&invocation).settled {
                book.charge(&invocation, most, number);
            }
        }
        book
    }

    pub(super) fn total(&self) -> InvocationUsage {
        self.total
    }

    pub(super) fn into_rows(self) -> Vec<LedgerRow> {
        self.rows.into_values().collect()
    }

    pub(super) fn take_rows(&mut self) -> Vec<LedgerRow> {
        let fresh = std::mem::take(&mut self.rows_fresh);
        fresh.iter().filter_map(|invocation| self.rows.get(invocation)).cloned().collect()
    }

    pub(super) fn take_held(&mut self) -> Vec<HeldRow> {
        let fresh = std::mem::take(&mut self.held_fresh);
        fresh.iter().filter_map(|invocation| self.held.get(invocation)).cloned().collect()
    }

    /// Counts usage, unless a call would be one too many. Used resources are counted whatever the caps are.
    pub(super) fn go_on(
        &mut self,
        invocation: &InvocationId,
        done: InvocationTotals,
        more: UsageDelta,
    ) -> Result<(), LimitHit> {
        self.rows_fresh.remove(invocation);
        let calls = self.rows.get(invocation).map_or(0, |row| row.spent.tool_calls);
        self.tell(invocation, InvocationTotals { tool_calls: calls, ..done }, more);
        let new_calls = u64::from(done.tool_calls.saturating_sub(calls));
        if let Some(hit) = self.used_up(new_calls) {
            return Err(hit);
        }
        self.tell(invocation, done, UsageDelta::default());
        Ok(())
    }

    /// Reserves this cost for a model call.
    pub(super) fn hold(&mut self, invocation: &InvocationId, most: Usage) -> Capacity {
        let number = self.row(invocation).settled.saturating_add(1);
        let room = self.hold_again(invocation, number, most);
        if matches!(room, Capacity::Held(_)) {
            self.ended.remove(invocation);
            self.rows_fresh.remove(invocation);
        }
        room
    }

    /// Reserves one more attempt of a call, whose total may come to this. The call's present reservation is part of it.
    pub(super) fn hold_again(&mut self, invocation: &InvocationId, number: u64, most: Usage) -> Capacity {
        let charged = self.total.charged();
        let calls = u64::from(self.total.model_calls);
        if let Some(hit) = self.caps.over(charged.plus(most), calls.saturating_add(1)) {
            return Capacity::Over(hit);
        }
        let others = || self.held.values().filter(|held| held.invocation != *invocation);
        let held = others().fold(Usage::default(), |sum, held| sum.plus(held.most));
        let under_way = others().count() as u64;
        if self.caps.over(charged.plus(held).plus(most), calls.saturating_add(under_way + 1)).is_some() {
            return Capacity::Taken;
        }
        self.holds(invocation, number, most);
        Capacity::Held(number)
    }

    /// Sets the reservation of a call, whatever it was before.
    pub(super) fn holds(&mut self, invocation: &InvocationId, number: u64, most: Usage) {
        self.held_fresh.insert(invocation.clone());
        self.held.insert(invocation.clone(), HeldRow { invocation: invocation.clone(), number, most });
    }

    /// Ends a call. A call that is not settled was interrupted, and stays charged.
    pub(super) fn over(&mut self, invocation: &InvocationId, number: u64, is_settled: bool) {
        if self.held.get(invocation).is_none_or(|held| held.number != number) {
            return;
        }
        let Some(held) = self.held.remove(invocation) else { return };
        self.held_fresh.remove(invocation);
        self.day.end(invocation, is_settled);
        if !is_settled {
            return self.charge(invocation, held.most, number);
        }
        self.ended.insert(invocation.clone(), CallEnd::Settled);
        let row = self.row(invocation);
        if row.settled < number {
            // The call ended without a storable answer, as in an outage.
            row.settled = number;
            self.rows_fresh.insert(invocation.clone());
        }
    }

    /// Before a call is made, charges the reservation of the one before it if that was interrupted. `again`: an earlier
    /// process may have made this call, and its reservation may not have reached the store. Returns the row if it is to
    /// be stored.
    pub(super) fn charge_cut_off(&mut self, invocation: &InvocationId, most: Usage, again: bool) -> Option<LedgerRow> {
        // Kept until a call is in flight again: this one may find no budget.
        match self.ended.get(invocation) {
            Some(CallEnd::Settled) => return None,
            None if !again => return None,
            Some(CallEnd::Charged) => {}
            None => {
                let number = self.row(invocation).settled.saturating_add(1);
                self.charge(invocation, most, number);
            }
        }
        self.rows_fresh.remove(invocation);
        Some(self.row(invocation).clone())
    }

    fn charge(&mut self, invocation: &InvocationId, most: Usage, number: u64) {
        let cut_off = InvocationUsage { cut_off: most, possibly_paid_twice: 1, ..InvocationUsage::default() };
        self.total = self.total.plus(cut_off);
        let row = self.row(invocation);
        row.spent = row.spent.plus(cut_off);
        row.settled = row.settled.max(number);
        self.ended.insert(invocation.clone(), CallEnd::Charged);
        self.rows_fresh.insert(invocation.clone());
    }

    /// Counts the usage of an answer that is stored.
    pub(super) fn spend(&mut self, invocation: &InvocationId, done: InvocationTotals, more: UsageDelta) -> LedgerRow {
        self.tell(invocation, done, more);
        let held = self.held.get(invocation).map_or(0, |held| held.number);
        self.held_fresh.remove(invocation);
        self.rows_fresh.remove(invocation);
        let row = self.row(invocation);
        row.settled = row.settled.max(held);
        row.clone()
    }

    /// An invocation comes to rest.
    pub(super) fn close(&mut self, invocation: &InvocationId, done: InvocationTotals, more: UsageDelta) -> LedgerRow {
        self.tell(invocation, done, more);
        // Sub-agents end with their caller, whether they reported their end or not.
        let below = format!("{invocation}#");
        self.memory.retain(|one, _| one != invocation && !one.as_str().starts_with(&below));
        // Cancelled work ends without a transaction of its own.
        self.rows_fresh.insert(invocation.clone());
        self.row(invocation).clone()
    }

    /// Counts bytes before they are sent.
    pub(super) fn send(&mut self, invocation: &InvocationId, bytes: u64) -> Result<(), LimitHit> {
        let sent = self.total.egress_bytes.saturating_add(bytes);
        if let Some(max) = self.caps.egress_bytes_max.filter(|max| sent > *max) {
            let hit = LimitHit::new("egress_bytes_max", sent, max);
            self.refused.insert(invocation.clone(), hit.clone());
            return Err(hit);
        }
        self.tell(invocation, InvocationTotals::default(), UsageDelta { egress_bytes: bytes, ..UsageDelta::default() });
        Ok(())
    }

    /// Adds an invocation's work and usage to its row.
    pub(super) fn tell(&mut self, invocation: &InvocationId, done: InvocationTotals, more: UsageDelta) {
        if done.memory_bytes_peak > 0 {
            self.memory.insert(invocation.clone(), done.memory_bytes_peak);
        }
        let at_once = self.memory.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        let row = self.row(invocation);
        let before = row.spent;
        let own_before = row.own_fuel.unwrap_or(before.fuel);
        let own_fuel = done.fuel.max(own_before);
        row.own_fuel = Some(own_fuel);
        row.at_once_bytes = row.at_once_bytes.max(at_once);
        let grown = InvocationUsage {
            usage: more.usage,
            model_calls: done.model_calls.saturating_sub(before.model_calls),
            tool_calls: done.tool_calls.saturating_sub(before.tool_calls),
            fuel: (own_fuel - own_before).saturating_add(more.tool_fuel),
            memory_bytes_peak: done.memory_bytes_peak,
            egress_bytes: more.egress_bytes,
            stored_bytes: more.stored_bytes,
            ..InvocationUsage::default()
        };
        row.spent = before.plus(grown);
        self.total = self.total.plus(grown);
        self.day.used(invocation, more.usage);
    }

    /// The cap that is used up, given so many new tool calls.
    fn used_up(&self, new_calls: u64) -> Option<LimitHit> {
        let (caps, total) = (&self.caps, &self.total);
        let at_once = self.memory.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        let calls = u64::from(total.tool_calls).saturating_add(new_calls);
        over("tool_calls_max", calls, caps.tool_calls_max.filter(|_| new_calls > 0))
            .or_else(|| full("fuel_max", total.fuel, caps.fuel_max))
            .or_else(|| over("memory_bytes_max", at_once, caps.memory_bytes_max))
            .or_else(|| full("egress_bytes_max", total.egress_bytes, caps.egress_bytes_max))
            .or_else(|| full("stored_bytes_max", total.stored_bytes, caps.stored_bytes_max))
    }

    fn row(&mut self, invocation: &InvocationId) -> &mut LedgerRow {
        self.rows.entry(invocation.clone()).or_insert_with(|| LedgerRow {
            invocation: invocation.clone(),
            spent: InvocationUsage::default(),
            own_fuel: Some(0),
            settled: 0,
            at_once_bytes: 0,
        })
    }
}
