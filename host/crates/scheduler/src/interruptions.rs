//! Attempts that an end of the host interrupted: those that an earlier process left, and the rows that tell of them.
//!
//! An attempt of code is over, and another is made in its place. A run goes on in its attempt; its events say how far
//! it came. After a loss of commits, which tell how far an attempt came, neither goes on by itself. Refuses to decide
//! when there were too many, which `longhaul-schedule` does.

use crate::rows::ScheduleTransaction;
use crate::service::SchedulerService;
use crate::work;
use longhaul_agents::ExecutionResult;
use longhaul_core::RunId;
use longhaul_core::event::Event;
use longhaul_core::fault;
use longhaul_core::store::Store;
use longhaul_notify::Notifier;
use longhaul_records::commit_loss::{self, CommitLoss};
use longhaul_records::record;
use longhaul_schedule::{
    ScheduledTask, SchedulerAction, SchedulerInput, SchedulerState, TaskFailure, TaskStatus, edit,
};

/// Events of a run that are looked at for one that tells of work. Each process that goes on with a run adds one that
/// does not, and no more than 100 interruptions in a row are allowed.
const EVENTS_MAX: u64 = 200;

impl SchedulerService {
    /// Interrupts the tasks that an earlier process left running.
    pub(crate) fn interrupt_all(
        &self,
        state: &mut SchedulerState,
        writing: &mut ScheduleTransaction<'_>,
        now_ms: u64,
    ) -> fault::Result<()> {
        for task in running(state) {
            let progress = match self.is_run(&task.agent)? {
                true => Some(progress(&*self.store, &task)?),
                false => None,
            };
            let input = SchedulerInput::Interrupted { task: task.id.clone(), progress };
            let actions = edit(state, input, now_ms)?;
            // An attempt that goes on has no result yet.
            if progress.is_none() || !actions.is_empty() {
                put(writing, &self.notifier, &task, &actions)?;
            }
            writing.take(&actions)?;
        }
        Ok(())
    }

    /// Ends the tasks that may have come further than a store says whose newest commits may be lost: those that ran,
    /// and those that were due, which may have begun or even succeeded. A person tries them again.
    pub(crate) fn end_in_doubt(
        &self,
        state: &mut SchedulerState,
        writing: &mut ScheduleTransaction<'_>,
        loss: CommitLoss,
        now_ms: u64,
    ) -> fault::Result<()> {
        let tasks: Vec<ScheduledTask> = state.tasks.values().cloned().collect();
        for task in tasks {
            let run = unfinished(&*self.store, &task);
            let why = match &run {
                Some(run) => loss.of_run(run),
                None => format!(
                    "{loss}, so the task may have done what it would repeat; look at what it did last, then try it \
                     again with: longhaul schedule retry {}",
                    task.id
                ),
            };
            let result = ExecutionResult { run, ..ExecutionResult::failed(why.clone(), false) };
            let actions = edit(state, SchedulerInput::InDoubt { task: task.id.clone(), error: why }, now_ms)?;
            // With the attempt that it may have had. There is none for a task that was not due.
            let is_its_end =
                |action: &&SchedulerAction| matches!(action, SchedulerAction::Ended(over) if over.id == task.id);
            if let Some(SchedulerAction::Ended(over)) = actions.iter().find(is_its_end) {
                writing.result(over, &result)?;
            }
            writing.tell(&self.notifier, &actions, &result)?;
            writing.take(&actions)?;
        }
        Ok(())
    }
}

fn running(state: &SchedulerState) -> Vec<ScheduledTask> {
    let is_running = |task: &&ScheduledTask| task.status == TaskStatus::Running;
    state.tasks.values().filter(is_running).cloned().collect()
}

/// The run of the task that waits for a person because of a loss of commits.
fn unfinished(store: &dyn Store, task: &ScheduledTask) -> Option<RunId> {
    let mut runs = (1..=task.attempts.len()).map(|attempt| work::run_id(task, attempt));
    runs.find(|run| commit_loss::of_run(store, run).is_ok_and(|noted| noted.is_some()))
}

/// Adds the result of an interrupted attempt, and the notification if there were too many of them.
pub(crate) fn put(
    writing: &mut ScheduleTransaction<'_>,
    notifier: &Notifier,
    task: &ScheduledTask,
    actions: &[SchedulerAction],
) -> fault::Result<()> {
    let result = result(task, actions);
    writing.result(task, &result)?;
    writing.tell(notifier, actions, &result)
}

fn result(task: &ScheduledTask, actions: &[SchedulerAction]) -> ExecutionResult {
    let exceeded = actions.iter().find_map(|action| match action {
        SchedulerAction::Ended(ended) if ended.id == task.id => {
            ended.waits_for.clone().filter(|_| ended.failure == Some(TaskFailure::InterruptionsExceeded))
        }
        SchedulerAction::Ended(_) | SchedulerAction::Start(_) | SchedulerAction::Note(_) => None,
    });
    match exceeded {
        Some(reason) => {
            let limit = Some("interruptions_max".to_owned());
            ExecutionResult { limit, ..ExecutionResult::failed(reason, false) }
        }
        None => ExecutionResult::host_ended(),
    }
}

/// A number that changes whenever a run of the task came further.
fn progress(store: &dyn Store, task: &ScheduledTask) -> fault::Result<u64> {
    let runs = (1..=task.attempts.len()).map(|attempt| work::run_id(task, attempt));
    runs.map(|run| progress_of(store, &run)).sum()
}

/// The number of the last event of a run that tells of work.
fn progress_of(store: &dyn Store, run: &RunId) -> fault::Result<u64> {
    let last = record::last_event(store, run)?;
    let limit = usize::try_from(EVENTS_MAX).unwrap_or(usize::MAX);
    let events = record::events_after(store, run, last.saturating_sub(EVENTS_MAX), limit)?;
    let of_work =
        events.iter().rev().find(|event| !matches!(event.event, Event::RunResumed | Event::PluginMoved { .. }));
    Ok(of_work.map_or(0, |event| event.number))
}
