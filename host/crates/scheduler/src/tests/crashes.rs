//! Kills at any commit, and the attempts that go on after them.

use super::*;
use crate::rows;
use crate::scheduler::Scheduler;
use longhaul_core::RunId;
use longhaul_schedule::{Missed, TaskStatus};
use std::sync::Mutex;
use std::time::Duration;

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
