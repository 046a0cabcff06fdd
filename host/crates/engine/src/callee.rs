//! A linked component, and one call of it: a fresh store with limits, an instance, the export, and its usage.
//!
//! An instance may be prepared before there is a call for it, and may be warmed up with a rehearsal call; it still
//! serves one call.

use crate::config::STACK_BYTES_MAX;
use crate::contract::CheckedAnswer;
use crate::deferred_drop::Leftovers;
use crate::error::CallError;
use crate::governor::{Cancel, govern};
use longhaul_capabilities::{Ctx, InFlight, InvocationSetup, LogBook, LogLine, Stop};
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::journal::Journal;
use longhaul_core::memory::Trust;
use longhaul_core::process_registry::{GuestRecord, Registered as _, RegistryEntry};
use longhaul_core::supervisor::{InvocationTotals, UsageDelta};
use longhaul_core::text::truncate;
use longhaul_core::{LimitHit, Limits};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wasmtime::component::{Instance, InstancePre, ResourceTableError};
use wasmtime::{CallHook, Store, Trap};

/// A guest yields each time it has used this much fuel: at most 0.3 ms apart, as measured.
const YIELD_FUEL: u64 = 1_000_000;

/// The result of a call.
#[derive(Debug)]
pub struct Called<T> {
    /// The export's return value, or the error that ended it.
    pub result: Result<T, CallError>,
    /// Its own usage.
    pub used: WorkUsage,
    /// The usage of its sub-agents.
    pub delegated: WorkUsage,
    /// The lowest trust of the text that it read, which may be in its result.
    pub heard: Trust,
    /// Its totals since its start, for the ledger of its run.
    pub done: InvocationTotals,
    /// Usage that the ledger has not received.
    pub more: UsageDelta,
    /// Events to report.
    pub events: Vec<Event>,
    /// The last refused growth of memory or tables, or the first refused write to a directory, whatever the guest did
    /// then.
    pub refused: Option<LimitHit>,
    /// The log of the plugin.
    pub log: Vec<LogLine>,
    /// Log lines beyond the cap.
    pub log_dropped: u64,
}

impl<T> Called<T> {
    /// A call that did not reach its component.
    #[must_use]
    pub fn not_started(error: CallError) -> Self {
        Self {
            result: Err(error),
            used: WorkUsage::default(),
            delegated: WorkUsage::default(),
            heard: Trust::OwnWords,
            done: InvocationTotals::default(),
            more: UsageDelta::default(),
            events: Vec::new(),
            refused: None,
            log: Vec::new(),
            log_dropped: 0,
        }
    }

    /// Converts the returned value.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Called<U> {
        let Self { result, used, delegated, heard, done, more, events, refused, log, log_dropped } = self;
        Called { result: result.map(make), used, delegated, heard, done, more, events, refused, log, log_dropped }
    }
}

/// The start of a call: a new instance, or a warm one.
#[expect(clippy::large_enum_variant, reason = "made for one call and moved into it")]
pub enum CallStart {
    /// A new instance.
    Fresh(InvocationSetup),
    /// A warm instance.
    Ready(WarmInstance),
}

impl From<InvocationSetup> for CallStart {
    fn from(setup: InvocationSetup) -> Self {
        Self::Fresh(setup)
    }
}

impl From<WarmInstance> for CallStart {
    fn from(warm_instance: WarmInstance) -> Self {
        Self::Ready(warm_instance)
    }
}

impl CallStart {
    /// The limits of the call.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        match self {
            Self::Fresh(setup) => &setup.limits,
            Self::Ready(warm_instance) => &warm_instance.frame.limits,
        }
    }
}

/// A warm instance that waits for its call. Its usage so far counts for that call, unless it was rehearsed, which
/// resets the usage.
pub struct WarmInstance {
    store: Store<Ctx>,
    instance: Instance,
    frame: Frame,
}

