//! Schedules and their tasks.

use super::Page;
use super::agents::{ExecutionResultView, name};
use crate::agents::{AttemptView, ScheduleList, ScheduleView, SkippedList, StatusFilter, TaskList, TaskView};
use longhaul_core::fault::{self, Fault};
use longhaul_schedule::{AttemptOutcome, Schedule as InnerSchedule, Skipped as InnerSkipped, TaskCause as InnerCause};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// When an agent is due.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum TriggerForm {
    /// By the clock.
    Cron {
        /// Minute, hour, day, month and weekday; optional seconds in front; `@hourly` and the like.
        cron: String,
        /// An IANA name. Default `UTC`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timezone: Option<String>,
    },
    /// Each so many seconds.
    Interval {
        /// From 1 to a leap year.
        interval_seconds: u64,
    },
    /// When another agent has ended.
    After {
        /// Which.
        after: String,
        /// How it ended: `success`, `failure` or `always`. Default `success`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<String>,
    },
}

/// A schedule that is to be made.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Its name.
    pub name: String,
    /// Which agent is run.
    pub agent: String,
    /// When.
    pub trigger: TriggerForm,
    /// Whether it fires. Default yes.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// Whether the agent may be run while it runs. Default no.
    #[serde(default)]
    pub overlap: Option<bool>,
    /// What becomes of fires that nobody was there for: `skip`, `once` or `all`. Default `once`.
    #[serde(default)]
    pub missed: Option<String>,
    /// How many of them are run with `all`. Default 10.
    #[serde(default)]
    pub missed_max: Option<u32>,
    /// A fire waits for up to this long, in milliseconds. Default 0.
    #[serde(default)]
    pub jitter_ms: Option<u64>,
    /// How often a task that failed is tried again. Default and at most 3.
    #[serde(default)]
    pub retries_max: Option<u32>,
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
        Ok(InnerSchedule {
            enabled: self.enabled.unwrap_or(usual.enabled),
            overlap: self.overlap.unwrap_or(usual.overlap),
            missed: missed.transpose()?.unwrap_or(usual.missed),
            missed_max: self.missed_max.unwrap_or(usual.missed_max),
            jitter_ms: self.jitter_ms.unwrap_or(usual.jitter_ms),
            retries_max: self.retries_max.unwrap_or(usual.retries_max),
            ..usual
        })
    }
}

/// What became of the fires of a schedule, since it was first made.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Tally))]
pub struct ScheduleTallyView {
    /// Fires that became tasks.
    pub tasks: u64,
    /// Tasks that completed.
    pub completed: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// Attempts that were not the first of their task.
    pub retries: u64,
    /// Fires that became no task, by why.
    pub skipped: BTreeMap<String, u64>,
}

/// A schedule, and where it is.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Schedule))]
pub struct ScheduleDetails {
    /// Its name.
    pub name: String,
    /// Which agent is run.
    pub agent: String,
    /// When, in the form in which it is made.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub trigger: Value,
    /// The same in words.
    pub when: String,
    /// Whether it fires.
    pub enabled: bool,
    /// Whether the agent may be run while it runs.
    pub overlap: bool,
    /// What becomes of fires that nobody was there for.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub missed: Value,
    /// How many of them are run with `all`.
    pub missed_max: u32,
    /// A fire waits for up to this long, in milliseconds.
    pub jitter_ms: u64,
    /// How often a task that failed is tried again.
    pub retries_max: u32,
    /// Its next fires, in milliseconds since 1970-01-01 UTC, without jitter. Empty while it is switched off.
    pub next_ms: Vec<u64>,
    /// Its tasks that have not ended.
    pub open: Vec<String>,
    /// What became of its fires.
    pub tally: ScheduleTallyView,
}

