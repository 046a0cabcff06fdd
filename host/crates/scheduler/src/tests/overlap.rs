//! Overlapping runs of one agent: the artifact of the first to end is taken over whole, and the others change nothing.

use super::*;
use longhaul_agents::ArtifactOutcome;
use longhaul_api::agents::{ClearArtifact, SetArtifact};
use longhaul_schedule::TaskStatus;
use std::time::Duration;
use tokio::sync::{Barrier, Semaphore};

/// Two runs that begin together; the second ends once the end of the first is stored.
struct Overlapping {
    begun: Barrier,
    ended: Semaphore,
    first: TaskId,
    results: [ExecutionResult; 2],
}

#[async_trait::async_trait]
impl AgentExecutor for Overlapping {
    async fn run(&self, work: &AgentWork) -> Option<ExecutionResult> {
        self.begun.wait().await;
        if work.task.id == self.first {
            return Some(self.results[0].clone());
        }
        self.ended.acquire().await.expect("it is never closed").forget();
        Some(self.results[1].clone())
    }
}

/// Runs two overlapping tasks to their stored ends, and returns them in that order.
async fn overlap(bench: &mut Bench, results: [ExecutionResult; 2]) -> [TaskView; 2] {
    for _ in 0..2 {
        bench.scheduler_service.run_now(name("s")).await.expect("a task");
    }
    let (start, other) = (bench.starts.try_recv().expect("it is due"), bench.starts.try_recv().expect("it overlaps"));
    let (one, two) = (start.task.id.clone(), other.task.id.clone());
    let (begun, ended, first) = (Barrier::new(2), Semaphore::new(0), one.clone());
    let executor = Arc::new(Overlapping { begun, ended, first, results });
    let (service, stopping) = (&bench.scheduler_service, &bench.stopping);
    let first_end = async {
        service.attempt(start, executor.clone(), stopping.subscribe()).await;
        executor.ended.add_permits(1);
    };
    let second_end = service.attempt(other, executor.clone(), stopping.subscribe());
    tokio::join!(first_end, second_end);
    [bench.task(&one).await, bench.task(&two).await]
}

async fn overlapping_bench() -> Bench {
    let bench = Bench::new(&counting());
    bench.add("a").await;
    bench.put(Schedule { overlap: true, ..by_hand("s", "a", 0) }).await;
    bench
}

fn outcome(task: &TaskView) -> (Option<ArtifactOutcome>, Vec<String>) {
    let result = task.attempts.last().and_then(|last| last.result.clone()).expect("a result");
    (result.artifact, result.notes)
}

fn left(state: Value) -> ExecutionResult {
    printed(format!("out of {state}\n{}", json!({ "state": state })))
}

#[tokio::test]
async fn of_two_runs_that_overlap_the_first_to_end_is_kept_whole_and_the_other_says_so() {
    let mut bench = overlapping_bench().await;
    bench.fire("s").await;
    let [one, two] = overlap(&mut bench, [left(json!({"by": "one"})), left(json!({"by": "two", "more": 1}))]).await;
    assert_eq!((one.status, two.status), (TaskStatus::Completed, TaskStatus::Completed));
    let artifact = bench.artifact("a").await.expect("an artifact");
    assert_eq!((&artifact.state["by"], artifact.state.get("more")), (&json!("one"), None));
    assert_eq!(artifact.state["previous_output"], "out of {\"by\":\"one\"}\n", "nothing of the other is mixed in");
    assert_eq!((artifact.version, artifact.made_by.clone()), (2, format!("task {}", one.id)));
    assert_eq!(outcome(&one), (Some(ArtifactOutcome { base_version: 1, version: 2, saved: true }), Vec::new()));
    let (kept, notes) = outcome(&two);
    assert_eq!(kept, Some(ArtifactOutcome { base_version: 1, version: 2, saved: false }));
    let text = format!(
        "the artifact of this execution was not kept: it began with version 1, and version 2 was made while it ran, by task {}; that one stays whole",
        one.id
    );
    assert_eq!(notes, [text]);
    let request = ShowArtifact { name: name("a"), version: None };
    assert_eq!(bench.scheduler_service.artifact(request).expect("an answer").conflict_count, 1);
    assert_eq!(bench.scheduler_service.show(&name("a")).await.expect("shown").run_count, 3, "each run counts");
    // The next one sees the one that was kept, and is kept itself: a conflict makes no version.
    let (_, result) = bench.execute("a", None).await;
    assert_eq!(result.artifact, Some(ArtifactOutcome { base_version: 2, version: 3, saved: true }));
    let artifact = bench.artifact("a").await.expect("an artifact");
    assert_eq!((artifact.run_count, &artifact.state["by"], &artifact.state["n"]), (4, &Value::Null, &json!(1)));
}

