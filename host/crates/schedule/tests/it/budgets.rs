//! The budgets of a task, moved through hours by hand: retries, interruptions by the host, the queue, and retries by
//! hand after all of them.

use longhaul_schedule::{
    AttemptOutcome, Cron, FireOutcome, Missed, Name, RetryBackoff, Schedule, ScheduledTask, SchedulerAction,
    SchedulerInput, SchedulerState, SkipReason, TaskFailure, TaskId, TaskStatus, Trigger, step,
};

const HOUR: u64 = 3_600_000;
/// Thursday, 2026-01-01 00:00 UTC.
const START: u64 = 1_767_225_600_000;

fn name(text: &str) -> Name {
    Name::try_from(text.to_owned()).expect("a name")
}

fn hourly(schedule: &str) -> Schedule {
    let trigger = Trigger::Cron(Cron::parse("@hourly", "UTC").expect("an expression"));
    Schedule::new(name(schedule), name(&format!("agent-{schedule}")), trigger)
}

fn failed() -> AttemptOutcome {
    AttemptOutcome::Failed { error: "no".to_owned(), retryable: true }
}

/// A scheduler with one schedule, whose first task runs.
struct Bench {
    state: SchedulerState,
    now_ms: u64,
    actions: Vec<SchedulerAction>,
    id: TaskId,
}

impl Bench {
    fn with(schedule: Schedule) -> Self {
        let (state, id) = (SchedulerState::default(), TaskId::from_text("none yet"));
        let mut bench = Self { state, now_ms: START, actions: Vec::new(), id };
        bench.put(SchedulerInput::Put(schedule));
        bench.pass(HOUR);
        bench.id = bench.running().expect("the first task runs");
        bench
    }

    fn put(&mut self, input: SchedulerInput) {
        self.actions = step(&mut self.state, input, self.now_ms).expect("an input that can be");
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.put(SchedulerInput::Tick);
    }

    fn running(&self) -> Option<TaskId> {
        self.state.tasks.values().find(|task| task.status == TaskStatus::Running).map(|task| task.id.clone())
    }

    fn end(&mut self, outcome: AttemptOutcome) {
        self.put(SchedulerInput::Ended(self.id.clone(), outcome));
    }

    fn interrupt(&mut self, progress: Option<u64>) {
        self.put(SchedulerInput::Interrupted { task: self.id.clone(), progress });
    }

    fn task(&self) -> &ScheduledTask {
        self.state.tasks.get(&self.id).expect("the task is open")
    }

    /// The task, if the last input ended it.
    fn over(&self) -> Option<ScheduledTask> {
        self.actions.iter().find_map(|action| match action {
            SchedulerAction::Ended(task) => Some(task.clone()),
            SchedulerAction::Start(_) | SchedulerAction::Note(_) => None,
        })
    }

    /// Waits until the task runs again, and says for how many milliseconds it did not.
    #[track_caller]
    fn wait(&mut self) -> u64 {
        let wait_ms = self.task().due_ms - self.now_ms;
        self.pass(wait_ms - 1);
        assert_eq!(self.task().status, TaskStatus::Pending, "it begins too early");
        self.pass(1);
        assert_eq!(self.task().status, TaskStatus::Running);
        wait_ms
    }
}

#[test]
fn a_kill_of_the_host_costs_no_attempt() {
    let mut bench = Bench::with(hourly("a"));
    for _ in 0..20 {
        bench.interrupt(None);
        bench.wait();
    }
    assert_eq!((bench.task().attempts.len(), bench.task().retry_count()), (21, 0));
    for seconds in [2, 4, 8] {
        bench.end(failed());
        assert_eq!(bench.wait(), seconds * 1_000, "all retries are left");
        bench.interrupt(None);
        bench.wait();
    }
    assert_eq!(bench.task().retry_count(), 3);
    bench.end(failed());
    let task = bench.over().expect("it is over");
    assert_eq!((task.status, task.failure), (TaskStatus::Failed, Some(TaskFailure::RetriesExceeded)));
    let interrupted = |attempts: &[longhaul_schedule::Attempt]| {
        attempts.iter().filter(|attempt| attempt.outcome == Some(AttemptOutcome::Interrupted)).count()
    };
    assert_eq!((task.attempts.len(), interrupted(&task.attempts)), (27, 23), "each of them is seen");
}

