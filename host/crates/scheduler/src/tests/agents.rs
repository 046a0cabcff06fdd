//! Agents that are missing, inactive, changed or removed.

use super::*;
use longhaul_agents::{AgentPatch, SummaryBy};
use longhaul_api::agents::{ActivateAgent, UpdateAgent};
use longhaul_schedule::TaskStatus;

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