/// State that outlives the store of a call.
struct Frame {
    limits: Limits,
    call_deadline: Arc<OnceLock<CallDeadline>>,
    journal: Option<Arc<dyn Journal>>,
    log: LogBook,
    in_flight: InFlight,
    /// The entry in the registry of guests, for as long as this exists.
    guest: RegistryEntry<GuestRecord>,
}

/// Ends a guest that makes the host work without using fuel of its own, and so never yields: at its calls of the host,
/// while none of its effects is in flight. The governor ends guests that wait.
struct CallDeadline {
    cancel: Cancel,
    began: Instant,
    wall_ms_max: u64,
}

impl CallDeadline {
    /// Entries into the host between two checks of the clock. The longest that does not wait, 8 MiB of randomness,
    /// takes 10 ms; most take less than the check.
    const ENTRIES_PER_LOOK: u64 = 8;

    fn new(cancel: &Cancel, limits: &Limits) -> Self {
        Self { cancel: cancel.clone(), began: Instant::now(), wall_ms_max: limits.wall_ms_max }
    }

    fn check(&self, entries: u64) -> Result<(), Stop> {
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        let looks = entries.is_multiple_of(Self::ENTRIES_PER_LOOK);
        if looks && self.began.elapsed() > Duration::from_millis(self.wall_ms_max) {
            return Err(LimitHit::new("wall_ms_max", self.wall_ms_max, self.wall_ms_max).into());
        }
        Ok(())
    }
}

/// A linked component.
pub(crate) struct Callee {
    pub(crate) name: String,
    pub(crate) engine: wasmtime::Engine,
    pub(crate) pre: InstancePre<Ctx>,
    /// The part of the program that drops the store of a call.
    pub(crate) leftovers: Leftovers<Store<Ctx>>,
}

impl Callee {
    /// Prepares an instance, within its limits.
    pub(crate) async fn stand_by(&self, setup: InvocationSetup) -> Result<WarmInstance, CallError> {
        const EXPORT: &str = "instantiate";
        let (mut store, frame) = self.store(setup).map_err(|reason| self.host_error(EXPORT, reason))?;
        let work = async { self.pre.instantiate_async(&mut store).await };
        let governed = govern(work, &frame.limits, None, &Cancel::default(), &frame.in_flight, &frame.guest).await;
        let instance = self.governed(EXPORT, governed, &mut store, &frame.limits)?;
        Ok(WarmInstance { store, instance, frame })
    }

