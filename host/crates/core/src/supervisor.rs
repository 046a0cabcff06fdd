//! Who looks after an invocation from outside while it runs: what it may still spend, and what people say to it.

use crate::model::{Cost, Usage, UsageTally};
use crate::store::Batch;
use crate::{InvocationId, LimitHit};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// What an invocation used up, in all its attempts, as the ledger of its run keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InvocationUsage {
    /// Tokens and money, those of answers that were of no use included.
    pub usage: Usage,
    /// Answers of models, which are an agent's steps.
    pub model_calls: u32,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Instructions, in wasmtime's fuel, those of its tools included.
    pub fuel: u64,
    /// The highest sum of its memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Bytes of requests that left, for models and from its tools.
    pub egress_bytes: u64,
    /// Bytes of answers that were stored in its journal.
    pub stored_bytes: u64,
    /// Calls of models that were cut off: each was made again, or may be, and nobody knows whether it was paid.
    pub possibly_paid_twice: u32,
    /// The most that those may have cost. It counts against the caps and is in `usage` no part.
    pub cut_off: Usage,
}

impl InvocationUsage {
    /// Both together; the peak is the higher one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            usage: self.usage.plus(other.usage),
            model_calls: self.model_calls.saturating_add(other.model_calls),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            fuel: self.fuel.saturating_add(other.fuel),
            memory_bytes_peak: self.memory_bytes_peak.max(other.memory_bytes_peak),
            egress_bytes: self.egress_bytes.saturating_add(other.egress_bytes),
            stored_bytes: self.stored_bytes.saturating_add(other.stored_bytes),
            possibly_paid_twice: self.possibly_paid_twice.saturating_add(other.possibly_paid_twice),
            cut_off: self.cut_off.plus(other.cut_off),
        }
    }

    /// What counts against the caps of tokens and money.
    #[must_use]
    pub fn charged(&self) -> Usage {
        self.usage.plus(self.cut_off)
    }
}

/// What an invocation did since its start. Each attempt does it again from the start and comes to the same, so it is
/// not added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvocationTotals {
    /// Answers of models.
    pub model_calls: u32,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Instructions of its own, in wasmtime's fuel.
    pub fuel: u64,
    /// The highest sum of its memories, in bytes.
    pub memory_bytes_peak: u64,
}

/// What was used up besides, since this was last told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageDelta {
    /// Tokens and money.
    pub usage: Usage,
    /// Instructions of its tools.
    pub tool_fuel: u64,
    /// Bytes of requests that left for models.
    pub egress_bytes: u64,
    /// Bytes of answers that are stored in its journal.
    pub stored_bytes: u64,
}

/// Held while a call of a model is on its way. Dropping it says that nobody knows whether the call was paid: what it
/// held stays charged.
#[async_trait::async_trait]
pub trait Reservation: Send + Sync {
    /// Whether the same call was cut off before, so that it may be paid twice.
    fn was_cut_off(&self) -> bool;

    /// Holds as much for one more try, beside what the tries before it `wasted`. Waits as [`Supervisor::reserve`] does,
    /// and holds only what was wasted meanwhile.
    ///
    /// # Errors
    /// The cap of the run that has no room for it.
    async fn again(&self, wasted: Usage) -> Result<(), LimitHit>;

    /// The call is over, and what it cost is known. Gives back what was held.
    fn settle(self: Box<Self>);
}

/// Nothing is held.
#[derive(Clone, Copy, Debug)]
pub struct NoReservation {
    /// See [`Reservation::was_cut_off`].
    pub was_cut_off: bool,
}

#[async_trait::async_trait]
impl Reservation for NoReservation {
    fn was_cut_off(&self) -> bool {
        self.was_cut_off
    }

    async fn again(&self, _wasted: Usage) -> Result<(), LimitHit> {
        Ok(())
    }

    fn settle(self: Box<Self>) {}
}

/// Counts what a call of a model costs beside its reply, and lets no further try leave that is not held.
pub struct Tries<'a> {
    held: &'a dyn Reservation,
    tally: UsageTally,
    over: Mutex<Option<LimitHit>>,
}

impl<'a> Tries<'a> {
    /// Those of the call that this is held for.
    #[must_use]
    pub fn new(held: &'a dyn Reservation) -> Self {
        Self { held, tally: UsageTally::default(), over: Mutex::default() }
    }

    /// What they cost beside the reply, and the cap that had no room for one more, if that is why they ended.
    pub fn end(self) -> (UsageTally, Option<LimitHit>) {
        (self.tally, self.over.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait::async_trait]
impl Cost for Tries<'_> {
    async fn again(&self) -> Result<(), LimitHit> {
        let held = self.held.again(self.tally.wasted()).await;
        if let Err(hit) = &held {
            *self.over.lock().unwrap_or_else(PoisonError::into_inner) = Some(hit.clone());
        }
        held
    }

    fn sent(&self, bytes: u64) {
        self.tally.sent(bytes);
    }

    fn wasted(&self, usage: Usage) {
        Cost::wasted(&self.tally, usage);
    }
}

/// Nobody looks after it.
#[derive(Clone, Copy, Debug)]
pub struct Unsupervised;

impl Supervisor for Unsupervised {}

/// Who looks after invocations. The defaults bound nothing and say nothing.
#[async_trait::async_trait]
pub trait Supervisor: Send + Sync {
    /// Counts what an invocation did, before it does more.
    ///
    /// # Errors
    /// The cap of the run that has no room for more; what is over it by `done` is not counted.
    fn go_on(&self, _invocation: &InvocationId, _done: InvocationTotals, _more: UsageDelta) -> Result<(), LimitHit> {
        Ok(())
    }

    /// Reserves the most that a call of a model may cost, before it leaves. Waits while only what others hold stands
    /// in its way. `again`: the call may have been made before, by a process that was killed; what that one held is
    /// charged, durably, unless it is already.
    ///
    /// # Errors
    /// The cap of the run that has no room for it.
    async fn reserve(
        &self,
        _invocation: &InvocationId,
        _most: Usage,
        again: bool,
    ) -> Result<Box<dyn Reservation>, LimitHit> {
        Ok(Box::new(NoReservation { was_cut_off: again }))
    }

    /// What an invocation did and spent by now; the batch is stored with the answer that it was spent for.
    fn spent(&self, _invocation: &InvocationId, _done: InvocationTotals, _more: UsageDelta) -> Batch {
        Batch::new()
    }

    /// Counts bytes that are to leave for the network, before they do.
    ///
    /// # Errors
    /// The cap of the run that has no room for them; they are not counted then.
    fn sends(&self, _invocation: &InvocationId, _bytes: u64) -> Result<(), LimitHit> {
        Ok(())
    }

    /// What people said to it that it has not heard; the batch, which forgets it, is stored with the entry that keeps
    /// it.
    fn corrections(&self, _invocation: &InvocationId) -> (Vec<String>, Batch) {
        (Vec::new(), Batch::new())
    }
}
