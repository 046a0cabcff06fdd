//! The scheduler, moved through hours and years by hand.

use longhaul_schedule::{
    AttemptOutcome, Cron, FireOutcome, Missed, Name, RetryBackoff, Schedule, ScheduleError, SchedulerAction,
    SchedulerInput, SchedulerState, SkipReason, Skipped, TaskFailure, TaskId, Trigger, When, edit, step,
};

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
/// Thursday, 2026-01-01 00:00 UTC.
const START: u64 = 1_767_225_600_000;

fn name(text: &str) -> Name {
    Name::try_from(text.to_owned()).expect("a name")
}

fn hourly(schedule: &str) -> Schedule {
    let trigger = Trigger::Cron(Cron::parse("@hourly", "UTC").expect("an expression"));
    Schedule::new(name(schedule), name(&format!("agent-{schedule}")), trigger)
}

fn after(schedule: &str, agent: &str, of: &str, when: When) -> Schedule {
    Schedule::new(name(schedule), name(agent), Trigger::After { agent: of.to_owned(), when })
}

fn failed() -> AttemptOutcome {
    AttemptOutcome::Failed { error: "no".to_owned(), retryable: true }
}

/// A scheduler, and its actions so far.
struct Bench {
    state: SchedulerState,
    now_ms: u64,
    actions: Vec<SchedulerAction>,
}

impl Bench {
    fn with(schedules: impl IntoIterator<Item = Schedule>) -> Self {
        let mut bench = Self { state: SchedulerState::default(), now_ms: START, actions: Vec::new() };
        for schedule in schedules {
            bench.put(SchedulerInput::Put(schedule));
        }
        bench
    }

    fn put(&mut self, input: SchedulerInput) {
        self.actions.extend(step(&mut self.state, input, self.now_ms).expect("an input that can be"));
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.put(SchedulerInput::Tick);
    }

    fn started(&self) -> Vec<TaskId> {
        let started = |action: &SchedulerAction| match action {
            SchedulerAction::Start(task) => Some(task.id.clone()),
            SchedulerAction::Note(_) | SchedulerAction::Ended(_) => None,
        };
        self.actions.iter().filter_map(started).collect()
    }

    fn skipped(&self) -> Vec<(u32, SkipReason)> {
        let skipped = |action: &SchedulerAction| match action {
            SchedulerAction::Note(FireOutcome::Skipped(Skipped { count, why, .. })) => Some((*count, *why)),
            SchedulerAction::Note(FireOutcome::Task(_)) | SchedulerAction::Start(_) | SchedulerAction::Ended(_) => None,
        };
        self.actions.iter().filter_map(skipped).collect()
    }

    fn end_last(&mut self, outcome: AttemptOutcome) {
        let last = self.actions.iter().rev().find_map(|action| match action {
            SchedulerAction::Start(task) => Some(task.id.clone()),
            SchedulerAction::Note(_) | SchedulerAction::Ended(_) => None,
        });
        self.put(SchedulerInput::Ended(last.expect("something was started"), outcome));
    }
}

#[test]
fn a_year_of_hours_is_a_year_of_tasks() {
    let mut bench = Bench::with([hourly("a")]);
    for _ in 0..365 * 24 {
        bench.pass(HOUR);
        bench.end_last(AttemptOutcome::Completed);
    }
    assert_eq!(bench.started().len(), 365 * 24);
    assert_eq!(bench.skipped(), []);
    assert!(bench.state.tasks.is_empty(), "what has ended is not kept");
}

#[test]
fn a_task_that_fails_is_tried_again_after_2_4_and_8_seconds_and_then_never() {
    let mut bench = Bench::with([hourly("a")]);
    bench.pass(HOUR);
    for seconds in [2, 4, 8] {
        bench.end_last(failed());
        bench.pass(seconds * 1000 - 1);
        let before = bench.started().len();
        bench.pass(1);
        assert_eq!(bench.started().len(), before + 1, "after {seconds} s");
    }
    bench.end_last(failed());
    let started = bench.started();
    assert!(started.iter().all(|id| *id == started[0]), "the same task");
    let Some(SchedulerAction::Ended(task)) = bench.actions.last() else { panic!("{:?}", bench.actions.last()) };
    assert_eq!((task.attempts.len(), task.status.word()), (4, "failed"));
    assert_eq!(task.failure, Some(TaskFailure::RetriesExceeded));
}

#[test]
fn what_may_not_be_retried_is_not() {
    let mut bench = Bench::with([hourly("a")]);
    bench.pass(HOUR);
    bench.end_last(AttemptOutcome::Failed { error: "no such agent".to_owned(), retryable: false });
    bench.pass(60_000);
    assert_eq!(bench.started().len(), 1);
}

