//! One call: a fresh store with limits, an instance, the export, and what it used.

use crate::error::CallError;
use crate::governor::{Cancel, govern};
use crate::plugin::{Exports, Plugin};
use longhaul_bindings::exports::{evaluator, planner, tool};
use longhaul_bindings::{RoleError, tool_types};
use longhaul_capabilities::{Ctx, LogLine, Setup, Stop};
use longhaul_core::LimitHit;
use longhaul_core::event::Used;
use longhaul_core::text::truncate;
use longhaul_core::tool::{ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Goal, Outcome, Rubric, Subject, Task, Verdict, WorkPlan};
use wasmtime::component::{Instance, ResourceTableError};
use wasmtime::{CallHook, Store, Trap};

/// A guest yields each time it has used this much fuel: at most 0.3 ms apart, measured.
const YIELD_FUEL: u64 = 1_000_000;

/// What came of a call.
#[derive(Debug)]
pub struct Called<T> {
    /// What the export returned, or what ended it.
    pub result: Result<T, CallError>,
    /// What it used itself.
    pub used: Used,
    /// What its sub-agents used.
    pub delegated: Used,
    /// The log of the plugin.
    pub log: Vec<LogLine>,
    /// Lines of the log that were over the cap.
    pub log_dropped: u64,
}

impl Plugin {
    /// Asks a planner for a plan.
    pub async fn plan(&self, setup: Setup, cancel: &Cancel, goal: Goal) -> Called<Result<WorkPlan, RoleError>> {
        let goal = planner::Goal::from(goal);
        self.call("planner.plan", setup, cancel, async move |plugin, store, instance| {
            let Exports::Planner(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_plan(store, &goal).await?;
            Ok(answer.map(WorkPlan::from).map_err(RoleError::from))
        })
        .await
    }

    /// Has an agent do a task.
    pub async fn run(&self, setup: Setup, cancel: &Cancel, task: Task) -> Called<Result<Outcome, RoleError>> {
        let task = longhaul_bindings::types::Task::from(task);
        self.call("agent.run", setup, cancel, async move |plugin, store, instance| {
            let Exports::Agent(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_run(store, &task).await?;
            Ok(answer.map(Outcome::from).map_err(RoleError::from))
        })
        .await
    }

    /// Has an evaluator judge an output.
    pub async fn judge(
        &self,
        setup: Setup,
        cancel: &Cancel,
        subject: Subject,
        rubric: Rubric,
    ) -> Called<Result<Verdict, RoleError>> {
        let (subject, rubric) = (evaluator::Subject::from(subject), evaluator::Rubric::from(rubric));
        self.call("evaluator.judge", setup, cancel, async move |plugin, store, instance| {
            let Exports::Evaluator(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_judge(store, &subject, &rubric).await?;
            Ok(answer.map(Verdict::from).map_err(RoleError::from))
        })
        .await
    }

    /// Asks a tool what it can do.
    pub async fn describe(&self, setup: Setup, cancel: &Cancel) -> Called<ToolInfo> {
        self.call("tool.describe", setup, cancel, async move |plugin, store, instance| {
            let Exports::Tool(indices) = &plugin.exports else { return Err(wrong_role()) };
            Ok(indices.load(&mut *store, instance)?.call_describe(store).await?.into())
        })
        .await
    }

    /// Asks a tool to note what `verify` will need.
    pub async fn prepare(&self, setup: Setup, cancel: &Cancel, call: &ToolCall) -> Called<Result<String, ToolError>> {
        let call = call.clone();
        self.call("tool.prepare", setup, cancel, async move |plugin, store, instance| {
            let Exports::Tool(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer =
                indices.load(&mut *store, instance)?.call_prepare(store, &call.function, &call.arguments).await?;
            Ok(answer.map_err(ToolError::from))
        })
        .await
    }

    /// Asks a tool whether a call that was cut off has happened.
    pub async fn verify(
        &self,
        setup: Setup,
        cancel: &Cancel,
        call: &ToolCall,
        prepared: &str,
    ) -> Called<Result<Verification, ToolError>> {
        let (call, prepared) = (call.clone(), prepared.to_owned());
        self.call("tool.verify", setup, cancel, async move |plugin, store, instance| {
            let Exports::Tool(indices) = &plugin.exports else { return Err(wrong_role()) };
            let guest = indices.load(&mut *store, instance)?;
            let answer = guest.call_verify(store, &call.function, &call.arguments, &prepared).await?;
            Ok(answer.map(Verification::from).map_err(ToolError::from))
        })
        .await
    }

    /// Has a tool do something. `settings` is an object that the operator wrote.
    pub async fn call_tool(
        &self,
        setup: Setup,
        cancel: &Cancel,
        call: &ToolCall,
        key: &str,
        attempt: u32,
        settings: &serde_json::Value,
    ) -> Called<Result<ToolOutput, ToolError>> {
        let context = tool::CallContext {
            idempotency_key: key.to_owned(),
            remaining_ms: u32::try_from(setup.limits.wall_ms_max).unwrap_or(u32::MAX),
            attempt,
            settings: settings.to_string(),
        };
        let call = call.clone();
        self.call("tool.call", setup, cancel, async move |plugin, store, instance| {
            let Exports::Tool(indices) = &plugin.exports else { return Err(wrong_role()) };
            let guest = indices.load(&mut *store, instance)?;
            let answer: Result<tool_types::ToolResult, _> =
                guest.call_call(store, &call.function, &call.arguments, &context).await?;
            Ok(answer.map(ToolOutput::from).map_err(ToolError::from))
        })
        .await
    }

    async fn call<T: serde::Serialize>(
        &self,
        export: &'static str,
        setup: Setup,
        cancel: &Cancel,
        body: impl AsyncFnOnce(&Self, &mut Store<Ctx>, &Instance) -> wasmtime::Result<T>,
    ) -> Called<T> {
        let (limits, journal) = (setup.limits.clone(), setup.journal.clone());
        let mut store = match self.store(setup) {
            Ok(store) => store,
            Err(reason) => return self.not_started(export, reason),
        };
        let (log, in_flight) = (store.data().log_book(), store.data().in_flight());
        let work = async {
            let instance = self.pre.instantiate_async(&mut store).await?;
            body(self, &mut store, &instance).await
        };
        let governed = govern(work, &limits, journal.as_ref(), cancel, &in_flight).await;
        let used = used(&mut store, limits.fuel_max);
        let delegated = store.data().delegated;
        let result = match governed {
            Ok(Ok(value)) => self.bounded(export, value, limits.output_bytes_max),
            Ok(Err(error)) => Err(self.explain(export, &error, &store, used, &limits)),
            Err(stop) => Err(CallError::of_stop(&self.name, export, stop)),
        };
        // What was printed and not ended by a line feed is written when its stream goes.
        drop(store);
        let (log, log_dropped) = log.take();
        Called { result, used, delegated, log, log_dropped }
    }

    fn store(&self, setup: Setup) -> Result<Store<Ctx>, String> {
        let limits = setup.limits.clone();
        let ctx = Ctx::new(setup).map_err(|error| error.to_string())?;
        let mut store = Store::new(&self.engine, ctx);
        store.limiter(|ctx| &mut ctx.meter);
        store.set_hostcall_fuel(usize::try_from(limits.host_bytes_max).unwrap_or(usize::MAX));
        store.set_fuel(limits.fuel_max).map_err(|error| error.to_string())?;
        store.fuel_async_yield_interval(Some(YIELD_FUEL)).map_err(|error| error.to_string())?;
        let (fuel_max, host_calls_max) = (limits.fuel_max, limits.host_calls_max);
        store.call_hook(move |mut store, hook| {
            if matches!(hook, CallHook::CallingHost) {
                let left = store.get_fuel()?;
                let ctx = store.data_mut();
                ctx.fuel_used = fuel_max.saturating_sub(left);
                ctx.used.host_calls += 1;
                if ctx.used.host_calls > host_calls_max {
                    let hit = LimitHit::new("host_calls_max", ctx.used.host_calls, host_calls_max);
                    return Err(wasmtime::Error::new(Stop::Limit(hit)));
                }
            }
            Ok(())
        });
        Ok(store)
    }

    fn not_started<T>(&self, export: &'static str, reason: String) -> Called<T> {
        let error = CallError::Host { plugin: self.name.clone(), export, reason };
        Called {
            result: Err(error),
            used: Used::default(),
            delegated: Used::default(),
            log: Vec::new(),
            log_dropped: 0,
        }
    }

    /// A result is the guest's: what is over the cap never reaches the caller.
    fn bounded<T: serde::Serialize>(&self, export: &'static str, value: T, max: u64) -> Result<T, CallError> {
        let bytes = serde_json::to_vec(&value).map_or(u64::MAX, |bytes| bytes.len() as u64);
        if bytes > max {
            return Err(self.limit(export, LimitHit::new("output_bytes_max", bytes, max)));
        }
        Ok(value)
    }

    fn limit(&self, export: &'static str, hit: LimitHit) -> CallError {
        CallError::Limit { plugin: self.name.clone(), export, hit }
    }

    /// Which limit, stop or trap an error of wasmtime is.
    fn explain(
        &self,
        export: &'static str,
        error: &wasmtime::Error,
        store: &Store<Ctx>,
        used: Used,
        limits: &longhaul_core::Limits,
    ) -> CallError {
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return CallError::of_stop(&self.name, export, stop.clone());
        }
        if let Some(hit) = self.limit_behind(error, store, used, limits) {
            return self.limit(export, hit);
        }
        let reason = truncate(&format!("{error:#}"), 2_000);
        if cause(error).contains("concurrent limit") {
            // The pool is exhausted: an affair of the host, which the guest must not see.
            return CallError::Host { plugin: self.name.clone(), export, reason };
        }
        CallError::Trapped { plugin: self.name.clone(), export, reason }
    }

    fn limit_behind(
        &self,
        error: &wasmtime::Error,
        store: &Store<Ctx>,
        used: Used,
        limits: &longhaul_core::Limits,
    ) -> Option<LimitHit> {
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => return Some(LimitHit::new("fuel_max", used.fuel, limits.fuel_max)),
            Some(Trap::StackOverflow) => return Some(LimitHit::new("stack_bytes_max", 1 << 20, 1 << 20)),
            _ => {}
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref() {
            return Some(LimitHit::new("handles_max", u64::from(limits.handles_max) + 1, limits.handles_max.into()));
        }
        let text = cause(error);
        if text.contains("fuel allocated for hostcalls") {
            // wasmtime does not say how much it would have been: at least one more.
            return Some(LimitHit::new("host_bytes_max", limits.host_bytes_max + 1, limits.host_bytes_max));
        }
        if text.contains("instance count too high") {
            return Some(LimitHit::new(
                "instances_max",
                u64::from(limits.instances_max) + 1,
                limits.instances_max.into(),
            ));
        }
        // A guest whose memory may not grow traps next, mostly without saying why.
        store.data().meter.refused.clone()
    }
}

/// What wasmtime itself says. The texts around it hold a back trace, whose names the guest chose.
fn cause(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}

fn used(store: &mut Store<Ctx>, fuel_max: u64) -> Used {
    let left = store.get_fuel().unwrap_or(0);
    let ctx = store.data();
    Used { fuel: fuel_max.saturating_sub(left), memory_bytes_peak: ctx.meter.memory_bytes_peak, ..ctx.used }
}

fn wrong_role() -> wasmtime::Error {
    wasmtime::Error::msg("the plugin does not have this role")
}
