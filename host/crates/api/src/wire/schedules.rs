//! Schedules and their tasks.

use super::Page;
use super::agents::{ExecutionResultView, name};
use crate::agents::{AttemptView, ScheduleList, ScheduleView, SkippedList, StatusFilter, TaskList, TaskView};
use longhaul_core::fault::{self, Fault};
use longhaul_schedule::{
    AttemptOutcome, INTERRUPTED, RetryBackoff, Schedule as InnerSchedule, Skipped as InnerSkipped,
    TaskCause as InnerCause,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The trigger of a schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = Trigger))]
pub enum TriggerForm {
    /// Times of the clock.
    Cron {
        /// Minute, hour, day, month and weekday, with optional seconds in front; or `@hourly` and the like.
        cron: String,
        /// IANA name of the time zone. Default `UTC`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timezone: Option<String>,
    },
    /// An interval.
    Interval {
        /// The interval, from 1 second to a leap year.
        interval_seconds: u64,
    },
    /// The end of a task of another agent.
    After {
        /// Name of the other agent.
        after: String,
        /// The outcome that counts: `success`, `failure` or `always`. Default `success`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<String>,
    },
}

/// A new schedule.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Its name.
    pub name: String,
    /// The agent that it runs.
    pub agent: String,
    /// Its trigger.
    pub trigger: TriggerForm,
    /// True when it fires. Default true.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// True when the agent's tasks may overlap. Default false.
    #[serde(default)]
    pub overlap: Option<bool>,
    /// The treatment of fires that were missed: `skip`, `once` or `all`. Default `once`.
    #[serde(default)]
    pub missed: Option<String>,
    /// Most missed fires that `all` runs. Default 10.
    #[serde(default)]
    pub missed_max: Option<u32>,
    /// Longest random delay of a fire, in milliseconds. Default 0.
    #[serde(default)]
    pub jitter_ms: Option<u64>,
    /// Most automatic retries of a task that failed. Default 3, at most 100.
    #[serde(default)]
    pub retries_max: Option<u32>,
    /// Wait before the first retry, in milliseconds. Default 2,000, at most a day.
    #[serde(default)]
    pub backoff_ms_first: Option<u64>,
    /// Longest wait before a retry, in milliseconds. Default 600,000, or `backoff_ms_first` if that is longer; at most
    /// a day.
    #[serde(default)]
    pub backoff_ms_max: Option<u64>,
    /// Factor by which each wait is longer than the one before, from 1 to 10. Default 2.
    #[serde(default)]
    pub backoff_factor: Option<u32>,
    /// Most times in a row that the host may end while a task runs, without progress between them. Default 20, at most
    /// 100.
    #[serde(default)]
    pub interruptions_max: Option<u32>,
    /// Most waiting tasks of the schedule; a fire beyond them is skipped. Default 1,000, from 1 to 10,000.
    #[serde(default)]
    pub queue_max: Option<u32>,
}

impl NewSchedule {
    /// The schedule as the service takes it.
    ///
    /// # Errors
    /// At the first field that holds no valid value.
    pub fn taken(self) -> fault::Result<InnerSchedule> {
        let word = |field: &'static str| move |error: serde_json::Error| Fault::invalid(error).at(field);
        let trigger = serde_json::to_value(self.trigger).and_then(serde_json::from_value).map_err(word("trigger"))?;
        let usual = InnerSchedule::new(name("name", &self.name)?, name("agent", &self.agent)?, trigger);
        let missed = self.missed.map(|missed| serde_json::from_value(missed.into()).map_err(word("missed")));
        let ms_first = self.backoff_ms_first.unwrap_or(usual.backoff.ms_first);
        let backoff = RetryBackoff {
            ms_first,
            ms_max: self.backoff_ms_max.unwrap_or_else(|| usual.backoff.ms_max.max(ms_first)),
            factor: self.backoff_factor.unwrap_or(usual.backoff.factor),
        };
        Ok(InnerSchedule {
            enabled: self.enabled.unwrap_or(usual.enabled),
            overlap: self.overlap.unwrap_or(usual.overlap),
            missed: missed.transpose()?.unwrap_or(usual.missed),
            missed_max: self.missed_max.unwrap_or(usual.missed_max),
            jitter_ms: self.jitter_ms.unwrap_or(usual.jitter_ms),
            retries_max: self.retries_max.unwrap_or(usual.retries_max),
            backoff,
            interruptions_max: self.interruptions_max.unwrap_or(usual.interruptions_max),
            queue_max: self.queue_max.unwrap_or(usual.queue_max),
            ..usual
        })
    }
}

