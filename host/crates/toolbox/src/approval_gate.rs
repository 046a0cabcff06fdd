//! Decides about tool calls: the operator's policy first, then the rules of the run, then a person.
//!
//! A call that acts outside after its agent read untrusted text needs an approval even where the policy allows it,
//! unless the operator or a rule of the run allows the source of that text. So does, in a fork, a call that acts and
//! that the other run made after the point of the fork.
//!
//! When something cannot be read or stored, no call passes: the run waits, and the same call is decided again. The
//! agent never sees this as a refusal.

use crate::environment::ToolEnvironment;
use crate::gate::{ToolGate, itself};
use crate::tool_set::ToolSet;
use longhaul_approval::{Approval, ApprovalKind, ApprovalStatus, ApprovalSubject, PolicyMode, PolicyVerdict, question};
use longhaul_core::approval::{Approvals, CallDecision, Intent, Undecided};
use longhaul_core::fault::{self, Fault};
use longhaul_core::journal::{EffectClass, EffectQuestion};
use longhaul_core::store::{Batch, Store};
use longhaul_core::tool::{ToolCall, ToolError};
use longhaul_core::{Denial, Outage};
use longhaul_records::approvals;
use longhaul_records::repeats::{self, RepeatedEffects};
use std::sync::{Arc, OnceLock};

/// The gate for the calls of one agent.
pub struct ApprovalGate {
    environment: ToolEnvironment,
    tools: Arc<ToolSet>,
    agent: String,
    plugin: String,
    /// The effects that its run may repeat with an approval alone, once they are read.
    repeats: OnceLock<RepeatedEffects>,
}

impl ApprovalGate {
    /// The gate of the agent of a table, which that plugin is.
    pub fn new(tools: &Arc<ToolSet>, agent: &str, plugin: &str) -> Self {
        let (environment, tools) = (tools.environment().clone(), Arc::clone(tools));
        let repeats = OnceLock::new();
        Self { environment, tools, agent: agent.to_owned(), plugin: plugin.to_owned(), repeats }
    }

    fn gate(&self, call: &ToolCall) -> fault::Result<&ToolGate> {
        self.tools
            .gate(&call.tool)
            .ok_or_else(|| Fault::msg(format!("the gate does not know the tool `{}`", call.tool)))
    }

    /// The operator's denial comes first, then a person's answer about this very call, then the rules and policies that
    /// let similar calls pass.
    async fn decided(&self, intent: &Intent) -> fault::Result<Result<(CallDecision, Batch), EffectQuestion>> {
        let gate = self.gate(&intent.call)?;
        let subject = subject(intent, gate, &*self.environment.store)?;
        let known = approvals::get(&*self.environment.store, &subject.invocation.run(), &subject.id())?;
        let verdict = gate.verdict(&intent.call);
        if let PolicyVerdict::Deny(denial) = verdict {
            return Ok(Ok((CallDecision::Denied(denial), taken_back(known)?)));
        }
        let when_untrusted = self.when_untrusted(gate, intent);
        if when_untrusted == PolicyMode::Deny {
            return Ok(Ok((CallDecision::Denied(gate.refused_when_untrusted(intent)), taken_back(known)?)));
        }
        if let Some(approval) = &known
            && let Some((decision, used)) = approval.used(&subject, self.environment.clock.now_ms())?
        {
            return Ok(Ok((decision, approvals::swap(Batch::new(), approval, &used)?)));
        }
        let repeats = self.repeats(intent)?;
        let passes = match verdict {
            // The operator allows the call, and did not know that it happened already.
            PolicyVerdict::Allow if !repeats => Some("the operator's policy".to_owned()),
            _ => self.rule_for(gate, &intent.call, &subject)?,
        };
        let heard = match when_untrusted {
            PolicyMode::Allow => Vec::new(),
            _ => self.not_allowed(gate, intent, &subject)?,
        };
        if let Some(by) = passes.filter(|_| heard.is_empty()) {
            return Ok(Ok((CallDecision::Allowed(by), taken_back(known)?)));
        }
        let approval = match known {
            Some(open) => open,
            None => {
                // A person's approval could have no effect.
                if let Some(error) = self.tools.own_tool(&intent.call.tool).and_then(|own| own.refusal(&intent.call)) {
                    return Ok(Ok((CallDecision::Denied(refused(error)), Batch::new())));
                }
                self.ask(intent, gate, subject, AskReasons { heard, repeats }).await?
            }
        };
        let (text, ApprovalSubject { invocation, entry, .. }) = (question(&approval), approval.subject);
        Ok(Err(EffectQuestion { invocation, entry, text, approval: Some(approval.id), attempt: 0 }))
    }

