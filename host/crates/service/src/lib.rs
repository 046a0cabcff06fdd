//! `Service`: carries out the operations of the API for one data directory.
//!
//! The command line, the socket, HTTP and MCP are thin views of it and give the same responses. It takes no decision
//! about a run, which is the harness's affair, and prints nothing.
//!
//! | file | holds |
//! |---|---|
//! | `lib.rs` | the entry, and which runs are active here |
//! | `projects.rs` | the creation and the list of projects |
//! | `runs.rs` | the operations on runs |
//! | `features.rs` | the operations on features of runs |
//! | `journal.rs` | journals and events of runs |
//! | `approvals.rs` | approvals of tool calls, and the rules of runs |
//! | `backup.rs` | backup, verification, and deletion of expired data |
//! | `begin.rs` | the start of a run |
//! | `codes.rs` | the codes of errors |
//! | `ask.rs` | the start of an ask |
//! | `forks.rs` | forks of runs |
//! | `orders.rs` | resume, pause, abandon, edit |
//! | `archive.rs` | the archive of runs |
//! | `answers.rs` | answers to questions about effects, and their withdrawal |
//! | `reverts.rs` | reverts to an earlier commit; the log of commits, and the changes of one |
//! | `recheck.rs` | repeated checks of passing features |
//! | `handover.rs` | the end of an owner that serves other processes |
//! | `served.rs` | the registry of client processes |
//! | `query.rs` | lookup and status of runs |
//! | `decisions.rs` | the decisions of a project |
//! | `proposals.rs` | proposals of agents, and their acceptance or rejection |
//! | `mcp.rs` | descriptions of MCP servers, which people accept |
//! | `replay.rs` | replays of invocations |
//! | `rehearse.rs`, `requests.rs` | replays of runs on other bytes, and the requests at which they differ |
//! | `move_run.rs` | moves of runs to other bytes of a plugin |
//! | `recordings.rs` | recordings of invocations for tests |
//! | `resources.rs` | the resource usage of the machine |
//! | `telemetry.rs`, `exporters.rs` | traces, metrics and logs of runs, for a collector |
//! | `metrics.rs` | metrics for Prometheus |
//! | `run_lists.rs`, `run_table.rs` | lists and numbers of runs, and the table in memory that they are made of |
//! | `compare.rs` | runs beside each other |
//! | `costs.rs`, `cost_sums.rs` | the costs of runs, by project, model, agent and day, and their exact sums |
//! | `checkpoints.rs` | export and import of checkpoints |
//! | `graphs.rs` | graphs of code steps |
//! | `agents.rs` | agents, and the execution of those that are asks or runs |
//! | `schedules.rs` | schedules of agents, and tasks |
//! | `memory.rs` | the memory of a project |
//! | `tokens.rs` | API tokens |
//! | `watch.rs` | watchers of runs that are active here |
//! | `news.rs`, `listeners.rs` | changes of runs, and their listeners |
//! | `security.rs` | the audit log, trust, and the projects of checkouts |
//! | `grants.rs` | the use of grants by runs |
//! | `keyed_lock.rs` | locks of runs and projects |
//! | `trajectories.rs` | trajectories of agents, and their annotations |
//! | `workers.rs` | the work on runs by several servers |
//! | `cluster.rs`, `remote_runs.rs` | the servers that share the store, and the runs that workers have |

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agents;
mod answers;
mod approvals;
mod archive;
mod ask;
mod backup;
mod begin;
mod check;
mod checkpoints;
mod cluster;
mod codes;
mod compare;
mod cost_sums;
mod costs;
mod decisions;
mod exporters;
mod features;
mod forks;
mod grants;
mod graphs;
mod handover;
mod journal;
mod keyed_lock;
mod listeners;
mod mcp;
mod memory;
mod metrics;
mod move_run;
mod news;
mod orders;
mod projects;
mod proposals;
mod query;
mod recheck;
mod recordings;
mod rehearse;
mod remote_runs;
mod replay;
mod requests;
mod reread;
mod resources;
mod reverts;
mod run_lists;
mod run_table;
mod runs;
mod schedules;
mod security;
mod served;
mod telemetry;
mod tokens;
mod trajectories;
mod watch;
mod workers;

use keyed_lock::KeyedLock;
use longhaul_api::operations::{Handling, Operation, Transport};
use longhaul_api::paths::expect_whole_paths;
use longhaul_checkpoints::RunShareFactory;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::fault;
use longhaul_core::store::Op;
use longhaul_core::stream::StreamToken;
use longhaul_memory::{MemoryFactory, Rememberer};
use longhaul_models::set::ProgramEnvironment;
use longhaul_monitor::Monitor;
use longhaul_notify::Notifier;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::bus::Subscription;
use longhaul_records::index::{ChangedRuns, RunIndex};
use longhaul_records::long_lock;
use longhaul_records::record;
use longhaul_run::RunHandle;
use longhaul_run::queue::RunQueue;
use run_table::RunTable;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

