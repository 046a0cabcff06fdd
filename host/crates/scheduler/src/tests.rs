//! The scheduler service over a store in memory, with a scripted agent executor and a clock that the test moves.

mod budgets;
mod overlap;

use crate::rows::{self, ScheduleTransaction};
use crate::scheduler::Scheduler;
use crate::service::{SchedulerService, lock};
use crate::work::{AgentExecutor, AgentWork, BY_HAND, NewAttempt};
use longhaul_agents::{
    Admission, AdmissionDecision, AdmissionRequest, AgentCode, AgentPatch, Artifact, ExecutionResult, NewAgent,
    SummaryBy,
};
use longhaul_api::agents::{
    ActivateAgent, AgentExecution, ClearArtifact, ExecuteAgent, ListTasks, PutSchedule, RegisterAgent, ScheduleTally,
    SetArtifact, ShowArtifact, ShowSchedule, StatusFilter, TaskList, TaskView, UpdateAgent,
};
use longhaul_core::fault;
use longhaul_core::project_models::ProjectModels;
use longhaul_core::store::{Batch, Key, Row, Store, StoreError, Table};
use longhaul_core::{Clock, Digest, Name, RunId};
use longhaul_home::Home;
use longhaul_home::crash::CrashPoints;
use longhaul_notify::Notifier;
use longhaul_schedule::{Missed, Schedule, TaskFailure, TaskId, TaskStatus, Trigger, When};
use longhaul_testkit::{HandClock, MemoryStore};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
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

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_commit_neither_loses_a_run_nor_counts_it_twice() {
    const FIRES: u64 = 12;
    let mut kills = 0;
    for commits in 0..60 {
        let store = Arc::new(MemoryStore::new());
        let (clock, agent_executor) = (Arc::new(HandClock::at(HandClock::START_MS)), flaky());
        let end_ms = HandClock::START_MS + FIRES * MINUTE;
        let mortal = Arc::new(Mortal { store: Arc::clone(&store), left: AtomicU64::new(u64::MAX) });
        let mut first = Bench::over(Arc::clone(&mortal) as Arc<dyn Store>, &clock, &agent_executor);
        first.add("a").await;
        let mut schedule = each_minute("s", "a");
        schedule.missed = Missed::All;
        first.put(schedule).await;
        mortal.left.store(commits, Ordering::SeqCst);
        let lived = tokio::time::timeout(Duration::from_secs(3_600), live(&mut first, end_ms)).await;
        kills += u32::from(lived.is_err());
        let mut second = Bench::over(store, &clock, &agent_executor);
        // Not at a fire, so that the task of a fire has ended.
        live(&mut second, end_ms + 10 * MINUTE + MINUTE / 2).await;
        account(&second, commits).await;
    }
    assert!(kills > 20, "{kills}");
}

/// Fails now and then, and counts its executions in its state.
fn flaky() -> Arc<Told> {
    told(|work, before| match before % 3 {
        1 => ExecutionResult { exit_code: 1, ..ExecutionResult::failed("it rained", true) },
        _ => {
            let count = work.context()["n"].as_u64().unwrap_or_default() + 1;
            printed(format!("counted\n{}", json!({ "state": { "n": count } })))
        }
    })
}

/// Runs until a time, in steps of a second.
async fn live(bench: &mut Bench, end_ms: u64) {
    while bench.clock.now_ms() < end_ms {
        bench.pass(1_000).await;
    }
}

async fn account(bench: &Bench, commits: u64) {
    let artifact = bench.artifact("a").await.expect("an artifact");
    let counted = artifact.state["n"].as_u64().unwrap_or_default();
    let ((tasks, _), tally) = (bench.tasks(None, None).await, bench.tally("s").await);
    let fires = (bench.clock.now_ms() - HandClock::START_MS) / MINUTE;
    let open = tasks.iter().filter(|task| task.ended_ms.is_none()).count() as u64;
    let skipped: u64 = tally.skipped.values().sum();
    assert_eq!(tally.tasks + skipped + open, fires, "killed at commit {commits}: {tally:?}, {open} open");
    assert_eq!(artifact.run_count, tally.tasks, "killed at commit {commits}: each task that ended is one run");
    assert_eq!(counted, tally.completed, "killed at commit {commits}: each completed one counted once");
    assert_eq!(tally.failed, 0, "killed at commit {commits}: what failed was retried");
    assert!(tasks.iter().all(|task| task.status != TaskStatus::Running), "killed at commit {commits}: {tasks:?}");
    let attempts: u64 = tasks.iter().map(|task| task.attempts.len() as u64).sum();
    let executed = bench.agent_executor.executed.load(Ordering::SeqCst);
    // A kill before the executor began leaves an attempt that executed nothing; no attempt is executed that is not
    // stored.
    assert!(executed <= attempts && attempts <= executed + 1, "{commits}: {executed} and {attempts}");
}

