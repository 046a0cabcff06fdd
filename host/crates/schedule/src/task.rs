//! One task: a fire that became work, with all its attempts.

use crate::{Name, ScheduleError};
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most retries of a failed task.
pub const RETRIES_MAX: u32 = 3;

/// The time before retry `retry` (1, 2, 3): 2, 4 and 8 seconds, in milliseconds.
#[must_use]
pub fn retry_delay_ms(retry: u32) -> u64 {
    2_000_u64.saturating_mul(1 << retry.saturating_sub(1).min(10))
}

/// Checks that a task with `count` retries may have another one.
///
/// # Errors
/// When it may not.
pub fn retry_again(count: u32, max: u32) -> Result<(), ScheduleError> {
    if count < max { Ok(()) } else { Err(ScheduleError::Retries { count, max }) }
}

/// The name of a task, such as `t-3f9c02d1a4be`: derived from the fire, so that one fire is one task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// The task of this fire.
    #[must_use]
    pub fn of(schedule: &Name, fire_ms: u64, cause: &TaskCause) -> Self {
        let cause = match cause {
            TaskCause::Time => String::new(),
            TaskCause::Hand { nonce } => format!("hand {nonce}"),
            TaskCause::After { task } => format!("after {task}"),
        };
        let digest = Digest::of_parts(&[schedule.as_str().as_bytes(), &fire_ms.to_le_bytes(), cause.as_bytes()]);
        Self(format!("t-{}", digest.short()))
    }

    /// A name from a user.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The cause of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskCause {
    /// Its time came.
    Time,
    /// A person requested it.
    Hand {
        /// Distinguishes two requests of one millisecond.
        nonce: u64,
    },
    /// Another task ended.
    After {
        /// That task.
        task: TaskId,
    },
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The start, in milliseconds since 1970.
    pub started_ms: u64,
    /// The end; none while it runs.
    pub ended_ms: Option<u64>,
    /// The outcome.
    pub outcome: Option<AttemptOutcome>,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptOutcome {
    /// It succeeded.
    Completed,
    /// It failed.
    Failed {
        /// The error.
        error: String,
        /// True when a retry may succeed.
        retryable: bool,
    },
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// It waits for its time, its turn or its agent.
    Pending,
    /// It runs.
    Running,
    /// It succeeded.
    Completed,
    /// It failed, and is not retried automatically.
    Failed,
}

impl TaskStatus {
    /// The word of the status.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// A fire that became work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledTask {
    /// The id of the task.
    pub id: TaskId,
    /// The schedule.
    pub schedule: Name,
    /// The agent.
    pub agent: Name,
    /// The planned time, without jitter, in milliseconds since 1970.
    pub fire_ms: u64,
    /// The earliest start: the fire with its jitter, or the next retry.
    pub due_ms: u64,
    /// The cause.
    pub cause: TaskCause,
    /// The status.
    pub status: TaskStatus,
    /// All attempts, the first in front.
    pub attempts: Vec<Attempt>,
    /// The most retries.
    pub retries_max: u32,
    /// The reason why it is due but does not run.
    pub waits_for: Option<String>,
}

impl ScheduledTask {
    /// The number of retries so far.
    #[must_use]
    pub fn retry_count(&self) -> u32 {
        u32::try_from(self.attempts.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    pub(crate) fn start(&mut self, now_ms: u64) {
        self.status = TaskStatus::Running;
        self.waits_for = None;
        self.attempts.push(Attempt { started_ms: now_ms, ended_ms: None, outcome: None });
    }

    /// Ends its attempt, and sets its next status.
    pub(crate) fn end(&mut self, outcome: AttemptOutcome, now_ms: u64) {
        let can_retry = matches!(outcome, AttemptOutcome::Failed { retryable: true, .. })
            && retry_again(self.retry_count(), self.retries_max).is_ok();
        self.status = match &outcome {
            AttemptOutcome::Completed => TaskStatus::Completed,
            AttemptOutcome::Failed { .. } if can_retry => TaskStatus::Pending,
            AttemptOutcome::Failed { .. } => TaskStatus::Failed,
        };
        if can_retry {
            self.due_ms = now_ms.saturating_add(retry_delay_ms(self.retry_count() + 1));
        }
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.ended_ms = Some(now_ms);
            attempt.outcome = Some(outcome);
        }
    }
}