pub use cluster::{Cluster, NoServer};
pub use codes::{classified, code_of};
pub use longhaul_api::memory::{MemoryItem, MemoryScope};
pub use longhaul_api::runs::{
    AskRequest, CarriedInvocation, FeatureRecheck, OpenQuestion, ProjectSummary, ReplayResult, RunRef, RunSummary,
    Status,
};
pub use longhaul_api::security::{GrantUsage, RunGrants};
pub use longhaul_api::seen::RunNotification;
pub use longhaul_api::tokens::{AccessToken, IssuedToken, TokenScope, TokenTtl};
pub use longhaul_api::trajectories::{Annotation, InvocationEnding, Trajectory, TrajectoryFilter, TrajectoryStep};
pub use longhaul_run::places::TreesElsewhere;
pub use served::FollowerGuard;
pub use watch::watch_here;

/// The components of a service, for one data directory. The program makes them.
pub struct ServiceParts {
    /// The runs whose rows were written.
    pub changed_runs: Arc<ChangedRuns>,
    /// Graphs of steps of code.
    pub graphs: Arc<longhaul_graph_runner::GraphService>,
    /// Agents, their schedules and tasks.
    pub agents: Arc<longhaul_scheduler::SchedulerService>,
    /// The environment that the program gives to models.
    pub environment: ProgramEnvironment,
    /// Sends notifications.
    pub notifier: Arc<Notifier>,
    /// Measures the use of the machine, and decides whether there is room for more work.
    pub resources: Arc<Monitor>,
    /// Makes the storage and the ranking of memory.
    pub memories: Arc<dyn MemoryFactory>,
    /// Makes clients of the servers on which machines share runs.
    pub shares: Arc<dyn RunShareFactory>,
    /// Remembers runs that have ended.
    pub rememberer: Arc<Rememberer>,
    /// Loads plugins, confines them and serves their calls.
    pub host: Arc<PluginHost>,
    /// The servers that share the store; none where no other one can.
    pub cluster: Option<Arc<Cluster>>,
}

/// Carries out operations for one data directory.
pub struct Service {
    graphs: Arc<longhaul_graph_runner::GraphService>,
    agents: Arc<longhaul_scheduler::SchedulerService>,
    environment: ProgramEnvironment,
    notifier: Arc<Notifier>,
    resources: Arc<Monitor>,
    memories: Arc<dyn MemoryFactory>,
    shares: Arc<dyn RunShareFactory>,
    rememberer: Arc<Rememberer>,
    active: Mutex<HashMap<RunId, Active>>,
    /// The order in which runs work when not all may at once.
    queue: RunQueue,
    /// The task that delivers notifications. The first active run, or the scheduler, starts it.
    courier: Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// Held while a run is looked up and started, so that no run gets two actors.
    locks: KeyedLock,
    /// The tasks that store memory of ended runs.
    remembering: Mutex<JoinSet<()>>,
    /// Held during a recheck: all rechecks share one copy.
    rechecking: tokio::sync::Mutex<()>,
    /// The exporters of telemetry.
    reporting: Mutex<exporters::TelemetryReporter>,
    /// Set once the reverts that an earlier process left unfinished are finished.
    reverts_finished: tokio::sync::OnceCell<()>,
    /// The client processes, and whether this process is handing over.
    served: served::Served,
    /// The listeners to runs that become active, become inactive, or change.
    listeners: listeners::Listeners,
    /// The number of tokens that this process removed.
    tokens_removed: tokio::sync::watch::Sender<u64>,
    /// The runs in memory, for lists, costs and metrics.
    index: RunIndex<RunTable>,
    /// Sums of runs that were missing or behind, until they are stored.
    repairs: Mutex<Vec<Op>>,
    /// Shared by operations that store content before they reference it; exclusive to the deletion of unreferenced
    /// content.
    naming: tokio::sync::RwLock<()>,
    /// The servers that share the store; none where no other one can.
    cluster: Option<Arc<Cluster>>,
    leading: cluster::Leading,
    /// The runs that workers have, while this service leads.
    remote: Arc<Mutex<remote_runs::RemoteRuns>>,
    /// Held during a look at the workers.
    looking: tokio::sync::Mutex<()>,
    /// Loads plugins, confines them and serves their calls. Dropped last: it holds the lock of the data directory.
    host: Arc<PluginHost>,
}

/// The operations of a service. A call reaches them once it is certain that it may begin.
struct ServiceOperations<'a>(&'a Arc<Service>);

/// A client in the process of the service.
#[derive(Clone)]
pub struct InProcess(pub Arc<Service>);

