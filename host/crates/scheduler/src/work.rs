//! The work of an attempt, the trait of its executor, and the conversion of its end for the scheduler. Refuses to
//! execute and to store anything.

use longhaul_agents::{AgentRecord, ArtifactHead, ExecutionResult, NewAgent, compress};
use longhaul_core::RunId;
use longhaul_schedule::{AttemptOutcome, ScheduledTask, TaskStatus};
use serde_json::Value;

/// The schedule of tasks by hand; no schedule can have its name.
pub(crate) const BY_HAND: &str = "by-hand";

/// An attempt to make. Its task is stored as running.
#[derive(Clone, Debug)]
pub(crate) struct NewAttempt {
    pub(crate) task: ScheduledTask,
}

/// The work of an attempt.
#[derive(Clone, Debug)]
pub struct AgentWork {
    /// The task.
    pub(crate) task: ScheduledTask,
    /// The agent's record when the attempt began.
    pub(crate) record: AgentRecord,
    /// The artifact that it got.
    pub(crate) head: ArtifactHead,
    /// The input of a request by hand.
    pub(crate) input: Option<Value>,
}

impl AgentWork {
    /// The value of `CONTEXT` in its code.
    pub fn context(&self) -> Value {
        compress::context(self.state(), &self.record.agent.config, self.input.as_ref())
    }

    /// The agent.
    pub fn agent(&self) -> &NewAgent {
        &self.record.agent
    }

    /// The run of this attempt, if it is one.
    pub fn run(&self) -> RunId {
        run_id(&self.task, self.task.attempts.len())
    }

    /// The version of the artifact that an execution began with: a run that goes on after an end of the host got its
    /// own when it began.
    pub(crate) fn base_version(&self, run: Option<&RunId>) -> u64 {
        let is_of = |number: &usize| run.is_some_and(|run| run_id(&self.task, *number) == *run);
        let attempt = (1..=self.task.attempts.len()).rev().find(is_of);
        let began = attempt.and_then(|number| self.task.attempts.get(number - 1)?.artifact_version);
        began.unwrap_or(self.head.version)
    }

    /// The runs of this attempt and of earlier ones, the newest first.
    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        (1..=self.task.attempts.len()).rev().map(|attempt| run_id(&self.task, attempt))
    }

    fn state(&self) -> Option<&Value> {
        self.head.artifact.as_ref().map(|artifact| &artifact.state)
    }
}

/// Executes agents.
#[async_trait::async_trait]
pub trait AgentExecutor: Send + Sync {
    /// Executes an agent to its end. None when it continues elsewhere: its end is then unknown.
    async fn run(&self, work: &AgentWork) -> Option<ExecutionResult>;
}

/// The run id for an attempt of an ask or a run: always the same, so that the run is found again and not begun twice.
pub(crate) fn run_id(task: &ScheduledTask, attempt: usize) -> RunId {
    RunId::derive(task.agent.as_str(), task.fire_ms, format!("{}/{attempt}", task.id).as_bytes())
}

/// Ends the attempt of a task by hand.
pub(crate) fn end_by_hand(task: &mut ScheduledTask, result: &ExecutionResult, now_ms: u64) {
    task.status = if result.success { TaskStatus::Completed } else { TaskStatus::Failed };
    if let Some(attempt) = task.attempts.last_mut() {
        (attempt.ended_ms, attempt.outcome) = (Some(now_ms), Some(outcome(result)));
    }
}

/// The scheduler's outcome for a result.
pub(crate) fn outcome(result: &ExecutionResult) -> AttemptOutcome {
    match result.success {
        true => AttemptOutcome::Completed,
        false => AttemptOutcome::Failed {
            error: result.error_message.clone().unwrap_or_else(|| "it failed".to_owned()),
            retryable: result.retryable,
        },
    }
}
