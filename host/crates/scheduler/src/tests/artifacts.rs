//! Artifacts: the state that a run of an agent passes to its next run.

use super::*;
use crate::rows;
use longhaul_api::agents::{ClearArtifact, SetArtifact};

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
