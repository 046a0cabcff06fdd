//! The state of a scheduler: its schedules, and the tasks that have not ended.

use crate::{Name, Schedule, ScheduleError, ScheduledTask, TaskId, TaskStatus};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The default number of tasks at once.
pub(crate) const CONCURRENT_MAX: u32 = 5;
/// The most waiting tasks. Further fires are recorded as skipped.
pub(crate) const PENDING_MAX: usize = 10_000;
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
