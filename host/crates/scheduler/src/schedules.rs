//! Schedules: created, changed and inspected.

use crate::rows;
use crate::service::{SchedulerService, StateGuard, lock};
use crate::work::BY_HAND;
use longhaul_agents::{AgentError, ExecutionResult};
use longhaul_api::agents::{
    EnableSchedule, FIRES, FIRES_MAX, ListSchedules, ListSkipped, PAGE_MAX, PutSchedule, ScheduleList, ScheduleView,
    SchedulerStatus, ShowSchedule, SkippedList, TaskView,
};
use longhaul_core::Name;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_schedule::{
    FireOutcome, ScheduleEntry, ScheduleError, SchedulerAction, SchedulerInput, SkipReason, Skipped, TaskCause, TaskId,
    TaskStatus, Trigger,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most tasks that may run at once.
const CONCURRENT_MAX_MAX: u32 = 1_000;

impl SchedulerService {
    /// Makes a schedule, or replaces the one of its name.
    ///
    /// # Errors
    /// The fault of the schedule, or a failure of the store.
    pub async fn put_schedule(&self, request: PutSchedule) -> fault::Result<ScheduleView> {
        let PutSchedule { schedule, replace } = request;
        let name = schedule.name.clone();
        if name.as_str() == BY_HAND {
            bail!("`{BY_HAND}` stands for tasks that no schedule made; choose another name");
        }
        let mut turn = self.turn().await?;
        if turn.state().schedules.contains_key(&name) && !replace {
            bail!(Fault::conflict(format!(
                "there is a schedule `{name}` already; choose another name, or put this one in its place with --replace"
            )));
        }
        self.expect_agent(&schedule.agent)?;
        if let Trigger::After { agent, .. } = &schedule.trigger {
            let agent: Name = agent.parse().map_err(|_| match agent.is_empty() {
                true => Fault::invalid("an `after` schedule names no agent to come after; say which"),
                false => Fault::invalid(format!("`{agent}` cannot be the name of an agent")),
            })?;
            self.expect_agent(&agent)?;
        }
        turn.take(SchedulerInput::Put(schedule)).await?;
        self.one(&turn, &name, FIRES)
    }

    fn expect_agent(&self, name: &Name) -> fault::Result<()> {
        if rows::agent(&*self.store, name)?.is_none() {
            let error = AgentError::Unknown { name: name.to_string() };
            bail!("{error}; make it first with: longhaul agent add {name}");
        }
        Ok(())
    }

    /// A page of schedules by name.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_schedules(&self, request: ListSchedules) -> fault::Result<ScheduleList> {
        let ListSchedules { limit, offset } = request;
        let turn = self.turn().await?;
        let limit = limit.min(PAGE_MAX);
        let entries = turn.state().schedules.values();
        let total_count = entries.len();
        let views = entries.skip(offset).take(limit).map(|entry| self.schedule_view(&turn, entry, FIRES));
        let schedules = views.collect::<fault::Result<_>>()?;
        Ok(ScheduleList { schedules, total_count, limit, offset })
    }

    /// One schedule.
    ///
    /// # Errors
    /// When there is no such schedule, and when the store fails.
    pub async fn show_schedule(&self, ShowSchedule { name, fires }: ShowSchedule) -> fault::Result<ScheduleView> {
        let turn = self.turn().await?;
        self.one(&turn, &name, fires.min(FIRES_MAX))
    }

    /// Removes a schedule with its waiting tasks, and answers what it was.
    ///
    /// # Errors
    /// As [`Self::show_schedule`].
    pub async fn remove_schedule(&self, name: Name) -> fault::Result<ScheduleView> {
        let mut turn = self.turn().await?;
        let said = self.one(&turn, &name, 0)?;
        turn.take(SchedulerInput::Remove(name)).await?;
        Ok(said)
    }

    /// Switches a schedule on or off.
    ///
    /// # Errors
    /// As [`Self::show_schedule`].
    pub async fn enable_schedule(&self, request: EnableSchedule) -> fault::Result<ScheduleView> {
        let EnableSchedule { name, enabled } = request;
        let mut turn = self.turn().await?;
        turn.take(SchedulerInput::Enable(name.clone(), enabled)).await?;
        self.one(&turn, &name, FIRES)
    }

    /// Fires a schedule now.
    ///
    /// # Errors
    /// When there is no such schedule, when its agent is switched off, when the queue is full, and when the store
    /// fails.
    pub async fn run_now(&self, name: Name) -> fault::Result<TaskView> {
        let mut turn = self.turn().await?;
        let agent = entry(&turn, &name)?.schedule.agent.clone();
        let is_active = rows::agent(&*self.store, &agent)?.is_none_or(|record| record.agent.active);
        if !is_active {
            let why = ExecutionResult::not_active(agent.as_str()).error_message.unwrap_or_default();
            bail!("{why}");
        }
        let (state, actions) = turn.next(SchedulerInput::RunNow { schedule: name, nonce: nonce() })?;
        let made = |action: &SchedulerAction| match action {
            SchedulerAction::Note(FireOutcome::Task(id)) => {
                let is_ours = |cause: &TaskCause| matches!(cause, TaskCause::Hand { .. });
                state.tasks.get(id).filter(|task| is_ours(&task.cause)).map(|task| task.id.clone())
            }
            _ => None,
        };
        let made: Option<TaskId> = actions.iter().find_map(made);
        let writing = rows::ScheduleTransaction::new(&*self.store, self.clock.now_ms());
        turn.keep(state, &actions, writing).await?;
        let id = made.ok_or_else(|| refused(&actions))?;
        self.task_in(&turn, &id)
    }

    /// Fires of a schedule that became no task, the newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn skipped(&self, ListSkipped { name, limit }: ListSkipped) -> fault::Result<SkippedList> {
        Ok(SkippedList { skipped: rows::skipped(&*self.store, &name, limit.min(PAGE_MAX))? })
    }

    /// Sets how many tasks run at once.
    ///
    /// # Errors
    /// When it is out of range, and when the store fails.
    pub async fn set_concurrent_max(&self, max: u32) -> fault::Result<SchedulerStatus> {
        if !(1..=CONCURRENT_MAX_MAX).contains(&max) {
            bail!("{max} tasks at once cannot be; say 1 to {CONCURRENT_MAX_MAX}");
        }
        let mut turn = self.turn().await?;
        turn.take(SchedulerInput::ConcurrentMax(max)).await?;
        Ok(self.status_in(&turn))
    }

    /// The status of the scheduler.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn scheduler_status(&self) -> fault::Result<SchedulerStatus> {
        let turn = self.turn().await?;
        Ok(self.status_in(&turn))
    }

    fn status_in(&self, turn: &StateGuard<'_>) -> SchedulerStatus {
        let state = turn.state();
        let count = |status| state.tasks.values().filter(|task| task.status == status).count();
        SchedulerStatus {
            working: lock(&self.starts).is_some(),
            concurrent_max: state.concurrent_max,
            running: count(TaskStatus::Running),
            pending: count(TaskStatus::Pending),
            queue_max: state.limits.queue_max,
            schedules: state.schedules.len(),
            next_wake_ms: state.wake_ms(),
        }
    }

    fn one(&self, turn: &StateGuard<'_>, name: &Name, fires: usize) -> fault::Result<ScheduleView> {
        self.schedule_view(turn, entry(turn, name)?, fires)
    }

    fn schedule_view(&self, turn: &StateGuard<'_>, entry: &ScheduleEntry, fires: usize) -> fault::Result<ScheduleView> {
        let name = &entry.schedule.name;
        let mut next_ms: Vec<u64> = Vec::new();
        while next_ms.len() < fires {
            let next = match next_ms.last() {
                None => entry.next_ms,
                Some(last) => entry.schedule.trigger.next_after(entry.anchor_ms, *last).unwrap_or(None),
            };
            match next {
                Some(next) => next_ms.push(next),
                None => break,
            }
        }
        let open = turn.state().tasks.values().filter(|task| task.schedule == *name);
        Ok(ScheduleView {
            when: entry.schedule.trigger.to_string(),
            next_ms,
            open: open.map(|task| task.id.clone()).collect(),
            tally: rows::tally(&*self.store, name)?,
            last_skipped: rows::skipped(&*self.store, name, 1)?.pop(),
            schedule: entry.schedule.clone(),
        })
    }
}

/// The refusal of a fire by hand, with the limit that it met.
fn refused(actions: &[SchedulerAction]) -> Fault {
    let detail = actions.iter().find_map(|action| match action {
        SchedulerAction::Note(FireOutcome::Skipped(Skipped { why: SkipReason::QueueFull, detail, .. })) => {
            detail.as_deref()
        }
        _ => None,
    });
    let detail = detail.unwrap_or("too many tasks wait");
    Fault::conflict(format!(
        "the queue is full: {detail}; look at them with `longhaul schedule tasks --status pending`, or raise the limit"
    ))
}

fn entry<'a>(turn: &'a StateGuard<'_>, name: &Name) -> fault::Result<&'a ScheduleEntry> {
    let found = turn.state().schedules.get(name);
    Ok(found.ok_or_else(|| ScheduleError::Unknown { name: name.to_string() })?)
}

/// A number that distinguishes requests in the same millisecond, also those of two processes.
pub(super) fn nonce() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    (u64::from(std::process::id()) << 32) | (COUNT.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff)
}