#[test]
fn a_task_that_kills_its_host_waits_longer_each_time_and_fails_with_the_reason() {
    let mut bench = Bench::with(Schedule { interruptions_max: 8, ..hourly("a") });
    let mut waits = Vec::new();
    for number in 1..=8 {
        bench.interrupt(None);
        let text = format!("the host ended while it ran, {number} of at most 8 times in a row");
        assert!(bench.task().waits_for.as_deref().is_some_and(|why| why.ends_with(&text)), "{:?}", bench.task());
        waits.push(bench.wait() / 1_000);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    bench.interrupt(None);
    let task = bench.over().expect("it is over");
    assert_eq!((task.status, task.failure), (TaskStatus::Failed, Some(TaskFailure::InterruptionsExceeded)));
    let text = format!(
        "the host ended while it ran, 9 times in a row, and `interruptions_max` is 8; find out why, and retry it with: longhaul schedule retry {}",
        task.id
    );
    assert_eq!(task.waits_for, Some(text));
    assert_eq!(bench.state.tasks.len(), 0);
}

#[test]
fn an_attempt_that_ends_by_itself_is_progress() {
    let mut bench = Bench::with(Schedule { interruptions_max: 2, ..hourly("a") });
    for _ in 0..3 {
        for _ in 0..2 {
            bench.interrupt(None);
            bench.wait();
        }
        assert_eq!(bench.task().interruptions, 2);
        bench.end(failed());
        assert_eq!(bench.task().interruptions, 0);
        bench.wait();
    }
    bench.interrupt(None);
    bench.wait();
    bench.end(AttemptOutcome::Completed);
    assert_eq!(bench.over().map(|task| (task.status, task.failure)), Some((TaskStatus::Completed, None)));
}

#[test]
fn a_run_goes_on_in_its_attempt_and_its_own_progress_counts() {
    let mut bench = Bench::with(Schedule { interruptions_max: 1, ..hourly("a") });
    bench.put(SchedulerInput::Began { task: bench.id.clone(), artifact_version: 7 });
    for progress in [0, 4, 9] {
        bench.interrupt(Some(progress));
        assert_eq!((bench.task().interruptions, bench.wait()), (1, 1_000));
    }
    let attempt = &bench.task().attempts[..];
    assert_eq!((attempt.len(), attempt[0].started_ms, attempt[0].artifact_version), (1, START + HOUR, Some(7)));
    // The machine has no room for it: it stays the attempt that it is.
    let (task, reason, until_ms) = (bench.id.clone(), "room".to_owned(), bench.now_ms + 5);
    bench.put(SchedulerInput::Deferred { task, reason, until_ms });
    assert_eq!(bench.wait(), 5);
    assert_eq!(bench.task().attempts[0].artifact_version, Some(7));
    bench.interrupt(Some(9));
    let task = bench.over().expect("it did nothing in between");
    assert_eq!((task.failure, task.attempts.len()), (Some(TaskFailure::InterruptionsExceeded), 1));
    assert_eq!(task.attempts[0].outcome, Some(AttemptOutcome::Interrupted));
}

#[test]
fn a_person_may_always_retry() {
    let mut bench = Bench::with(Schedule { retries_max: 0, interruptions_max: 0, ..hourly("a") });
    bench.state.limits.queue_max = 1;
    bench.end(failed());
    for number in 1..=50 {
        let task = bench.over().expect("it failed");
        assert_eq!(task.attempts.len(), number);
        bench.put(SchedulerInput::Retry(Box::new(task)));
        assert_eq!((bench.task().status, bench.task().failure), (TaskStatus::Running, None));
        if number.is_multiple_of(2) { bench.end(failed()) } else { bench.interrupt(None) }
    }
    let task = bench.over().expect("it failed");
    bench.put(SchedulerInput::Retry(Box::new(task)));
    bench.end(AttemptOutcome::Completed);
    let task = bench.over().expect("it completed");
    let error = step(&mut bench.state, SchedulerInput::Retry(Box::new(task)), bench.now_ms).expect_err("refused");
    assert!(error.to_string().contains("is completed, and only a failed task can be retried"), "{error}");
}

#[test]
fn retries_wait_as_their_schedule_says() {
    let backoff = RetryBackoff { ms_first: 10, ms_max: 200, factor: 3 };
    let mut bench = Bench::with(Schedule { retries_max: 5, backoff, ..hourly("a") });
    let mut waits = Vec::new();
    for _ in 0..5 {
        bench.end(failed());
        waits.push(bench.wait());
    }
    assert_eq!(waits, [10, 30, 90, 200, 200]);
    bench.end(failed());
    assert_eq!(bench.over().and_then(|task| task.failure), Some(TaskFailure::RetriesExceeded));
    // The longest waits do not overflow.
    assert_eq!(RetryBackoff { ms_first: u64::MAX, ms_max: u64::MAX, factor: u32::MAX }.delay_ms(u32::MAX), u64::MAX);
}

#[test]
fn a_fire_beyond_the_queue_is_noted_with_the_limit() {
    let catches_up = |queue_max| Schedule { missed: Missed::All, missed_max: 100, queue_max, ..hourly("a") };
    let noted = |own_max, all_max| {
        let mut bench = Bench::with(catches_up(own_max));
        bench.state.limits.queue_max = all_max;
        bench.pass(6 * HOUR);
        let skipped = bench.actions.iter().filter_map(|action| match action {
            SchedulerAction::Note(FireOutcome::Skipped(skipped)) => Some((skipped.why, skipped.detail.clone())),
            _ => None,
        });
        let skipped: Vec<_> = skipped.collect();
        assert!(skipped.iter().all(|(why, _)| *why == SkipReason::QueueFull), "{skipped:?}");
        let waiting = bench.state.tasks.values().filter(|task| task.status == TaskStatus::Pending).count();
        assert_eq!(waiting + skipped.len(), 6, "each fire is one or the other");
        (waiting, skipped.last().and_then(|(_, detail)| detail.clone()))
    };
    assert_eq!(noted(6, 10_000), (6, None));
    let text = "5 of at most 5 tasks of the schedule wait (`queue_max`)";
    assert_eq!(noted(5, 10_000), (5, Some(text.to_owned())));
    let text = "2 of at most 2 tasks wait (`queue_max` of `[scheduler]` in server.toml)";
    assert_eq!(noted(5, 2), (2, Some(text.to_owned())));
}

#[test]
fn a_task_of_an_earlier_version_is_read_with_the_defaults() {
    let stored = r#"{"id":"t-1","schedule":"s","agent":"a","fire_ms":1,"due_ms":1,"cause":"time","status":"failed",
        "attempts":[{"started_ms":1,"ended_ms":2,"outcome":{"failed":{"error":"no","retryable":true}}}],
        "retries_max":3,"waits_for":null}"#;
    let task: ScheduledTask = serde_json::from_str(stored).expect("a task");
    assert_eq!((task.backoff, task.interruptions_max), (RetryBackoff::default(), 20));
    assert_eq!((task.interruptions, task.progress, task.failure, task.retry_count()), (0, None, None, 0));
    let stored = r#"{"name":"s","agent":"a","trigger":{"interval_seconds":60},"retries_max":2}"#;
    let schedule: Schedule = serde_json::from_str(stored).expect("a schedule");
    assert_eq!((schedule.retries_max, schedule.interruptions_max, schedule.queue_max), (2, 20, 1_000));
    assert_eq!(schedule.backoff, RetryBackoff::default());
    let stored = r#"{"schedule":"s","first_ms":1,"last_ms":1,"count":1,"more":false,"why":"queue_full"}"#;
    let skipped: longhaul_schedule::Skipped = serde_json::from_str(stored).expect("a skipped fire");
    assert_eq!(skipped.detail, None);
}