/// Counts of the fires of a schedule since it was first made.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ScheduleCounts))]
pub struct ScheduleCountsView {
    /// Fires that became tasks.
    pub tasks: u64,
    /// Tasks that completed.
    pub completed: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// Attempts after the first one of a task.
    pub retries: u64,
    /// Fires that became no task, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// A schedule with its state.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Schedule))]
pub struct ScheduleDetails {
    /// Its name.
    pub name: String,
    /// The agent that it runs.
    pub agent: String,
    /// Its trigger, in the form of a request.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub trigger: Value,
    /// Its trigger in words.
    pub when: String,
    /// True when it fires.
    pub enabled: bool,
    /// True when the agent's tasks may overlap.
    pub overlap: bool,
    /// The treatment of fires that were missed.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub missed: Value,
    /// Most missed fires that `all` runs.
    pub missed_max: u32,
    /// Longest random delay of a fire, in milliseconds.
    pub jitter_ms: u64,
    /// Most automatic retries of a task that failed.
    pub retries_max: u32,
    /// Wait before the first retry, in milliseconds.
    pub backoff_ms_first: u64,
    /// Longest wait before a retry, in milliseconds.
    pub backoff_ms_max: u64,
    /// Factor by which each wait is longer than the one before.
    pub backoff_factor: u32,
    /// Most times in a row that the host may end while a task runs, without progress between them.
    pub interruptions_max: u32,
    /// Most waiting tasks of the schedule.
    pub queue_max: u32,
    /// Its next fires without jitter, in milliseconds since 1970-01-01 UTC. Empty while it is switched off.
    pub next_ms: Vec<u64>,
    /// Its tasks that have not ended.
    pub open: Vec<String>,
    /// Counts of its fires.
    pub counts: ScheduleCountsView,
    /// The last of its fires that became no task; null if there is none.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub last_skipped: Option<SkippedFires>,
}

impl From<ScheduleView> for ScheduleDetails {
    fn from(inner: ScheduleView) -> Self {
        let ScheduleView { schedule, when, next_ms, open, tally, last_skipped } = inner;
        Self {
            name: schedule.name.to_string(),
            agent: schedule.agent.to_string(),
            trigger: serde_json::to_value(&schedule.trigger).unwrap_or_default(),
            when,
            enabled: schedule.enabled,
            overlap: schedule.overlap,
            missed: serde_json::to_value(schedule.missed).unwrap_or_default(),
            missed_max: schedule.missed_max,
            jitter_ms: schedule.jitter_ms,
            retries_max: schedule.retries_max,
            backoff_ms_first: schedule.backoff.ms_first,
            backoff_ms_max: schedule.backoff.ms_max,
            backoff_factor: schedule.backoff.factor,
            interruptions_max: schedule.interruptions_max,
            queue_max: schedule.queue_max,
            next_ms,
            open: open.iter().map(ToString::to_string).collect(),
            counts: ScheduleCountsView {
                tasks: tally.tasks,
                completed: tally.completed,
                failed: tally.failed,
                retries: tally.retries,
                skipped: tally.skipped,
            },
            last_skipped: last_skipped.map(Into::into),
        }
    }
}

impl From<ScheduleList> for Page<ScheduleDetails> {
    fn from(inner: ScheduleList) -> Self {
        let ScheduleList { schedules, total_count, limit, offset } = inner;
        Self { items: schedules.into_iter().map(Into::into).collect(), total: total_count, limit, offset }
    }
}

/// Fires of a schedule that became no task.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SkippedFires {
    /// Time of the first of them, in milliseconds since 1970-01-01 UTC.
    pub first_ms: u64,
    /// Time of the last of them, in milliseconds since 1970-01-01 UTC.
    pub last_ms: u64,
    /// Their number.
    pub count: u32,
    /// True when there were more than were counted.
    pub has_more: bool,
    /// The reason: `missed`, `still_waiting`, `queue_full`, `withdrawn` or `inactive`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub reason: Value,
    /// The reason in words, with the limit that was reached, where there is one.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub detail: Option<String>,
}

