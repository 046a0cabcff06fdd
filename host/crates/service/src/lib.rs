//! `Service`: carries out the operations of the API for one data directory.
//!
//! The command line, the socket, HTTP and MCP are thin views of it and give the same responses. It takes no decision
//! about a run, which is the harness's affair, and prints nothing.
//!
//! | file | holds |
//! |---|---|
//! | `lib.rs` | the entry, and which runs are active here |
//! | `projects.rs` | projects: made, listed |
//! | `runs.rs` | runs: the operations on them |
//! | `features.rs` | features of runs: the operations on them |
//! | `journal.rs` | journals and events of runs |
//! | `approvals.rs` | what people are asked about calls of tools |
//! | `backup.rs` | upkeep: backup, check, collection |
//! | `begin.rs` | a run is started |
//! | `codes.rs` | the codes of errors |
//! | `ask.rs` | an ask is started |
//! | `orders.rs` | resume, pause, abandon, edit |
//! | `answers.rs` | answers to what a run waits with, and taken back |
//! | `reverts.rs` | back to an earlier commit; the log of commits |
//! | `recheck.rs` | checks of passing features, once more |
//! | `handover.rs` | the end of an owner that serves other processes |
//! | `served.rs` | the other processes that are served |
//! | `query.rs` | which run is meant, and how it stands |
//! | `decisions.rs` | the decisions of a project |
//! | `proposals.rs` | what agents proposed, and what a person makes of it |
//! | `mcp.rs` | what a person accepts of an MCP server |
//! | `replay.rs` | invocations run again and compared |
//! | `resources.rs` | what is used of the machine |
//! | `telemetry.rs`, `exporters.rs` | traces, metrics and logs of runs |
//! | `checkpoints.rs` | runs as they stand, taken elsewhere and back |
//! | `graphs.rs` | steps of code that build on each other |
//! | `agents.rs` | agents, and those of them that are asks or runs |
//! | `schedules.rs` | schedules of agents, and tasks |
//! | `memory.rs` | what a project remembers of its runs |
//! | `tokens.rs` | who is let in over HTTP |
//! | `watch.rs` | watching a run that is worked on here |
//! | `news.rs`, `listeners.rs` | changes of runs, told to all who listen |
//! | `security.rs` | the audit log, trust, and which project a checkout is |
//! | `grants.rs` | grants against what runs did of them |
//! | `keyed_lock.rs` | who may take up which run |
//! | `trajectories.rs` | what agents were told, said and did, and what a person says of it |

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agents;
mod answers;
mod approvals;
mod ask;
mod backup;
mod begin;
mod check;
mod checkpoints;
mod codes;
mod decisions;
mod exporters;
mod features;
mod grants;
mod graphs;
mod handover;
mod journal;
mod keyed_lock;
mod listeners;
mod mcp;
mod memory;
mod news;
mod orders;
mod projects;
mod proposals;
mod query;
mod recheck;
mod replay;
mod reread;
mod resources;
mod reverts;
mod runs;
mod schedules;
mod security;
mod served;
mod telemetry;
mod tokens;
mod trajectories;
mod watch;

use keyed_lock::KeyedLock;
use longhaul_api::operations::{Handling, Operation, Transport};
use longhaul_api::paths::expect_whole_paths;
use longhaul_checkpoints::RunShareFactory;
use longhaul_core::RunId;
use longhaul_core::event::RunEvent;
use longhaul_core::fault;
use longhaul_core::stream::StreamToken;
use longhaul_memory::{MemoryFactory, Rememberer};
use longhaul_models::set::ProgramEnvironment;
use longhaul_monitor::Monitor;
use longhaul_notify::Notifier;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::bus::Subscription;
use longhaul_records::index::{ChangedRuns, RunIndex};
use longhaul_records::record;
use longhaul_run::RunHandle;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

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
pub use served::FollowerGuard;
pub use watch::watch_here;

