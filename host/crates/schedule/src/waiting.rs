//! The numbers of tasks that wait, counted once for all fires of a moment: of many schedules that are due together,
//! each would look at all tasks otherwise.

use crate::{Name, Schedule, ScheduledTask, SchedulerState};
use std::collections::BTreeMap;

/// The tasks that wait.
pub(crate) struct WaitingTasks {
    all: usize,
    of_schedules: BTreeMap<Name, WaitingOfSchedule>,
}

/// The tasks of one schedule that wait.
#[derive(Clone, Copy, Default)]
struct WaitingOfSchedule {
    all: usize,
    /// Those that have not been tried yet.
    untried: usize,
}

impl WaitingTasks {
    /// Those of a state.
    pub(crate) fn of(state: &SchedulerState) -> Self {
        let mut waiting = Self { all: 0, of_schedules: BTreeMap::new() };
        state.pending().for_each(|task| waiting.add(task));
        waiting
    }

    /// Counts a further one.
    pub(crate) fn add(&mut self, task: &ScheduledTask) {
        let of_schedule = self.of_schedules.entry(task.schedule.clone()).or_default();
        self.all += 1;
        of_schedule.all += 1;
        of_schedule.untried += usize::from(task.attempts.is_empty());
    }

    /// True when an earlier fire of the schedule has not been tried yet.
    pub(crate) fn is_untried(&self, schedule: &Name) -> bool {
        self.of_schedule(schedule).untried > 0
    }

    /// The limit of the queue that leaves no place for a task of this schedule, in words. `all_max` is that of all
    /// schedules.
    pub(crate) fn full_queue(&self, schedule: &Schedule, all_max: u32) -> Option<String> {
        let (own, all) = (self.of_schedule(&schedule.name).all, self.all);
        let own_max = schedule.queue_max;
        if own >= usize::try_from(own_max).unwrap_or(usize::MAX) {
            return Some(format!("{own} of at most {own_max} tasks of the schedule wait (`queue_max`)"));
        }
        let is_full = all >= usize::try_from(all_max).unwrap_or(usize::MAX);
        is_full.then(|| format!("{all} of at most {all_max} tasks wait (`queue_max` of `[scheduler]` in server.toml)"))
    }

    fn of_schedule(&self, name: &Name) -> WaitingOfSchedule {
        self.of_schedules.get(name).copied().unwrap_or_default()
    }
}
