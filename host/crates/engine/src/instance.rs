//! The typed calls of each role's exports: those of agents, evaluators and tools, and the code that all calls share.

use crate::callee::{CallStart, Called, WarmInstance};
use crate::contract::CheckedAnswer;
use crate::edition::{CallContext, Exports, GuestInstance};
use crate::error::CallError;
use crate::governor::Cancel;
use crate::plugin::Plugin;
use longhaul_capabilities::{Ctx, InvocationSetup};
use longhaul_core::text::printable;
use longhaul_core::tool::{ToolAttempt, ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Outcome, RoleError, Rubric, Subject, Task, Verdict};
use wasmtime::Store;
use wasmtime::component::Instance;

/// Bytes of a function's name in an error.
const FUNCTION_BYTES_MAX: usize = 80;

impl Plugin {
    /// Asks an agent to do a task.
    pub async fn run(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        task: Task,
    ) -> Called<Result<Outcome, RoleError>> {
        self.call("agent.run", start, cancel, async move |exports, guest| {
            let Exports::Agent(agent) = exports else { return Err(wrong_role()) };
            agent.run(guest, task).await
        })
        .await
    }

    /// Asks an evaluator to judge an output.
    pub async fn judge(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        subject: Subject,
        rubric: Rubric,
    ) -> Called<Result<Verdict, RoleError>> {
        self.call("evaluator.judge", start, cancel, async move |exports, guest| {
            let Exports::Evaluator(evaluator) = exports else { return Err(wrong_role()) };
            evaluator.judge(guest, subject, rubric).await
        })
        .await
    }

    /// Asks a tool what it can do with these settings, an object.
    pub async fn describe(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        settings: &serde_json::Value,
    ) -> Called<Result<ToolInfo, ToolError>> {
        self.call("tool.describe", start, cancel, async move |exports, guest| {
            let Exports::Tool(tool) = exports else { return Err(wrong_role()) };
            tool.describe(guest, settings).await
        })
        .await
    }

    /// Asks a tool to note the data that `verify` will need.
    pub async fn prepare(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        call: &ToolCall,
        attempt: ToolAttempt<'_>,
    ) -> Called<Result<String, ToolError>> {
        let start = start.into();
        let about = about(&start, attempt);
        self.call("tool.prepare", start, cancel, async move |exports, guest| {
            let Exports::Tool(tool) = exports else { return Err(wrong_role()) };
            tool.prepare(guest, call, &about).await
        })
        .await
    }

    /// Asks a tool whether an interrupted call has happened.
    pub async fn verify(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        call: &ToolCall,
        prepared: &str,
        attempt: ToolAttempt<'_>,
    ) -> Called<Result<Verification, ToolError>> {
        let start = start.into();
        let about = about(&start, attempt);
        self.call("tool.verify", start, cancel, async move |exports, guest| {
            let Exports::Tool(tool) = exports else { return Err(wrong_role()) };
            tool.verify(guest, call, prepared, &about).await
        })
        .await
    }

    /// Has a tool do something.
    pub async fn call_tool(
        &self,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        call: &ToolCall,
        attempt: ToolAttempt<'_>,
    ) -> Called<Result<ToolOutput, ToolError>> {
        let start = start.into();
        let about = about(&start, attempt);
        let mut called = self
            .call("tool.call", start, cancel, async move |exports, guest| {
                let Exports::Tool(tool) = exports else { return Err(wrong_role()) };
                tool.call(guest, call, &about).await
            })
            .await;
        if let Err(CallError::Contract { breach, .. }) = &mut called.result {
            *breach = format!("function `{}`: {breach}", printable(&call.function, FUNCTION_BYTES_MAX));
        }
        called
    }

    /// Prepares an instance for a later call.
    ///
    /// # Errors
    /// As a call that ends while its instance is made.
    pub async fn stand_by(&self, setup: InvocationSetup) -> Result<WarmInstance, CallError> {
        self.callee.stand_by(setup).await
    }

    /// The one way into a guest.
    pub(crate) async fn call<T: serde::Serialize + CheckedAnswer>(
        &self,
        export: &'static str,
        start: impl Into<CallStart>,
        cancel: &Cancel,
        body: impl AsyncFnOnce(&Exports, GuestInstance<'_>) -> wasmtime::Result<T>,
    ) -> Called<T> {
        let body = async |store: &mut Store<Ctx>, instance: &Instance| {
            body(&self.exports, GuestInstance { store, instance }).await
        };
        self.callee.call(export, start.into(), cancel, body).await
    }
}

fn about(start: &CallStart, ToolAttempt { key, number, settings }: ToolAttempt<'_>) -> CallContext {
    CallContext {
        idempotency_key: key.to_owned(),
        remaining_ms: u32::try_from(start.limits().wall_ms_max).unwrap_or(u32::MAX),
        attempt: number,
        settings: settings.clone(),
    }
}

pub(crate) fn wrong_role() -> wasmtime::Error {
    wasmtime::Error::msg("the plugin does not have this role")
}
