//! The tools of a run: components, each call in a fresh instance with the directories it was granted.
//!
//! A tool's statement about its effects is a claim. It counts when its grants prove it, or when the operator vouches
//! for the tool; otherwise the effect is `acts`, which is never repeated without a person. Some tools are implemented
//! by the host (`built_in.rs`) and are no components.

use crate::discarded_changes::DiscardedChanges;
use crate::plugin_set::{PluginSet, PreparedPlugin};
use longhaul_capabilities::InvocationSetup;
use longhaul_core::grant::{Access, Grants};
use longhaul_core::journal::EffectClass;
use longhaul_core::supervisor::Supervisor as _;
use longhaul_core::tool::{FunctionInfo, HostTool, ToolCall, ToolError, ToolInfo, ToolOutput, Tools, Verification};
use longhaul_core::{InvocationId, LimitHit, Outage};
use longhaul_engine::{CallError, Called, Cancel, ToolAttempt};
use longhaul_records::ledger::Ledger;
use longhaul_security::secrets;
use longhaul_worktree::Named;
use serde_json::Value;
use std::sync::Arc;

/// The tools that one invocation may get.
pub struct Toolbox {
    plugin_set: Arc<PluginSet>,
    ledger: Arc<Ledger>,
    caller: InvocationId,
    cancel: Cancel,
}

impl Toolbox {
    /// The tools of a run, for one caller.
    pub fn new(plugin_set: Arc<PluginSet>, ledger: Arc<Ledger>, caller: InvocationId, cancel: Cancel) -> Self {
        Self { plugin_set, ledger, caller, cancel }
    }

    async fn note_secrets(&self, tool: &str) -> Result<(), ToolError> {
        let noted = self.plugin_set.note_secrets(tool, &self.caller.run()).await;
        noted.map_err(|error| ToolError::Failed(format!("{error:#}")))
    }

    fn part(&self, tool: &str) -> Result<&PreparedPlugin, ToolError> {
        self.plugin_set.part(&format!("tools.{tool}")).ok_or_else(|| ToolError::UnknownFunction(tool.to_owned()))
    }

    /// A plugin gets placeholders for its secrets, and their values are redacted from its answer in case it obtained
    /// one.
    async fn call_plugin(
        &self,
        part: &PreparedPlugin,
        call: &ToolCall,
        key: &str,
        attempt: u32,
    ) -> Result<ToolOutput, ToolError> {
        let (setup, settings) = self.settled(part, part.grants.clone())?;
        let placeholders = Arc::clone(&setup.placeholders);
        let attempt = ToolAttempt { key, number: attempt, settings: &settings };
        let answer = self.counted(part.plugin.call_tool(setup, &unhurried(), call, attempt).await);
        secrets::scrubbed(answer, placeholders.redactor())
    }

    /// The setup of a call, and the settings of the tool, with placeholders in the places of its secrets.
    fn settled(&self, part: &PreparedPlugin, grants: Grants) -> Result<(InvocationSetup, Value), ToolError> {
        let placeholders =
            self.plugin_set.placeholders(part).map_err(|error| ToolError::Failed(format!("{error:#}")))?;
        let settings = secrets::settled(&part.settings, &placeholders);
        let placeholders = Arc::new(placeholders);
        Ok((InvocationSetup { placeholders, ..self.setup_with(part, grants) }, settings))
    }

    async fn call_own(
        &self,
        own: &dyn HostTool,
        call: &ToolCall,
        key: &str,
        attempt: u32,
    ) -> Result<ToolOutput, ToolError> {
        self.ledger.sends(&self.caller, own.hands_over(call)).map_err(ToolError::Limit)?;
        let answer = own.call(call, &self.caller, key, attempt).await;
        let refused = self.ledger.refused_bytes(&self.caller);
        answer.map_err(|error| refused.map_or(error, ToolError::Limit))
    }

    /// Usage of a tool counts for its caller. A tool that failed after a cap of the run refused its bytes failed
    /// because of that cap.
    fn counted<T>(&self, called: Called<Result<T, ToolError>>) -> Result<T, ToolError> {
        self.ledger.tool_used(&self.caller, called.used.fuel);
        let refused = self.ledger.refused_bytes(&self.caller);
        flat(called).map_err(|error| refused.map_or(error, ToolError::Limit))
    }

    fn setup(&self, part: &PreparedPlugin) -> InvocationSetup {
        self.setup_with(part, part.grants.clone())
    }

    fn setup_with(&self, part: &PreparedPlugin, grants: Grants) -> InvocationSetup {
        let mut setup = self.plugin_set.setup_tool(part, &self.caller, grants);
        setup.services.supervisor = self.ledger.clone();
        setup
    }
}

#[async_trait::async_trait]
impl Tools for Toolbox {
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError> {
        let mut infos = Vec::new();
        for (name, part) in self.plugin_set.tools() {
            let settings = part.concealed_settings();
            let told = part.plugin.describe(self.setup(part), &self.cancel, &settings).await;
            infos.push(believed(name, flat(told)?, part));
        }
        for (name, own) in self.plugin_set.own_tools() {
            // A server is started to list its functions.
            self.note_secrets(name).await?;
            infos.push(secrets::scrubbed_info(own.info(name).await?, &self.plugin_set.redactor()));
        }
        for info in &infos {
            self.plugin_set.gate(&info.id).map_or(Ok(()), |gate| gate.check_functions(info))?;
        }
        Ok(infos)
    }