    /// The text of the run's rule that lets a call pass.
    fn rule_for(&self, gate: &ToolGate, call: &ToolCall, subject: &ApprovalSubject) -> fault::Result<Option<String>> {
        if gate.asks == ApprovalKind::Question {
            return Ok(None);
        }
        let rules = approvals::rules(&*self.environment.store, &subject.invocation.run())?;
        let rule = rules.into_iter().find(|rule| rule.covers(subject, gate.runs_commands(call)));
        Ok(rule.map(|rule| format!("rule {} of this run", rule.id)))
    }

    /// The policy for a call after what its agent has read.
    fn when_untrusted(&self, gate: &ToolGate, intent: &Intent) -> PolicyMode {
        gate.when_untrusted(intent, |destination| self.tools.has_reached(destination))
    }

    /// The sources of untrusted text that no rule of the run allows this call to follow. A rule allows them for the
    /// calls that it covers, as its text says, and for no other tool.
    fn not_allowed(&self, gate: &ToolGate, intent: &Intent, subject: &ApprovalSubject) -> fault::Result<Vec<String>> {
        let mut rules = approvals::rules(&*self.environment.store, &subject.invocation.run())?;
        rules.retain(|rule| rule.covers(subject, gate.runs_commands(&intent.call)));
        let is_allowed = |source: &&String| rules.iter().any(|rule| rule.heard.contains(source));
        Ok(intent.heard.iter().filter(|source| !is_allowed(source)).cloned().collect())
    }

    /// True when the run that this one was forked from made this call after the point of the fork: it acts, and would do
    /// so a second time.
    fn repeats(&self, intent: &Intent) -> fault::Result<bool> {
        if intent.effect != EffectClass::Acts {
            return Ok(false);
        }
        let known = match self.repeats.get() {
            Some(known) => known,
            None => {
                let read = repeats::of_run(&*self.environment.store, &intent.invocation.run())?;
                self.repeats.get_or_init(|| read)
            }
        };
        Ok(known.has(&intent.call))
    }

    /// True when a person was asked about this call before, so that its question stands at this place of the journal.
    fn is_asked(&self, intent: &Intent) -> bool {
        let run = intent.invocation.run();
        let is_it = |one: &Approval| {
            let ApprovalSubject { invocation, tool, function, arguments, .. } = &one.subject;
            let ToolCall { tool: called, function: of, arguments: with } = &intent.call;
            *invocation == intent.invocation
                && (tool, function, arguments) == (called, of, with)
                && matches!(one.standing, ApprovalStatus::Open | ApprovalStatus::Answered { .. })
        };
        // When the approvals cannot be read, the call is decided about, and fails there.
        approvals::list(&*self.environment.store, &run).map_or(true, |all| all.iter().any(is_it))
    }

    /// Stores the question before its run waits for the answer.
    async fn ask(
        &self,
        intent: &Intent,
        gate: &ToolGate,
        subject: ApprovalSubject,
        because: AskReasons,
    ) -> fault::Result<Approval> {
        let AskReasons { heard, repeats } = because;
        let approval = Approval {
            id: subject.id(),
            subject,
            asks: gate.asks,
            agent: self.agent.clone(),
            plugin: self.plugin.clone(),
            effect: intent.effect,
            runs_commands: gate.runs_commands(&intent.call),
            heard,
            repeats,
            at_ms: self.environment.clock.now_ms(),
            standing: ApprovalStatus::Open,
        };
        self.environment.store.commit(approvals::insert(Batch::new(), &approval)?).await?;
        self.environment.crash.reach("approval.asked");
        Ok(approval)
    }
}

