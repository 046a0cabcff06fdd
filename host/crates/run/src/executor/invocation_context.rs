//! The context that all invocations of a run share, and delegation from one to another. A delegation is an invocation
//! of its own; it begins here and ends in the transaction that answers its caller.

use super::ending::{finish, words};
use longhaul_capabilities::{InvocationSetup, Models as _, Services};
use longhaul_config::Config;
use longhaul_core::context::PinnedContext;
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::fault::{self, Fault};
use longhaul_core::graph::Graphs;
use longhaul_core::journal::{Began, JournalError};
use longhaul_core::memory::{MemoryBackend, Trust};
use longhaul_core::store::Batch;
use longhaul_core::text::truncate;
use longhaul_core::tool::{Checks, Delegate, DelegateError, Delegated, Interrupted};
use longhaul_core::work::{Outcome, RoleError, Task};
use longhaul_core::{Digest, InvocationId, Outage};
use longhaul_engine::{CallError, Cancel};
use longhaul_journal::{Opened, Recorder};
use longhaul_models::set::ModelSet;
use longhaul_plugins::ComponentCaller;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_plugins::plugin_set::{PluginSet, PreparedPlugin};
use longhaul_records::bus::{EventBus, PendingStep};
use longhaul_records::checkpointing_journal::CheckpointingJournal;
use longhaul_records::invocation::JournaledResult;
use longhaul_records::ledger::Ledger;
use longhaul_toolbox::Toolbox;
use longhaul_toolbox::approval_gate::ApprovalGate;
use serde::Serialize;
use std::sync::Arc;

/// The shared state of all invocations of a run.
pub(super) struct InvocationContext {
    pub(super) host: Arc<PluginHost>,
    pub(super) graphs: Arc<dyn Graphs>,
    pub(super) plugin_set: Arc<PluginSet>,
    pub(super) config: Arc<Config>,
    pub(super) models: Arc<ModelSet>,
    pub(super) memory: Arc<dyn MemoryBackend>,
    pub(super) bus: EventBus,
    pub(super) ledger: Arc<Ledger>,
}

impl InvocationContext {
    /// The part of a table that carries out an invocation; none: there is no such part.
    pub(super) async fn part_of(
        &self,
        table: &str,
        invocation: &InvocationId,
    ) -> fault::Result<Option<&PreparedPlugin>> {
        let began = longhaul_journal::began(&*self.host.store, invocation)?.map(|began| began.component);
        self.plugin_set.part_of(table, invocation, began).await
    }

    /// Begins the journal of an invocation, or finds it. `told` is the trust level of the least trusted text in its
    /// input.
    pub(super) async fn open(
        &self,
        invocation: &InvocationId,
        part: &PreparedPlugin,
        export: &str,
        input: &impl Serialize,
        told: Option<Trust>,
    ) -> Result<Opened, JournalError> {
        let input = serde_json::to_vec(input).unwrap_or_default();
        let context = Some(self.context(part));
        let began = began(&self.host, part.plugin.name(), &part.table, part.began_with(invocation), export, &input);
        let began = Began { context, told, ..began };
        let store = Arc::clone(&self.host.store);
        let opened = Recorder::open(store, Arc::clone(&self.host.clock), invocation.clone(), began, &part.limits)?;
        if let Opened::Running(recorder) = &opened
            && !recorder.resumed()
        {
            // Stores the input under the digest that the journal holds, for replays.
            let mut batch = Batch::new();
            batch.blob(input);
            self.host.store.commit(batch).await?;
        }
        Ok(opened)
    }

    /// The rules that trim the conversations of a part, as currently configured.
    fn context(&self, part: &PreparedPlugin) -> PinnedContext {
        let window = |name: &String| {
            let model = self.models.model(name);
            (name.clone(), model.map_or(0, |model| model.info().context_tokens_max))
        };
        PinnedContext::new(part.context.clone(), part.grants.models.iter().map(window))
    }

    /// The journal, which also reports its checkpoints.
    fn marked(&self, part: &PreparedPlugin, recorder: &Recorder) -> CheckpointingJournal {
        let every = self.config.checkpoint_every(&part.table);
        CheckpointingJournal::new(recorder.clone(), self.bus.clone(), &part.table, every)
    }

