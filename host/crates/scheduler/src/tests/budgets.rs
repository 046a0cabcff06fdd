//! Interruptions by the host, retries by hand, and the queue, as they are stored and told.

use super::*;
use longhaul_records::commit_loss::{self, OpenedStore};
use longhaul_schedule::{AttemptOutcome, RetryBackoff, TaskFailure, TaskStatus, When};

/// The rows of a data directory, over which one process follows another.
struct Rows {
    store: Arc<MemoryStore>,
    clock: Arc<HandClock>,
    agent_executor: Arc<Told>,
}

impl Rows {
    fn with(agent_executor: Arc<Told>) -> Self {
        let clock = Arc::new(HandClock::at(HandClock::START_MS));
        Self { store: Arc::new(MemoryStore::new()), clock, agent_executor }
    }

    /// A process that owns the data directory. One that is dropped was killed.
    fn process(&self) -> Bench {
        Bench::over(Arc::clone(&self.store) as _, &self.clock, &self.agent_executor)
    }

    /// Has the due task start in one process, which is killed then.
    async fn kill(&self) {
        let bench = self.process();
        bench.scheduler_service.tick().await.expect("a tick");
        let (tasks, _) = bench.tasks(None, Some(StatusFilter::Running)).await;
        assert_eq!(tasks.len(), 1, "it runs when the process is killed");
    }
}

#[tokio::test]
async fn kills_cost_no_retry_and_too_many_in_a_row_fail_the_task_with_the_reason() {
    let home = tempfile::tempdir().expect("a directory");
    settings(home.path(), TELLING);
    let rows = Rows::with(counting());
    let bench = Bench::at(home.path(), Arc::clone(&rows.store) as _, &rows.clock, &rows.agent_executor);
    bench.add("a").await;
    bench.put(Schedule { interruptions_max: 3, retries_max: 0, ..by_hand("s", "a", 0) }).await;
    let id = bench.scheduler_service.run_now(name("s")).await.expect("a task").id;
    drop(bench);
    for number in 1..=3_u32 {
        let (bench, wait_ms) = (rows.process(), 500_u64 << number);
        let task = bench.task(&id).await;
        assert_eq!((task.status, task.interruption_count, task.retry_count), (TaskStatus::Pending, number, 0));
        assert_eq!(task.due_ms, rows.clock.now_ms() + wait_ms, "1, 2 and 4 seconds");
        assert!(task.waits_for.is_some_and(|why| why.contains(&format!("{number} of at most 3 times in a row"))));
        rows.clock.advance_ms(wait_ms);
        drop(bench);
        rows.kill().await;
    }
    let mut bench = Bench::at(home.path(), Arc::clone(&rows.store) as _, &rows.clock, &rows.agent_executor);
    let task = bench.task(&id).await;
    assert_eq!((task.status, task.failure), (TaskStatus::Failed, Some(TaskFailure::InterruptionsExceeded)));
    assert!(task.attempts.iter().all(|one| one.attempt.outcome == Some(AttemptOutcome::Interrupted)), "{task:?}");
    let result = task.attempts[3].result.clone().expect("a result");
    assert_eq!(result.limit.as_deref(), Some("interruptions_max"));
    assert!(result.error_message.is_some_and(|error| error.contains("4 times in a row")), "{:?}", task.attempts);
    let told = notifications(&*rows.store);
    assert_eq!((told.len(), &told[0]["limit"]), (1, &json!("interruptions_max")));
    assert_eq!(rows.agent_executor.executed.load(Ordering::SeqCst), 0);
    // A person has mended it.
    bench.scheduler_service.retry(id.as_str()).await.expect("a person may always retry");
    bench.pass(0).await;
    let task = bench.task(&id).await;
    assert_eq!((task.status, task.attempts.len(), task.interruption_count), (TaskStatus::Completed, 5, 0));
    let tally = bench.tally("s").await;
    assert_eq!((tally.tasks, tally.completed, tally.failed, tally.retries), (1, 1, 0, 0));
    assert_eq!(bench.artifact("a").await.map(|artifact| artifact.run_count), Some(1));
}