impl From<ScheduleView> for ScheduleDetails {
    fn from(inner: ScheduleView) -> Self {
        let ScheduleView { schedule, when, next_ms, open, tally } = inner;
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
            next_ms,
            open: open.iter().map(ToString::to_string).collect(),
            tally: ScheduleTallyView {
                tasks: tally.tasks,
                completed: tally.completed,
                failed: tally.failed,
                retries: tally.retries,
                skipped: tally.skipped,
            },
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
    /// The first of them, in milliseconds since 1970-01-01 UTC.
    pub first_ms: u64,
    /// The last of them.
    pub last_ms: u64,
    /// How many they are.
    pub count: u32,
    /// Whether they were more than were counted.
    pub more: bool,
    /// Why: `missed`, `still_waiting`, `queue_full` or `withdrawn`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub why: Value,
}

impl From<InnerSkipped> for SkippedFires {
    fn from(inner: InnerSkipped) -> Self {
        let InnerSkipped { first_ms, last_ms, count, more, why, .. } = inner;
        Self { first_ms, last_ms, count, more, why: serde_json::to_value(why).unwrap_or_default() }
    }
}

/// Fires that became no task.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Skipped))]
pub struct SkippedPage {
    /// The newest first.
    pub items: Vec<SkippedFires>,
}

impl From<SkippedList> for SkippedPage {
    fn from(inner: SkippedList) -> Self {
        Self { items: inner.skipped.into_iter().map(Into::into).collect() }
    }
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schema(as = TaskStatus))]
pub enum TaskStatusView {
    /// It waits.
    Pending,
    /// It is being done.
    Running,
    /// It was done.
    Completed,
    /// It failed, and is not tried again by itself.
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

/// What made a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schema(as = Cause))]
pub enum TaskCauseView {
    /// The time came.
    Time,
    /// Somebody asked for it.
    Hand,
    /// Another task ended.
    After,
}

/// One try of a task.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Attempt))]
pub struct AttemptDetails {
    /// When it was started, in milliseconds since 1970-01-01 UTC.
    pub started_ms: u64,
    /// When it ended; null while it runs.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub ended_ms: Option<u64>,
    /// Whether it did what it was for; null while it runs.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub success: Option<bool>,
    /// What went wrong.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// What it came to; null while it runs, and in lists.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub result: Option<ExecutionResultView>,
    /// The run that it is, for an ask or a run.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
}

impl From<AttemptView> for AttemptDetails {
    fn from(inner: AttemptView) -> Self {
        let AttemptView { attempt, result, run } = inner;
        let (success, error) = match attempt.outcome {
            None => (None, None),
            Some(AttemptOutcome::Completed) => (Some(true), None),
            Some(AttemptOutcome::Failed { error, .. }) => (Some(false), Some(error)),
        };
        Self {
            started_ms: attempt.started_ms,
            ended_ms: attempt.ended_ms,
            success,
            error,
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
    /// Its name.
    pub id: String,
    /// Which agent does it.
    pub agent: String,
    /// Of which schedule; null if somebody asked for it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub schedule: Option<String>,
    /// Where it is.
    pub status: TaskStatusView,
    /// What made it.
    pub cause: TaskCauseView,
    /// When it was to be, in milliseconds since 1970-01-01 UTC.
    pub fire_ms: u64,
    /// Not started before this.
    pub due_ms: u64,
    /// When it ended.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub ended_ms: Option<u64>,
    /// How often it was tried again.
    pub retry_count: u32,
    /// How often it may be.
    pub max_retries: u32,
    /// Why it is not running though it is due.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub waits_for: Option<String>,
    /// All its attempts, the first in front.
    pub attempts: Vec<AttemptDetails>,
}

impl From<TaskView> for TaskDetails {
    fn from(inner: TaskView) -> Self {
        Self {
            id: inner.id.to_string(),
            agent: inner.agent.to_string(),
            schedule: inner.schedule.map(|name| name.to_string()),
            status: inner.status.into(),
            cause: match inner.cause {
                InnerCause::Time => TaskCauseView::Time,
                InnerCause::Hand { .. } => TaskCauseView::Hand,
                InnerCause::After { .. } => TaskCauseView::After,
            },
            fire_ms: inner.fire_ms,
            due_ms: inner.due_ms,
            ended_ms: inner.ended_ms,
            retry_count: inner.retry_count,
            max_retries: inner.retries_max,
            waits_for: inner.waits_for,
            attempts: inner.attempts.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<TaskList> for Page<TaskDetails> {
    fn from(inner: TaskList) -> Self {
        let TaskList { tasks, total_count, limit, offset } = inner;
        Self { items: tasks.into_iter().map(Into::into).collect(), total: total_count, limit, offset }
    }
}

/// Tasks of an agent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentTasks {
    /// Those that have not ended in front, then the others, the newest first.
    pub tasks: Vec<TaskDetails>,
    /// How many there are in all.
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

/// That a task is tried again.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Retried {
    /// In words.
    pub message: String,
    /// How often it was tried again, this time included.
    pub retry_count: u32,
    /// How often it may be.
    pub max_retries: u32,
}
