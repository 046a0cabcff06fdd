//! What is wrong with a schedule, in words that say what to write instead.

use longhaul_core::name::NotAName;

/// A schedule, a change of one, or a retry that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression cannot be read, or never fires.
    #[error(
        "invalid cron expression `{expression}`: {why}; write minute, hour, day, month and weekday, such as `0 22 * * MON-FRI`"
    )]
    Cron {
        /// As it was written, at most 80 characters of it.
        expression: String,
        /// What the parser says.
        why: String,
    },
    /// No zone has this name.
    #[error("there is no time zone `{name}`; write an IANA name such as `Europe/Berlin`, or `UTC`")]
    Zone {
        /// As it was written.
        name: String,
    },
    /// An interval of nothing, or one that is longer than a year.
    #[error("an interval is 1 second to 527 040 minutes (a leap year), not {seconds} seconds")]
    Interval {
        /// What was asked for.
        seconds: u64,
    },
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] NotAName),
    /// There is none.
    #[error("there is no schedule `{name}`; `longhaul schedule list` shows them")]
    Unknown {
        /// Of the schedule.
        name: String,
    },
    /// An agent would be waiting for itself.
    #[error("agents would start each other for ever: {}; take one `after` away", .path.join(" -> "))]
    Cycle {
        /// The agents, the first again at the end.
        path: Vec<String>,
    },
    /// Nothing more can be stored.
    #[error("there are {count} schedules, and more than {count} cannot be; remove one first")]
    TooMany {
        /// How many there may be.
        count: usize,
    },
    /// A figure that is out of its range.
    #[error("`{field}` is {value}, and at most {max} is allowed")]
    Limit {
        /// The name of the setting.
        field: &'static str,
        /// What was asked for.
        value: u64,
        /// What may be.
        max: u64,
    },
    /// Nobody may try this again.
    #[error("exceeded max retry attempts ({count}/{max})")]
    Retries {
        /// How often it was.
        count: u32,
        /// How often it may be.
        max: u32,
    },
    /// Only what has failed is tried again.
    #[error("task `{task}` is {status}, and only a failed task can be tried again")]
    NotFailed {
        /// The task.
        task: String,
        /// What it is.
        status: &'static str,
    },
}
