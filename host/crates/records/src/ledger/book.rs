//! The arithmetic of a ledger: rows, what is held, and what is over a cap. Stores nothing and waits for nobody.

use super::caps::{RunCaps, full, over};
use super::row::{HeldRow, LedgerRow};
use longhaul_core::model::Usage;
use longhaul_core::supervisor::{InvocationTotals, InvocationUsage, UsageDelta};
use longhaul_core::{InvocationId, LimitHit};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a run, and what calls of models hold.
#[derive(Default)]
pub(super) struct LedgerBook {
    rows: BTreeMap<InvocationId, LedgerRow>,
    total: InvocationUsage,
    pub(super) caps: RunCaps,
    /// What calls hold that are under way. An invocation makes one at a time.
    held: BTreeMap<InvocationId, HeldRow>,
    /// Of these, the ones that no transaction has taken along.
    held_fresh: BTreeSet<InvocationId>,
    /// Rows of invocations that are at rest, and that no transaction has taken along.
    rows_fresh: BTreeSet<InvocationId>,
    /// How the last call of each ended that ended in this process, or was found cut off.
    ended: BTreeMap<InvocationId, CallEnd>,
    /// Memory of the invocations that are under way.
    memory: BTreeMap<InvocationId, u64>,
    /// Caps that refused bytes of an invocation's tools.
    pub(super) refused: BTreeMap<InvocationId, LimitHit>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallEnd {
    Settled,
    Charged,
}

/// Whether there is room.
pub(super) enum Capacity {
    /// Under this number.
    Held(u64),
    /// Not as long as others hold what they do.
    Taken,
    Over(LimitHit),
}

impl LedgerBook {
    /// A book as it was stored, with calls that were cut off if their end is not in their row.
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

    /// Counts, unless a call would be one too many. What was used up is counted whatever the caps say.
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

    /// Room for a call of a model that may cost this.
    pub(super) fn hold(&mut self, invocation: &InvocationId, most: Usage) -> Capacity {
        let number = self.row(invocation).settled.saturating_add(1);
        let room = self.hold_again(invocation, number, most);
        if matches!(room, Capacity::Held(_)) {
            self.ended.remove(invocation);
            self.rows_fresh.remove(invocation);
        }
        room
    }

    /// Room for one more try of a call, which may come to this with those before it. What the call holds until then is
    /// part of it.
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

    /// A call holds this, whatever it held before.
    pub(super) fn holds(&mut self, invocation: &InvocationId, number: u64, most: Usage) {
        self.held_fresh.insert(invocation.clone());
        self.held.insert(invocation.clone(), HeldRow { invocation: invocation.clone(), number, most });
    }

    /// A call is over. One that is not settled was cut off, and stays charged.
    pub(super) fn over(&mut self, invocation: &InvocationId, number: u64, is_settled: bool) {
        if self.held.get(invocation).is_none_or(|held| held.number != number) {
            return;
        }
        let Some(held) = self.held.remove(invocation) else { return };
        self.held_fresh.remove(invocation);
        if !is_settled {
            return self.charge(invocation, held.most, number);
        }
        self.ended.insert(invocation.clone(), CallEnd::Settled);
        let row = self.row(invocation);
        if row.settled < number {
            // It ended without an answer that could be kept, as an outage does.
            row.settled = number;
            self.rows_fresh.insert(invocation.clone());
        }
    }

    /// Before a call is made: what the one before it held is charged, where that was cut off. `again`: an earlier
    /// process may have made this one, and what it held may not have come to the store. The row, if it is to be stored.
    pub(super) fn charge_cut_off(&mut self, invocation: &InvocationId, most: Usage, again: bool) -> Option<LedgerRow> {
        // Known until a call is under way again: this one may find no room.
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

    /// An answer is kept, and with it what was spent for it.
    pub(super) fn spend(&mut self, invocation: &InvocationId, done: InvocationTotals, more: UsageDelta) -> LedgerRow {
        self.tell(invocation, done, more);
        let held = self.held.get(invocation).map_or(0, |held| held.number);
        self.held_fresh.remove(invocation);
        self.rows_fresh.remove(invocation);
        let row = self.row(invocation);
        row.settled = row.settled.max(held);
        row.clone()
    }

    /// An invocation is at rest.
    pub(super) fn close(&mut self, invocation: &InvocationId, done: InvocationTotals, more: UsageDelta) -> LedgerRow {
        self.tell(invocation, done, more);
        // Sub-agents end with their caller, whether or not they came to say so.
        let below = format!("{invocation}#");
        self.memory.retain(|one, _| one != invocation && !one.as_str().starts_with(&below));
        // Work that is called off ends without a transaction of its own.
        self.rows_fresh.insert(invocation.clone());
        self.row(invocation).clone()
    }

    /// Bytes that are to leave.
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

    /// Adds to a row what an invocation did and used up.
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
    }

    /// The cap that lets nothing more be done, with so many new calls of tools.
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
