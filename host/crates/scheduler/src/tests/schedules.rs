//! Schedules that fire: waits for an agent at work, for memory and for a scheduler, and chains.

use super::*;
use crate::work::BY_HAND;
use longhaul_agents::{Admission, AdmissionDecision, AdmissionRequest};
use longhaul_schedule::{TaskStatus, When};

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
