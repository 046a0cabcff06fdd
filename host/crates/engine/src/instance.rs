//! The typed calls of each role's exports.

use crate::callee::{Called, Standby, Start};
use crate::error::CallError;
use crate::governor::Cancel;
use crate::plugin::{Exports, Plugin};
use longhaul_bindings::exports::{evaluator, tool};
use longhaul_bindings::tool_types;
use longhaul_capabilities::{Ctx, Setup};
use longhaul_core::tool::{ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Outcome, RoleError, Rubric, Subject, Task, Verdict};
use wasmtime::Store;
use wasmtime::component::Instance;

impl Plugin {
    /// Has an agent do a task.
    pub async fn run(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        task: Task,
    ) -> Called<Result<Outcome, RoleError>> {
        let task = longhaul_bindings::types::Task::from(task);
        self.call("agent.run", start, cancel, async move |plugin, store, instance| {
            let Exports::Agent(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_run(store, &task).await?;
            Ok(answer.map(Outcome::from).map_err(RoleError::from))
        })
        .await
    }

    /// Has an evaluator judge an output.
    pub async fn judge(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        subject: Subject,
        rubric: Rubric,
    ) -> Called<Result<Verdict, RoleError>> {
        let (subject, rubric) = (evaluator::Subject::from(subject), evaluator::Rubric::from(rubric));
        self.call("evaluator.judge", start, cancel, async move |plugin, store, instance| {
            let Exports::Evaluator(indices) = &plugin.exports else { return Err(wrong_role()) };
            let answer = indices.load(&mut *store, instance)?.call_judge(store, &subject, &rubric).await?;
            Ok(answer.map(Verdict::from).map_err(RoleError::from))
        })
        .await
    }

    /// Asks a tool what it can do.
    pub async fn describe(&self, start: impl Into<Start>, cancel: &Cancel) -> Called<ToolInfo> {
        self.call("tool.describe", start, cancel, async move |plugin, store, instance| {
            let Exports::Tool(indices) = &plugin.exports else { return Err(wrong_role()) };
            Ok(indices.load(&mut *store, instance)?.call_describe(store).await?.into())
        })
        .await
    }

    /// Asks a tool to note what `verify` will need.
    pub async fn prepare(
        &self,
        start: impl Into<Start>,
        cancel: &Cancel,
        call: &ToolCall,
    ) -> Called<Result<String, ToolError>> {
        let call = call.clone();
        self.call("tool.prepare", start, cancel, async move |plugin, store, instance| {
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
        start: impl Into<Start>,
        cancel: &Cancel,
        call: &ToolCall,
        prepared: &str,
    ) -> Called<Result<Verification, ToolError>> {
        let (call, prepared) = (call.clone(), prepared.to_owned());
        self.call("tool.verify", start, cancel, async move |plugin, store, instance| {
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
        start: impl Into<Start>,
        cancel: &Cancel,
        call: &ToolCall,
        key: &str,
        attempt: u32,
        settings: &serde_json::Value,
    ) -> Called<Result<ToolOutput, ToolError>> {
        let start = start.into();
        let context = tool::CallContext {
            idempotency_key: key.to_owned(),
            remaining_ms: u32::try_from(start.limits().wall_ms_max).unwrap_or(u32::MAX),
            attempt,
            settings: settings.to_string(),
        };
        let call = call.clone();
        self.call("tool.call", start, cancel, async move |plugin, store, instance| {
            let Exports::Tool(indices) = &plugin.exports else { return Err(wrong_role()) };
            let guest = indices.load(&mut *store, instance)?;
            let answer: Result<tool_types::ToolResult, _> =
                guest.call_call(store, &call.function, &call.arguments, &context).await?;
            Ok(answer.map(ToolOutput::from).map_err(ToolError::from))
        })
        .await
    }

    /// Makes an instance ready for a call that comes later.
    ///
    /// # Errors
    /// As a call that ends while its instance is made.
    pub async fn stand_by(&self, setup: Setup) -> Result<Standby, CallError> {
        self.callee.stand_by(setup).await
    }

    /// The one way into a guest.
    pub(crate) async fn call<T: serde::Serialize>(
        &self,
        export: &'static str,
        start: impl Into<Start>,
        cancel: &Cancel,
        body: impl AsyncFnOnce(&Self, &mut Store<Ctx>, &Instance) -> wasmtime::Result<T>,
    ) -> Called<T> {
        let body = async |store: &mut Store<Ctx>, instance: &Instance| body(self, store, instance).await;
        self.callee.call(export, start.into(), cancel, body).await
    }
}

pub(crate) fn wrong_role() -> wasmtime::Error {
    wasmtime::Error::msg("the plugin does not have this role")
}
