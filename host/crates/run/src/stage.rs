//! Carrying work out: a planner, an agent or an evaluator is called, checks are pinned, the tree is
//! committed or restored. What comes of it is handed back; nothing is stored here but journals.

mod choose;
mod ending;
mod levels;
mod orientation;
mod perform;
mod place;
mod protected;
mod repository;
mod rushed;
mod survey;
mod troupe;

pub use ending::{Closing, End, Ended};
pub use repository::Native;

use levels::ToldLevels;
use longhaul_config::Config;
use longhaul_core::InvocationId;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::graph::Graphs;
use longhaul_core::memory::MemoryBackend;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::work::Outcome;
use longhaul_harness::{State, Work};
use longhaul_memory::factory::MemoryFactory;
use longhaul_models::set::{ModelSet, ProgramEnvironment};
use longhaul_records::bus::Bus;
use longhaul_records::invocation::Kept;
use longhaul_records::ledger::Ledger;
use longhaul_records::record::RunRecord;
use longhaul_toolbox::plugin_host::PluginHost;
use longhaul_toolbox::plugin_set::Cast;
use repository::Repository;
use std::collections::BTreeMap;
use std::sync::Arc;
use troupe::Troupe;

/// Where the work of one run is done.
pub struct Stage {
    host: Arc<PluginHost>,
    graphs: Arc<dyn Graphs>,
    config: Arc<Config>,
    models: Arc<ModelSet>,
    memory: Arc<dyn MemoryBackend>,
    record: RunRecord,
    bus: Bus,
    ledger: Arc<Ledger>,
    levels: ToldLevels,
    /// By number. The first is there from the start, the others when a session first needs them.
    desks: tokio::sync::Mutex<BTreeMap<u32, Arc<Desk>>>,
}

impl Stage {
    /// The stage of a run.
    pub async fn new(
        host: Arc<PluginHost>,
        graphs: Arc<dyn Graphs>,
        memories: &dyn MemoryFactory,
        environment: &ProgramEnvironment,
        record: RunRecord,
        bus: Bus,
    ) -> fault::Result<Self> {
        let config = Arc::new(record.config_now()?);
        let used = config.used_models();
        let models = ModelSet::build(&config.models, used, &record.directory, &record.models, environment)?;
        let models = Arc::new(models);
        let memory = longhaul_memory::open(&host, memories, &config, &record.pins, &record.directory).await?;
        let ledger = Arc::new(Ledger::open(Arc::clone(&host.store), &record.run)?);
        let (levels, desks) = Default::default();
        let stage = Self { host, graphs, config, models, memory, record, bus, ledger, levels, desks };
        stage.desk(0).await?;
        Ok(stage)
    }

    /// The desk of that number, made when it is not there.
    async fn desk(&self, number: u32) -> fault::Result<Arc<Desk>> {
        let mut desks = self.desks.lock().await;
        if let Some(desk) = desks.get(&number) {
            return Ok(Arc::clone(desk));
        }
        let desk = Arc::new(Desk::open(self, number).await?);
        desks.insert(number, Arc::clone(&desk));
        Ok(desk)
    }

    /// The desk of a feature's session, and the commit that its work started from.
    async fn desk_of(&self, state: &State, work: &Work) -> fault::Result<(Arc<Desk>, Option<String>)> {
        if self.record.ask.is_some() {
            return Ok((self.desk(0).await?, Some(String::new())));
        }
        let session = work.feature().and_then(|feature| state.session(feature));
        let desk = self.desk(session.map_or(0, |session| session.slot)).await?;
        Ok((desk, session.and_then(|session| session.base.clone())))
    }

    /// What its plugins are loaded, confined and served with.
    pub(super) fn host(&self) -> &Arc<PluginHost> {
        &self.host
    }

    /// The book of the run.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn invocation(&self, work: &Work) -> InvocationId {
        InvocationId::of_action(&self.record.run, &work.key())
    }

    /// The outcome of an agent, from its journal: the harness keeps only its summary.
    fn outcome_of(&self, key: &str) -> fault::Result<Outcome> {
        let invocation = InvocationId::of_action(&self.record.run, key);
        let finished = longhaul_journal::finished(&*self.host.store, &invocation)?;
        let kept: Option<Kept<Outcome>> =
            finished.map(|finished| serde_json::from_str(&finished.result)).transpose()?;
        match kept {
            Some(Kept::Returned(outcome)) => Ok(outcome),
            _ => bail!("the journal of {invocation} has no output"),
        }
    }
}

/// One tree, and the parts of the run as they see it.
struct Desk {
    /// None for an ask.
    repository: Option<Repository>,
    cast: Arc<Cast>,
    troupe: Arc<Troupe>,
}

impl Desk {
    async fn open(stage: &Stage, number: u32) -> fault::Result<Self> {
        let Stage { host, graphs, config, models, memory, record, bus, ledger, .. } = stage;
        let tree = host.home.tree_of(&record.run, number);
        let repository = match record.ask {
            None => Some(Repository::open(host, record, config.run.sandbox_min, tree.clone()).await?),
            Some(_) => {
                std::fs::create_dir_all(&tree)?;
                None
            }
        };
        let supervisor: Arc<dyn Supervisor> = ledger.clone();
        let cast = Cast::load(Arc::clone(host), config, &record.pins, &record.directory, &tree, &supervisor).await?;
        let cast = Arc::new(cast.watched(repository.as_ref().map(Repository::unkept)));
        let (models, memory, bus, ledger) = (Arc::clone(models), Arc::clone(memory), bus.clone(), Arc::clone(ledger));
        let (host, graphs, config) = (Arc::clone(host), Arc::clone(graphs), Arc::clone(config));
        let troupe = Troupe { host, graphs, cast: Arc::clone(&cast), config, models, memory, bus, ledger };
        let troupe = Arc::new(troupe);
        Ok(Self { repository, cast, troupe })
    }

    fn repository(&self) -> fault::Result<&Repository> {
        self.repository.as_ref().ok_or_else(|| Fault::msg("an ask has no repository"))
    }
}