    async fn prepare(&self, call: &ToolCall, key: &str, attempt: u32) -> Result<String, ToolError> {
        if let Some(own) = self.plugin_set.own_tool(&call.tool) {
            return own.prepare(call).await;
        }
        let part = self.part(&call.tool)?;
        // It has no effect, so it cannot write.
        let (setup, settings) = self.settled(part, read_only(&part.grants))?;
        let attempt = ToolAttempt { key, number: attempt, settings: &settings };
        self.counted(part.plugin.prepare(setup, &unhurried(), call, attempt).await)
    }

    async fn verify(
        &self,
        call: &ToolCall,
        prepared: &str,
        key: &str,
        attempt: u32,
    ) -> Result<Verification, ToolError> {
        if let Some(own) = self.plugin_set.own_tool(&call.tool) {
            return own.verify(call, prepared).await;
        }
        let part = self.part(&call.tool)?;
        let (setup, settings) = self.settled(part, read_only(&part.grants))?;
        let attempt = ToolAttempt { key, number: attempt, settings: &settings };
        self.counted(part.plugin.verify(setup, &unhurried(), call, prepared, attempt).await)
    }

    async fn call(&self, call: &ToolCall, key: &str, attempt: u32) -> Result<ToolOutput, ToolError> {
        self.note_secrets(&call.tool).await?;
        self.plugin_set.crash().reach("tool.before-call");
        let watch = self.plugin_set.watch(&call.tool);
        let named = match &watch {
            Some((unkept, places)) => Some((*unkept, unkept.before(call, places).await)),
            None => None,
        };
        let answer = match self.plugin_set.own_tool(&call.tool) {
            Some(own) => self.call_own(own, call, key, attempt).await,
            None => self.call_plugin(self.part(&call.tool)?, call, key, attempt).await,
        };
        self.plugin_set.crash().reach("tool.after-call");
        let answer = secrets::scrubbed(answer, &self.plugin_set.redactor());
        match named {
            Some((unkept, named)) => kept(unkept, named, answer).await,
            None => answer,
        }
    }

    fn is_web(&self, tool: &str) -> bool {
        self.plugin_set.is_web(tool)
    }
}

/// Replaces the answer of a call by an error when it wrote what no commit will hold: the caller can still write it
/// elsewhere. A failed call keeps its own error.
async fn kept(
    unkept: &DiscardedChanges,
    named: Named,
    answer: Result<ToolOutput, ToolError>,
) -> Result<ToolOutput, ToolError> {
    let found = match unkept.after(named).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "cannot look at the files that a call wrote");
            return answer;
        }
    };
    if found.is_empty() {
        return answer;
    }
    let files: Vec<String> = found.iter().map(ToString::to_string).collect();
    let text = format!("the call was made, but no commit will hold what it wrote: {}", files.join("; "));
    answer.and(Err(ToolError::Failed(text)))
}

/// A cancel token that never fires. A cancelled caller waits for its calls in flight, and drops them when it stops
/// waiting. A tool that saw the cancel would answer that it was cancelled, and the journal would keep that answer.
fn unhurried() -> Cancel {
    Cancel::default()
}

fn flat<T>(called: Called<Result<T, ToolError>>) -> Result<T, ToolError> {
    called.result.map_err(tool_error)?
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

fn read_only(grants: &Grants) -> Grants {
    let mut grants = grants.clone();
    for directory in &mut grants.directories {
        directory.access = Access::Read;
    }
    grants.hosts.clear();
    grants
}

/// The tool under the name of its grant, with its claims weighed.
fn believed(name: &str, mut info: ToolInfo, part: &PreparedPlugin) -> ToolInfo {
    name.clone_into(&mut info.id);
    let harmless = part.grants.hosts.is_empty() && part.grants.directories.iter().all(|one| one.access == Access::Read);
    for function in &mut info.functions {
        function.claim = Some(function.effect);
        function.effect = weighed(function, harmless, part.confirm_effects);
    }
    info
}

fn weighed(function: &FunctionInfo, harmless: bool, confirmed: bool) -> EffectClass {
    match function.effect {
        EffectClass::Acts => EffectClass::Acts,
        claim if harmless || confirmed => claim,
        _ => EffectClass::Acts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_counts_only_when_it_is_proved_or_confirmed() {
        let function = |effect| FunctionInfo {
            name: "f".into(),
            description: String::new(),
            parameters: "{}".into(),
            effect,
            claim: None,
        };
        for (claim, harmless, confirmed, expected) in [
            (EffectClass::ReadOnly, false, false, EffectClass::Acts),
            (EffectClass::ReadOnly, true, false, EffectClass::ReadOnly),
            (EffectClass::Verifiable, false, true, EffectClass::Verifiable),
            (EffectClass::Acts, true, true, EffectClass::Acts),
        ] {
            assert_eq!(weighed(&function(claim), harmless, confirmed), expected);
        }
    }
}
