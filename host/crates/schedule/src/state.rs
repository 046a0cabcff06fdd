//! The state of a scheduler: its schedules, and the tasks that have not ended.

use crate::{Name, RetryBackoff, Schedule, ScheduleError, ScheduledTask, TaskId, TaskStatus};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The default number of tasks at once.
pub(crate) const CONCURRENT_MAX: u32 = 5;
/// The default number of waiting tasks of all schedules.
const QUEUE_MAX_ALL: u32 = 10_000;
/// Schedules at once.
const SCHEDULES_MAX: usize = 10_000;

/// A schedule, and its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleEntry {
    /// The schedule.
    pub schedule: Schedule,
    /// The start of intervals: the time at which it was made, changed or enabled.
    pub anchor_ms: u64,
    /// The next fire; none while it is disabled, for a trigger other than time, and when it never fires again.
    pub next_ms: Option<u64>,
    /// The start of its last task, for fairness.
    pub started_ms: u64,
}

/// Limits for all schedules of a scheduler, which the operator sets. They are not stored with its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerLimits {
    /// The number of waiting tasks of all schedules. Default 10,000. Further fires are recorded as skipped.
    pub queue_max: u32,
    /// The waits after the host ended while a task ran. Default 1 second, twice as long with each further time in a
    /// row, and at most a minute.
    pub interruption_backoff: RetryBackoff,
}

impl Default for SchedulerLimits {
    fn default() -> Self {
        let interruption_backoff = RetryBackoff { ms_first: 1_000, ms_max: 60_000, factor: 2 };
        Self { queue_max: QUEUE_MAX_ALL, interruption_backoff }
    }
}

/// The state of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerState {
    /// The schedules by name.
    pub schedules: BTreeMap<Name, ScheduleEntry>,
    /// Tasks that have not ended.
    pub tasks: BTreeMap<TaskId, ScheduledTask>,
    /// Agents whose fires become no tasks.
    #[serde(default)]
    pub inactive: BTreeSet<Name>,
    /// The most tasks that run at once. Default 5.
    pub concurrent_max: u32,
    /// Limits for all schedules.
    #[serde(default)]
    pub limits: SchedulerLimits,
    /// The latest time of an input; it does not go back when a clock does.
    pub now_ms: u64,
}

impl Default for SchedulerState {
    fn default() -> Self {
        Self {
            schedules: BTreeMap::new(),
            tasks: BTreeMap::new(),
            inactive: BTreeSet::new(),
            concurrent_max: CONCURRENT_MAX,
            limits: SchedulerLimits::default(),
            now_ms: 0,
        }
    }
}

impl SchedulerState {
    /// The time of the next event without an input. None when there is none.
    #[must_use]
    pub fn wake_ms(&self) -> Option<u64> {
        let fires = self.schedules.values().filter_map(|entry| entry.next_ms);
        let dues = self.pending().map(|task| task.due_ms).filter(|due| *due > self.now_ms);
        fires.chain(dues).min()
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = &ScheduledTask> {
        self.tasks.values().filter(|task| task.status == TaskStatus::Pending)
    }

    pub(crate) fn running(&self) -> usize {
        self.tasks.values().filter(|task| task.status == TaskStatus::Running).count()
    }

    pub(crate) fn entry(&mut self, name: &Name) -> Result<&mut ScheduleEntry, ScheduleError> {
        self.schedules.get_mut(name).ok_or_else(|| ScheduleError::Unknown { name: name.to_string() })
    }

    pub(crate) fn has_room(&self, name: &Name) -> Result<(), ScheduleError> {
        if self.schedules.len() < SCHEDULES_MAX || self.schedules.contains_key(name) {
            return Ok(());
        }
        Err(ScheduleError::TooMany { count: SCHEDULES_MAX })
    }
}
