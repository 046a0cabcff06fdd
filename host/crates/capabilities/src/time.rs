//! The guest's clock and its sleep.
//!
//! In a pure world the clock reads the time of the last journal entry plus a microsecond a read, so
//! that a replay reads the same. A sleep is an entry that says when it ends: after a restart only the
//! rest of it is slept.

use crate::ctx::Ctx;
use crate::gate::{Asked, Stop};
use longhaul_bindings::imports::{clock, timer};
use longhaul_bindings::types::LimitHit as BoundLimit;
use longhaul_core::Clock;
use longhaul_core::journal::{EffectClass, Journal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What time it is for one guest, in microseconds since 1970-01-01 UTC.
pub(crate) struct GuestClock {
    journal: Option<Arc<dyn Journal>>,
    real: Arc<dyn Clock>,
    last_us: AtomicU64,
}

impl GuestClock {
    pub(crate) fn new(journal: Option<Arc<dyn Journal>>, real: Arc<dyn Clock>) -> Self {
        let clock = Self { journal, real, last_us: AtomicU64::new(0) };
        clock.entry_was_answered();
        clock
    }

    /// The time, one microsecond later at each read of a pure guest.
    pub(crate) fn read_us(&self) -> u64 {
        match &self.journal {
            Some(_) => self.last_us.fetch_add(1, Ordering::Relaxed) + 1,
            None => self.real.now_ms().saturating_mul(1_000),
        }
    }

    /// Moves a pure guest's clock to the moment that it waited for; never back.
    pub(crate) fn move_to(&self, us: u64) {
        if self.journal.is_some() {
            self.last_us.fetch_max(us, Ordering::Relaxed);
        }
    }

    /// Moves a pure guest's clock to the time of the entry that it just saw; never back.
    pub(crate) fn entry_was_answered(&self) {
        if let Some(journal) = &self.journal {
            self.move_to(journal.time_ms().saturating_mul(1_000));
        }
    }
}

impl clock::Host for Ctx {
    #[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 are below 2^53")]
    async fn now(&mut self) -> wasmtime::Result<f64> {
        Ok(self.clock.read_us() as f64 / 1_000.0)
    }
}

impl timer::Host for Ctx {
    async fn sleep(&mut self, ms: u32) -> wasmtime::Result<Result<(), timer::TimerError>> {
        if u64::from(ms) > self.limits.wall_ms_max {
            return Ok(Err(too_long(ms, self.limits.wall_ms_max)));
        }
        self.sleep(ms.into()).await?;
        Ok(Ok(()))
    }
}

impl Ctx {
    /// The one way to sleep: durably where there is a journal.
    pub(crate) async fn sleep(&mut self, ms: u64) -> Result<(), Stop> {
        self.check_calls()?;
        if self.journal.is_none() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            return Ok(());
        }
        self.sleep_durably(ms).await
    }

    /// Two entries: the first says when the sleep ends, so that a resume sleeps only the rest.
    async fn sleep_durably(&mut self, ms: u64) -> Result<(), Stop> {
        let until_ms: u64 =
            match self.ask_repeatable("timer.until", format!("{ms} ms"), &ms, EffectClass::ReadOnly).await? {
                Ok(until) => until,
                Err(ticket) => {
                    let until = self.services.clock.now_ms().saturating_add(ms);
                    self.answer(ticket, until).await?
                }
            };
        match self.ask::<()>("timer.sleep", format!("until {until_ms}"), &until_ms, EffectClass::ReadOnly).await? {
            Asked::Answered(()) => {}
            Asked::Go(ticket) | Asked::Verify(ticket, _) | Asked::Happened(ticket, _) | Asked::Skipped(ticket) => {
                let rest_ms = until_ms.saturating_sub(self.services.clock.now_ms());
                tokio::time::sleep(Duration::from_millis(rest_ms)).await;
                self.answer(ticket, ()).await?;
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a limit are far below 2^53")]
fn too_long(ms: u32, max: u64) -> timer::TimerError {
    timer::TimerError::Limit(BoundLimit { name: "wall_ms_max".into(), used: ms.into(), max: max as f64 })
}