    /// Calls a waiting instance, so that the pages which a call touches exist when its own call comes. The usage does
    /// not count for that call.
    pub(crate) async fn rehearse<T>(
        &self,
        warm_instance: WarmInstance,
        body: impl AsyncFnOnce(&mut Store<Ctx>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<WarmInstance, CallError> {
        const EXPORT: &str = "rehearse";
        let WarmInstance { mut store, instance, frame } = warm_instance;
        let work = async { body(&mut store, &instance).await };
        let governed = govern(work, &frame.limits, None, &Cancel::default(), &frame.in_flight, &frame.guest).await;
        self.governed(EXPORT, governed, &mut store, &frame.limits)?;
        store.set_fuel(frame.limits.fuel_max).map_err(|error| self.host_error(EXPORT, error.to_string()))?;
        let ctx = store.data_mut();
        (ctx.used, ctx.meter.refused) = (WorkUsage::default(), None);
        Ok(WarmInstance { store, instance, frame })
    }

    /// The result of work in the store, or the error that ended it.
    fn governed<T>(
        &self,
        export: &'static str,
        governed: Result<wasmtime::Result<T>, Stop>,
        store: &mut Store<Ctx>,
        limits: &Limits,
    ) -> Result<T, CallError> {
        match governed {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                let used = used(store, limits.fuel_max);
                Err(self.explain(export, &error, store, used, limits))
            }
            Err(stop) => Err(CallError::of_stop(&self.name, export, stop)),
        }
    }

    /// One call. `body` calls the export.
    pub(crate) async fn call<T: serde::Serialize + CheckedAnswer>(
        &self,
        export: &'static str,
        start: CallStart,
        cancel: &Cancel,
        body: impl AsyncFnOnce(&mut Store<Ctx>, &Instance) -> wasmtime::Result<T>,
    ) -> Called<T> {
        let (mut store, frame, ready) = match start {
            CallStart::Ready(WarmInstance { store, instance, frame }) => (store, frame, Some(instance)),
            CallStart::Fresh(setup) => match self.store(setup) {
                Ok((store, frame)) => (store, frame, None),
                Err(reason) => return Called::not_started(self.host_error(export, reason)),
            },
        };
        let work = async {
            let instance = match ready {
                Some(instance) => instance,
                None => self.pre.instantiate_async(&mut store).await?,
            };
            body(&mut store, &instance).await
        };
        let limits = &frame.limits;
        // A call is made once, so the cell is empty.
        let _ = frame.call_deadline.set(CallDeadline::new(cancel, limits));
        let governed = govern(work, limits, frame.journal.as_ref(), cancel, &frame.in_flight, &frame.guest).await;
        let used = used(&mut store, limits.fuel_max);
        let (delegated, heard, refused) = (store.data().delegated, store.data().heard, store.data().refused());
        let done = InvocationTotals { fuel: used.fuel, ..store.data().done() };
        let more = store.data_mut().take_more();
        let events = std::mem::take(&mut store.data_mut().events);
        let result = self
            .governed(export, governed, &mut store, limits)
            .and_then(|value| self.bounded(export, value, limits.output_bytes_max))
            .and_then(|value| self.as_promised(export, value));
        store.data_mut().close();
        self.leftovers.take(store);
        let (log, log_dropped) = frame.log.take();
        Called { result, used, delegated, heard, done, more, events, refused, log, log_dropped }
    }

    fn store(&self, setup: InvocationSetup) -> Result<(Store<Ctx>, Frame), String> {
        let (limits, journal) = (setup.limits.clone(), setup.journal.clone());
        let ctx = Ctx::new(setup).map_err(|error| error.to_string())?;
        let (log, in_flight) = (ctx.log_book(), ctx.in_flight());
        let guest = GuestRecord::enter_shared(Arc::clone(&ctx.meter.guest));
        let mut store = Store::new(&self.engine, ctx);
        store.limiter(|ctx| &mut ctx.meter);
        store.set_hostcall_fuel(usize::try_from(limits.host_bytes_max).unwrap_or(usize::MAX));
        // Handles that a guest makes for its own resources, in all its instances, without a call of the host. A
        // borrowed one counts twice.
        store.set_max_component_handles((limits.handles_max as usize).saturating_mul(2));
        store.set_fuel(limits.fuel_max).map_err(|error| error.to_string())?;
        store.fuel_async_yield_interval(Some(YIELD_FUEL)).map_err(|error| error.to_string())?;
        let fuel_max = limits.fuel_max;
        let call_deadline = Arc::new(OnceLock::<CallDeadline>::new());
        let held = Arc::clone(&call_deadline);
        let mut entries = 0_u64;
        // wasmtime also enters the host for itself: to yield, to grow a memory, to copy. Only calls of imports count as
        // host calls, at the place where they are linked.
        store.call_hook(move |mut store, hook| {
            match hook {
                CallHook::CallingHost => {
                    let left = store.get_fuel()?;
                    let ctx = store.data_mut();
                    ctx.fuel_used = fuel_max.saturating_sub(left);
                    ctx.meter.guest.burnt(ctx.fuel_used);
                    entries += 1;
                    if let Some(call_deadline) = held.get() {
                        call_deadline.check(entries).map_err(wasmtime::Error::new)?;
                    }
                }
                CallHook::ReturningFromHost => store.data().check_calls().map_err(wasmtime::Error::new)?,
                CallHook::CallingWasm | CallHook::ReturningFromWasm => {}
            }
            Ok(())
        });
        Ok((store, Frame { limits, call_deadline, journal, log, in_flight, guest }))
    }

    fn host_error(&self, export: &'static str, reason: String) -> CallError {
        CallError::Host { plugin: self.name.clone(), export, reason }
    }

    /// A result is untrusted: one over the cap never reaches the caller.
    fn bounded<T: serde::Serialize>(&self, export: &'static str, value: T, max: u64) -> Result<T, CallError> {
        let bytes = serde_json::to_vec(&value).map_or(u64::MAX, |bytes| bytes.len() as u64);
        if bytes > max {
            return Err(self.limit(export, LimitHit::new("output_bytes_max", bytes, max)));
        }
        Ok(value)
    }

    fn as_promised<T: CheckedAnswer>(&self, export: &'static str, mut value: T) -> Result<T, CallError> {
        let broken = |breach| CallError::Contract { plugin: self.name.clone(), export, breach };
        value.check().map_err(broken)?;
        Ok(value)
    }

    fn limit(&self, export: &'static str, hit: LimitHit) -> CallError {
        CallError::Limit { plugin: self.name.clone(), export, hit }
    }

    /// The limit, stop or trap behind an error of wasmtime.
    fn explain(
        &self,
        export: &'static str,
        error: &wasmtime::Error,
        store: &Store<Ctx>,
        used: WorkUsage,
        limits: &Limits,
    ) -> CallError {
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return CallError::of_stop(&self.name, export, stop.clone());
        }
        if let Some(hit) = self.limit_behind(error, store, used, limits) {
            return self.limit(export, hit);
        }
        let reason = truncate(&format!("{error:#}"), 2_000);
        if cause(error).contains("concurrent limit") {
            // The pool is exhausted: a condition of the host, which the guest must not see.
            return self.host_error(export, reason);
        }
        CallError::Trapped { plugin: self.name.clone(), export, reason }
    }

