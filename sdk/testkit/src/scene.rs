//! A plugin with its surroundings, and the one way to call it.
//!
//! Every call gets a fresh instance, as in a run. The store, the clock, and the used-up answers of the script last from
//! one call to the next: so a second call of a memory backend is as it would be after a restart.

use crate::call::{Call, exports_of};
use crate::clock::HandClock;
use crate::cut::{Cutting, JournalCut};
use crate::done::{Done, Ending};
use crate::error::KitError;
use crate::journal::{JournalStores, Listening, ListeningSetup};
use crate::recorded::RecordedPart;
use crate::script::Script;
use crate::scripted::Scripted;
use crate::shown;
use crate::store::MemoryStore;
use longhaul_capabilities::{Exchange, InvocationScope, InvocationSetup, Services};
use longhaul_core::approval::AllFree;
use longhaul_core::context::{ContextRules, PinnedContext};
use longhaul_core::grant::{DirectoryGrant, Grants, HostPattern};
use longhaul_core::journal::{Began, Journal, JournalError};
use longhaul_core::memory::Embedded;
use longhaul_core::model::ModelRequest;
use longhaul_core::store::{Batch, Store};
use longhaul_core::tool::ToolError;
use longhaul_core::{Clock as _, Digest, InvocationId, Limits};
use longhaul_engine::{CallError, Called, Cancel, Inspection, MemorySpace, Plugin, Role, ToolAttempt};
use longhaul_journal::AskedCalls;
use longhaul_store::{RedbStore, StoreOptions};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The project that a scene plays in.
const PROJECT: &str = "testkit";

/// A plugin with its surroundings.
#[derive(Clone)]
pub struct Scene {
    plugin: Arc<Plugin>,
    fingerprint: String,
    scripted: Scripted,
    clock: Arc<HandClock>,
    store: Arc<dyn Store>,
    limits: Limits,
    context: ContextRules,
    settings: Value,
    directories: Vec<DirectoryGrant>,
    hosts: Vec<HostPattern>,
    seed: [u8; 32],
    recorded: Option<RecordedPart>,
}

/// A call that was cut and resumed to its end.
#[derive(Debug)]
pub struct ResumedCall {
    /// The end of the resumed call, with all its calls of imports, those from the journal included.
    pub done: Done,
    /// Entries whose answers were kept at the cut and whose effects were executed again. There should be none.
    pub repeated: Vec<u32>,
}

impl Scene {
    pub(crate) fn new(plugin: Arc<Plugin>, fingerprint: String) -> Self {
        let script = Script::default();
        Self {
            plugin,
            fingerprint,
            clock: Arc::new(HandClock::at(script.clock_ms)),
            seed: seed(script.seed),
            scripted: Scripted::new(script),
            store: Arc::new(MemoryStore::new()),
            limits: Limits::default(),
            context: ContextRules::default(),
            settings: json!({}),
            directories: Vec::new(),
            hosts: Vec::new(),
            recorded: None,
        }
    }

    /// Takes a script, from its first answer on, with its clock and seed.
    #[must_use]
    pub fn script(self, script: Script) -> Self {
        Self {
            clock: Arc::new(HandClock::at(script.clock_ms)),
            seed: seed(script.seed),
            scripted: Scripted::new(script),
            ..self
        }
    }

    /// Takes another clock, for example one that goes by itself.
    #[must_use]
    pub fn with_clock(self, clock: HandClock) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Takes limits for every call. Default: those of a run.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Takes rules for cutting conversations back. Default: those of a run.
    #[must_use]
    pub fn context(self, context: ContextRules) -> Self {
        Self { context, ..self }
    }

    /// Takes settings, an object, for every call that has none of its own.
    #[must_use]
    pub fn settings(self, settings: Value) -> Self {
        Self { settings, ..self }
    }

    /// Adds a directory, for tools and memory backends.
    #[must_use]
    pub fn directory(mut self, directory: DirectoryGrant) -> Self {
        self.directories.push(directory);
        self
    }

    /// Adds a host that may be reached, over the real network, for tools and memory backends.
    #[must_use]
    pub fn host(mut self, host: HostPattern) -> Self {
        self.hosts.push(host);
        self
    }

    /// Takes another seed for pure plugins.
    #[must_use]
    pub fn with_seed(self, seed: [u8; 32]) -> Self {
        Self { seed, ..self }
    }

