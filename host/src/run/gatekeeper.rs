//! Who decides about calls of tools: the operator's policy first, then the rules of the run, then a person.
//!
//! What cannot be read or stored lets nothing pass: the run waits and the same call is decided about again. It is
//! never told to the agent as a refusal.

use super::approvals;
use crate::cast::{Cast, Part};
use crate::toolbox::gate::ToolGate;
use crate::wiring::World;
use longhaul_approval::{Approval, Asks, Standing, Subject, Verdict, question};
use longhaul_core::approval::{Approvals, Decision, Intent, Undecided};
use longhaul_core::journal::Question;
use longhaul_core::store::{Batch, Store};
use longhaul_core::tool::{ToolCall, ToolError};
use longhaul_core::{Denial, Outage};
use std::sync::Arc;

/// Decides for one agent.
pub struct Gatekeeper {
    world: Arc<World>,
    cast: Arc<Cast>,
    agent: String,
    plugin: String,
}

impl Gatekeeper {
    /// The gatekeeper of the agent of that part.
    pub fn new(world: &Arc<World>, cast: &Arc<Cast>, part: &Part) -> Self {
        let (agent, plugin) = (part.table.clone(), part.plugin.name().to_owned());
        Self { world: Arc::clone(world), cast: Arc::clone(cast), agent, plugin }
    }

    fn gate(&self, call: &ToolCall) -> anyhow::Result<&ToolGate> {
        self.cast.gate(&call.tool).ok_or_else(|| anyhow::anyhow!("the gate does not know the tool `{}`", call.tool))
    }

    /// The operator's no comes first, then what a person said of this very call, then what lets calls like it pass.
    async fn decided(&self, intent: &Intent) -> anyhow::Result<Result<(Decision, Batch), Question>> {
        let gate = self.gate(&intent.call)?;
        let subject = subject(intent, gate, &*self.world.store)?;
        let known = approvals::get(&*self.world.store, &subject.invocation.run(), &subject.id())?;
        let verdict = gate.verdict(&intent.call);
        if let Verdict::Deny(denial) = verdict {
            return Ok(Ok((Decision::Denied(denial), taken_back(known)?)));
        }
        if let Some(approval) = &known
            && let Some((decision, used)) = approval.used(&subject, self.world.clock.now_ms())?
        {
            return Ok(Ok((decision, approvals::swap(Batch::new(), approval, &used)?)));
        }
        let passes = match verdict {
            Verdict::Allow => Some("the operator's policy".to_owned()),
            _ => self.rule_for(gate, &intent.call, &subject)?,
        };
        if let Some(by) = passes {
            return Ok(Ok((Decision::Allowed(by), taken_back(known)?)));
        }
        let approval = match known {
            Some(open) => open,
            None => {
                // A person's yes would come to nothing.
                if let Some(error) = self.cast.own_tool(&intent.call.tool).and_then(|own| own.refusal(&intent.call)) {
                    return Ok(Ok((Decision::Denied(refused(error)), Batch::new())));
                }
                self.ask(intent, gate, subject).await?
            }
        };
        let (text, Subject { invocation, entry, .. }) = (question(&approval), approval.subject);
        Ok(Err(Question { invocation, entry, text, approval: Some(approval.id), attempt: 0 }))
    }

    /// The rule of the run that lets a call pass, in words.
    fn rule_for(&self, gate: &ToolGate, call: &ToolCall, subject: &Subject) -> anyhow::Result<Option<String>> {
        if gate.asks == Asks::Question {
            return Ok(None);
        }
        let rules = approvals::rules(&*self.world.store, &subject.invocation.run())?;
        let rule = rules.into_iter().find(|rule| rule.covers(subject, gate.runs_commands(call)));
        Ok(rule.map(|rule| format!("rule {} of this run", rule.id)))
    }

    /// The question is durable before its run waits with it.
    async fn ask(&self, intent: &Intent, gate: &ToolGate, subject: Subject) -> anyhow::Result<Approval> {
        let approval = Approval {
            id: subject.id(),
            subject,
            asks: gate.asks,
            agent: self.agent.clone(),
            plugin: self.plugin.clone(),
            effect: intent.effect,
            runs_commands: gate.runs_commands(&intent.call),
            at_ms: self.world.clock.now_ms(),
            standing: Standing::Open,
        };
        self.world.store.commit(approvals::insert(Batch::new(), &approval)?).await?;
        self.world.crash.reach("approval.asked");
        Ok(approval)
    }
}

#[async_trait::async_trait]
impl Approvals for Gatekeeper {
    fn is_free(&self, call: &ToolCall) -> bool {
        self.gate(call).is_ok_and(|gate| gate.is_free(call))
    }

    fn asks(&self, call: &ToolCall) -> bool {
        // What the gate does not know is decided about, and refused there.
        self.gate(call).map_or(true, |gate| gate.verdict(call) == Verdict::Ask)
    }

    async fn decide(&self, intent: &Intent) -> Result<(Decision, Batch), Undecided> {
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
        let withdrawn = || -> anyhow::Result<Batch> {
            let subject = subject(intent, self.gate(&intent.call)?, &*self.world.store)?;
            taken_back(approvals::get(&*self.world.store, &subject.invocation.run(), &subject.id())?)
        };
        // A question that stays open asks for nothing that could happen: its entry has its decision.
        withdrawn().unwrap_or_default()
    }
}

fn refused(error: ToolError) -> Denial {
    match error {
        ToolError::Denied(denial) => denial,
        error => Denial { reason: error.to_string(), fix: "send a call that the tool takes".to_owned() },
    }
}

/// What takes a question back that is open, or was answered and is not to be used.
fn taken_back(known: Option<Approval>) -> anyhow::Result<Batch> {
    let is_unused = |one: &Approval| matches!(one.standing, Standing::Open | Standing::Answered { .. });
    match known.filter(is_unused) {
        Some(unused) => {
            let now = Approval { standing: Standing::Withdrawn, ..unused.clone() };
            approvals::swap(Batch::new(), &unused, &now)
        }
        None => Ok(Batch::new()),
    }
}

fn subject(intent: &Intent, gate: &ToolGate, store: &dyn Store) -> anyhow::Result<Subject> {
    let ToolCall { tool, function, arguments } = intent.call.clone();
    let (invocation, entry, component) = (intent.invocation.clone(), intent.entry, gate.component(store)?);
    Ok(Subject { invocation, entry, tool, function, component, arguments })
}
