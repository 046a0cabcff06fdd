//! The times at which agents are due, the queue, the retries, and the handling of missed fires.
//!
//! [`step`] is a pure function of a [`SchedulerState`] and a [`SchedulerInput`]: it changes the state and returns the
//! actions to take. Time comes in with each input, so that a test moves through a year in a second. Every fire of every
//! schedule ends up in exactly one [`FireOutcome`]: a task, or a reason why there is none.
//!
//! It refuses to run anything, to read a clock or a disk, and to drop a fire silently.

mod backoff;
mod chain;
mod cron;
mod due;
mod error;
mod schedule;
mod state;
mod step;
mod task;
mod trigger;
mod waiting;

pub use backoff::RetryBackoff;
pub use cron::{Cron, NextError};
pub use error::ScheduleError;
pub use longhaul_core::Name;
pub use schedule::{Missed, QUEUE_MAX, Schedule};
pub use state::{ScheduleEntry, SchedulerLimits, SchedulerState};
pub use step::{FireOutcome, SchedulerAction, SchedulerInput, SkipReason, Skipped, edit, step};
pub use task::{
    Attempt, AttemptOutcome, INTERRUPTED, INTERRUPTIONS_MAX, RETRIES_MAX, ScheduledTask, TaskCause, TaskFailure,
    TaskId, TaskStatus, retry_again,
};
pub use trigger::{DEFAULT_CRON, DEFAULT_INTERVAL_MINUTES, Trigger, When};