    /// Takes recorded answers, with the seed, the grants and the rules of contexts that they were given by.
    #[must_use]
    pub(crate) fn recorded(self, recorded: RecordedPart) -> Self {
        let seed = recorded.table.seed.map_or(self.seed, |seed| *seed.as_bytes());
        Self { seed, recorded: Some(recorded), ..self }
    }

    /// The digest of the plugin's component.
    pub(crate) fn component(&self) -> Digest {
        self.plugin.digest()
    }

    /// Makes the store empty and the script's answers unused.
    #[must_use]
    pub fn fresh(self) -> Self {
        let script = self.scripted.script().clone();
        Self { store: Arc::new(MemoryStore::new()), ..self }.script(script)
    }

    /// Takes another store, for example one that two scenes share.
    #[must_use]
    pub fn with_store(self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self }
    }

    /// Takes a store in a directory, which keeps the plugin's entries after this process.
    ///
    /// # Errors
    /// [`KitError::Store`], for example when another process has it open.
    pub fn state_in(self, directory: &Path) -> Result<Self, KitError> {
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(directory, StoreOptions::default())?);
        Ok(self.with_store(store))
    }

    /// The clock, to be moved.
    #[must_use]
    pub fn clock(&self) -> &HandClock {
        &self.clock
    }

    /// The plugin as it was inspected.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        self.plugin.inspection()
    }

    /// Role of the plugin.
    #[must_use]
    pub fn role(&self) -> Role {
        self.plugin.role()
    }

    /// Everything that models were asked so far.
    #[must_use]
    pub fn model_requests(&self) -> Vec<ModelRequest> {
        self.scripted.requests()
    }

    /// Every HTTP request that was answered from the script, as `METHOD URL`.
    #[must_use]
    pub fn http_requests(&self) -> Vec<String> {
        self.scripted.http_requests()
    }

    /// Calls an export with an input written as JSON; see [`Call::from_json`].
    ///
    /// # Errors
    /// [`KitError::Input`], and as [`Scene::call`].
    pub async fn call_json(&self, export: &str, input: Value) -> Result<Done, KitError> {
        self.call(Call::from_json(export, input)?).await
    }

    /// Calls an export in a fresh instance.
    ///
    /// # Errors
    /// [`KitError::WrongExport`]. What the plugin does wrong is in [`Done`].
    pub async fn call(&self, call: Call) -> Result<Done, KitError> {
        self.call_until(call, &Cancel::default()).await
    }

    /// The same, until `cancel` says so.
    ///
    /// # Errors
    /// As [`Scene::call`].
    pub async fn call_until(&self, call: Call, cancel: &Cancel) -> Result<Done, KitError> {
        let export = call.export();
        let exports = exports_of(self.role());
        if !exports.contains(&export) {
            let plugin = self.plugin.name().to_owned();
            return Err(KitError::WrongExport { plugin, role: self.role().name(), export: export.to_owned(), exports });
        }
        Ok(self.call_over(call, cancel, &Arc::new(MemoryStore::new()), None).await.0)
    }

    /// Calls an export, cuts its journal as a kill would, and resumes the call from what is left; see [`JournalCut`].
    /// None when there is no such cut: the plugin has no journal, the call ended before it, or other calls of one list
    /// were under way.
    ///
    /// # Errors
    /// As [`Scene::call`], and [`KitError::Store`].
    pub async fn call_cut(&self, call: Call, cut: JournalCut) -> Result<Option<ResumedCall>, KitError> {
        let (journal, cancel) = (Arc::new(MemoryStore::new()), Cancel::default());
        let (_, first) = self.call_over(call.clone(), &cancel, &journal, Some(cut)).await;
        let Some(made) = first.and_then(|first| first.take_cut()) else { return Ok(None) };
        let kept: BTreeSet<u32> = self.answered(&journal);
        let resume = Self { scripted: made.world(), ..self.clone() };
        let (done, resumed) = resume.call_over(call.clone(), &cancel, &journal, None).await;
        let mut executed = resumed.map(|resumed| resumed.executed()).unwrap_or_default();
        let Ending::Stopped(CallError::Parked(question)) = &done.ending else {
            return Ok(Some(ResumedCall { done, repeated: kept.intersection(&executed).copied().collect() }));
        };
        let (truth, world) = made.truth();
        let told = longhaul_journal::resolution(&*journal, &self.invocation(), question.entry, &truth);
        if let Ok(told) = told {
            journal.commit(Batch { ops: vec![told] }).await?;
        }
        let resume = Self { scripted: world, ..self.clone() };
        let (done, resumed) = resume.call_over(call, &cancel, &journal, None).await;
        executed.extend(resumed.map(|resumed| resumed.executed()).unwrap_or_default());
        Ok(Some(ResumedCall { done, repeated: kept.intersection(&executed).copied().collect() }))
    }

    /// The entries whose answers a journal holds.
    fn answered(&self, journal: &MemoryStore) -> BTreeSet<u32> {
        let entries = longhaul_journal::entries(journal, &self.invocation(), 0, usize::MAX).unwrap_or_default();
        entries.into_iter().filter(|(_, entry)| entry.answered.is_some()).map(|(number, _)| number).collect()
    }

    /// Calls an export over a journal; none is returned for a plugin without one.
    async fn call_over(
        &self,
        call: Call,
        cancel: &Cancel,
        store: &Arc<MemoryStore>,
        cut: Option<JournalCut>,
    ) -> (Done, Option<Arc<Listening>>) {
        let (start, export) = (Instant::now(), call.export());
        let asked = Arc::new(AskedCalls::default());
        let journal = match self.role().is_pure().then(|| self.journal(export, store, cut, &asked)).transpose() {
            Ok(journal) => journal.map(Arc::new),
            Err(error) => return (not_started(export, CallError::Journal(error)), None),
        };
        let setup = self.setup(journal.clone().map(|journal| journal as Arc<dyn Journal>), asked);
        let mut done = self.perform(call.with_settings(&self.settings), setup, cancel).await;
        done.wall = start.elapsed();
        done.calls = journal.as_ref().map(|journal| journal.made()).unwrap_or_default();
        (done, journal)
    }

    async fn perform(&self, call: Call, setup: InvocationSetup, cancel: &Cancel) -> Done {
        let plugin = &self.plugin;
        let export = call.export();
        match call {
            Call::Describe => {
                let told = plugin.describe(setup, cancel, &self.settings).await;
                shown::done(export, told, shown::tool_info)
            }
            Call::Prepare { call, idempotency_key, attempt } => {
                let attempt = self.attempt(&idempotency_key, attempt);
                shown::done(export, plugin.prepare(setup, cancel, &call, attempt).await, shown::prepared)
            }
            Call::Verify { call, prepared, idempotency_key, attempt } => {
                let attempt = self.attempt(&idempotency_key, attempt);
                let told = plugin.verify(setup, cancel, &call, &prepared, attempt).await;
                shown::done(export, told, shown::verification)
            }
            Call::Tool { call, idempotency_key, attempt } => {
                let attempt = self.attempt(&idempotency_key, attempt);
                shown::done(export, plugin.call_tool(setup, cancel, &call, attempt).await, shown::tool_output)
            }
            Call::Plan(goal) => shown::planned(export, plugin.plan(setup, cancel, goal).await, shown::plan),
            Call::Replan(goal, plan, results) => {
                let told = plugin.replan(setup, cancel, goal, plan, results).await;
                shown::planned(export, told, shown::plan)
            }
            Call::Synthesize(goal, results) => {
                shown::planned(export, plugin.synthesize(setup, cancel, goal, results).await, shown::synthesis)
            }
            Call::Run(task) => shown::done(export, plugin.run(setup, cancel, task).await, shown::outcome),
            Call::Judge(subject, rubric) => {
                shown::done(export, plugin.judge(setup, cancel, subject, rubric).await, shown::verdict)
            }
            Call::Put(namespace, entry) => {
                shown::done(export, plugin.put(setup, cancel, self.space(&namespace), entry).await, shown::plain)
            }
            Call::Get(namespace, key) => {
                shown::done(export, plugin.get(setup, cancel, self.space(&namespace), &key).await, shown::found)
            }
            Call::Search(namespace, query, limit) => shown::done(
                export,
                plugin.search(setup, cancel, self.space(&namespace), &query, limit).await,
                shown::hits,
            ),
            Call::Delete(namespace, key) => {
                shown::done(export, plugin.delete(setup, cancel, self.space(&namespace), &key).await, shown::plain)
            }
            Call::List { namespace, prefix, cursor, limit } => {
                let told = plugin.list(setup, cancel, self.space(&namespace), &prefix, cursor.as_deref(), limit).await;
                shown::done(export, told, shown::page)
            }
        }
    }

    fn attempt<'a>(&'a self, key: &'a str, number: u32) -> ToolAttempt<'a> {
        ToolAttempt { key, number, settings: &self.settings }
    }

    fn space<'a>(&'a self, namespace: &'a str) -> MemorySpace<'a> {
        MemorySpace { namespace, settings: &self.settings }
    }

    fn journal(
        &self,
        export: &str,
        store: &Arc<MemoryStore>,
        cut: Option<JournalCut>,
        asked: &Arc<AskedCalls>,
    ) -> Result<Listening, JournalError> {
        let began = Began {
            plugin: self.plugin.name().to_owned(),
            table: self.table(),
            component: self.plugin.digest(),
            export: format!("{}.{export}", self.role().name()),
            input: Digest::of(b""),
            seed: self.seed,
            fingerprint: self.fingerprint.clone(),
            context: self.pinned_context(),
            told: None,
            at_ms: self.clock.now_ms(),
        };
        let setup = ListeningSetup {
            clock: Arc::clone(&self.clock),
            stores: JournalStores { journal: Arc::clone(store), kept: Arc::clone(&self.store) },
            asked: Arc::clone(asked),
            recorded: self.recorded.as_ref(),
            cutting: Cutting::new(cut, self.scripted.clone()),
        };
        Listening::begin(self.invocation(), began, &self.limits, setup)
    }

    /// The same for every call: what belongs to one run is there in its next invocation.
    fn invocation(&self) -> InvocationId {
        InvocationId::from_text(format!("r-{PROJECT}/{}", self.plugin.name()))
    }

    fn setup(&self, journal: Option<Arc<dyn Journal>>, asked: Arc<AskedCalls>) -> InvocationSetup {
        let plugin = self.table();
        let scripted = Arc::new(self.scripted.clone());
        let script = self.scripted.script();
        InvocationSetup {
            invocation: self.invocation(),
            scope: InvocationScope { project: PROJECT.to_owned(), plugin: plugin.clone() },
            grants: self.grants(plugin),
            limits: self.limits.clone(),
            services: Services {
                models: scripted.clone(),
                tools: scripted.clone(),
                checks: scripted.clone(),
                delegate: scripted.clone(),
                graphs: scripted.clone(),
                approvals: Arc::new(AllFree),
                supervisor: Arc::new(longhaul_core::supervisor::Unsupervised),
                store: Arc::clone(&self.store),
                memory: Arc::new(Embedded::new(Arc::clone(&self.store), self.clock.clone())),
                clock: self.clock.clone(),
                watch: asked,
                exchange: (!script.http.is_empty()).then_some(scripted as Arc<dyn Exchange>),
            },
            journal,
            seed: self.seed,
            context: self.pinned_context().filter(|_| self.role().is_pure()),
            console: None,
            placeholders: Arc::default(),
            told: None,
        }
    }

    /// The rules that trim conversations; none: never.
    fn pinned_context(&self) -> Option<PinnedContext> {
        if let Some(recorded) = &self.recorded {
            return recorded.table.context.clone();
        }
        let script = self.scripted.script();
        let windows = script.model_names.iter().map(|name| (name.clone(), script.context_tokens_max));
        Some(PinnedContext::new(self.context.clone(), windows))
    }

    fn table(&self) -> String {
        format!("{}s.{}", self.role().name(), self.plugin.name())
    }

    /// Grants everything that is scripted, and what was granted when it was recorded.
    fn grants(&self, table: String) -> Grants {
        let script = self.scripted.script();
        let recorded = self.recorded.as_ref().map(|part| &part.table);
        let agents = script.agents.iter().map(|answer| &answer.agent);
        let mut agents = granted(agents.chain(recorded.into_iter().flat_map(|table| &table.agents)));
        agents.sort_unstable();
        let tools = script.tools.iter().map(|tool| &tool.id);
        let tools = granted(recorded.into_iter().flat_map(|table| &table.tools).chain(tools));
        let acts = !self.role().is_pure();
        Grants {
            table,
            directories: if acts { self.directories.clone() } else { Vec::new() },
            hosts: if acts { self.hosts.iter().cloned().chain(script.http_hosts()).collect() } else { Vec::new() },
            tools,
            agents,
            models: script.model_names.clone(),
        }
    }
}

/// Each name once, at its first place.
fn granted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut granted: Vec<String> = Vec::new();
    for name in names {
        if !granted.contains(name) {
            granted.push(name.clone());
        }
    }
    granted
}

/// 32 bytes of a number.
fn seed(number: u32) -> [u8; 32] {
    *Digest::of(&number.to_le_bytes()).as_bytes()
}

fn not_started(export: &'static str, error: CallError) -> Done {
    shown::done(export, Called::<Result<(), ToolError>>::not_started(error), shown::plain)
}
