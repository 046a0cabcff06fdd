//! One schedule: the agent, the trigger, and the policy for missed fires.

use crate::{Name, RetryBackoff, ScheduleError, Trigger};
use serde::{Deserialize, Serialize};

/// The default number of missed fires that run after a downtime.
pub(crate) const MISSED_MAX: u32 = 10;
/// The largest accepted value.
const MISSED_MAX_MAX: u32 = 1_000;
/// The default number of waiting tasks of one schedule.
pub const QUEUE_MAX: u32 = 1_000;
/// The largest accepted value: as many as the scheduler keeps of all schedules by default.
const QUEUE_MAX_MAX: u32 = 10_000;
/// The most retries, and the most interruptions in a row, that may be set: a task keeps its attempts in one row.
const ATTEMPTS_MAX_MAX: u32 = 100;
/// The longest jitter: an hour.
const JITTER_MS_MAX: u64 = 3_600_000;

/// The policy for missed fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// They are recorded and do not run.
    Skip,
    /// The last of them runs, and the others are recorded.
    #[default]
    Once,
    /// The last [`Schedule::missed_max`] of them run, one after the other, and the others are recorded.
    All,
}

impl Missed {
    /// The word of the policy in configurations.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
            Self::All => "all",
        }
    }
}

/// One schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The name of the schedule.
    pub name: Name,
    /// The agent.
    pub agent: Name,
    /// The trigger.
    pub trigger: Trigger,
    /// A schedule that is not enabled fires only by hand. Default yes.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// True when the agent may run twice at once. Default false: a second task waits, and a third is recorded as
    /// skipped.
    #[serde(default)]
    pub overlap: bool,
    /// The policy for missed fires. Default [`Missed::Once`].
    #[serde(default)]
    pub missed: Missed,
    /// The number of them that run with [`Missed::All`]. Default 10, at most 1,000.
    #[serde(default = "missed_max")]
    pub missed_max: u32,
    /// The longest delay of a fire, always the same for one fire, in milliseconds. Default 0, at most an hour.
    #[serde(default)]
    pub jitter_ms: u64,
    /// The number of automatic retries of a failed task. Default 3, at most 100. An attempt that the host interrupted
    /// by its end, and a retry by hand, do not count.
    #[serde(default = "retries_max")]
    pub retries_max: u32,
    /// The waits before retries. Default 2, 4 and 8 seconds, and so on up to ten minutes.
    #[serde(default)]
    pub backoff: RetryBackoff,
    /// The number of times in a row that the host may end while a task runs, without progress of the task between them.
    /// Default 20, at most 100. Once more, and the task has failed.
    #[serde(default = "interruptions_max")]
    pub interruptions_max: u32,
    /// The number of its tasks that may wait. Default 1,000, at least 1 and at most 10,000. A fire beyond them is
    /// recorded as skipped.
    #[serde(default = "queue_max")]
    pub queue_max: u32,
}

fn yes() -> bool {
    true
}

fn missed_max() -> u32 {
    MISSED_MAX
}

fn retries_max() -> u32 {
    crate::RETRIES_MAX
}

fn interruptions_max() -> u32 {
    crate::INTERRUPTIONS_MAX
}

fn queue_max() -> u32 {
    QUEUE_MAX
}

impl Schedule {
    /// A schedule with the defaults.
    #[must_use]
    pub fn new(name: Name, agent: Name, trigger: Trigger) -> Self {
        Self {
            name,
            agent,
            trigger,
            enabled: true,
            overlap: false,
            missed: Missed::default(),
            missed_max: MISSED_MAX,
            jitter_ms: 0,
            retries_max: crate::RETRIES_MAX,
            backoff: RetryBackoff::default(),
            interruptions_max: crate::INTERRUPTIONS_MAX,
            queue_max: QUEUE_MAX,
        }
    }

    /// Checks that its values are within their ranges.
    ///
    /// # Errors
    /// The first value that is not.
    pub fn check(&self) -> Result<(), ScheduleError> {
        let limit = |field, value: u64, max: u64| match value <= max {
            true => Ok(()),
            false => Err(ScheduleError::Limit { field, value, max }),
        };
        limit("missed_max", self.missed_max.into(), MISSED_MAX_MAX.into())?;
        limit("jitter_ms", self.jitter_ms, JITTER_MS_MAX)?;
        limit("retries_max", self.retries_max.into(), ATTEMPTS_MAX_MAX.into())?;
        limit("interruptions_max", self.interruptions_max.into(), ATTEMPTS_MAX_MAX.into())?;
        if !(1..=QUEUE_MAX_MAX).contains(&self.queue_max) {
            let (value, max) = (self.queue_max.into(), QUEUE_MAX_MAX.into());
            return Err(ScheduleError::Range { field: "queue_max", value, min: 1, max });
        }
        self.backoff.check()?;
        match &self.trigger {
            Trigger::After { agent, .. } => Ok(Name::try_from(agent.clone()).map(drop)?),
            Trigger::Cron(_) | Trigger::Interval { .. } => Ok(()),
        }
    }
}