    fn limit_behind(
        &self,
        error: &wasmtime::Error,
        store: &Store<Ctx>,
        used: WorkUsage,
        limits: &Limits,
    ) -> Option<LimitHit> {
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => return Some(LimitHit::new("fuel_max", used.fuel, limits.fuel_max)),
            Some(Trap::StackOverflow) => {
                let max = STACK_BYTES_MAX as u64;
                return Some(LimitHit::new("stack_bytes_max", max, max));
            }
            _ => {}
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref() {
            return Some(LimitHit::new("handles_max", u64::from(limits.handles_max) + 1, limits.handles_max.into()));
        }
        let text = cause(error);
        if text.contains("store handle limit exceeded") {
            return Some(LimitHit::new("handles_max", u64::from(limits.handles_max) + 1, limits.handles_max.into()));
        }
        if text.contains("fuel allocated for hostcalls") {
            // wasmtime does not report the size: at least one more.
            return Some(LimitHit::new("host_bytes_max", limits.host_bytes_max + 1, limits.host_bytes_max));
        }
        if text.contains("instance count too high") {
            return Some(LimitHit::new(
                "instances_max",
                u64::from(limits.instances_max) + 1,
                limits.instances_max.into(),
            ));
        }
        // A guest whose memory may not grow, or whose write was refused, traps next, mostly without a reason.
        store.data().refused()
    }
}

/// wasmtime's own message. The texts around it hold a back trace, whose names the guest chose.
fn cause(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}

fn used(store: &mut Store<Ctx>, fuel_max: u64) -> WorkUsage {
    let left = store.get_fuel().unwrap_or(0);
    let ctx = store.data();
    WorkUsage { fuel: fuel_max.saturating_sub(left), memory_bytes_peak: ctx.meter.memory_bytes_peak, ..ctx.used }
}