/// What a service of one data directory works with. The program makes it.
pub struct ServiceParts {
    /// Of which runs something was written.
    pub changed_runs: Arc<ChangedRuns>,
    /// Graphs of steps of code.
    pub graphs: Arc<longhaul_graph_runner::GraphService>,
    /// Agents, their schedules and tasks.
    pub agents: Arc<longhaul_scheduler::SchedulerService>,
    /// What the program gives to the models that it asks.
    pub environment: ProgramEnvironment,
    /// Sends notifications.
    pub notifier: Arc<Notifier>,
    /// What is used of the machine, and whether there is room.
    pub resources: Arc<Monitor>,
    /// Makes what memory is kept and found with.
    pub memories: Arc<dyn MemoryFactory>,
    /// Makes clients of the servers that machines share runs on.
    pub shares: Arc<dyn RunShareFactory>,
    /// Remembers runs that have ended.
    pub rememberer: Arc<Rememberer>,
    /// What plugins are loaded, confined and served with.
    pub host: Arc<PluginHost>,
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
    /// Sends letters, from the first run that is worked on here, or the scheduler.
    courier: Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// Held while a run is looked for and taken up, so that no run gets two actors.
    locks: KeyedLock,
    /// Runs that have ended are remembered here, behind their end.
    remembering: Mutex<JoinSet<()>>,
    /// Held while checks are run again: they share the copy that they run on.
    rechecking: tokio::sync::Mutex<()>,
    /// Who sends telemetry.
    reporting: Mutex<exporters::TelemetryReporter>,
    counted: Mutex<exporters::EventTotals>,
    /// Done once: what a kill cut off was cut off in another process.
    reverts_finished: tokio::sync::OnceCell<()>,
    /// Who is served, and whether that comes to its end.
    served: served::Served,
    /// Who wants to hear of runs that are taken up, let go of, or changed.
    listeners: listeners::Listeners,
    /// How many tokens were removed by this process.
    tokens_removed: tokio::sync::watch::Sender<u64>,
    /// Runs in short.
    index: RunIndex<CachedRun>,
    /// Held by all who may store content before they name it, and alone by who removes what nothing names.
    naming: tokio::sync::RwLock<()>,
    /// What plugins are loaded, confined and served with. The last to go: it holds the lock of the data directory.
    host: Arc<PluginHost>,
}

/// What is kept of each run.
#[derive(Clone)]
struct CachedRun {
    summary: RunSummary,
    /// Whether a person was ever asked about a call of it.
    has_approvals: bool,
}

/// The operations of a service, once it is certain that they may begin: what each one does.
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
            courier: Mutex::default(),
            locks: KeyedLock::default(),
            remembering: Mutex::default(),
            rechecking: tokio::sync::Mutex::default(),
            reporting: Mutex::default(),
            counted: Mutex::default(),
            reverts_finished: tokio::sync::OnceCell::default(),
            served: served::Served::default(),
            listeners: listeners::Listeners::default(),
            tokens_removed: tokio::sync::watch::Sender::default(),
            naming: tokio::sync::RwLock::default(),
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
        // Before anybody sees a run whose branch has moved and whose features have not.
        self.reverts_finished.get_or_init(|| self.finish_reverts()).await;
        let _naming = match O::HANDLING {
            Handling::Maintain => None,
            Handling::Look | Handling::Repeat | Handling::Once => Some(self.naming.read().await),
        };
        request.carry_out(&ServiceOperations(self)).await
    }

    /// Hears a run live from now on; none if it is not active here.
    pub fn watch(&self, run: &RunId) -> Option<Subscription> {
        self.lock().get(run).map(|active| active.handle.bus().watch())
    }

    /// The time, in milliseconds since 1970-01-01 UTC.
    pub fn now_ms(&self) -> u64 {
        self.host.clock.now_ms()
    }

    /// What models of a run are saying right now.
    pub fn so_far(&self, run: &RunId) -> Vec<StreamToken> {
        self.lock().get(run).map(|active| active.handle.bus().so_far()).unwrap_or_default()
    }

    /// Events of a run after a number.
    pub fn events(&self, run: &RunId, after: u64) -> fault::Result<Vec<RunEvent>> {
        record::events_after(&*self.host.store, run, after, 1_000)
    }

    /// Has letters sent from now on.
    pub fn send_notifications(&self) {
        let notifier = Arc::clone(&self.notifier);
        let courier = || tokio::spawn(async move { notifier.deliver_for_ever().await });
        self.courier.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(courier);
    }

    /// Stops every run without a trace, so that another process goes on with them.
    pub async fn stop(&self) {
        let active: Vec<Active> = self.lock().drain().map(|(_, active)| active).collect();
        for Active { handle, task } in active {
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
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