impl From<InnerSkipped> for SkippedFires {
    fn from(inner: InnerSkipped) -> Self {
        let InnerSkipped { first_ms, last_ms, count, more, why, detail, .. } = inner;
        Self { first_ms, last_ms, count, has_more: more, reason: serde_json::to_value(why).unwrap_or_default(), detail }
    }
}

/// Fires that became no task.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = SkippedFireList))]
pub struct SkippedPage {
    /// The fires, the newest first.
    pub items: Vec<SkippedFires>,
}

impl From<SkippedList> for SkippedPage {
    fn from(inner: SkippedList) -> Self {
        Self { items: inner.skipped.into_iter().map(Into::into).collect() }
    }
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schema(as = TaskStatus))]
pub enum TaskStatusView {
    /// It waits.
    Pending,
    /// An attempt runs.
    Running,
    /// It succeeded.
    Completed,
    /// It failed, and has no automatic retry left.
    Failed,
}

impl From<longhaul_schedule::TaskStatus> for TaskStatusView {
    fn from(inner: longhaul_schedule::TaskStatus) -> Self {
        use longhaul_schedule::TaskStatus as Inner;
        match inner {
            Inner::Pending => Self::Pending,
            Inner::Running => Self::Running,
            Inner::Completed => Self::Completed,
            Inner::Failed => Self::Failed,
        }
    }
}

impl From<TaskStatusView> for StatusFilter {
    fn from(outer: TaskStatusView) -> Self {
        match outer {
            TaskStatusView::Pending => Self::Pending,
            TaskStatusView::Running => Self::Running,
            TaskStatusView::Completed => Self::Completed,
            TaskStatusView::Failed => Self::Failed,
        }
    }
}

/// The cause of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schema(as = TaskCause))]
pub enum TaskCauseView {
    /// The clock.
    Time,
    /// A person or a program.
    Manual,
    /// The end of another task.
    After,
}

/// One attempt of a task.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = TaskAttempt))]
pub struct AttemptDetails {
    /// Time of its start, in milliseconds since 1970-01-01 UTC.
    pub started_ms: u64,
    /// Time of its end, in milliseconds since 1970-01-01 UTC; null while it runs.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub ended_ms: Option<u64>,
    /// True when it succeeded; null while it runs.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub success: Option<bool>,
    /// The reason of its failure.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// True when the host ended while it ran, which counts as no retry.
    pub interrupted: bool,
    /// Its result; null while it runs, and in lists.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub result: Option<ExecutionResultView>,
    /// The run of an ask or of a project.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
}

impl From<AttemptView> for AttemptDetails {
    fn from(inner: AttemptView) -> Self {
        let AttemptView { attempt, result, run } = inner;
        let interrupted = attempt.outcome == Some(AttemptOutcome::Interrupted);
        let (success, error) = match attempt.outcome {
            None => (None, None),
            Some(AttemptOutcome::Completed) => (Some(true), None),
            Some(AttemptOutcome::Failed { error, .. }) => (Some(false), Some(error)),
            Some(AttemptOutcome::Interrupted) => (Some(false), Some(INTERRUPTED.to_owned())),
        };
        Self {
            started_ms: attempt.started_ms,
            ended_ms: attempt.ended_ms,
            success,
            error,
            interrupted,
            result: result.map(Into::into),
            run: run.map(|run| run.to_string()),
        }
    }
}

