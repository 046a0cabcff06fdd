//! The supervision of a running invocation: its budget, and people's corrections.

use crate::model::{Cost, Usage, UsageTally};
use crate::store::Batch;
use crate::{InvocationId, LimitHit};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// The usage of an invocation, in all its attempts, as the ledger of its run stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InvocationUsage {
    /// The tokens and the cost, unusable answers included.
    pub usage: Usage,
    /// The number of replies of models, which are an agent's steps.
    pub model_calls: u32,
    /// The number of tool calls.
    pub tool_calls: u32,
    /// The fuel, that of its tools included.
    pub fuel: u64,
    /// The highest memory, in bytes.
    pub memory_bytes_peak: u64,
    /// The bytes of requests to models and of its tools.
    pub egress_bytes: u64,
    /// The bytes of answers in its journal.
    pub stored_bytes: u64,
    /// The number of interrupted requests to models. Each was or may be repeated, and may have been paid.
    pub possibly_paid_twice: u32,
    /// The highest cost of these requests. It counts against the limits and is not part of `usage`.
    pub cut_off: Usage,
}

impl InvocationUsage {
    /// The sum of both; the peak is the higher one.
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

    /// The usage that counts against the caps of tokens and money.
    #[must_use]
    pub fn charged(&self) -> Usage {
        self.usage.plus(self.cut_off)
    }
}

/// The totals of an invocation since its start. Each attempt repeats them from the start, so they are not added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvocationTotals {
    /// The number of replies of models.
    pub model_calls: u32,
    /// The number of tool calls.
    pub tool_calls: u32,
    /// The fuel of the invocation itself.
    pub fuel: u64,
    /// The highest memory, in bytes.
    pub memory_bytes_peak: u64,
}

/// Further usage since the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageDelta {
    /// The tokens and the cost.
    pub usage: Usage,
    /// The fuel of its tools.
    pub tool_fuel: u64,
    /// The bytes of requests to models.
    pub egress_bytes: u64,
    /// The bytes of answers in its journal.
    pub stored_bytes: u64,
}

/// Held while a model call is in flight. Dropping it means that the call may have been paid: its reservation stays
/// charged.
#[async_trait::async_trait]
pub trait Reservation: Send + Sync {
    /// True when the same call was interrupted before, so that it may be paid twice.
    fn was_cut_off(&self) -> bool;

    /// Reserves the same for one more attempt, beside the `wasted` usage of the attempts before. Waits as
    /// [`Supervisor::reserve`] does, and meanwhile reserves only the wasted usage.
    ///
    /// # Errors
    /// The cap of the run without budget for it.
    async fn again(&self, wasted: Usage) -> Result<(), LimitHit>;

    /// The call is over, and its cost is known. Releases the reservation.
    fn settle(self: Box<Self>);
}

/// A reservation of nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoReservation {
    /// The result of [`Reservation::was_cut_off`].
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

/// Counts a model call's cost beside its reply, and allows no further attempt without a reservation.
pub struct Tries<'a> {
    held: &'a dyn Reservation,
    tally: UsageTally,
    over: Mutex<Option<LimitHit>>,
}

impl<'a> Tries<'a> {
    /// The attempts of the call with this reservation.
    #[must_use]
    pub fn new(held: &'a dyn Reservation) -> Self {
        Self { held, tally: UsageTally::default(), over: Mutex::default() }
    }

    /// Their cost beside the reply, and the cap that prevented another attempt, if one did.
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

/// A supervisor that counts and limits nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unsupervised;

impl Supervisor for Unsupervised {}

/// Supervises invocations. The defaults bound nothing and send nothing.
#[async_trait::async_trait]
pub trait Supervisor: Send + Sync {
    /// Counts the work of an invocation, before it continues.
    ///
    /// # Errors
    /// The cap of the run without budget for more; `done` beyond it is not counted.
    fn go_on(&self, _invocation: &InvocationId, _done: InvocationTotals, _more: UsageDelta) -> Result<(), LimitHit> {
        Ok(())
    }

    /// Reserves the highest cost of a model call, before it is sent. Waits while only other reservations prevent it.
    /// `again`: the call may have been made before, by a process that was killed; that one's reservation is charged,
    /// durably, unless it is already.
    ///
    /// # Errors
    /// The cap of the run without budget for it.
    async fn reserve(
        &self,
        _invocation: &InvocationId,
        _most: Usage,
        again: bool,
    ) -> Result<Box<dyn Reservation>, LimitHit> {
        Ok(Box::new(NoReservation { was_cut_off: again }))
    }

    /// The work and spending of an invocation so far; the batch is stored with the answer that was paid for.
    fn spent(&self, _invocation: &InvocationId, _done: InvocationTotals, _more: UsageDelta) -> Batch {
        Batch::new()
    }

    /// Counts bytes before they are sent to the network.
    ///
    /// # Errors
    /// The cap of the run without budget for them; then they are not counted.
    fn sends(&self, _invocation: &InvocationId, _bytes: u64) -> Result<(), LimitHit> {
        Ok(())
    }

    /// People's undelivered corrections; the batch, which deletes them, is stored with the entry that records them.
    fn corrections(&self, _invocation: &InvocationId) -> (Vec<String>, Batch) {
        (Vec::new(), Batch::new())
    }
}