#[test]
fn one_agent_runs_once_at_a_time_unless_it_may_overlap() {
    let twice = |overlap| {
        let mut second = hourly("b");
        second.agent = name("agent-a");
        second.overlap = overlap;
        let mut bench = Bench::with([hourly("a"), second]);
        bench.pass(HOUR);
        bench.started().len()
    };
    assert_eq!((twice(false), twice(true)), (1, 2));
}

#[test]
fn a_fire_whose_forerunner_still_waits_is_noted_and_not_queued() {
    let mut bench = Bench::with([hourly("a")]);
    for _ in 0..4 {
        bench.pass(HOUR);
    }
    assert_eq!(bench.started().len(), 1);
    assert_eq!(bench.skipped(), [(1, SkipReason::StillWaiting), (1, SkipReason::StillWaiting)]);
    bench.end_last(AttemptOutcome::Completed);
    assert_eq!(bench.started().len(), 2, "the one that waited");
}

#[test]
fn five_run_at_once_and_the_others_wait_for_their_turn_and_say_so() {
    let names: Vec<String> = (0..12).map(|n| format!("s{n:02}")).collect();
    let mut bench = Bench::with(names.iter().map(|name| hourly(name)));
    bench.pass(HOUR);
    assert_eq!(bench.started().len(), 5);
    let reasons = bench.state.tasks.values().filter_map(|task| task.waits_for.as_deref());
    assert_eq!(reasons.collect::<Vec<_>>(), ["a place: 5 tasks run, and no more may at once"; 7]);
    for id in bench.started() {
        bench.put(SchedulerInput::Ended(id, AttemptOutcome::Completed));
    }
    assert_eq!(bench.started().len(), 10);
}

#[test]
fn a_schedule_with_much_to_do_does_not_starve_the_others() {
    let mut greedy = hourly("greedy");
    (greedy.missed, greedy.missed_max, greedy.overlap) = (Missed::All, 100, true);
    let mut bench = Bench::with([greedy, hourly("modest")]);
    bench.put(SchedulerInput::ConcurrentMax(1));
    bench.pass(50 * HOUR);
    bench.end_last(AttemptOutcome::Completed);
    let agents: Vec<&str> = bench
        .actions
        .iter()
        .filter_map(|action| match action {
            SchedulerAction::Start(task) => Some(task.agent.as_str()),
            SchedulerAction::Note(_) | SchedulerAction::Ended(_) => None,
        })
        .collect();
    assert_eq!(agents, ["agent-greedy", "agent-modest"]);
}

#[test]
fn what_was_missed_is_run_by_policy_and_accounted_for() {
    let outage = |missed, missed_max| {
        let mut schedule = hourly("a");
        (schedule.missed, schedule.missed_max) = (missed, missed_max);
        let mut bench = Bench::with([schedule]);
        // Ten hours and a half, so that the last fire is late too.
        bench.pass(10 * HOUR + HOUR / 2);
        let tasks =
            bench.actions.iter().filter(|action| matches!(action, SchedulerAction::Note(FireOutcome::Task(_)))).count();
        (tasks, bench.skipped())
    };
    assert_eq!(outage(Missed::Skip, 10), (0, vec![(10, SkipReason::Missed)]));
    assert_eq!(outage(Missed::Once, 10), (1, vec![(9, SkipReason::Missed)]));
    assert_eq!(outage(Missed::All, 3), (3, vec![(7, SkipReason::Missed)]));
    assert_eq!(outage(Missed::All, 100), (10, vec![]));
    assert_eq!(outage(Missed::All, 0), (0, vec![(10, SkipReason::Missed)]));
}

#[test]
fn a_schedule_that_is_switched_off_fires_no_more_at_once_and_by_hand_still() {
    let mut bench = Bench::with([hourly("a"), {
        let mut b = hourly("b");
        b.agent = name("agent-a");
        b
    }]);
    bench.pass(HOUR);
    bench.put(SchedulerInput::Enable(name("b"), false));
    assert_eq!(bench.skipped(), [(1, SkipReason::Withdrawn)]);
    bench.end_last(AttemptOutcome::Completed);
    bench.put(SchedulerInput::Enable(name("a"), false));
    bench.pass(DAY);
    assert_eq!((bench.started().len(), bench.state.wake_ms()), (1, None));
    bench.put(SchedulerInput::RunNow { schedule: name("a"), nonce: 1 });
    assert_eq!(bench.started().len(), 2);
}

