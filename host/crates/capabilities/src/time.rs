//! The guest's clock and its sleep.
//!
//! In a pure world the clock reads the time of the last journal entry plus a microsecond a read, so
//! that a replay reads the same. A sleep is an entry that says when it ends: after a restart only the
//! rest of it is slept.

mod guest_clock;

pub(crate) use guest_clock::GuestClock;

use crate::ctx::Ctx;
use crate::gate::JournalReply;
use crate::stop::Stop;
use longhaul_bindings::imports::{clock, timer};
use longhaul_bindings::types::LimitHit as BoundLimit;
use longhaul_core::journal::EffectClass;
use std::time::Duration;

impl clock::Host for Ctx {
    #[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 are below 2^53")]
    async fn now_ms(&mut self) -> wasmtime::Result<f64> {
        Ok(self.clock.read_us() as f64 / 1_000.0)
    }
}

impl timer::Host for Ctx {
    async fn sleep(&mut self, duration_ms: u32) -> wasmtime::Result<Result<(), timer::TimerError>> {
        if u64::from(duration_ms) > self.limits.wall_ms_max {
            return Ok(Err(too_long(duration_ms, self.limits.wall_ms_max)));
        }
        self.sleep(duration_ms.into()).await?;
        Ok(Ok(()))
    }
}

impl Ctx {
    /// Sleeps: durably if there is a journal.
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
                Err(handle) => {
                    let until = self.services.clock.now_ms().saturating_add(ms);
                    self.answer(handle, until).await?
                }
            };
        match self.ask::<()>("timer.sleep", format!("until {until_ms}"), &until_ms, EffectClass::ReadOnly).await? {
            JournalReply::Answered(()) => {}
            JournalReply::Go(handle)
            | JournalReply::Verify(handle, _)
            | JournalReply::Happened(handle, _)
            | JournalReply::Skipped(handle) => {
                let rest_ms = until_ms.saturating_sub(self.services.clock.now_ms());
                tokio::time::sleep(Duration::from_millis(rest_ms)).await;
                self.answer(handle, ()).await?;
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a limit are far below 2^53")]
fn too_long(ms: u32, max: u64) -> timer::TimerError {
    timer::TimerError::Limit(BoundLimit { name: "wall_ms_max".into(), used: ms.into(), max: max as f64 })
}
