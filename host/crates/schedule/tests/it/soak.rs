//! Thirty days of fifty schedules, with failures, restarts and outages: each fire is accounted for.

use longhaul_schedule::{
    AttemptOutcome, Cron, FireOutcome, Missed, Name, Schedule, ScheduledTask, SchedulerAction, SchedulerInput,
    SchedulerState, Skipped, TaskId, TaskStatus, Trigger, step,
};
use std::collections::{BTreeMap, BTreeSet};

const START: u64 = 1_767_225_600_000;
const MINUTE: u64 = 60_000;
const DAYS: u64 = 30;

/// Numbers that look random: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn name(text: &str) -> Name {
    Name::try_from(text.to_owned()).expect("a name")
}

fn schedules(random: &mut Random) -> Vec<Schedule> {
    let trigger = |random: &mut Random| match random.below(4) {
        0 => Trigger::interval(60 * (5 + random.below(300))).expect("an interval"),
        1 => Trigger::Cron(Cron::parse(&format!("{} * * * *", random.below(60)), "Europe/Berlin").expect("cron")),
        2 => Trigger::Cron(Cron::parse("*/15 8-17 * * MON-FRI", "America/New_York").expect("cron")),
        _ => Trigger::Cron(
            Cron::parse(&format!("{} {} * * *", random.below(60), random.below(24)), "UTC").expect("cron"),
        ),
    };
    (0..50)
        .map(|n| {
            let mut schedule = Schedule::new(name(&format!("s{n}")), name(&format!("a{}", n % 40)), trigger(random));
            schedule.missed = [Missed::Skip, Missed::Once, Missed::All][usize::try_from(random.below(3)).unwrap_or(0)];
            schedule.overlap = random.below(4) == 0;
            schedule.jitter_ms = random.below(2) * 30_000;
            schedule
        })
        .collect()
}

/// The outcomes of the fires of each schedule, and the tasks.
#[derive(Default)]
struct Book {
    fires: BTreeMap<Name, u64>,
    made: BTreeSet<TaskId>,
    ended: BTreeMap<TaskId, ScheduledTask>,
    running: BTreeMap<TaskId, ScheduledTask>,
}

impl Book {
    fn take(&mut self, actions: Vec<SchedulerAction>, state: &SchedulerState) {
        for action in actions {
            match action {
                SchedulerAction::Note(FireOutcome::Task(id)) => {
                    let task = state.tasks.get(&id).or_else(|| self.ended.get(&id)).expect("a task that was noted");
                    *self.fires.entry(task.schedule.clone()).or_default() += 1;
                    assert!(self.made.insert(id), "one fire made two tasks");
                }
                SchedulerAction::Note(FireOutcome::Skipped(Skipped { schedule, count, more, .. })) => {
                    assert!(!more);
                    *self.fires.entry(schedule).or_default() += u64::from(count);
                }
                SchedulerAction::Start(task) => {
                    assert!(self.running.insert(task.id.clone(), task).is_none(), "it runs already");
                }
                SchedulerAction::Ended(task) => {
                    assert!(self.ended.insert(task.id.clone(), task).is_none(), "it ended already");
                }
            }
        }
    }
}

#[test]
fn each_fire_of_thirty_days_is_accounted_for() {
    let seed = std::env::var("LONGHAUL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_122);
    println!("LONGHAUL_SEED={seed}");
    let mut random = Random(seed);
    let schedules = schedules(&mut random);
    let (mut state, mut book, mut now_ms) = (SchedulerState::default(), Book::default(), START);
    for schedule in &schedules {
        let actions = step(&mut state, SchedulerInput::Put(schedule.clone()), now_ms).expect("a schedule");
        book.take(actions, &state);
    }
    let end_ms = START + DAYS * 24 * 60 * MINUTE;
    while now_ms < end_ms {
        // Sometimes the host is off for up to ten hours.
        let is_outage = random.below(2_000) == 0;
        now_ms =
            end_ms.min(now_ms + if is_outage { MINUTE * random.below(600) } else { 1_000 * (1 + random.below(60)) });
        if random.below(500) == 0 {
            // A restart: only the stored state remains.
            let stored = serde_json::to_string(&state).expect("a state can be stored");
            state = serde_json::from_str(&stored).expect("a state can be read again");
        }
        let actions = step(&mut state, SchedulerInput::Tick, now_ms).expect("a tick");
        book.take(actions, &state);
        let ending: Vec<TaskId> = book.running.keys().filter(|_| random.below(6) == 0).cloned().collect();
        for id in ending {
            book.running.remove(&id);
            let retryable = random.below(2) == 0;
            let outcome = match random.below(4) {
                0 => AttemptOutcome::Failed { error: "it rained".to_owned(), retryable },
                _ => AttemptOutcome::Completed,
            };
            let actions = step(&mut state, SchedulerInput::Ended(id, outcome), now_ms).expect("an end");
            book.take(actions, &state);
        }
        let running: BTreeSet<&TaskId> =
            state.tasks.values().filter(|task| task.status == TaskStatus::Running).map(|task| &task.id).collect();
        assert_eq!(running, book.running.keys().collect(), "nothing runs that was not started");
        assert!(running.len() <= 5);
    }
    for schedule in &schedules {
        assert_eq!(
            book.fires.get(&schedule.name).copied().unwrap_or_default(),
            expected(schedule, end_ms),
            "{}",
            schedule.name
        );
    }
    let open: BTreeSet<TaskId> = state.tasks.keys().cloned().collect();
    let ended: BTreeSet<TaskId> = book.ended.keys().cloned().collect();
    assert_eq!(book.made, open.union(&ended).cloned().collect(), "a task was lost");
    let retried = book.ended.values().filter(|task| task.attempts.len() > 1).count();
    assert!(retried > 0 && book.ended.len() > 1_000, "{retried} of {}", book.ended.len());
}

/// The number of fires by the clock, computed without the scheduler.
fn expected(schedule: &Schedule, end_ms: u64) -> u64 {
    let (mut at, mut count) = (START, 0);
    while let Ok(Some(next)) = schedule.trigger.next_after(START, at) {
        if next > end_ms {
            break;
        }
        (at, count) = (next, count + 1);
    }
    count
}