#[test]
fn an_agent_that_is_switched_off_is_run_by_no_schedule_and_each_fire_says_so() {
    let mut second = hourly("b");
    second.agent = name("agent-a");
    let mut bench = Bench::with([hourly("a"), second]);
    bench.pass(HOUR);
    assert_eq!(bench.started().len(), 1, "the other waits for it");
    bench.put(SchedulerInput::Activate(name("agent-a"), false));
    bench.end_last(AttemptOutcome::Completed);
    bench.pass(HOUR);
    bench.put(SchedulerInput::RunNow { schedule: name("a"), nonce: 1 });
    assert_eq!((bench.started().len(), bench.skipped()), (1, vec![(1, SkipReason::Inactive); 4]));
    bench.put(SchedulerInput::Activate(name("agent-a"), true));
    bench.pass(HOUR);
    assert_eq!(bench.started().len(), 2);
}

#[test]
fn who_runs_no_tasks_can_change_schedules_and_starts_nothing() {
    let mut bench = Bench::with([hourly("a")]);
    bench.now_ms += 3 * HOUR;
    let run = SchedulerInput::RunNow { schedule: name("a"), nonce: 1 };
    let actions = edit(&mut bench.state, run, bench.now_ms).expect("an input that can be");
    assert!(matches!(actions[..], [SchedulerAction::Note(FireOutcome::Task(_))]), "{actions:?}");
    let actions = edit(&mut bench.state, SchedulerInput::Put(hourly("b")), bench.now_ms).expect("a schedule");
    assert_eq!(actions, []);
    bench.pass(0);
    assert_eq!(
        (bench.started().len(), bench.skipped()),
        (1, vec![(2, SkipReason::Missed), (1, SkipReason::StillWaiting)])
    );
}

#[test]
fn a_chain_runs_as_its_ends_say() {
    let chain = [
        hourly("a"),
        after("then", "good", "agent-a", When::Success),
        after("else", "bad", "agent-a", When::Failure),
        after("both", "any", "agent-a", When::Always),
    ];
    let follows = |outcome| {
        let mut bench = Bench::with(chain.clone());
        bench.pass(HOUR);
        bench.end_last(outcome);
        let mut agents: Vec<String> = bench.state.tasks.values().map(|task| task.agent.to_string()).collect();
        agents.sort();
        agents.join(" ")
    };
    assert_eq!(follows(AttemptOutcome::Completed), "any good");
    assert_eq!(follows(AttemptOutcome::Failed { error: String::new(), retryable: false }), "any bad");
    assert_eq!(follows(failed()), "agent-a", "it is retried first");
}

#[test]
fn agents_that_would_start_each_other_are_refused_and_nothing_changes() {
    let mut bench = Bench::with([after("1", "b", "a", When::Always), after("2", "c", "b", When::Always)]);
    let before = bench.state.clone();
    let closing = SchedulerInput::Put(after("3", "a", "c", When::Failure));
    let error = step(&mut bench.state, closing, START).expect_err("a circle");
    assert_eq!(error, ScheduleError::Cycle { path: ["a", "b", "c", "a"].map(str::to_owned).into() });
    assert_eq!(bench.state, before);
}

#[test]
fn a_clock_that_goes_back_fires_nothing_twice() {
    let mut bench = Bench::with([hourly("a")]);
    bench.pass(HOUR);
    bench.end_last(AttemptOutcome::Completed);
    bench.now_ms -= HOUR / 2;
    bench.pass(HOUR / 2);
    assert_eq!(bench.started().len(), 1);
}

#[test]
fn a_fire_is_one_task_also_when_it_is_told_twice() {
    let mut bench = Bench::with([hourly("a")]);
    let mut twin = bench.state.clone();
    bench.pass(HOUR);
    let again = step(&mut twin, SchedulerInput::Tick, bench.now_ms).expect("a tick");
    assert_eq!(bench.actions[bench.actions.len() - again.len()..], again);
}

#[test]
fn jitter_spreads_fires_and_is_the_same_each_time() {
    let delays = || -> Vec<u64> {
        (0..20)
            .map(|n| {
                let mut schedule = hourly(&format!("s{n}"));
                schedule.jitter_ms = 60_000;
                let mut bench = Bench::with([schedule]);
                bench.pass(HOUR);
                bench.state.tasks.values().map(|task| task.due_ms - START - HOUR).sum()
            })
            .collect()
    };
    let found = delays();
    assert_eq!(found, delays());
    assert!(found.iter().all(|delay| *delay <= 60_000), "{found:?}");
    assert!(found.iter().max() > found.iter().min(), "{found:?}");
}

#[test]
fn a_change_of_something_else_does_not_move_the_next_fire() {
    let every = Trigger::interval(3600).expect("an interval");
    let mut schedule = Schedule::new(name("a"), name("b"), every);
    let mut bench = Bench::with([schedule.clone()]);
    bench.pass(HOUR / 2);
    schedule.retries_max = 1;
    bench.put(SchedulerInput::Put(schedule.clone()));
    assert_eq!(bench.state.wake_ms(), Some(START + HOUR));
    schedule.trigger = Trigger::interval(1800).expect("an interval");
    bench.put(SchedulerInput::Put(schedule));
    assert_eq!(bench.state.wake_ms(), Some(START + HOUR));
}

