//! The scheduler service over a store in memory, with a scripted agent executor and a clock that the test moves.

mod agents;
mod artifacts;
mod budgets;
mod crashes;
mod notifications;
mod overlap;
mod schedules;
mod tasks;

use crate::service::{SchedulerService, lock};
use crate::work::{AgentExecutor, AgentWork, NewAttempt};
use longhaul_agents::{AgentCode, Artifact, ExecutionResult, NewAgent};
use longhaul_api::agents::{
    AgentExecution, ExecuteAgent, ListTasks, PutSchedule, RegisterAgent, ScheduleTally, ShowArtifact, ShowSchedule,
    StatusFilter, TaskList, TaskView,
};
use longhaul_core::fault;
use longhaul_core::project_models::ProjectModels;
use longhaul_core::store::{Batch, Key, Row, Store, StoreError, Table};
use longhaul_core::{Clock, Digest, Name};
use longhaul_home::Home;
use longhaul_home::crash::CrashPoints;
use longhaul_notify::Notifier;
use longhaul_schedule::{Schedule, TaskId, Trigger};
use longhaul_testkit::{HandClock, MemoryStore};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, watch};

const MINUTE: u64 = 60_000;

/// A store that accepts so many commits and then none, as if its process had been killed.
struct Mortal {
    store: Arc<MemoryStore>,
    left: AtomicU64,
}

#[async_trait::async_trait]
impl Store for Mortal {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(table, key)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.store.scan(table, prefix, after, limit)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.blob(digest)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            std::future::pending::<()>().await;
        }
        self.store.commit(batch).await
    }
}

/// The scripted result of an execution, by the number of earlier ones.
type Script = dyn Fn(&AgentWork, u64) -> ExecutionResult + Send + Sync;

/// An agent executor that follows its script, and counts.
struct Told {
    script: Box<Script>,
    executed: AtomicU64,
}

#[async_trait::async_trait]
impl AgentExecutor for Told {
    async fn run(&self, work: &AgentWork) -> Option<ExecutionResult> {
        let before = self.executed.fetch_add(1, Ordering::SeqCst);
        Some((self.script)(work, before))
    }
}

fn told(script: impl Fn(&AgentWork, u64) -> ExecutionResult + Send + Sync + 'static) -> Arc<Told> {
    Arc::new(Told { script: Box::new(script), executed: AtomicU64::new(0) })
}

fn printed(stdout: impl Into<String>) -> ExecutionResult {
    ExecutionResult { success: true, stdout: stdout.into(), ..ExecutionResult::default() }
}

/// An agent that counts in its state.
fn counting() -> Arc<Told> {
    told(|work, _| {
        let count = work.context()["n"].as_u64().unwrap_or_default() + 1;
        printed(format!("counted\n{}", json!({ "state": { "n": count } })))
    })
}

/// Projects without models.
struct NoModels;

impl ProjectModels for NoModels {
    fn default_name(&self, _: &Path) -> fault::Result<Option<String>> {
        Ok(None)
    }

    fn model(&self, _: &Path, _: &str) -> fault::Result<Option<Arc<dyn longhaul_core::model::Model>>> {
        Ok(None)
    }
}

/// A service with a scheduler that the test moves by hand.
struct Bench {
    scheduler_service: Arc<SchedulerService>,
    clock: Arc<HandClock>,
    agent_executor: Arc<Told>,
    starts: mpsc::UnboundedReceiver<NewAttempt>,
    stopping: watch::Sender<bool>,
}

impl Bench {
    fn over(store: Arc<dyn Store>, clock: &Arc<HandClock>, agent_executor: &Arc<Told>) -> Self {
        Self::at(Path::new("/nowhere"), store, clock, agent_executor)
    }