#[tokio::test]
async fn a_run_that_fails_beside_another_adds_nothing_to_what_the_other_left() {
    let mut bench = overlapping_bench().await;
    let failed = ExecutionResult { stdout: "half".to_owned(), ..ExecutionResult::failed("no", false) };
    let [_, two] = overlap(&mut bench, [left(json!({"by": "one"})), failed]).await;
    assert_eq!((two.status, outcome(&two).1.len()), (TaskStatus::Failed, 1));
    let artifact = bench.artifact("a").await.expect("an artifact");
    assert_eq!((artifact.version, artifact.state.get("recent_errors")), (1, None), "{artifact:?}");
    assert_eq!(artifact.summary, "out of {\"by\":\"one\"}");
}

#[tokio::test]
async fn an_artifact_that_was_cleared_meanwhile_stays_cleared() {
    let bench = Bench::new(&counting());
    bench.add("a").await;
    bench.execute("a", None).await;
    struct Clearing(Arc<SchedulerService>);
    #[async_trait::async_trait]
    impl AgentExecutor for Clearing {
        async fn run(&self, work: &AgentWork) -> Option<ExecutionResult> {
            let request = ClearArtifact { name: work.agent().name.clone(), version: None };
            self.0.clear_artifact(request).await.expect("nobody holds it");
            Some(left(json!({"n": 9})))
        }
    }
    let request = ExecuteAgent { name: name("a"), input: None };
    let executor = Clearing(Arc::clone(&bench.scheduler_service));
    let result = bench.scheduler_service.execute(request, &executor).await.expect("an answer").result;
    assert!(result.notes[0].contains("by a person, who cleared it"), "{result:?}");
    assert_eq!(bench.artifact("a").await, None);
}

#[tokio::test]
async fn a_run_that_goes_on_after_a_kill_ends_on_the_version_with_which_it_began() {
    let store = Arc::new(MemoryStore::new());
    let clock = Arc::new(HandClock::at(HandClock::START_MS));
    let executor = told(|work, _| ExecutionResult { run: Some(work.run()), ..left(json!({"by": "the run"})) });
    let mut first = Bench::over(Arc::clone(&store) as _, &clock, &executor);
    let agent = NewAgent::new(name("a"), AgentCode::Run { directory: "/nowhere".into() });
    first.scheduler_service.register(RegisterAgent { agent, wasm: None }).await.expect("an agent");
    first.put(by_hand("s", "a", 0)).await;
    let id = first.scheduler_service.run_now(name("s")).await.expect("a task").id;
    let start = first.starts.try_recv().expect("it is due");
    /// A run that the kill finds at work.
    struct Working;
    #[async_trait::async_trait]
    impl AgentExecutor for Working {
        async fn run(&self, _: &AgentWork) -> Option<ExecutionResult> {
            std::future::pending().await
        }
    }
    let attempt = first.scheduler_service.attempt(start, Arc::new(Working), first.stopping.subscribe());
    assert!(tokio::time::timeout(Duration::from_millis(50), attempt).await.is_err(), "it is at work");
    drop(first);
    let mut second = Bench::over(Arc::clone(&store) as _, &clock, &executor);
    let changed = SetArtifact { name: name("a"), state: json!({"by": "a person"}), summary: None, version: None };
    second.scheduler_service.set_artifact(changed).await.expect("set");
    second.pass(1_000).await;
    let task = second.task(&id).await;
    assert_eq!((task.status, task.attempts.len()), (TaskStatus::Completed, 1), "{task:?}");
    assert_eq!(outcome(&task).0, Some(ArtifactOutcome { base_version: 0, version: 1, saved: false }));
    assert_eq!(second.artifact("a").await.map(|artifact| artifact.state), Some(json!({"by": "a person"})));
}
