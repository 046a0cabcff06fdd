//! Waiting for the clock in pure worlds: a poll on a clock is a durable sleep.
//!
//! Shadows `wasi:clocks/monotonic-clock`, and `wasi:io/poll` with it: `ready` of a pollable of wasmtime-wasi can
//! neither fail nor see its neighbours, but a full journal must end the invocation, and of several deadlines only the
//! earliest is slept for. Every other pollable of a pure guest is ready at once: its output goes to its log and its
//! input is at its end. A wait for longer than `wall_ms_max` could only end at that limit, so it ends there without the
//! wait. No real time is read here.

use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_core::LimitHit;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi_io::bindings::wasi::io::poll;
use wasmtime_wasi_io::poll::{DynPollable, Pollable, subscribe};

/// Puts both interfaces in the place of those of wasmtime-wasi.
///
/// # Errors
/// Never, as long as wasmtime allows shadowing.
pub(crate) fn shadow(linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let shadowed = monotonic_clock::add_to_linker::<_, HasSelf<Ctx>>(linker, Ctx::called)
        .and_then(|()| poll::add_to_linker::<_, HasSelf<Ctx>>(linker, Ctx::called));
    linker.allow_shadowing(false);
    shadowed
}

impl monotonic_clock::Host for Ctx {
    // The same counter as the wall clock: far above the moments that were baked in when an
    // interpreter was initialised.
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.clock.read_us().saturating_mul(1_000))
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1_000)
    }

    fn subscribe_instant(&mut self, when_ns: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.subscribe_clock(when_ns.div_ceil(1_000))
    }

    fn subscribe_duration(&mut self, ns: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let now_us = self.clock.read_us();
        self.subscribe_clock(now_us.saturating_add(ns.div_ceil(1_000)))
    }
}

impl poll::Host for Ctx {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        let Some(earliest_us) = pollables.iter().filter_map(|one| self.timers.get(&one.rep()).copied()).min() else {
            return poll::Host::poll(&mut self.table, pollables).await;
        };
        let now_us = self.clock.read_us();
        let ready = self.ready_at(&pollables, now_us).await?;
        if !ready.is_empty() {
            return Ok(ready);
        }
        self.sleep_until(earliest_us, now_us).await?;
        // Not before the deadline, even if a clock rounds down.
        let now_us = self.clock.read_us().max(earliest_us);
        self.ready_at(&pollables, now_us).await
    }
}

impl poll::HostPollable for Ctx {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        // Reading moves the clock, so that a guest that polls in a loop reaches its deadline.
        let now_us = self.clock.read_us();
        self.is_ready_at(&pollable, now_us).await
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        poll::Host::poll(self, vec![pollable]).await.map(drop)
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        // The next pollable may get the same handle.
        self.timers.remove(&pollable.rep());
        poll::HostPollable::drop(&mut self.table, pollable)
    }
}

impl Ctx {
    fn subscribe_clock(&mut self, until_us: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let deadline = self.table.push(Deadline)?;
        let pollable = subscribe(&mut self.table, deadline)?;
        self.timers.insert(pollable.rep(), until_us);
        Ok(pollable)
    }

    /// Sleeps through the journal and leaves the guest's clock at the deadline or after it.
    async fn sleep_until(&mut self, until_us: u64, now_us: u64) -> Result<(), Stop> {
        let (ms, ms_max) = (until_us.saturating_sub(now_us).div_ceil(1_000), self.limits.wall_ms_max);
        // Limits of time are off in a replay: a recorded sleep was within the limit of that time.
        if ms > ms_max && !self.is_replaying() {
            return Err(LimitHit::new("wall_ms_max", ms, ms_max).into());
        }
        self.sleep(ms).await?;
        self.clock.move_to(until_us);
        Ok(())
    }

    async fn ready_at(&mut self, pollables: &[Resource<DynPollable>], now_us: u64) -> wasmtime::Result<Vec<u32>> {
        let mut ready = Vec::new();
        for (index, pollable) in pollables.iter().enumerate() {
            if self.is_ready_at(pollable, now_us).await? {
                ready.push(u32::try_from(index)?);
            }
        }
        Ok(ready)
    }

    async fn is_ready_at(&mut self, pollable: &Resource<DynPollable>, now_us: u64) -> wasmtime::Result<bool> {
        match self.timers.get(&pollable.rep()) {
            Some(&until_us) => Ok(until_us <= now_us),
            None => poll::HostPollable::ready(&mut self.table, Resource::new_borrow(pollable.rep())).await,
        }
    }
}

/// The table's target of a clock's pollable; its deadline is in [`Ctx::timers`], since a `DynPollable` does not expose
/// its target.
struct Deadline;

#[async_trait::async_trait]
impl Pollable for Deadline {
    async fn ready(&mut self) {
        // Nothing waits here: the poll above recognises this pollable by the list of timers.
        std::future::pending().await
    }
}

#[cfg(test)]
pub(crate) mod tests;