/// The reasons why a person is asked about a call, beside the operator's policy.
struct AskReasons {
    /// The sources of untrusted text that no rule allows.
    heard: Vec<String>,
    /// True when the call repeats an effect.
    repeats: bool,
}

#[async_trait::async_trait]
impl Approvals for ApprovalGate {
    fn is_free(&self, intent: &Intent) -> bool {
        let is_free =
            |gate: &ToolGate| gate.is_free(&intent.call) && self.when_untrusted(gate, intent) == PolicyMode::Allow;
        // One of which nobody can tell is decided about, and fails there.
        self.gate(&intent.call).is_ok_and(is_free) && self.repeats(intent).is_ok_and(|repeats| !repeats)
    }

    fn asks(&self, intent: &Intent) -> bool {
        // The call of an unknown tool is decided about, and refused there.
        let Ok(gate) = self.gate(&intent.call) else { return true };
        match (gate.verdict(&intent.call), self.when_untrusted(gate, intent)) {
            (PolicyVerdict::Ask, _) | (PolicyVerdict::Allow, PolicyMode::Ask) => true,
            // Other work of the run may have asked about its destination meanwhile.
            (PolicyVerdict::Allow, PolicyMode::Allow) => {
                (!intent.heard.is_empty() && gate.reaches_out() && self.is_asked(intent))
                    || self.repeats(intent).unwrap_or(true)
            }
            (PolicyVerdict::Deny(_), _) | (PolicyVerdict::Allow, PolicyMode::Deny) => false,
        }
    }

    fn is_repeated(&self, intent: &Intent) -> bool {
        // One of which nobody can tell may be.
        self.repeats(intent).unwrap_or(true)
    }

    fn leaves(&self, call: &ToolCall) {
        if let Ok(gate) = self.gate(call) {
            // A later call without an address concerns what this one reached: a page that was opened is read.
            self.tools.reaches([gate.destinations(call), vec![itself(call)]].concat());
        }
    }

    async fn decide(&self, intent: &Intent) -> Result<(CallDecision, Batch), Undecided> {
        match self.decided(intent).await {
            Ok(Ok(decided)) => Ok(decided),
            Ok(Err(question)) => Err(Undecided::Asks(question)),
            Err(error) => Err(Undecided::Unavailable(Outage {
                reason: format!("nobody could be asked about a call: {error:#}"),
                retry_after_ms: None,
            })),
        }
    }

    fn withdraw(&self, intent: &Intent) -> Batch {
        let withdrawn = || -> fault::Result<Batch> {
            let subject = subject(intent, self.gate(&intent.call)?, &*self.environment.store)?;
            taken_back(approvals::get(&*self.environment.store, &subject.invocation.run(), &subject.id())?)
        };
        // A question that stays open asks about nothing that could still happen: its entry has its decision.
        withdrawn().unwrap_or_default()
    }
}

fn refused(error: ToolError) -> Denial {
    match error {
        ToolError::Denied(denial) => denial,
        error => Denial { reason: error.to_string(), fix: "send a call that the tool takes".to_owned() },
    }
}

/// The rows that withdraw a question which is open, or whose answer must not be used.
fn taken_back(known: Option<Approval>) -> fault::Result<Batch> {
    let is_unused = |one: &Approval| matches!(one.standing, ApprovalStatus::Open | ApprovalStatus::Answered { .. });
    match known.filter(is_unused) {
        Some(unused) => {
            let now = Approval { standing: ApprovalStatus::Withdrawn, ..unused.clone() };
            approvals::swap(Batch::new(), &unused, &now)
        }
        None => Ok(Batch::new()),
    }
}

fn subject(intent: &Intent, gate: &ToolGate, store: &dyn Store) -> fault::Result<ApprovalSubject> {
    let ToolCall { tool, function, arguments } = intent.call.clone();
    let (invocation, entry, component) = (intent.invocation.clone(), intent.entry, gate.component(store)?);
    Ok(ApprovalSubject { invocation, entry, tool, function, component, arguments })
}
