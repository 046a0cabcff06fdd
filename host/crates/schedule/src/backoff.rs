//! Exponential backoff: the wait before a retry of a task, or after an interruption by the host.
//!
//! It is without randomness, so that a state leads to the same times again; jitter is a setting of the fires. Refuses
//! to wait.

use crate::ScheduleError;
use serde::{Deserialize, Serialize};

/// The longest wait that may be set: a day.
const WAIT_MS_MAX: u64 = 86_400_000;
/// The largest factor.
const FACTOR_MAX: u64 = 10;

/// The waits between the attempts of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryBackoff {
    /// The wait before the first retry, in milliseconds. Default 2,000, at least 1 and at most a day.
    pub ms_first: u64,
    /// The longest wait, in milliseconds. Default 600,000, at least `ms_first` and at most a day.
    pub ms_max: u64,
    /// The factor by which each wait is longer than the one before. Default 2, at least 1 and at most 10.
    pub factor: u32,
}

impl Default for RetryBackoff {
    fn default() -> Self {
        Self { ms_first: 2_000, ms_max: 600_000, factor: 2 }
    }
}

impl RetryBackoff {
    /// The wait before retry `number` (1, 2, 3), in milliseconds: 2, 4 and 8 seconds with the defaults.
    #[must_use]
    pub fn delay_ms(&self, number: u32) -> u64 {
        let grown = u64::from(self.factor).saturating_pow(number.saturating_sub(1));
        self.ms_first.saturating_mul(grown).min(self.ms_max)
    }

    /// Checks that its values are within their ranges.
    ///
    /// # Errors
    /// The first value that is not.
    pub fn check(&self) -> Result<(), ScheduleError> {
        let within = |field, value: u64, min: u64, max: u64| match (min..=max).contains(&value) {
            true => Ok(()),
            false => Err(ScheduleError::Range { field, value, min, max }),
        };
        within("backoff_ms_first", self.ms_first, 1, WAIT_MS_MAX)?;
        within("backoff_ms_max", self.ms_max, self.ms_first, WAIT_MS_MAX)?;
        within("backoff_factor", self.factor.into(), 1, FACTOR_MAX)
    }
}