#[tokio::test]
async fn what_a_run_prints_at_its_end_is_what_the_next_one_sees() {
    let agent_executor = counting();
    let bench = Bench::new(&agent_executor);
    bench.add("a").await;
    assert_eq!(bench.artifact("a").await, None);
    for count in 1..=3_u64 {
        let (task, result) = bench.execute("a", None).await;
        assert!(result.success, "{result:?}");
        let artifact = bench.artifact("a").await.expect("an artifact");
        assert_eq!((artifact.run_count, artifact.version), (count, count));
        assert_eq!((&artifact.state["n"], &artifact.state["previous_output"]), (&json!(count), &json!("counted\n")));
        assert_eq!(
            (artifact.summary.as_str(), artifact.made_by),
            ("counted", format!("task {}", task.expect("a task")))
        );
    }
    let changed = SetArtifact { name: name("a"), state: json!({"n": 40}), summary: None, version: Some(2) };
    let error = bench.scheduler_service.set_artifact(changed.clone()).await.expect_err("another version");
    assert!(error.to_string().contains("has version 3"), "{error:#}");
    let changed = SetArtifact { version: Some(3), ..changed };
    bench.scheduler_service.set_artifact(changed).await.expect("the version");
    bench.execute("a", None).await;
    assert_eq!(bench.artifact("a").await.map(|artifact| artifact.state["n"].clone()), Some(json!(41)));
    let cleared = ClearArtifact { name: name("a"), version: None };
    bench.scheduler_service.clear_artifact(cleared).await.expect("cleared");
    assert_eq!(bench.artifact("a").await, None);
    bench.execute("a", None).await;
    let artifact = bench.artifact("a").await.expect("an artifact");
    assert_eq!((artifact.run_count, artifact.version, &artifact.state["n"]), (1, 7, &json!(1)));
    let artifacts = bench.scheduler_service.artifact_history(&name("a")).expect("kept").artifacts;
    let versions: Vec<u64> = artifacts.iter().map(|artifact| artifact.version).collect();
    assert_eq!(versions, [7, 5, 4, 3, 2, 1]);
}

#[tokio::test]
async fn who_changes_what_is_handed_on_while_a_run_goes_on_is_heard() {
    let agent_executor = counting();
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.put(each_minute("s", "a")).await;
    bench.clock.advance_ms(MINUTE);
    bench.scheduler_service.tick().await.expect("a tick");
    let start = bench.starts.try_recv().expect("it is due");
    let scheduler_service = Arc::clone(&bench.scheduler_service);
    // The attempt loads before the change, and ends behind it.
    struct Changing(Arc<SchedulerService>);
    #[async_trait::async_trait]
    impl AgentExecutor for Changing {
        async fn run(&self, work: &AgentWork) -> Option<ExecutionResult> {
            let (name, state, summary) = (work.agent().name.clone(), json!({"n": 100}), Some("mine".to_owned()));
            let request = SetArtifact { name, state, summary, version: None };
            self.0.set_artifact(request).await.expect("nobody holds it");
            Some(printed("{\"state\": {\"n\": 1}}"))
        }
    }
    bench.scheduler_service.attempt(start, Arc::new(Changing(scheduler_service)), bench.stopping.subscribe()).await;
    let artifact = bench.artifact("a").await.expect("an artifact");
    // The run counts, and changed nothing of what the person made.
    assert_eq!((&artifact.state, artifact.run_count, artifact.summary.as_str()), (&json!({"n": 100}), 0, "mine"));
    assert_eq!(bench.scheduler_service.show(&name("a")).await.expect("shown").run_count, 1);
    let (tasks, _) = bench.tasks(Some("a"), None).await;
    let task = bench.task(&tasks[0].id).await;
    let result = task.attempts[0].result.as_ref().expect("a result");
    assert!(result.success && result.notes[0].contains("was not kept"), "{result:?}");
    assert!(result.notes[0].ends_with("by a person; that one stays whole"), "{result:?}");
}

