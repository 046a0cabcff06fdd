//! The triggers of agents.

use crate::{Cron, NextError, ScheduleError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The default expression of a cron trigger: each hour.
pub const DEFAULT_CRON: &str = "0 * * * *";

/// The default minutes of an interval: an hour.
pub const DEFAULT_INTERVAL_MINUTES: u64 = 60;

/// Seconds of the longest interval: a leap year.
const INTERVAL_SECONDS_MAX: u64 = 366 * 24 * 3600;

/// The trigger of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Trigger {
    /// A time of the calendar.
    Cron(Cron),
    /// A fixed number of seconds, counted from the time at which the schedule was made.
    Interval {
        /// At least 1, at most a leap year.
        seconds: u64,
    },
    /// The end of a task of another agent.
    After {
        /// The other agent.
        agent: String,
        /// The ends that count.
        when: When,
    },
}

/// The ends of a task that start another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// It completed.
    #[default]
    Success,
    /// It failed, and has no retry left.
    Failure,
    /// Either end.
    Always,
}

impl Trigger {
    /// An interval.
    ///
    /// # Errors
    /// When it is zero, or longer than a leap year.
    pub fn interval(seconds: u64) -> Result<Self, ScheduleError> {
        match seconds {
            1..=INTERVAL_SECONDS_MAX => Ok(Self::Interval { seconds }),
            _ => Err(ScheduleError::Interval { seconds }),
        }
    }

    /// The first time after `after_ms`, of a schedule that was made at `anchor_ms`. None for a trigger other than time.
    ///
    /// # Errors
    /// When an expression never fires again.
    pub fn next_after(&self, anchor_ms: u64, after_ms: u64) -> Result<Option<u64>, NextError> {
        match self {
            Self::Cron(cron) => cron.next_after(after_ms).map(Some),
            Self::Interval { seconds } => {
                let every_ms = seconds.saturating_mul(1000).max(1);
                let passed = after_ms.saturating_sub(anchor_ms) / every_ms;
                Ok(Some(anchor_ms.saturating_add((passed + 1).saturating_mul(every_ms))))
            }
            Self::After { .. } => Ok(None),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(cron) => write!(f, "{cron}"),
            Self::Interval { seconds } if seconds % 60 == 0 => write!(f, "every {} min", seconds / 60),
            Self::Interval { seconds } => write!(f, "every {seconds} s"),
            Self::After { agent, when } => {
                let when = match when {
                    When::Success => "succeeded",
                    When::Failure => "failed",
                    When::Always => "ended",
                };
                write!(f, "when `{agent}` has {when}")
            }
        }
    }
}

/// The form in configurations: `{"type": "cron", "cron": "0 * * * *"}`; every missed field has its default.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, rename = "type")]
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interval_minutes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interval_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<When>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Cron,
    #[default]
    Interval,
    After,
}

impl TryFrom<Written> for Trigger {
    type Error = ScheduleError;

    fn try_from(written: Written) -> Result<Self, ScheduleError> {
        match written.kind {
            Kind::Cron => {
                let expression = written.cron.as_deref().unwrap_or(DEFAULT_CRON);
                Cron::parse(expression, written.timezone.as_deref().unwrap_or("UTC")).map(Self::Cron)
            }
            Kind::Interval => {
                let minutes = || written.interval_minutes.unwrap_or(DEFAULT_INTERVAL_MINUTES);
                Self::interval(written.interval_seconds.unwrap_or_else(|| minutes().saturating_mul(60)))
            }
            Kind::After => {
                Ok(Self::After { agent: written.after.unwrap_or_default(), when: written.when.unwrap_or_default() })
            }
        }
    }
}

impl From<Trigger> for Written {
    fn from(trigger: Trigger) -> Self {
        match trigger {
            Trigger::Cron(cron) => Self {
                kind: Kind::Cron,
                cron: Some(cron.expression().to_owned()),
                timezone: Some(cron.zone().to_owned()),
                ..Self::default()
            },
            Trigger::Interval { seconds } => Self { interval_seconds: Some(seconds), ..Self::default() },
            Trigger::After { agent, when } => {
                Self { kind: Kind::After, after: Some(agent), when: Some(when), ..Self::default() }
            }
        }
    }
}