#[tokio::test(start_paused = true)]
async fn code_that_a_stop_of_the_host_cuts_off_is_interrupted_and_has_not_failed() {
    /// Code that takes for ever.
    struct Endless;
    #[async_trait::async_trait]
    impl AgentExecutor for Endless {
        async fn run(&self, _: &AgentWork) -> Option<ExecutionResult> {
            std::future::pending().await
        }
    }
    let mut bench = Bench::new(&counting());
    bench.add("a").await;
    bench.put(by_hand("s", "a", 0)).await;
    let id = bench.scheduler_service.run_now(name("s")).await.expect("a task").id;
    let start = bench.starts.try_recv().expect("it is due");
    bench.stopping.send_replace(true);
    bench.scheduler_service.attempt(start, Arc::new(Endless), bench.stopping.subscribe()).await;
    let task = bench.task(&id).await;
    assert_eq!((task.status, task.interruption_count), (TaskStatus::Pending, 1));
    let result = task.attempts[0].result.as_ref().expect("a result");
    assert_eq!(result.error_message.as_deref(), Some("the host ended while it ran"));
    bench.stopping = watch::Sender::new(false);
    bench.pass(1_000).await;
    assert_eq!(bench.task(&id).await.status, TaskStatus::Completed);
}

#[tokio::test]
async fn an_agent_that_is_a_run_is_interrupted_until_its_budget_is_used_up() {
    let rows = Rows::with(told(|_, _| printed("well")));
    let bench = rows.process();
    let agent = NewAgent::new(name("a"), AgentCode::Run { directory: "/nowhere".into() });
    bench.scheduler_service.register(RegisterAgent { agent, wasm: None }).await.expect("an agent");
    bench.put(Schedule { interruptions_max: 2, ..by_hand("s", "a", 0) }).await;
    let id = bench.scheduler_service.run_now(name("s")).await.expect("a task").id;
    drop(bench);
    // The first one finds no event of the run, and so do the others.
    for number in 1..=2_u32 {
        let task = rows.process().task(&id).await;
        assert_eq!((task.interruption_count, task.attempts.len()), (number, 1), "{task:?}");
        assert!(task.attempts[0].attempt.outcome.is_none(), "its run goes on: {task:?}");
        rows.clock.advance_ms(5_000);
        rows.kill().await;
    }
    let task = rows.process().task(&id).await;
    assert_eq!((task.failure, task.attempts.len()), (Some(TaskFailure::InterruptionsExceeded), 1));
}

#[tokio::test]
async fn a_fire_beyond_the_queue_is_refused_and_seen_with_its_limit() {
    let home = tempfile::tempdir().expect("a directory");
    settings(home.path(), "[scheduler]\nqueue_max = 3\n");
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(HandClock::at(HandClock::START_MS)));
    let mut bench = Bench::at(home.path(), store, &clock, &counting());
    bench.add("a").await;
    bench.put(Schedule { queue_max: 2, ..by_hand("s", "a", 0) }).await;
    bench.put(by_hand("other", "a", 0)).await;
    // Nothing starts without a scheduler, so that every task waits.
    let starts = lock(&bench.scheduler_service.starts).take();
    for _ in 0..2 {
        bench.scheduler_service.run_now(name("s")).await.expect("there is a place");
    }
    let error = bench.scheduler_service.run_now(name("s")).await.expect_err("its queue is full");
    assert!(error.to_string().contains("2 of at most 2 tasks of the schedule wait (`queue_max`)"), "{error:#}");
    bench.scheduler_service.run_now(name("other")).await.expect("there is a place");
    let error = bench.scheduler_service.run_now(name("other")).await.expect_err("the queue is full");
    assert!(error.to_string().contains("3 of at most 3 tasks wait (`queue_max` of `[scheduler]`"), "{error:#}");
    let view = bench.scheduler_service.show_schedule(ShowSchedule { name: name("s"), fires: 0 }).await.expect("shown");
    let detail = view.last_skipped.and_then(|last| last.detail).expect("a detail");
    assert_eq!(detail, "2 of at most 2 tasks of the schedule wait (`queue_max`)");
    assert_eq!(view.tally.skipped, [("queue_full".to_owned(), 1)].into());
    let status = bench.scheduler_service.scheduler_status().await.expect("known");
    assert_eq!((status.pending, status.queue_max), (3, 3));
    *lock(&bench.scheduler_service.starts) = starts;
    for _ in 0..3 {
        bench.pass(0).await;
    }
    assert_eq!(bench.tasks(None, Some(StatusFilter::Completed)).await.1, 3);
    bench.fire("s").await;
    assert_eq!(bench.tally("s").await.completed, 3, "there is a place again");
}

#[tokio::test]
async fn the_waits_of_a_schedule_are_those_that_it_was_given() {
    let agent_executor = told(|_, _| ExecutionResult::failed("no", true));
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    let backoff = RetryBackoff { ms_first: 10, ms_max: 25, factor: 2 };
    bench.put(Schedule { backoff, ..by_hand("s", "a", 4) }).await;
    bench.fire("s").await;
    for (number, wait_ms) in (2..).zip([10, 20, 25, 25]) {
        bench.pass(wait_ms - 1).await;
        assert_eq!(agent_executor.executed.load(Ordering::SeqCst), number - 1, "too early");
        bench.pass(1).await;
        assert_eq!(agent_executor.executed.load(Ordering::SeqCst), number);
    }
    let (tasks, _) = bench.tasks(None, Some(StatusFilter::Failed)).await;
    assert_eq!((tasks[0].retry_count, tasks[0].failure), (4, Some(TaskFailure::RetriesExceeded)));
}

