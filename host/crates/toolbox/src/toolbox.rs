//! The tools of a run: components, each call in a fresh instance with the directories it was granted.
//!
//! A tool's statement about its effects is a claim. It counts when its grants prove it, or when the operator vouches
//! for the tool; otherwise the effect is `acts`, which is never repeated without a person. Some tools are implemented
//! by the host (`built_in.rs`) and are no components.

use crate::component::{ComponentAnswer, ComponentCalls, ComponentTool, ToolGuest};
use crate::discarded_changes::DiscardedChanges;
use crate::tool_set::ToolSet;
use longhaul_core::InvocationId;
use longhaul_core::grant::{Access, Grants};
use longhaul_core::journal::EffectClass;
use longhaul_core::store::StoreError;
use longhaul_core::supervisor::Supervisor as _;
use longhaul_core::tool::{
    EffectRows, FunctionInfo, HostTool, ToolAttempt, ToolCall, ToolError, ToolInfo, ToolOutput, Tools, Verification,
};
use longhaul_egress::SecretPlaceholders;
use longhaul_records::ledger::Ledger;
use longhaul_security::secrets;
use longhaul_worktree::Named;
use serde_json::Value;
use std::sync::Arc;

/// The tools that one invocation may get.
pub struct Toolbox {
    tools: Arc<ToolSet>,
    components: Arc<dyn ComponentCalls>,
    ledger: Arc<Ledger>,
    caller: InvocationId,
}

impl Toolbox {
    /// The tools of a run, for one caller; `components` calls those that are components.
    pub fn new(
        tools: Arc<ToolSet>,
        components: Arc<dyn ComponentCalls>,
        ledger: Arc<Ledger>,
        caller: InvocationId,
    ) -> Self {
        Self { tools, components, ledger, caller }
    }

    async fn note_secrets(&self, tool: &str) -> Result<(), ToolError> {
        let noted = self.tools.note_secrets(tool, &self.caller.run()).await;
        noted.map_err(|error| ToolError::Failed(format!("{error:#}")))
    }

    fn component(&self, tool: &str) -> Result<&ComponentTool, ToolError> {
        self.tools.component(tool).ok_or_else(|| ToolError::UnknownFunction(tool.to_owned()))
    }

    /// A component gets placeholders for its secrets, and their values are redacted from its answer in case it obtained
    /// one.
    async fn call_component(
        &self,
        component: &ComponentTool,
        call: &ToolCall,
        key: &str,
        attempt: u32,
    ) -> Result<ToolOutput, ToolError> {
        let (guest, settings) = self.settled(component, component.grants.clone())?;
        let placeholders = Arc::clone(&guest.placeholders);
        let attempt = ToolAttempt { key, number: attempt, settings: &settings };
        let answer = self.counted(self.components.call(guest, call, attempt).await?);
        secrets::scrubbed(answer, placeholders.redactor())
    }

    /// The guest of a call, and the settings of the tool, with placeholders in the places of its secrets.
    fn settled(&self, component: &ComponentTool, grants: Grants) -> Result<(ToolGuest, Value), ToolError> {
        let placeholders =
            self.tools.placeholders(component).map_err(|error| ToolError::Failed(format!("{error:#}")))?;
        let settings = secrets::settled(&component.settings, &placeholders);
        Ok((self.guest(component, grants, Arc::new(placeholders)), settings))
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
    fn counted<T>(&self, answered: ComponentAnswer<T>) -> Result<T, ToolError> {
        self.ledger.tool_used(&self.caller, answered.fuel);
        let refused = self.ledger.refused_bytes(&self.caller);
        answered.answer.map_err(|error| refused.map_or(error, ToolError::Limit))
    }

    fn guest(&self, component: &ComponentTool, grants: Grants, placeholders: Arc<SecretPlaceholders>) -> ToolGuest {
        let (table, caller) = (component.table.clone(), self.caller.clone());
        ToolGuest { table, caller, grants, placeholders, supervisor: self.ledger.clone() }
    }
}

#[async_trait::async_trait]
impl Tools for Toolbox {
    async fn list(&self) -> Result<Vec<ToolInfo>, ToolError> {
        let mut infos = Vec::new();
        for (name, component) in self.tools.components() {
            let settings = secrets::concealed(&component.settings, &component.secrets);
            let guest = self.guest(component, component.grants.clone(), Arc::default());
            infos.push(believed(name, self.components.describe(guest, &settings).await?, component));
        }
        for (name, own) in self.tools.own_tools() {
            // A server is started to list its functions.
            self.note_secrets(name).await?;
            infos.push(secrets::scrubbed_info(own.info(name).await?, &self.tools.redactor()));
        }
        for info in &infos {
            self.tools.gate(&info.id).map_or(Ok(()), |gate| gate.check_functions(info))?;
        }
        Ok(infos)
    }

