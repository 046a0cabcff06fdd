//! Notifications of tasks that failed for good, each stored with the end of its task.

use super::*;
use crate::rows;
use std::time::Duration;

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