#[tokio::test]
async fn a_damaged_artifact_fails_the_run_and_is_said_and_can_be_replaced() {
    let agent_executor = counting();
    let store = Arc::new(MemoryStore::new());
    let bench = Bench::over(Arc::clone(&store) as _, &Arc::new(HandClock::at(5)), &agent_executor);
    bench.add("a").await;
    bench.execute("a", None).await;
    let damage = Batch::new().put(Table::Agents, rows::head_key(&name("a")), *b"{\"version\": 1, \"artif");
    store.commit(damage).await.expect("taken");
    let (task, result) = bench.execute("a", None).await;
    assert!(!result.success && !result.retryable, "{result:?}");
    assert!(result.error_message.as_deref().is_some_and(|error| error.contains("damaged")), "{result:?}");
    assert!(task.is_some(), "it is a task that failed");
    assert_eq!(agent_executor.executed.load(Ordering::SeqCst), 1, "it is not taken for a first run");
    let request = ShowArtifact { name: name("a"), version: None };
    let error = bench.scheduler_service.artifact(request).expect_err("damaged");
    assert!(error.to_string().contains("damaged"), "{error:#}");
    let view = bench.scheduler_service.show(&name("a")).await.expect("shown");
    assert!(view.artifact_error.is_some_and(|error| error.contains("damaged")));
    let replaced = SetArtifact { name: name("a"), state: json!({"n": 1}), summary: None, version: None };
    bench.scheduler_service.set_artifact(replaced).await.expect("replaced");
    assert_eq!(bench.artifact("a").await.map(|artifact| artifact.version), Some(2));
    assert!(bench.execute("a", None).await.1.success);
}

