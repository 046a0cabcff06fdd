//! The execution of work: it calls a planner, an agent or an evaluator, pins checks, commits or restores the tree. It
//! returns the result, and stores nothing but journals.

mod choose;
mod ending;
mod invocation_context;
mod levels;
mod orientation;
mod perform;
mod premature_completion;
mod protected;
mod repository;
mod survey;
mod work_place;

pub use ending::{Closing, EndedWork, WorkEnd};
pub use repository::NativeChecks;

use crate::carried;
use invocation_context::InvocationContext;
use levels::ReportedLevels;
use longhaul_config::Config;
use longhaul_core::InvocationId;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::graph::Graphs;
use longhaul_core::memory::MemoryBackend;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::work::Outcome;
use longhaul_harness::{RunState, Work};
use longhaul_memory::factory::MemoryFactory;
use longhaul_models::set::{ModelSet, ProgramEnvironment};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_plugins::plugin_set::PluginSet;
use longhaul_records::bus::EventBus;
use longhaul_records::invocation::JournaledResult;
use longhaul_records::ledger::{Ledger, ProjectDay};
use longhaul_records::record::RunRecord;
use longhaul_toolbox::commit_carrier::CommitCarrier;
use repository::Repository;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The executor of the work of one run.
pub struct WorkExecutor {
    host: Arc<PluginHost>,
    graphs: Arc<dyn Graphs>,
    config: Arc<Config>,
    models: Arc<ModelSet>,
    memory: Arc<dyn MemoryBackend>,
    record: RunRecord,
    bus: EventBus,
    ledger: Arc<Ledger>,
    levels: ReportedLevels,
    /// Stores the commits; none where no other data directory shares the state.
    commits: Option<CommitCarrier>,
    /// The workspaces by number. The first exists from the start, the others from the first session that needs them.
    workspaces: tokio::sync::Mutex<BTreeMap<u32, Arc<Workspace>>>,
}

impl WorkExecutor {
    /// The work executor of a run.
    pub async fn new(
        host: Arc<PluginHost>,
        graphs: Arc<dyn Graphs>,
        memories: &dyn MemoryFactory,
        environment: &ProgramEnvironment,
        record: RunRecord,
        bus: EventBus,
    ) -> fault::Result<Self> {
        let config = Arc::new(record.config_now()?);
        let used = config.used_models();
        let models = ModelSet::build(&config.models, used, &record.directory, &record.models, environment)?;
        let models = Arc::new(models);
        let memory = longhaul_memory::open(&host, memories, &config, &record.pins, &record.directory).await?;
        let day = ProjectDay::of(&record, &config, Arc::clone(&host.clock));
        let ledger = Arc::new(Ledger::open(Arc::clone(&host.store), &record.run, day)?);
        let (levels, workspaces) = Default::default();
        let commits = carried::carrier(&host, &record)?;
        let executor = Self { host, graphs, config, models, memory, record, bus, ledger, levels, commits, workspaces };
        executor.workspace(0).await?;
        Ok(executor)
    }

    /// The workspace of that number, made when it does not exist.
    async fn workspace(&self, number: u32) -> fault::Result<Arc<Workspace>> {
        let mut workspaces = self.workspaces.lock().await;
        if let Some(workspace) = workspaces.get(&number) {
            return Ok(Arc::clone(workspace));
        }
        let workspace = Arc::new(Workspace::open(self, number).await?);
        workspaces.insert(number, Arc::clone(&workspace));
        Ok(workspace)
    }

    /// The workspace of a feature's session, and the commit that its work started from.
    async fn workspace_of(&self, state: &RunState, work: &Work) -> fault::Result<(Arc<Workspace>, Option<String>)> {
        if self.record.ask.is_some() {
            return Ok((self.workspace(0).await?, Some(String::new())));
        }
        let session = work.feature().and_then(|feature| state.session(feature));
        let workspace = self.workspace(session.map_or(0, |session| session.slot)).await?;
        Ok((workspace, session.and_then(|session| session.base.clone())))
    }

    /// The host that loads, confines and serves the plugins.
    pub(super) fn host(&self) -> &Arc<PluginHost> {
        &self.host
    }

    /// The ledger of the run.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn invocation(&self, work: &Work) -> InvocationId {
        InvocationId::of_action(&self.record.run, &work.key())
    }

    /// The outcome of an agent, from its journal; the harness keeps only its summary.
    fn outcome_of(&self, key: &str) -> fault::Result<Outcome> {
        let invocation = InvocationId::of_action(&self.record.run, key);
        let finished = longhaul_journal::finished(&*self.host.store, &invocation)?;
        let kept: Option<JournaledResult<Outcome>> =
            finished.map(|finished| serde_json::from_str(&finished.result)).transpose()?;
        match kept {
            Some(JournaledResult::Returned(outcome)) => Ok(outcome),
            _ => bail!("the journal of {invocation} has no output"),
        }
    }
}

/// One tree, and the plugins of the run as they see it.
struct Workspace {
    /// None for an ask, which has no repository.
    repository: Option<Repository>,
    plugin_set: Arc<PluginSet>,
    context: Arc<InvocationContext>,
}

impl Workspace {
    async fn open(executor: &WorkExecutor, number: u32) -> fault::Result<Self> {
        let WorkExecutor { host, graphs, config, models, memory, record, bus, ledger, .. } = executor;
        let tree = host.home.tree_of(&record.run, number);
        let repository = match record.ask {
            None => {
                let commits = executor.commits.clone();
                Some(Repository::open(host, record, config.run.sandbox_min, number, commits).await?)
            }
            Some(_) => {
                std::fs::create_dir_all(&tree)?;
                None
            }
        };
        let supervisor: Arc<dyn Supervisor> = ledger.clone();
        let watch = repository.as_ref().map(Repository::watch);
        let plugin_set =
            PluginSet::load(Arc::clone(host), config, &record.pins, &record.directory, &tree, &supervisor, watch);
        let plugin_set = Arc::new(plugin_set.await?);
        let (models, memory, bus, ledger) = (Arc::clone(models), Arc::clone(memory), bus.clone(), Arc::clone(ledger));
        let (host, graphs, config) = (Arc::clone(host), Arc::clone(graphs), Arc::clone(config));
        let invocation_context = InvocationContext {
            host,
            graphs,
            plugin_set: Arc::clone(&plugin_set),
            config,
            models,
            memory,
            bus,
            ledger,
        };
        let context = Arc::new(invocation_context);
        Ok(Self { repository, plugin_set, context })
    }

    fn repository(&self) -> fault::Result<&Repository> {
        self.repository.as_ref().ok_or_else(|| Fault::msg("an ask has no repository"))
    }
}
