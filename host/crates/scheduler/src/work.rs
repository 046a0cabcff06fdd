//! What an attempt executes, who executes it, and how its end is told to the scheduler. Refuses to execute and to store
//! anything.

use longhaul_agents::{AgentRecord, ArtifactHead, ExecutionResult, NewAgent, compress};
use longhaul_core::RunId;
use longhaul_schedule::{AttemptOutcome, ScheduledTask, TaskStatus};
use serde_json::Value;

/// The schedule that tasks have which somebody asked for; no schedule can have its name.
pub(crate) const BY_HAND: &str = "by-hand";

/// An attempt that is to be made. Its task is stored as running.
#[derive(Clone, Debug)]
pub(crate) struct NewAttempt {
    pub(crate) task: ScheduledTask,
}

/// What is executed.
#[derive(Clone, Debug)]
pub struct AgentWork {
    /// The task.
    pub(crate) task: ScheduledTask,
    /// The agent as it was when the attempt began.
    pub(crate) record: AgentRecord,
    /// What it was handed.
    pub(crate) head: ArtifactHead,
    /// What somebody gives it.
    pub(crate) input: Option<Value>,
}

impl AgentWork {
    /// What its code sees as `CONTEXT`.
    pub fn context(&self) -> Value {
        compress::context(self.state(), &self.record.agent.config, self.input.as_ref())
    }

    /// Whose work it is.
    pub fn agent(&self) -> &NewAgent {
        &self.record.agent
    }

    /// The run that this attempt is, if it is one.
    pub fn run(&self) -> RunId {
        run_id(&self.task, self.task.attempts.len())
    }

    /// That one and those of earlier attempts, the newest first.
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
    /// Executes one to its end. None where it goes on elsewhere: nothing is known of its end then.
    async fn run(&self, work: &AgentWork) -> Option<ExecutionResult>;
}

/// The run of an attempt of an ask or a run: always the same, so that it is found again and not begun twice.
pub(crate) fn run_id(task: &ScheduledTask, attempt: usize) -> RunId {
    RunId::derive(task.agent.as_str(), task.fire_ms, format!("{}/{attempt}", task.id).as_bytes())
}

/// Ends the attempt of a task that no schedule knows.
pub(crate) fn end_by_hand(task: &mut ScheduledTask, result: &ExecutionResult, now_ms: u64) {
    task.status = if result.success { TaskStatus::Completed } else { TaskStatus::Failed };
    if let Some(attempt) = task.attempts.last_mut() {
        (attempt.ended_ms, attempt.outcome) = (Some(now_ms), Some(outcome(result)));
    }
}

/// How an attempt ended, in the words of the scheduler.
pub(crate) fn outcome(result: &ExecutionResult) -> AttemptOutcome {
    match result.success {
        true => AttemptOutcome::Completed,
        false => AttemptOutcome::Failed {
            error: result.error_message.clone().unwrap_or_else(|| "it failed".to_owned()),
            retryable: result.retryable,
        },
    }
}
