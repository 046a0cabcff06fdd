//! One task: a fire that became work, with all its attempts.

use crate::{Name, RetryBackoff, ScheduleError};
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The default number of automatic retries of a failed task.
pub const RETRIES_MAX: u32 = 3;

/// The default number of times in a row that the host may end while a task runs.
pub const INTERRUPTIONS_MAX: u32 = 20;

/// The error of an attempt that the host interrupted.
pub const INTERRUPTED: &str = "the host ended while it ran";

/// Checks that a task with `count` retries may have another automatic one.
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
    /// For a run that goes on after an end of the host: the version of the agent's artifact when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_version: Option<u64>,
}

impl Attempt {
    /// An attempt that begins now.
    #[must_use]
    pub fn begun(now_ms: u64) -> Self {
        Self { started_ms: now_ms, ended_ms: None, outcome: None, artifact_version: None }
    }
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
    /// The host ended while it ran. It counts as no retry.
    Interrupted,
}

/// The reason why a task failed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFailure {
    /// Its last attempt failed, and a retry would fail the same way.
    NotRetryable,
    /// It failed once more than its retries allow.
    RetriesExceeded,
    /// The host ended while it ran, once more in a row than is allowed.
    InterruptionsExceeded,
    /// Its schedule was switched off or removed while it waited.
    Withdrawn,
    /// Its agent was switched off while it waited.
    Inactive,
}

impl TaskFailure {
    /// The word of the reason.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NotRetryable => "not_retryable",
            Self::RetriesExceeded => "retries_exceeded",
            Self::InterruptionsExceeded => "interruptions_exceeded",
            Self::Withdrawn => "withdrawn",
            Self::Inactive => "inactive",
        }
    }
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
    /// The most automatic retries.
    pub retries_max: u32,
    /// The waits before retries.
    #[serde(default)]
    pub backoff: RetryBackoff,
    /// The times in a row that the host may end while it runs.
    #[serde(default = "interruptions_max")]
    pub interruptions_max: u32,
    /// The times that the host ended while it ran, since it last made progress: since an attempt ended by itself, or
    /// since its run went on.
    #[serde(default)]
    pub interruptions: u32,
    /// The progress of its run when the host last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<u64>,
    /// The reason why it does not run: why it waits, or why it failed without an error of its own.
    pub waits_for: Option<String>,
    /// The reason why it failed for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TaskFailure>,
}

fn interruptions_max() -> u32 {
    INTERRUPTIONS_MAX
}

impl ScheduledTask {
    /// The number of retries so far, by hand ones among them. An attempt that the host interrupted is none: the next
    /// one is in its place.
    #[must_use]
    pub fn retry_count(&self) -> u32 {
        let before = self.attempts.iter().rev().skip(1);
        let failed = before.filter(|attempt| attempt.outcome != Some(AttemptOutcome::Interrupted));
        u32::try_from(failed.count()).unwrap_or(u32::MAX)
    }

    /// True when its attempt is a retry that just began: another one, after one that ended by itself.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        let before = self.attempts.iter().rev().nth(1).and_then(|attempt| attempt.outcome.as_ref());
        // With progress it is a run that goes on in its attempt.
        self.progress.is_none() && before.is_some_and(|outcome| *outcome != AttemptOutcome::Interrupted)
    }

    /// Begins an attempt, or goes on with the one that was interrupted.
    pub(crate) fn start(&mut self, now_ms: u64) {
        self.status = TaskStatus::Running;
        self.waits_for = None;
        if self.attempts.last().is_none_or(|attempt| attempt.outcome.is_some()) {
            self.attempts.push(Attempt::begun(now_ms));
        }
    }

    /// Ends its attempt, and sets its next status.
    pub(crate) fn end(&mut self, outcome: AttemptOutcome, now_ms: u64) {
        let may_help = matches!(outcome, AttemptOutcome::Failed { retryable: true, .. });
        let can_retry = may_help && retry_again(self.retry_count(), self.retries_max).is_ok();
        (self.interruptions, self.progress) = (0, None);
        (self.status, self.failure) = match &outcome {
            AttemptOutcome::Completed => (TaskStatus::Completed, None),
            AttemptOutcome::Failed { .. } | AttemptOutcome::Interrupted if can_retry => (TaskStatus::Pending, None),
            AttemptOutcome::Failed { .. } | AttemptOutcome::Interrupted if may_help => {
                (TaskStatus::Failed, Some(TaskFailure::RetriesExceeded))
            }
            AttemptOutcome::Failed { .. } | AttemptOutcome::Interrupted => {
                (TaskStatus::Failed, Some(TaskFailure::NotRetryable))
            }
        };
        if can_retry {
            self.due_ms = now_ms.saturating_add(self.backoff.delay_ms(self.retry_count() + 1));
        }
        self.close(outcome, now_ms);
    }

    /// The host ended while it ran. With `progress` its run goes on in the same attempt; without, the attempt is over.
    pub(crate) fn interrupt(&mut self, progress: Option<u64>, now_ms: u64, backoff: &RetryBackoff) {
        let made_progress = progress.is_some() && progress != self.progress;
        self.interruptions = if made_progress { 1 } else { self.interruptions.saturating_add(1) };
        self.progress = progress;
        let (count, max) = (self.interruptions, self.interruptions_max);
        if count > max {
            (self.status, self.failure) = (TaskStatus::Failed, Some(TaskFailure::InterruptionsExceeded));
            self.waits_for = Some(format!(
                "{INTERRUPTED}, {count} times in a row, and `interruptions_max` is {max}; find out why, and retry it with: longhaul schedule retry {}",
                self.id
            ));
            return self.close(AttemptOutcome::Interrupted, now_ms);
        }
        let wait_ms = backoff.delay_ms(count);
        (self.status, self.due_ms) = (TaskStatus::Pending, now_ms.saturating_add(wait_ms));
        self.waits_for = Some(format!("{wait_ms} ms to pass: {INTERRUPTED}, {count} of at most {max} times in a row"));
        if progress.is_none() {
            self.close(AttemptOutcome::Interrupted, now_ms);
        }
    }

    /// Fails without a further attempt.
    pub(crate) fn withdraw(&mut self, failure: TaskFailure, reason: &str, now_ms: u64) {
        (self.status, self.failure) = (TaskStatus::Failed, Some(failure));
        self.waits_for = Some(reason.to_owned());
        if self.attempts.last().is_some_and(|attempt| attempt.outcome.is_none()) {
            self.close(AttemptOutcome::Interrupted, now_ms);
        }
    }

    /// Waits for an attempt that a person asked for, whatever its budgets are.
    pub(crate) fn revive(&mut self, now_ms: u64) {
        (self.status, self.due_ms) = (TaskStatus::Pending, now_ms);
        (self.waits_for, self.failure) = (None, None);
        (self.interruptions, self.progress) = (0, None);
    }

    fn close(&mut self, outcome: AttemptOutcome, now_ms: u64) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.ended_ms = Some(now_ms);
            attempt.outcome = Some(outcome);
        }
    }
}