    /// The setup of a call of a pure plugin.
    pub(super) fn setup(
        &self,
        part: &PreparedPlugin,
        recorder: &Recorder,
        checks: Arc<dyn Checks>,
        delegate: Arc<dyn Delegate>,
        cancel: &Cancel,
    ) -> InvocationSetup {
        let invocation = recorder.invocation().clone();
        InvocationSetup {
            scope: self.plugin_set.scope(part),
            grants: part.grants.clone(),
            limits: part.limits.clone(),
            services: Services {
                models: self.models.clone(),
                tools: Arc::new(Toolbox::new(
                    Arc::clone(self.plugin_set.tools()),
                    Arc::new(ComponentCaller::new(Arc::clone(&self.plugin_set), cancel.clone())),
                    Arc::clone(&self.ledger),
                    invocation.clone(),
                )),
                checks,
                delegate,
                graphs: Arc::clone(&self.graphs),
                approvals: Arc::new(ApprovalGate::new(self.plugin_set.tools(), &part.table, part.plugin.name())),
                supervisor: self.ledger.clone(),
                store: Arc::clone(&self.host.store),
                memory: Arc::clone(&self.memory),
                clock: Arc::clone(&self.host.clock),
                watch: Arc::new(self.bus.clone()),
                exchange: None,
            },
            journal: Some(Arc::new(self.marked(part, recorder))),
            seed: recorder.began().seed,
            context: recorder.began().context.clone(),
            console: None,
            placeholders: Arc::default(),
            told: recorder.began().told,
            invocation,
        }
    }
}

/// The first entry of a journal.
pub(super) fn began(
    host: &PluginHost,
    plugin: &str,
    table: &str,
    component: Digest,
    export: &str,
    input: &[u8],
) -> Began {
    Began {
        plugin: plugin.to_owned(),
        table: table.to_owned(),
        component,
        export: export.to_owned(),
        input: Digest::of(input),
        seed: host.fresh_seed(),
        fingerprint: host.engine.fingerprint().to_owned(),
        context: None,
        told: None,
        at_ms: host.clock.now_ms(),
    }
}

/// The agents that an invocation may delegate to, down to the sub-agents of those.
#[derive(Clone)]
pub(super) struct SubAgents {
    context: Arc<InvocationContext>,
    /// A sub-agent works on the tree of its caller, so it has the same pinned checks.
    checks: Arc<dyn Checks>,
    cancel: Cancel,
}

impl SubAgents {
    pub(super) fn new(context: &Arc<InvocationContext>, checks: Arc<dyn Checks>, cancel: &Cancel) -> Self {
        Self { context: Arc::clone(context), checks, cancel: cancel.clone() }
    }

    async fn work(
        &self,
        child: InvocationId,
        agent: &str,
        mut task: Task,
        told: Trust,
    ) -> Result<Delegated, Interrupted> {
        let found = self.context.part_of(&format!("agents.{agent}"), &child).await;
        let unloaded =
            |error: Fault| Interrupted::Unavailable(Outage { reason: format!("{error:#}"), retry_after_ms: None });
        let Some(part) = found.map_err(unloaded)? else {
            return Ok(Delegated::refused(DelegateError::UnknownAgent(truncate(agent, 120))));
        };
        task.settings = part.settings.clone();
        let recorder = match self.context.open(&child, part, "agent.run", &task, Some(told)).await {
            Ok(Opened::Running(recorder)) => recorder,
            Ok(Opened::Finished { finished, .. }) => {
                let kept: JournaledResult<Outcome> = serde_json::from_str(&finished.result).unwrap_or_else(|error| {
                    JournaledResult::Trapped(format!("the journal of `{child}` holds no outcome: {error}"))
                });
                let (answer, used) = (answer(kept), WorkUsage::default());
                let (answer, heard) = let_out(part, answer, Trust::Unknown);
                return Ok(Delegated { answer, used, heard, closing: Batch::new() });
            }
            Err(error) => return Err(of_journal(error)),
        };
        self.context.host.crash.reach("delegate.start");
        self.tell_begin(&child, part, &task);
        let setup = self.context.setup(part, &recorder, Arc::clone(&self.checks), Arc::new(self.clone()), &self.cancel);
        let called = part.plugin.run(setup, &self.cancel, task).await;
        self.context.host.crash.reach("delegate.end");
        let row = self.context.ledger.close(&child, called.done, called.more);
        let (used, heard) = (called.used.plus(called.delegated), called.heard);
        let events = called.events.clone();
        let at_ms = self.context.host.clock.now_ms();
        let (finished, concluded) = finish(&recorder, called, at_ms).map_err(broken_off)?;
        self.tell_end(&child, part, events, &concluded.kept, used);
        let mut closing = recorder.finish_batch(finished).await.map_err(of_journal)?;
        closing.ops.extend(row.ops);
        let (answer, heard) = let_out(part, answer(concluded.kept), heard);
        Ok(Delegated { answer, used, heard, closing })
    }

