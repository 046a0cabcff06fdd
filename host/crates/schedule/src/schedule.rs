//! One schedule: the agent, the trigger, and the policy for missed fires.

use crate::{Name, ScheduleError, Trigger};
use serde::{Deserialize, Serialize};

/// The default number of missed fires that run after a downtime.
pub(crate) const MISSED_MAX: u32 = 10;
/// The largest accepted value.
const MISSED_MAX_MAX: u32 = 1_000;
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
    /// The number of retries of a failed task. Default and at most 3.
    #[serde(default = "retries_max")]
    pub retries_max: u32,
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
        limit("retries_max", self.retries_max.into(), crate::RETRIES_MAX.into())?;
        match &self.trigger {
            Trigger::After { agent, .. } => Ok(Name::try_from(agent.clone()).map(drop)?),
            Trigger::Cron(_) | Trigger::Interval { .. } => Ok(()),
        }
    }
}
