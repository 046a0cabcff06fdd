//! Who decides about calls of tools: the operator's policy first, then the rules of the run, then a person.
//!
//! What cannot be read or stored lets nothing pass: the run waits and the same call is decided about again. It is
//! never told to the agent as a refusal.

use super::approvals;
use crate::cast::{Cast, Part};
use crate::toolbox::gate::ToolGate;
use crate::wiring::World;
use longhaul_approval::{Approval, Asks, Standing, Subject, Verdict, question};
use longhaul_core::Outage;
use longhaul_core::approval::{Approvals, Decision, Intent, Undecided};
use longhaul_core::journal::Question;
use longhaul_core::store::Batch;
use longhaul_core::tool::ToolCall;
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

    async fn decided(&self, intent: &Intent) -> anyhow::Result<Result<(Decision, Batch), Question>> {
        let (gate, call) = (self.gate(&intent.call)?, &intent.call);
        let subject = subject(intent, gate);
        if let Some(decision) = self.without_a_person(gate, call, &subject)? {
            return Ok(Ok((decision, self.taken_back(&subject)?)));
        }
        let approval = match approvals::get(&*self.world.store, &subject.invocation.run(), &subject.id())? {
            Some(approval) => approval,
            None => self.ask(intent, gate, subject.clone()).await?,
        };
        match approval.used(&subject, self.world.clock.now_ms())? {
            Some((decision, used)) => Ok(Ok((decision, approvals::swap(Batch::new(), &approval, &used)?))),
            None => Ok(Err(Question {
                invocation: subject.invocation,
                entry: subject.entry,
                text: question(&approval),
                approval: Some(approval.id),
            })),
        }
    }

    fn without_a_person(
        &self,
        gate: &ToolGate,
        call: &ToolCall,
        subject: &Subject,
    ) -> anyhow::Result<Option<Decision>> {
        match gate.verdict(call) {
            Verdict::Allow => return Ok(Some(Decision::Allowed("the operator's policy".to_owned()))),
            Verdict::Deny(denial) => return Ok(Some(Decision::Denied(denial))),
            Verdict::Ask => {}
        }
        if gate.asks == Asks::Question {
            return Ok(None);
        }
        let rules = approvals::rules(&*self.world.store, &subject.invocation.run())?;
        let rule = rules.into_iter().find(|rule| rule.covers(subject, gate.runs_commands(call)));
        Ok(rule.map(|rule| Decision::Allowed(format!("rule {} of this run", rule.id))))
    }

    /// What takes the question about this call back, where one is open.
    fn taken_back(&self, subject: &Subject) -> anyhow::Result<Batch> {
        let found = approvals::get(&*self.world.store, &subject.invocation.run(), &subject.id())?;
        match found.filter(|approval| approval.standing == Standing::Open) {
            Some(open) => {
                let now = Approval { standing: Standing::Withdrawn, ..open.clone() };
                approvals::swap(Batch::new(), &open, &now)
            }
            None => Ok(Batch::new()),
        }
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
        let gate = self.gate(&intent.call);
        // A question that stays open asks for nothing that could happen: its entry has its decision.
        gate.and_then(|gate| self.taken_back(&subject(intent, gate))).unwrap_or_default()
    }
}

fn subject(intent: &Intent, gate: &ToolGate) -> Subject {
    let ToolCall { tool, function, arguments } = intent.call.clone();
    let (invocation, entry, component) = (intent.invocation.clone(), intent.entry, gate.component.clone());
    Subject { invocation, entry, tool, function, component, arguments }
}