impl Transport for InProcess {
    async fn call<O: Operation>(&self, request: O) -> fault::Result<O::Response> {
        self.0.call(request).await
    }
}

struct Active {
    /// The id of its project.
    project: String,
    handle: RunHandle,
    task: tokio::task::JoinHandle<()>,
}

impl Service {
    /// A service over an open data directory. No run is active yet.
    pub fn new(parts: ServiceParts) -> Self {
        let ServiceParts {
            changed_runs,
            graphs,
            agents,
            environment,
            notifier,
            resources,
            memories,
            shares,
            rememberer,
            host,
            cluster,
        } = parts;
        Self {
            index: RunIndex::new(changed_runs),
            graphs,
            agents,
            environment,
            notifier,
            resources,
            memories,
            shares,
            rememberer,
            active: Mutex::default(),
            queue: RunQueue::default(),
            courier: Mutex::default(),
            locks: KeyedLock::default(),
            remembering: Mutex::default(),
            rechecking: tokio::sync::Mutex::default(),
            repairs: Mutex::default(),
            reporting: Mutex::default(),
            reverts_finished: tokio::sync::OnceCell::default(),
            served: served::Served::default(),
            listeners: listeners::Listeners::default(),
            tokens_removed: tokio::sync::watch::Sender::default(),
            naming: tokio::sync::RwLock::default(),
            leading: cluster::Leading::of(cluster.as_deref()),
            cluster,
            remote: Arc::default(),
            looking: tokio::sync::Mutex::default(),
            host,
        }
    }

    /// Carries out one operation.
    ///
    /// # Errors
    /// With a code, whatever it is.
    pub async fn call<O: Operation>(self: &Arc<Self>, request: O) -> fault::Result<O::Response> {
        self.perform(request).await.map_err(classified)
    }

    async fn perform<O: Operation>(self: &Arc<Self>, request: O) -> fault::Result<O::Response> {
        expect_whole_paths(&request)?;
        let _answering = self.served.begin(O::HANDLING).await;
        self.resources.watch();
        let mut request = request;
        loop {
            if let Some(response) = self.carried_out_by_worker(&request).await? {
                return Ok(response);
            }
            let again = request.run().map(|_| request.clone());
            match (self.perform_here(request).await, again) {
                (Err(error), Some(again)) if error.is::<cluster::RunMoved>() => request = again,
                (performed, _) => return performed,
            }
        }
    }

    async fn perform_here<O: Operation>(self: &Arc<Self>, request: O) -> fault::Result<O::Response> {
        if self.leads() {
            // First, so that no response shows a run whose branch has moved and whose features have not.
            self.reverts_finished.get_or_init(|| self.finish_reverts()).await;
        }
        let _naming = match O::HANDLING {
            Handling::Maintain => None,
            Handling::Look | Handling::Repeat | Handling::Once => Some(self.naming.read().await),
        };
        request.carry_out(&ServiceOperations(self)).await
    }

    /// Hears a run live from now on; none if nobody works on it.
    pub fn watch(&self, run: &RunId) -> Option<Subscription> {
        let here = self.lock().get(run).map(|active| active.handle.bus().watch());
        here.or_else(|| self.remote().bus(run).map(|bus| bus.watch()))
    }

    /// The time, in milliseconds since 1970-01-01 UTC.
    pub fn now_ms(&self) -> u64 {
        self.host.clock.now_ms()
    }

    /// The text that models of a run are writing right now, as far as it is worked on here.
    pub fn so_far(&self, run: &RunId) -> Vec<StreamToken> {
        self.lock().get(run).map(|active| active.handle.bus().so_far()).unwrap_or_default()
    }

    /// Events of a run after a number.
    pub fn events(&self, run: &RunId, after: u64) -> fault::Result<Vec<RunEvent>> {
        record::events_after(&*self.host.store, run, after, 1_000)
    }

    /// Delivers notifications from now on.
    pub fn send_notifications(&self) {
        let notifier = Arc::clone(&self.notifier);
        let courier = || tokio::spawn(async move { notifier.deliver_for_ever().await });
        self.courier.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(courier);
    }

    /// Stops every run without a trace, so that another process goes on with them.
    pub async fn stop(&self) {
        let active: Vec<Active> = self.lock().drain().map(|(_, active)| active).collect();
        for Active { handle, task, .. } in active {
            handle.stop().await;
            let _ = task.await;
        }
        self.end_remembering().await;
        let courier = self.courier.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(courier) = courier {
            self.notifier.deliver_last(courier).await;
        }
        self.end_reports().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Active>> {
        long_lock::lock(&self.active)
    }

    fn remote(&self) -> MutexGuard<'_, remote_runs::RemoteRuns> {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