#[tokio::test]
async fn a_state_that_is_too_large_fails_the_run_and_the_one_before_stays() {
    let agent_executor = told(|_, before| match before {
        0 => printed("{\"state\": {\"n\": 1}}"),
        _ => printed(json!({"state": {"n": "x".repeat(1 << 20)}}).to_string()),
    });
    let bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.execute("a", None).await;
    let (_, result) = bench.execute("a", None).await;
    assert!(!result.success && !result.retryable, "{result:?}");
    assert!(result.error_message.as_deref().is_some_and(|error| error.contains("`state` has")), "{result:?}");
    let artifact = bench.artifact("a").await.expect("an artifact");
    assert_eq!((artifact.run_count, &artifact.state["n"]), (2, &json!(1)));
    assert_eq!(artifact.state["recent_errors"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_agent_that_is_not_there_or_not_active_is_a_result_and_a_task() {
    let agent_executor = counting();
    let bench = Bench::new(&agent_executor);
    let (task, result) = bench.execute("nobody", None).await;
    assert_eq!((result.success, result.exit_code, result.retryable), (false, -1, false));
    assert!(result.error_message.is_some_and(|error| error.starts_with("Agent nobody not found")));
    assert_eq!(bench.task(&task.expect("a task")).await.status, TaskStatus::Failed);
    bench.add("a").await;
    let request = ActivateAgent { name: name("a"), active: false };
    bench.scheduler_service.activate(request).await.expect("switched off");
    let (_, result) = bench.execute("a", None).await;
    assert!(result.error_message.is_some_and(|error| error.starts_with("Agent a is not active")));
    assert_eq!((agent_executor.executed.load(Ordering::SeqCst), bench.tasks(Some("a"), None).await.1), (0, 1));
}

#[tokio::test]
async fn what_is_given_by_hand_is_seen_and_not_handed_on() {
    let agent_executor = told(|work, _| printed(json!({ "state": work.context() }).to_string()));
    let bench = Bench::new(&agent_executor);
    let agent = NewAgent { config: json!({"unit": "C"}), ..python("a") };
    bench.scheduler_service.register(RegisterAgent { agent, wasm: None }).await.expect("an agent");
    let (_, result) = bench.execute("a", Some(json!([1]))).await;
    assert!(result.stdout.contains("\"config\":{\"unit\":\"C\"},\"input\":[1]"), "{result:?}");
    let artifact = bench.artifact("a").await.expect("an artifact");
    let keys: Vec<&str> = artifact.state.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["previous_output", "run_count", "last_run"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_tried_again_and_by_hand_once_more_and_stays_one_task() {
    let agent_executor = told(|_, before| match before {
        0..3 => ExecutionResult::failed(format!("no {before}"), true),
        3 => ExecutionResult::failed("never", false),
        _ => printed("well"),
    });
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.put(Schedule { retries_max: 3, ..each_minute("s", "a") }).await;
    bench.put(Schedule { enabled: false, ..each_minute("off", "a") }).await;
    for ms in [MINUTE, 2_000, 4_000] {
        bench.pass(ms).await;
    }
    let (tasks, total) = bench.tasks(Some("a"), Some(StatusFilter::Pending)).await;
    assert_eq!((tasks.len(), total, tasks[0].retry_count), (1, 1, 2));
    let error = bench.scheduler_service.retry(tasks[0].id.as_str()).await.expect_err("it waits");
    assert!(error.to_string().contains("is pending"), "{error:#}");
    bench.pass(8_000).await;
    let (tasks, total) = bench.tasks(Some("a"), Some(StatusFilter::Failed)).await;
    assert_eq!((tasks.len(), total, tasks[0].attempts.len()), (1, 1, 4));
    let tally = bench.tally("s").await;
    assert_eq!((tally.tasks, tally.failed, tally.retries), (1, 1, 3));
    let task = bench.task(&tasks[0].id).await;
    let errors = task.attempts.iter().filter_map(|one| one.result.as_ref()?.error_message.clone());
    assert_eq!(errors.collect::<Vec<_>>(), ["no 0", "no 1", "no 2", "never"]);
    assert_eq!(task.failure, Some(TaskFailure::NotRetryable));
    bench.scheduler_service.retry(tasks[0].id.as_str()).await.expect("a person may always retry");
    bench.pass(0).await;
    let task = bench.task(&tasks[0].id).await;
    assert_eq!((task.status, task.attempts.len(), task.failure), (TaskStatus::Completed, 5, None));

    // The same task may run again, and is counted once.
    let (by_hand, result) = bench.execute("nobody", None).await;
    assert!(!result.success);
    bench.add("nobody").await;
    let id = by_hand.expect("a task");
    bench.scheduler_service.retry(id.as_str()).await.expect("once more");
    bench.pass(0).await;
    let task = bench.task(&id).await;
    assert_eq!((task.status, task.attempts.len(), task.schedule), (TaskStatus::Completed, 2, None));
    assert_eq!(bench.tasks(Some("nobody"), None).await.1, 1);
}

#[tokio::test]
async fn tasks_are_listed_by_pages_with_what_is_open_in_front() {
    let agent_executor =
        told(|_, before| if before.is_multiple_of(2) { printed("well") } else { ExecutionResult::failed("no", false) });
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.add("b").await;
    bench.put(each_minute("s", "a")).await;
    for _ in 0..10 {
        bench.pass(MINUTE).await;
    }
    bench.execute("b", None).await;
    bench.clock.advance_ms(MINUTE);
    bench.scheduler_service.tick().await.expect("a tick");
    let page = async |offset, limit| {
        let request = ListTasks { agent: Some(name("a")), status: None, limit, offset };
        let TaskList { tasks, total_count, .. } = bench.scheduler_service.tasks(request).await.expect("an answer");
        assert_eq!(total_count, 11);
        tasks.iter().map(|task| task.fire_ms).collect::<Vec<u64>>()
    };
    let all = page(0, 100).await;
    assert!(all.len() == 11 && all.is_sorted_by(|a, b| a > b), "{all:?}");
    let pages = [page(0, 4).await, page(4, 4).await, page(8, 4).await, page(12, 4).await].concat();
    assert_eq!(pages, all);
    assert_eq!(bench.tasks(Some("a"), Some(StatusFilter::Completed)).await.1, 5);
    assert_eq!(bench.tasks(Some("a"), Some(StatusFilter::Failed)).await.1, 5);
    assert_eq!(bench.tasks(Some("a"), Some(StatusFilter::Running)).await.1, 1);
    assert_eq!(bench.tasks(None, None).await.1, 12);
}

#[tokio::test]
async fn only_the_newest_tasks_are_kept_and_the_counts_say_so() {
    let store = MemoryStore::new();
    let task = |number: u64| longhaul_schedule::ScheduledTask {
        id: TaskId::from_text(format!("t-{number}")),
        schedule: name("s"),
        agent: name("a"),
        fire_ms: number,
        due_ms: number,
        cause: longhaul_schedule::TaskCause::Time,
        status: if number.is_multiple_of(2) { TaskStatus::Completed } else { TaskStatus::Failed },
        attempts: Vec::new(),
        retries_max: 3,
        backoff: longhaul_schedule::RetryBackoff::default(),
        interruptions_max: 20,
        interruptions: 0,
        progress: None,
        waits_for: None,
        failure: None,
    };
    for first in [0_u64, 4, 8] {
        // Several in one transaction.
        let mut writing = ScheduleTransaction::new(&store, first + 100).keeping(5);
        for number in first..first + 4 {
            writing.result(&task(number), &ExecutionResult::default()).expect("kept");
            writing.ended_by_hand(task(number)).expect("kept");
        }
        store.commit(writing.finish().expect("whole")).await.expect("taken");
    }
    let rows = rows::ended_tasks(&store, Some(&name("a")), None, 100, 0).expect("read");
    let (numbers, counts) = (rows.iter().map(|row| row.task.fire_ms), rows::counts(&store, None).expect("read"));
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    assert_eq!((numbers.len() as u64, numbers.last()), (counts.of(None), Some(&11)));
    assert!(numbers.len() <= 8 && numbers[0] >= 4, "{numbers:?}");
    let left = |kind: &str| store.scan(Table::Schedules, &Key::of(kind), None, 1_000).expect("read").len();
    assert_eq!((left("ended"), left("result"), left("index")), (numbers.len(), numbers.len(), 2 * numbers.len()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_somebody_runs_is_waited_for_and_the_other_way_round() {
    let agent_executor = counting();
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.put(each_minute("s", "a")).await;
    lock(&bench.scheduler_service.by_hand).insert(name("a"), TaskId::from_text("t-hand"));
    bench.pass(MINUTE).await;
    let (tasks, _) = bench.tasks(Some("a"), Some(StatusFilter::Pending)).await;
    assert!(tasks[0].waits_for.as_deref().is_some_and(|why| why.contains("t-hand")), "{tasks:?}");
    assert_eq!(tasks[0].attempts, []);
    lock(&bench.scheduler_service.by_hand).clear();
    bench.pass(1_000).await;
    assert_eq!(bench.tasks(Some("a"), Some(StatusFilter::Completed)).await.1, 1);
    bench.clock.advance_ms(MINUTE);
    bench.scheduler_service.tick().await.expect("a tick");
    let (task, result) = bench.execute("a", None).await;
    assert_eq!((task, result.retryable), (None, true));
    assert!(result.error_message.is_some_and(|error| error.contains("is at work on task")));
    let error = bench.scheduler_service.remove(&name("a")).await.expect_err("it is used");
    assert!(error.to_string().contains("is run by: s"), "{error:#}");
}

/// Admits nothing before a time.
struct Later(u64, Arc<HandClock>);

impl Admission for Later {
    fn admit(&self, wanted: &AdmissionRequest) -> AdmissionDecision {
        assert_eq!((wanted.agent.as_str(), wanted.kind, wanted.memory_bytes_max), ("a", "python", 256 << 20));
        if self.1.now_ms() >= self.0 {
            return AdmissionDecision::Now;
        }
        AdmissionDecision::Wait { reason: "256 MiB of memory".to_owned(), for_ms: 500 }
    }
}

#[tokio::test]
async fn what_the_machine_has_no_room_for_waits_with_its_reason() {
    let agent_executor = counting();
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.put(each_minute("s", "a")).await;
    bench.scheduler_service.admit_by(Arc::new(Later(HandClock::START_MS + MINUTE + 1_000, Arc::clone(&bench.clock))));
    bench.pass(MINUTE).await;
    let (tasks, _) = bench.tasks(None, Some(StatusFilter::Pending)).await;
    assert_eq!(tasks[0].waits_for.as_deref(), Some("256 MiB of memory"));
    let (task, result) = bench.execute("a", None).await;
    assert!(task.is_none() && result.error_message.is_some_and(|error| error.contains("256 MiB of memory")));
    bench.pass(500).await;
    assert_eq!(agent_executor.executed.load(Ordering::SeqCst), 0);
    bench.pass(500).await;
    assert_eq!(bench.tally("s").await.completed, 1);
    assert_eq!(bench.tasks(None, None).await.0[0].attempts.len(), 1, "to wait is no attempt");
}

#[tokio::test]
async fn without_a_scheduler_nothing_fires_and_nothing_is_lost() {
    let agent_executor = counting();
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.put(each_minute("s", "a")).await;
    let starts = lock(&bench.scheduler_service.starts).take();
    bench.clock.advance_ms(10 * MINUTE);
    bench.put(each_minute("t", "a")).await;
    let task = bench.scheduler_service.run_now(name("s")).await.expect("asked for");
    assert_eq!((task.status, bench.tasks(None, None).await.1), (TaskStatus::Pending, 1));
    let status = bench.scheduler_service.scheduler_status().await.expect("known");
    assert_eq!((status.working, status.running, status.pending), (false, 0, 1));
    *lock(&bench.scheduler_service.starts) = starts;
    bench.pass(0).await;
    assert_eq!(bench.tasks(None, Some(StatusFilter::Completed)).await.1, 1);
    assert_eq!(bench.tally("s").await.skipped, [("missed".to_owned(), 9), ("still_waiting".to_owned(), 1)].into());
}

#[tokio::test]
async fn a_chain_runs_through_the_service_and_a_circle_is_refused() {
    let agent_executor = told(|work, _| match work.agent().name.as_str() {
        "bad" => ExecutionResult::failed("no", false),
        _ => printed("well"),
    });
    let mut bench = Bench::new(&agent_executor);
    for agent in ["a", "bad", "after", "rescue"] {
        bench.add(agent).await;
    }
    let after = |schedule: &str, agent: &str, of: &str, when| {
        Schedule::new(name(schedule), name(agent), Trigger::After { agent: of.to_owned(), when })
    };
    bench.put(each_minute("s", "a")).await;
    bench.put(after("1", "bad", "a", When::Success)).await;
    bench.put(after("2", "after", "bad", When::Success)).await;
    bench.put(after("3", "rescue", "bad", When::Failure)).await;
    bench.pass(MINUTE).await;
    let (tasks, _) = bench.tasks(None, None).await;
    let mut ran: Vec<&str> = tasks.iter().map(|task| task.agent.as_str()).collect();
    ran.sort_unstable();
    assert_eq!(ran, ["a", "bad", "rescue"]);
    let circle = PutSchedule { schedule: after("4", "a", "rescue", When::Always), replace: false };
    let error = bench.scheduler_service.put_schedule(circle).await.expect_err("a circle");
    assert!(error.to_string().contains("a -> bad -> rescue -> a"), "{error:#}");
    for (schedule, why) in [
        (after("5", "a", "nobody", When::Always), "there is no agent `nobody`"),
        (after("5", "a", "", When::Always), "names no agent"),
        (each_minute("s", "a"), "already"),
        (each_minute(BY_HAND, "a"), "choose another name"),
        (each_minute("6", "nobody"), "longhaul agent add nobody"),
    ] {
        let request = PutSchedule { schedule, replace: false };
        let error = bench.scheduler_service.put_schedule(request).await.expect_err(why);
        assert!(error.to_string().contains(why), "{error:#}");
    }
}

#[tokio::test]
async fn a_run_that_a_kill_cut_off_is_the_same_run_when_it_goes_on() {
    let seen: Arc<Mutex<Vec<RunId>>> = Arc::default();
    let note = Arc::clone(&seen);
    let agent_executor = told(move |work, _| {
        lock(&note).push(work.run());
        printed("well")
    });
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(HandClock::at(HandClock::START_MS)));
    let bench = Bench::over(Arc::clone(&store) as _, &clock, &agent_executor);
    let agent = NewAgent::new(name("a"), AgentCode::Run { directory: "/nowhere".into() });
    bench.scheduler_service.register(RegisterAgent { agent, wasm: None }).await.expect("an agent");
    bench.put(each_minute("s", "a")).await;
    clock.advance_ms(MINUTE);
    bench.scheduler_service.tick().await.expect("a tick");
    let (tasks, _) = bench.tasks(None, Some(StatusFilter::Running)).await;
    let asked = bench.task(&tasks[0].id).await.attempts[0].run.clone();
    drop(bench);
    // Another process, with a scheduler of its own.
    let home = Home::find(Some("/nowhere".into())).expect("a path");
    let (clock_of, models) = (Arc::clone(&clock) as Arc<dyn Clock>, Arc::new(NoModels));
    let notifier = Notifier::new(&home, store.clone(), Arc::clone(&clock_of), CrashPoints::default());
    let scheduler_service =
        SchedulerService::new(store, clock_of, &home, CrashPoints::default(), Arc::new(notifier), models);
    let scheduler_service = Arc::new(scheduler_service);
    let scheduler =
        Scheduler::over(Arc::clone(&scheduler_service), Arc::clone(&agent_executor) as _).await.expect("one");
    assert!(Scheduler::over(Arc::clone(&scheduler_service), agent_executor).await.is_err(), "a second one");
    let completed =
        async || rows::counts(&*scheduler_service.store, None).expect("read").of(Some(StatusFilter::Completed));
    while completed().await == 0 {
        // Its run waits for a second after the interruption.
        clock.advance_ms(100);
        scheduler_service.changed.notify_one();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    scheduler.stop().await;
    assert_eq!(*lock(&seen), [asked.expect("a run")]);
    let row = rows::ended(&*scheduler_service.store, &tasks[0].id).expect("read").expect("it ended");
    assert_eq!(row.task.attempts.len(), 1, "it is no second attempt");
}

#[tokio::test]
async fn a_change_of_an_agent_by_an_old_version_is_refused_and_a_model_that_is_away_sums_nothing_up() {
    let agent_executor = told(|_, _| printed("x".repeat(300)));
    let bench = Bench::new(&agent_executor);
    bench.add("a").await;
    let patch = |by| AgentPatch { summary_by: Some(by), ..AgentPatch::default() };
    let by = SummaryBy { directory: "/nowhere".into(), model: "m".to_owned() };
    let update = UpdateAgent { name: name("a"), patch: patch(Some(by)), wasm: None, version: Some(1) };
    bench.scheduler_service.update(update.clone()).await.expect("the version");
    let error = bench.scheduler_service.update(update).await.expect_err("an old version");
    assert!(error.to_string().contains("the record of agent `a` has version 2"), "{error:#}");
    let (_, result) = bench.execute("a", None).await;
    assert!(result.success);
    assert_eq!(bench.artifact("a").await.map(|artifact| artifact.summary), Some("x".repeat(200)));
    let again = RegisterAgent { agent: python("a"), wasm: None };
    let error = bench.scheduler_service.register(again).await.expect_err("taken");
    assert!(error.to_string().contains("longhaul agent update a"), "{error:#}");
    bench.scheduler_service.remove(&name("a")).await.expect("nothing uses it");
    assert!(bench.scheduler_service.show(&name("a")).await.is_err());
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

#[tokio::test(start_paused = true)]
async fn a_task_that_failed_for_good_is_told_once_and_no_other() {
    let home = tempfile::tempdir().expect("a directory");
    settings(home.path(), TELLING);
    let agent_executor = told(|work, _| match (work.agent().name.as_str(), work.task.attempts.len()) {
        ("never", _) => {
            let limit = Some("timeout_ms".to_owned());
            ExecutionResult { limit, ..ExecutionResult::failed("out of\ntime", true) }
        }
        ("late", 1) | ("withdrawn", _) => ExecutionResult::failed("it rained", true),
        _ => printed("well"),
    });
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(HandClock::at(HandClock::START_MS)));
    let mut bench = Bench::at(home.path(), Arc::clone(&store) as _, &clock, &agent_executor);
    for agent in ["never", "late", "withdrawn", "well"] {
        bench.add(agent).await;
        bench.put(by_hand(agent, agent, 1)).await;
        bench.fire(agent).await;
    }
    assert!(notifications(&*store).is_empty(), "what failed is retried");
    bench.scheduler_service.remove_schedule(name("withdrawn")).await.expect("it was there");
    bench.pass(2_000).await;
    let (failed, _) = bench.tasks(Some("never"), Some(StatusFilter::Failed)).await;
    let id = failed[0].id.to_string();
    let notifications_now = notifications(&*store);
    assert_eq!(notifications_now.len(), 1, "{notifications_now:?}");
    let (told, now_ms) = (&notifications_now[0], bench.clock.now_ms());
    assert!(told["id"].as_str().is_some_and(|id| id.starts_with("n-")), "{told}");
    let expected = json!({
        "id": told["id"], "occasion": "fails", "task": id, "agent": "never", "schedule": "never", "attempts": 2,
        "limit": "timeout_ms", "at_ms": now_ms, "command": format!("longhaul schedule tasks --task {id}"),
        "text": "out of time", "suppressed": 0,
    });
    assert_eq!(*told, expected);
    let (_, result) = bench.execute("never", None).await;
    assert!(!result.success);
    assert_eq!(notifications(&*store).len(), 1, "who runs it by hand sees what became of it");
    settings(home.path(), "[notify]\ncommand = [\"true\"]\non = [\"asks\"]\n");
    bench.put(by_hand("once", "never", 0)).await;
    bench.fire("once").await;
    assert_eq!(notifications(&*store).len(), 1, "nobody wants to hear of it");
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_commit_loses_no_letter_and_adds_none() {
    let home = tempfile::tempdir().expect("a directory");
    settings(home.path(), TELLING);
    let (mut kills, mut failures) = (0, 0);
    for commits in 0..12 {
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(HandClock::at(HandClock::START_MS)));
        let agent_executor = told(|_, _| ExecutionResult::failed("never", true));
        let mortal = Arc::new(Mortal { store: Arc::clone(&store), left: AtomicU64::new(u64::MAX) });
        let mut first = Bench::at(home.path(), Arc::clone(&mortal) as _, &clock, &agent_executor);
        first.add("a").await;
        first.put(by_hand("s", "a", 1)).await;
        mortal.left.store(commits, Ordering::SeqCst);
        let lived = tokio::time::timeout(Duration::from_secs(3_600), async {
            first.fire("s").await;
            first.pass(2_000).await;
        });
        kills += u32::from(lived.await.is_err());
        let failed = || rows::counts(&*store, None).expect("read").of(Some(StatusFilter::Failed));
        assert_eq!(notifications(&*store).len() as u64, failed(), "killed at commit {commits}");
        let mut second = Bench::at(home.path(), Arc::clone(&store) as _, &clock, &agent_executor);
        for _ in 0..3 {
            second.pass(MINUTE).await;
        }
        assert_eq!(notifications(&*store).len() as u64, failed(), "after a kill at commit {commits}");
        failures += failed();
    }
    // A kill before any row of the task is stored leaves no task.
    assert!(kills >= 3 && failures >= 11, "{kills} {failures}");
}

#[tokio::test]
async fn what_is_wrong_with_server_toml_keeps_no_task_from_its_end_and_leaves_who_is_told() {
    let home = tempfile::tempdir().expect("a directory");
    let agent_executor = told(|_, _| ExecutionResult::failed("never", false));
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(HandClock::at(HandClock::START_MS)));
    let mut bench = Bench::at(home.path(), Arc::clone(&store) as _, &clock, &agent_executor);
    bench.add("a").await;
    bench.put(by_hand("s", "a", 0)).await;
    for (text, ended, told) in
        [("[notify]\n", 1, 0), ("", 2, 0), (TELLING, 3, 1), ("[notify\n", 4, 2), ("[notify]\n", 5, 3), ("", 6, 3)]
    {
        settings(home.path(), text);
        bench.fire("s").await;
        assert_eq!(bench.tasks(None, Some(StatusFilter::Failed)).await.1, ended, "{text}");
        assert_eq!(notifications(&*store).len(), told, "{text}");
    }
}