#[test]
fn daylight_saving_is_as_vixie_cron_has_it() {
    let fires = |expression: &str, after: &str, count: usize| -> Vec<String> {
        let cron = Cron::parse(expression, "Europe/Berlin").expect("an expression");
        let after: jiff::Timestamp = after.parse().expect("a time");
        let mut at = u64::try_from(after.as_millisecond()).expect("after 1970");
        let mut next = || {
            at = cron.next_after(at).expect("a fire");
            let at = jiff::Timestamp::from_millisecond(i64::try_from(at).expect("before 292 million")).expect("a time");
            at.to_string()
        };
        (0..count).map(|_| next()).collect()
    };
    // 02:00 to 03:00 does not exist on 29 March 2026.
    assert_eq!(fires("30 2 * * *", "2026-03-28T12:00:00Z", 2), ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    // 02:00 to 03:00 is there twice on 25 October 2026.
    assert_eq!(fires("30 2 * * *", "2026-10-24T12:00:00Z", 2), ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    assert_eq!(
        fires("@hourly", "2026-10-24T23:30:00Z", 3),
        ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]
    );
}

#[test]
fn what_cannot_be_is_refused_with_what_to_write() {
    let refused = |error: ScheduleError| error.to_string();
    let cron = |text: &str, zone: &str| Cron::parse(text, zone).map(drop).expect_err("refused").to_string();
    for (expression, reason) in [
        ("60 * * * *", "number out of bounds"),
        ("*/0 * * * *", "step cannot be zero"),
        ("a", "it must have 5 or 6 fields when years are disallowed"),
        ("", "it cannot be an empty string"),
        ("* * * * FOO", "it contains illegal character 'F' in part 'FOO'"),
        ("0 0 30 2 *", "it never fires"),
    ] {
        let remedy = "write minute, hour, day, month and weekday, such as `0 22 * * MON-FRI`";
        assert_eq!(cron(expression, "UTC"), format!("invalid cron expression `{expression}`: {reason}; {remedy}"));
    }
    assert_eq!(
        cron("* * * * *", "Mars/Olympus"),
        "there is no time zone `Mars/Olympus`; write an IANA name such as `Europe/Berlin`, or `UTC`"
    );
    assert!(cron(&"1,".repeat(1000), "UTC").contains("longer than 512 bytes"));
    for seconds in [0, 366 * 24 * 3600 + 1] {
        assert!(refused(Trigger::interval(seconds).expect_err("refused")).starts_with("an interval is 1 second"));
    }
    for wrong in ["", "../x", ".hidden", "a b", "ä", &"x".repeat(65)] {
        assert!(Name::try_from(wrong.to_owned()).is_err(), "{wrong}");
    }
    let backoff = |ms_first, ms_max, factor| RetryBackoff { ms_first, ms_max, factor };
    let usual = hourly("a");
    for (schedule, text) in [
        (Schedule { retries_max: 101, ..usual.clone() }, "`retries_max` is 101, and at most 100 is allowed"),
        (
            Schedule { interruptions_max: 101, ..usual.clone() },
            "`interruptions_max` is 101, and at most 100 is allowed",
        ),
        (Schedule { queue_max: 0, ..usual.clone() }, "`queue_max` is 0, and 1 to 10000 is allowed"),
        (Schedule { queue_max: 10_001, ..usual.clone() }, "`queue_max` is 10001, and 1 to 10000 is allowed"),
        (
            Schedule { backoff: backoff(0, 1, 1), ..usual.clone() },
            "`backoff_ms_first` is 0, and 1 to 86400000 is allowed",
        ),
        (
            Schedule { backoff: backoff(5, 4, 1), ..usual.clone() },
            "`backoff_ms_max` is 4, and 5 to 86400000 is allowed",
        ),
        (Schedule { backoff: backoff(1, 1, 11), ..usual.clone() }, "`backoff_factor` is 11, and 1 to 10 is allowed"),
    ] {
        let error = step(&mut SchedulerState::default(), SchedulerInput::Put(schedule), 0).expect_err("refused");
        assert_eq!(error.to_string(), text);
    }
    let largest = Schedule {
        retries_max: 100,
        interruptions_max: 100,
        queue_max: 10_000,
        backoff: backoff(86_400_000, 86_400_000, 10),
        ..usual
    };
    step(&mut SchedulerState::default(), SchedulerInput::Put(largest), 0).expect("the largest values");
    let error = step(&mut SchedulerState::default(), SchedulerInput::Remove(name("b")), 0).expect_err("refused");
    assert_eq!(error.to_string(), "there is no schedule `b`; `longhaul schedule list` shows them");
}