    async fn prepare(&self, call: &ToolCall, key: &str, attempt: u32) -> Result<String, ToolError> {
        if let Some(own) = self.tools.own_tool(&call.tool) {
            return own.prepare(call).await;
        }
        let component = self.component(&call.tool)?;
        // It has no effect, so it cannot write.
        let (guest, settings) = self.settled(component, read_only(&component.grants))?;
        let attempt = ToolAttempt { key, number: attempt, settings: &settings };
        self.counted(self.components.prepare(guest, call, attempt).await?)
    }

    async fn verify(
        &self,
        call: &ToolCall,
        prepared: &str,
        key: &str,
        attempt: u32,
    ) -> Result<Verification, ToolError> {
        if let Some(own) = self.tools.own_tool(&call.tool) {
            return own.verify(call, prepared).await;
        }
        let component = self.component(&call.tool)?;
        let (guest, settings) = self.settled(component, read_only(&component.grants))?;
        let attempt = ToolAttempt { key, number: attempt, settings: &settings };
        self.counted(self.components.verify(guest, call, prepared, attempt).await?)
    }

    async fn call(&self, call: &ToolCall, key: &str, attempt: u32) -> Result<ToolOutput, ToolError> {
        self.note_secrets(&call.tool).await?;
        self.tools.environment().crash.reach("tool.before-call");
        let watch = self.tools.watch(&call.tool);
        let named = match &watch {
            Some((unkept, places)) => Some((*unkept, unkept.before(call, places).await)),
            None => None,
        };
        let answer = match self.tools.own_tool(&call.tool) {
            Some(own) => self.call_own(own, call, key, attempt).await,
            None => self.call_component(self.component(&call.tool)?, call, key, attempt).await,
        };
        self.tools.environment().crash.reach("tool.after-call");
        let answer = secrets::scrubbed(answer, &self.tools.redactor());
        match named {
            Some((unkept, named)) => kept(unkept, named, answer).await,
            None => answer,
        }
    }

    async fn settle(&self, call: &ToolCall, class: EffectClass) -> Result<EffectRows, StoreError> {
        let Some(carrier) = self.tools.carrier(&call.tool, class) else { return Ok(EffectRows::default()) };
        carrier.after_effect(self.tools.makes_commits(&call.tool)).await
    }

    fn is_web(&self, tool: &str) -> bool {
        self.tools.is_web(tool)
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

fn read_only(grants: &Grants) -> Grants {
    let mut grants = grants.clone();
    for directory in &mut grants.directories {
        directory.access = Access::Read;
    }
    grants.hosts.clear();
    grants
}

/// The tool under the name of its grant, with its claims weighed.
fn believed(name: &str, mut info: ToolInfo, component: &ComponentTool) -> ToolInfo {
    name.clone_into(&mut info.id);
    let grants = &component.grants;
    let harmless = grants.hosts.is_empty() && grants.directories.iter().all(|one| one.access == Access::Read);
    for function in &mut info.functions {
        function.claim = Some(function.effect);
        function.effect = weighed(function, harmless, component.confirm_effects);
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