    /// Reports the beginning of a delegation, before its first step.
    fn tell_begin(&self, child: &InvocationId, part: &PreparedPlugin, task: &Task) {
        let event = Event::Delegated {
            invocation: child.clone(),
            agent: part.table.clone(),
            plugin: part.plugin.name().to_owned(),
            instruction: truncate(&task.instruction, 500),
        };
        self.context.bus.note(PendingStep { invocation: child.clone(), number: 0, event });
    }

    /// Reports the end of a delegation, after its last step. It uses the highest numbers, so that no step of the
    /// sub-agent has the same one.
    fn tell_end(
        &self,
        child: &InvocationId,
        part: &PreparedPlugin,
        events: Vec<Event>,
        kept: &JournaledResult<Outcome>,
        used: WorkUsage,
    ) {
        let ok = matches!(kept, JournaledResult::Returned(_));
        let outcome = truncate(&words(kept), 300);
        let ended = Event::InvocationEnded { invocation: child.clone(), outcome, ok, used, agent: part.table.clone() };
        let events: Vec<Event> = events.into_iter().chain([ended]).collect();
        let first = u32::MAX - u32::try_from(events.len()).unwrap_or(u32::MAX - 1);
        for (event, number) in events.into_iter().zip(first..) {
            self.context.bus.note(PendingStep { invocation: child.clone(), number, event });
        }
    }
}

#[async_trait::async_trait]
impl Delegate for SubAgents {
    async fn run(&self, child: InvocationId, agent: &str, task: Task, told: Trust) -> Result<Delegated, Interrupted> {
        let (sub_agents, agent) = (self.clone(), agent.to_owned());
        // A task of its own, so that its processor time is not its caller's. It ends with its caller.
        let task = tokio::spawn(async move { sub_agents.work(child, &agent, task, told).await });
        let _ends = AbortOnDrop(task.abort_handle());
        task.await.unwrap_or_else(|stopped| {
            Ok(Delegated::refused(DelegateError::Failed(format!("a defect of longhaul: {stopped}"))))
        })
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The answer as it leaves a quarantine, and its trust level. From a quarantined agent only data of the declared schema
/// leaves, which carries no text of a page where the schema has no free text, or a refusal without the agent's words.
/// From any other agent everything leaves.
fn let_out(
    part: &PreparedPlugin,
    answer: Result<Outcome, DelegateError>,
    heard: Trust,
) -> (Result<Outcome, DelegateError>, Trust) {
    match &part.quarantine {
        None => (answer, heard),
        Some(shape) => {
            let answer = shape.let_out(&part.table, answer);
            let is_cleared = answer.is_err() || shape.is_wordless();
            (answer, if is_cleared { heard.min(Trust::ToolOutput) } else { heard })
        }
    }
}

fn answer(kept: JournaledResult<Outcome>) -> Result<Outcome, DelegateError> {
    Err(match kept {
        JournaledResult::Returned(outcome) => return Ok(outcome),
        JournaledResult::Refused(RoleError::Blocked(question)) => DelegateError::Blocked(question),
        JournaledResult::Refused(RoleError::Denied(denial)) => DelegateError::Denied(denial),
        JournaledResult::Refused(RoleError::Limit(hit)) | JournaledResult::Limited(hit) => DelegateError::Limit(hit),
        JournaledResult::Refused(RoleError::Unavailable(outage)) => DelegateError::Unavailable(outage),
        JournaledResult::Refused(RoleError::Impossible(text) | RoleError::Failed(text))
        | JournaledResult::Trapped(text) => DelegateError::Failed(text),
    })
}

fn broken_off(error: CallError) -> Interrupted {
    match error {
        CallError::Parked(question) => Interrupted::Parked(question),
        CallError::Unavailable(outage) => Interrupted::Unavailable(outage),
        CallError::Budget(hit) => Interrupted::Budget(hit),
        CallError::Rejected(denial) => Interrupted::Rejected(denial),
        CallError::Cancelled => Interrupted::Cancelled,
        CallError::Journal(error) => of_journal(error),
        other => Interrupted::Unavailable(Outage { reason: other.to_string(), retry_after_ms: None }),
    }
}

fn of_journal(error: JournalError) -> Interrupted {
    match error {
        JournalError::Parked(question) => Interrupted::Parked(question),
        other => Interrupted::Journal(other),
    }
}
