//! One schedule: which agent, when, and what is done when it cannot be then.

use crate::{Name, ScheduleError, Trigger};
use serde::{Deserialize, Serialize};

/// Fires that are made up for after a downtime, when nothing else is said.
pub(crate) const MISSED_MAX: u32 = 10;
/// The most that can be asked for.
const MISSED_MAX_MAX: u32 = 1_000;
/// The longest jitter: an hour.
const JITTER_MS_MAX: u64 = 3_600_000;

/// What becomes of fires that nobody was there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// They are noted, and the next one is waited for.
    Skip,
    /// The last of them is run, and the others are noted.
    #[default]
    Once,
    /// The last [`Schedule::missed_max`] of them are run, one after the other, and the others are noted.
    All,
}

/// One schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Its name.
    pub name: Name,
    /// Which agent is run.
    pub agent: Name,
    /// When.
    pub trigger: Trigger,
    /// A schedule that is not enabled fires only by hand. Default yes.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether the agent may be run while it runs. Default no: a second task waits, and a third is noted.
    #[serde(default)]
    pub overlap: bool,
    /// What becomes of fires that nobody was there for. Default [`Missed::Once`].
    #[serde(default)]
    pub missed: Missed,
    /// How many of them are run with [`Missed::All`]. Default 10, at most 1,000.
    #[serde(default = "missed_max")]
    pub missed_max: u32,
    /// A fire waits for up to this long, always the same for one fire, in milliseconds. Default 0, at most an hour.
    #[serde(default)]
    pub jitter_ms: u64,
    /// How often a task that failed is tried again. Default and at most 3.
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
    /// One with the defaults.
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

    /// Whether its figures are within their ranges.
    ///
    /// # Errors
    /// Names the first that is not.
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