/// A task with all its attempts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Task))]
pub struct TaskDetails {
    /// Its id.
    pub id: String,
    /// The agent that it runs.
    pub agent: String,
    /// Its schedule; null if it has none.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub schedule: Option<String>,
    /// Its status.
    pub status: TaskStatusView,
    /// Its cause.
    pub cause: TaskCauseView,
    /// Time for which it was planned, in milliseconds since 1970-01-01 UTC.
    pub fire_ms: u64,
    /// Earliest time of its next attempt, in milliseconds since 1970-01-01 UTC.
    pub due_ms: u64,
    /// Time of its end, in milliseconds since 1970-01-01 UTC.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub ended_ms: Option<u64>,
    /// Number of its retries.
    pub retry_count: u32,
    /// Most automatic retries. A retry by hand is always possible.
    pub max_retries: u32,
    /// Number of times that the host ended while it ran, since it last made progress.
    pub interruption_count: u32,
    /// Most such times.
    pub max_interruptions: u32,
    /// The reason why it does not run although it is due; null once it has ended.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub waiting_for: Option<String>,
    /// The kind of reason why it failed for good: `not_retryable`, `retries_exceeded`, `interruptions_exceeded`,
    /// `withdrawn` or `inactive`; null if it did not, or was run by hand.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub failure_reason: Option<String>,
    /// The reason why it failed for good, in words.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub failure: Option<String>,
    /// Its attempts, the first one first.
    pub attempts: Vec<AttemptDetails>,
}

impl From<TaskView> for TaskDetails {
    fn from(inner: TaskView) -> Self {
        let (waiting_for, failure) = reasons(&inner);
        Self {
            id: inner.id.to_string(),
            agent: inner.agent.to_string(),
            schedule: inner.schedule.map(|name| name.to_string()),
            status: inner.status.into(),
            cause: match inner.cause {
                InnerCause::Time => TaskCauseView::Time,
                InnerCause::Hand { .. } => TaskCauseView::Manual,
                InnerCause::After { .. } => TaskCauseView::After,
            },
            fire_ms: inner.fire_ms,
            due_ms: inner.due_ms,
            ended_ms: inner.ended_ms,
            retry_count: inner.retry_count,
            max_retries: inner.retries_max,
            interruption_count: inner.interruption_count,
            max_interruptions: inner.interruptions_max,
            waiting_for,
            failure_reason: inner.failure.map(|failure| failure.word().to_owned()),
            failure,
            attempts: inner.attempts.into_iter().map(Into::into).collect(),
        }
    }
}

/// The reason why a task waits, and the one why it failed for good: its own, or the error of its last attempt.
fn reasons(task: &TaskView) -> (Option<String>, Option<String>) {
    let own = task.waits_for.clone();
    if task.status != longhaul_schedule::TaskStatus::Failed {
        return (own, None);
    }
    let last = task.attempts.last().and_then(|last| last.attempt.outcome.as_ref());
    let error = match last {
        Some(AttemptOutcome::Failed { error, .. }) => Some(error.clone()),
        Some(AttemptOutcome::Completed | AttemptOutcome::Interrupted) | None => None,
    };
    (None, own.or(error))
}

impl From<TaskList> for Page<TaskDetails> {
    fn from(inner: TaskList) -> Self {
        let TaskList { tasks, total_count, limit, offset } = inner;
        Self { items: tasks.into_iter().map(Into::into).collect(), total: total_count, limit, offset }
    }
}

/// A page of the tasks of an agent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentTasks {
    /// Open tasks first, then ended ones, the newest first.
    pub tasks: Vec<TaskDetails>,
    /// Number of tasks on all pages.
    pub total_count: usize,
    /// Tasks of a page.
    pub limit: usize,
    /// Tasks before this page.
    pub offset: usize,
}

impl From<TaskList> for AgentTasks {
    fn from(inner: TaskList) -> Self {
        let TaskList { tasks, total_count, limit, offset } = inner;
        Self { tasks: tasks.into_iter().map(Into::into).collect(), total_count, limit, offset }
    }
}

/// A retry of a task.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = TaskRetry))]
pub struct Retried {
    /// A message for people.
    pub message: String,
    /// Number of retries, this one included.
    pub retry_count: u32,
    /// Most automatic retries. This one is by hand, and may be beyond them.
    pub max_retries: u32,
}