    /// The bench with the settings of this data directory.
    fn at(home: &Path, store: Arc<dyn Store>, clock: &Arc<HandClock>, agent_executor: &Arc<Told>) -> Self {
        let home = Home::find(Some(home.to_owned())).expect("a path");
        let (clock_of, models) = (Arc::clone(clock) as Arc<dyn Clock>, Arc::new(NoModels));
        let notifier = Notifier::new(&home, Arc::clone(&store), Arc::clone(&clock_of), CrashPoints::default());
        let scheduler_service =
            SchedulerService::new(store, clock_of, &home, CrashPoints::default(), Arc::new(notifier), models);
        let (sender, starts) = mpsc::unbounded_channel();
        *lock(&scheduler_service.starts) = Some(sender);
        let (clock, agent_executor) = (Arc::clone(clock), Arc::clone(agent_executor));
        Self {
            scheduler_service: Arc::new(scheduler_service),
            clock,
            agent_executor,
            starts,
            stopping: watch::Sender::new(false),
        }
    }

    fn new(agent_executor: &Arc<Told>) -> Self {
        let clock = Arc::new(HandClock::at(HandClock::START_MS));
        Self::over(Arc::new(MemoryStore::new()), &clock, agent_executor)
    }

    async fn add(&self, agent: &str) {
        let agent = python(agent);
        self.scheduler_service.register(RegisterAgent { agent, wasm: None }).await.expect("an agent");
    }

    async fn put(&self, schedule: Schedule) {
        self.scheduler_service.put_schedule(PutSchedule { schedule, replace: false }).await.expect("a schedule");
    }

    /// Advances the clock and handles everything that is due.
    async fn pass(&mut self, ms: u64) {
        self.clock.advance_ms(ms);
        self.scheduler_service.tick().await.expect("a tick");
        while let Ok(start) = self.starts.try_recv() {
            let agent_executor = Arc::clone(&self.agent_executor) as Arc<dyn AgentExecutor>;
            self.scheduler_service.attempt(start, agent_executor, self.stopping.subscribe()).await;
        }
    }

    /// Fires a schedule now, and handles everything that is due by then.
    async fn fire(&mut self, schedule: &str) {
        self.scheduler_service.run_now(name(schedule)).await.expect("a task");
        self.pass(0).await;
    }

    async fn artifact(&self, agent: &str) -> Option<Artifact> {
        let request = ShowArtifact { name: name(agent), version: None };
        self.scheduler_service.artifact(request).expect("an answer").artifact
    }

    async fn tasks(&self, agent: Option<&str>, status: Option<StatusFilter>) -> (Vec<TaskView>, usize) {
        let request = ListTasks { agent: agent.map(name), status, limit: 1_000, offset: 0 };
        let TaskList { tasks, total_count, .. } = self.scheduler_service.tasks(request).await.expect("an answer");
        (tasks, total_count)
    }

    async fn task(&self, id: &TaskId) -> TaskView {
        self.scheduler_service.task(id.as_str()).await.expect("an answer")
    }

    async fn tally(&self, schedule: &str) -> ScheduleTally {
        let request = ShowSchedule { name: name(schedule), fires: 0 };
        self.scheduler_service.show_schedule(request).await.expect("an answer").tally
    }

    async fn execute(&self, agent: &str, input: Option<Value>) -> (Option<TaskId>, ExecutionResult) {
        let request = ExecuteAgent { name: name(agent), input };
        let executed = self.scheduler_service.execute(request, &*self.agent_executor).await.expect("an answer");
        let AgentExecution { task, result } = executed;
        (task, result)
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn python(agent: &str) -> NewAgent {
    NewAgent::new(name(agent), AgentCode::Python { source: "print(1)".to_owned() })
}

fn each_minute(schedule: &str, agent: &str) -> Schedule {
    Schedule::new(name(schedule), name(agent), Trigger::interval(60).expect("an interval"))
}

/// A `server.toml` with notifications that include texts.
const TELLING: &str = "[notify]\ncommand = [\"true\"]\ntexts = true\n";

fn settings(home: &Path, text: &str) {
    std::fs::write(home.join("server.toml"), text).expect("ours");
}

/// The stored notifications, in the order of the tasks.
fn notifications(store: &dyn Store) -> Vec<Value> {
    let rows = store.scan(Table::States, &Key::of("letters"), None, 100).expect("read");
    let notification = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON")["letter"].clone();
    rows.iter().map(|(_, bytes)| notification(bytes)).collect()
}

/// A schedule that fires by hand alone.
fn by_hand(schedule: &str, agent: &str, retries_max: u32) -> Schedule {
    Schedule { enabled: false, retries_max, ..each_minute(schedule, agent) }
}
