//! Errors of a schedule, each with its remedy.

use longhaul_core::name::NotAName;

/// An error of a schedule, of a change of one, or of a retry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression cannot be read, or never fires.
    #[error(
        "invalid cron expression `{expression}`: {why}; write minute, hour, day, month and weekday, such as `0 22 * * MON-FRI`"
    )]
    Cron {
        /// The expression, at most 80 characters of it.
        expression: String,
        /// The parser's error.
        why: String,
    },
    /// No zone has this name.
    #[error("there is no time zone `{name}`; write an IANA name such as `Europe/Berlin`, or `UTC`")]
    Zone {
        /// The name as written.
        name: String,
    },
    /// An interval of zero, or one that is longer than a year.
    #[error("an interval is 1 second to 527 040 minutes (a leap year), not {seconds} seconds")]
    Interval {
        /// The requested value.
        seconds: u64,
    },
    /// An invalid name.
    #[error(transparent)]
    Name(#[from] NotAName),
    /// The schedule does not exist.
    #[error("there is no schedule `{name}`; `longhaul schedule list` shows them")]
    Unknown {
        /// The name of the schedule.
        name: String,
    },
    /// An agent would wait for itself.
    #[error("agents would start each other for ever: {}; take one `after` away", .path.join(" -> "))]
    Cycle {
        /// The agents, the first again at the end.
        path: Vec<String>,
    },
    /// There are too many schedules.
    #[error("there are {count} schedules, and more than {count} cannot be; remove one first")]
    TooMany {
        /// The cap.
        count: usize,
    },
    /// A value out of its range.
    #[error("`{field}` is {value}, and at most {max} is allowed")]
    Limit {
        /// The name of the setting.
        field: &'static str,
        /// The requested value.
        value: u64,
        /// The largest value.
        max: u64,
    },
    /// A value out of a range that does not begin with 0.
    #[error("`{field}` is {value}, and {min} to {max} is allowed")]
    Range {
        /// The name of the setting.
        field: &'static str,
        /// The requested value.
        value: u64,
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
    },
    /// The task has no automatic retries left.
    #[error("exceeded max retry attempts ({count}/{max})")]
    Retries {
        /// The number of retries so far.
        count: u32,
        /// The most retries.
        max: u32,
    },
    /// Only a failed task can be retried.
    #[error("task `{task}` is {status}, and only a failed task can be retried")]
    NotFailed {
        /// The task.
        task: String,
        /// Its status.
        status: &'static str,
    },
}
