//! Calls of tools that are components: each in a fresh instance of the plugin that its run pinned.
//!
//! A tool stands above the invocation that calls it, since it is a guest as well. Refuses to give it more than the tool
//! set allows this call.

use crate::plugin_set::{PluginSet, PreparedPlugin};
use longhaul_capabilities::{DISK_BYTES_MAX, InvocationSetup};
use longhaul_core::tool::{ToolAttempt, ToolCall, ToolError, ToolInfo, ToolOutput, Verification};
use longhaul_core::{LimitHit, Outage};
use longhaul_engine::{CallError, Called, Cancel};
use longhaul_toolbox::component::{ComponentAnswer, ComponentCalls, ToolGuest};
use serde_json::Value;
use std::sync::Arc;

/// Calls the components of a run for one invocation.
pub struct ComponentCaller {
    plugin_set: Arc<PluginSet>,
    cancel: Cancel,
}

impl ComponentCaller {
    /// The caller for the invocation that `cancel` ends.
    pub fn new(plugin_set: Arc<PluginSet>, cancel: Cancel) -> Self {
        Self { plugin_set, cancel }
    }

    fn start(&self, guest: ToolGuest) -> Result<(&PreparedPlugin, InvocationSetup), ToolError> {
        let ToolGuest { table, caller, grants, placeholders, supervisor } = guest;
        let part = self.plugin_set.part(&table).ok_or(ToolError::UnknownFunction(table))?;
        let mut setup = self.plugin_set.setup_tool(part, &caller, grants);
        setup.services.supervisor = supervisor;
        Ok((part, InvocationSetup { placeholders, ..setup }))
    }
}

#[async_trait::async_trait]
impl ComponentCalls for ComponentCaller {
    async fn describe(&self, guest: ToolGuest, settings: &Value) -> Result<ToolInfo, ToolError> {
        let (part, setup) = self.start(guest)?;
        flat(part.plugin.describe(setup, &self.cancel, settings).await)
    }

    async fn prepare(
        &self,
        guest: ToolGuest,
        call: &ToolCall,
        attempt: ToolAttempt<'_>,
    ) -> Result<ComponentAnswer<String>, ToolError> {
        let (part, setup) = self.start(guest)?;
        Ok(answered(part.plugin.prepare(setup, &unhurried(), call, attempt).await))
    }

    async fn verify(
        &self,
        guest: ToolGuest,
        call: &ToolCall,
        prepared: &str,
        attempt: ToolAttempt<'_>,
    ) -> Result<ComponentAnswer<Verification>, ToolError> {
        let (part, setup) = self.start(guest)?;
        Ok(answered(part.plugin.verify(setup, &unhurried(), call, prepared, attempt).await))
    }

    async fn call(
        &self,
        guest: ToolGuest,
        call: &ToolCall,
        attempt: ToolAttempt<'_>,
    ) -> Result<ComponentAnswer<ToolOutput>, ToolError> {
        let (part, setup) = self.start(guest)?;
        Ok(answered(part.plugin.call_tool(setup, &unhurried(), call, attempt).await))
    }
}

/// A cancel token that never fires. A cancelled caller waits for its calls in flight, and drops them when it stops
/// waiting. A tool that saw the cancel would answer that it was cancelled, and the journal would keep that answer.
fn unhurried() -> Cancel {
    Cancel::default()
}

fn answered<T>(called: Called<Result<T, ToolError>>) -> ComponentAnswer<T> {
    let fuel = called.used.fuel;
    ComponentAnswer { answer: flat(called), fuel }
}

/// A tool that failed after a refused write has the limit as its reason, which its own words may not name.
fn flat<T>(called: Called<Result<T, ToolError>>) -> Result<T, ToolError> {
    let refused = called.refused.filter(|hit| hit.name == DISK_BYTES_MAX);
    match (called.result.map_err(tool_error)?, refused) {
        (Err(ToolError::Failed(_)), Some(hit)) => Err(ToolError::Limit(hit)),
        (answer, _) => answer,
    }
}

/// The failure of a tool is an answer for its caller, who can do something else.
fn tool_error(error: CallError) -> ToolError {
    match error {
        CallError::Limit { hit, .. } if hit.name == "wall_ms_max" => ToolError::TimedOut(timed_out(&hit)),
        CallError::Limit { hit, .. } => ToolError::Limit(hit),
        CallError::Unavailable(outage) => ToolError::Unavailable(outage),
        CallError::Host { reason, .. } => ToolError::Unavailable(Outage { reason, retry_after_ms: None }),
        other => ToolError::Failed(other.to_string()),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what a u32 holds")]
fn timed_out(hit: &LimitHit) -> u32 {
    hit.max.clamp(0.0, f64::from(u32::MAX)) as u32
}