/// As if the database had failed over since the store was used.
async fn fail_over(store: &MemoryStore) {
    let opened = OpenedStore { timeline: 2, claimed_before: Some(1), ..OpenedStore::default() };
    commit_loss::note(store, &opened).await.expect("noted");
}

#[tokio::test]
async fn a_task_that_ran_before_a_failover_of_the_database_is_tried_again_by_a_person_alone() {
    let rows = Rows::with(counting());
    let bench = rows.process();
    bench.add("a").await;
    bench.add("b").await;
    bench.put(by_hand("s", "a", 3)).await;
    let follows = Trigger::After { agent: "a".to_owned(), when: When::Always };
    bench.put(Schedule::new(name("after"), name("b"), follows)).await;
    let id = bench.scheduler_service.run_now(name("s")).await.expect("a task").id;
    drop(bench);
    fail_over(&rows.store).await;
    let mut bench = rows.process();
    let task = bench.task(&id).await;
    assert_eq!((task.status, task.failure), (TaskStatus::Failed, Some(TaskFailure::NotRetryable)));
    let why = task.attempts[0].result.clone().and_then(|result| result.error_message).expect("a reason");
    assert!(why.contains("timeline 1 to 2") && why.ends_with(&format!("longhaul schedule retry {id}")), "{why}");
    bench.pass(MINUTE).await;
    assert_eq!(rows.agent_executor.executed.load(Ordering::SeqCst), 0, "what follows it waits, too");
    bench.scheduler_service.retry(id.as_str()).await.expect("a person may always retry");
    bench.pass(0).await;
    assert_eq!(bench.task(&id).await.status, TaskStatus::Completed);
    assert_eq!(commit_loss::of_tasks(&*rows.store).expect("read"), None);
}

#[tokio::test]
async fn a_task_that_waited_through_a_failover_is_tried_by_a_person_where_it_may_have_begun() {
    let rows =
        Rows::with(told(|_, before| if before == 0 { ExecutionResult::failed("no", true) } else { printed("well") }));
    let mut bench = rows.process();
    bench.add("a").await;
    bench.put(Schedule { backoff: RetryBackoff { ms_first: 10, ms_max: 10, factor: 1 }, ..by_hand("s", "a", 3) }).await;
    bench
        .put(Schedule {
            backoff: RetryBackoff { ms_first: MINUTE, ms_max: MINUTE, factor: 1 },
            ..by_hand("late", "a", 3)
        })
        .await;
    let retried = bench.scheduler_service.run_now(name("s")).await.expect("a task").id;
    bench.pass(0).await;
    rows.agent_executor.executed.store(0, Ordering::SeqCst);
    let late = bench.scheduler_service.run_now(name("late")).await.expect("a task").id;
    bench.pass(0).await;
    // Nothing starts without a scheduler.
    drop(lock(&bench.scheduler_service.starts).take());
    let never_tried = bench.scheduler_service.run_now(name("s")).await.expect("a task").id;
    drop(bench);
    rows.clock.advance_ms(10);
    fail_over(&rows.store).await;
    let mut bench = rows.process();
    for (id, attempts) in [(&retried, 2), (&never_tried, 1)] {
        let task = bench.task(id).await;
        assert_eq!((task.status, task.failure), (TaskStatus::Failed, Some(TaskFailure::NotRetryable)));
        assert_eq!(task.attempts.len(), attempts, "with the one that it may have had");
        let last = task.attempts.last().and_then(|attempt| attempt.result.clone());
        let why = last.and_then(|result| result.error_message).expect("a reason");
        assert!(why.contains("timeline 1 to 2") && why.ends_with(&format!("longhaul schedule retry {id}")), "{why}");
    }
    let task = bench.task(&late).await;
    assert_eq!((task.status, task.attempts.len()), (TaskStatus::Pending, 1), "it was not due, so it had not begun");
    bench.pass(MINUTE).await;
    assert_eq!(bench.task(&late).await.status, TaskStatus::Completed);
    for id in [retried, never_tried] {
        bench.scheduler_service.retry(id.as_str()).await.expect("a person may always retry");
        bench.pass(0).await;
        assert_eq!(bench.task(&id).await.status, TaskStatus::Completed);
    }
}
