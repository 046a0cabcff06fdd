//! The scheduler: `step(state, input) -> actions`.

use crate::due::{self, Behind};
use crate::state::ScheduleEntry;
use crate::waiting::WaitingTasks;
use crate::{
    AttemptOutcome, Name, Schedule, ScheduleError, ScheduledTask, SchedulerState, TaskCause, TaskFailure, TaskId,
    TaskStatus, Trigger, When, chain,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An input of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchedulerInput {
    /// Time passed.
    Tick,
    /// A schedule is made, or replaces the one of its name.
    Put(Schedule),
    /// A schedule is removed, with its waiting tasks. Running tasks continue.
    Remove(Name),
    /// A schedule is switched on or off, at once: its waiting tasks are recorded as skipped.
    Enable(Name, bool),
    /// An agent is activated or deactivated, at once: the waiting tasks of its schedules are recorded as skipped.
    Activate(Name, bool),
    /// A schedule fires now, even when it is off. `nonce` distinguishes two requests.
    RunNow {
        /// The schedule.
        schedule: Name,
        /// Any number that was not used for it in this millisecond.
        nonce: u64,
    },
    /// A failed task is retried by hand, whatever its budgets and the queue are.
    Retry(Box<ScheduledTask>),
    /// An attempt ended.
    Ended(TaskId, AttemptOutcome),
    /// A run of a task began, which goes on after an end of the host.
    Began {
        /// The task.
        task: TaskId,
        /// The version of the agent's artifact that it got.
        artifact_version: u64,
    },
    /// The host ended while a task ran, or is about to.
    Interrupted {
        /// The task.
        task: TaskId,
        /// For a run that goes on: a number that changes with its work. None: the attempt is over.
        progress: Option<u64>,
    },
    /// The newest changes of a task may be lost: it ran, or it was due, so that it may have begun. It has failed, and a
    /// person may retry it. One that is not due yet cannot have begun, and stays as it is.
    InDoubt {
        /// The task.
        task: TaskId,
        /// The reason, as text.
        error: String,
    },
    /// A task could not start for now; it waits, with the reason.
    Deferred {
        /// The task.
        task: TaskId,
        /// The reason to wait, as text.
        reason: String,
        /// The earliest time of the next attempt.
        until_ms: u64,
    },
    /// The number of tasks that run at once, at least 1.
    ConcurrentMax(u32),
}

/// An action for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulerAction {
    /// Start this attempt. The same task and attempt may be repeated after a restart.
    Start(ScheduledTask),
    /// Record the outcome of a fire, or of many.
    Note(FireOutcome),
    /// This task has ended for good; it is not in the state any more.
    Ended(ScheduledTask),
}

/// The outcome of a fire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FireOutcome {
    /// It became a task.
    Task(TaskId),
    /// It became no task, for a reason.
    Skipped(Skipped),
}

/// Fires that became no task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The schedule.
    pub schedule: Name,
    /// The first of them, in milliseconds since 1970.
    pub first_ms: u64,
    /// The last of them.
    pub last_ms: u64,
    /// Their number.
    pub count: u32,
    /// True with further fires, which were not counted.
    pub more: bool,
    /// The reason.
    pub why: SkipReason,
    /// The reason in words, with the limit that was reached, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The reason why a fire became no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// It was missed, and the policy does not run it.
    Missed,
    /// An earlier fire of its schedule still waits.
    StillWaiting,
    /// Too many tasks wait.
    QueueFull,
    /// Its schedule was switched off or removed before its turn.
    Withdrawn,
    /// Its agent is not active.
    Inactive,
}

impl SkipReason {
    /// The word of the reason.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Missed => "missed",
            Self::StillWaiting => "still_waiting",
            Self::QueueFull => "queue_full",
            Self::Withdrawn => "withdrawn",
            Self::Inactive => "inactive",
        }
    }
}

/// Takes one input at `now_ms`, in milliseconds since 1970, and returns the actions to take.
///
/// # Errors
/// When the input is invalid; the state is unchanged then.
pub fn step(
    state: &mut SchedulerState,
    input: SchedulerInput,
    now_ms: u64,
) -> Result<Vec<SchedulerAction>, ScheduleError> {
    let mut actions = edit(state, input, now_ms)?;
    fire_due(state, &mut actions);
    start_due(state, &mut actions);
    Ok(actions)
}

/// As [`step`], for a caller that runs no tasks: it causes no fire and starts nothing, however late it is.
///
/// # Errors
/// As [`step`].
pub fn edit(
    state: &mut SchedulerState,
    input: SchedulerInput,
    now_ms: u64,
) -> Result<Vec<SchedulerAction>, ScheduleError> {
    let now_ms = now_ms.max(state.now_ms);
    let mut actions = Vec::new();
    take(state, input, now_ms, &mut actions)?;
    state.now_ms = now_ms;
    Ok(actions)
}

fn take(
    state: &mut SchedulerState,
    input: SchedulerInput,
    now_ms: u64,
    actions: &mut Vec<SchedulerAction>,
) -> Result<(), ScheduleError> {
    match input {
        SchedulerInput::Tick => {}
        SchedulerInput::Put(schedule) => put(state, schedule, now_ms, actions)?,
        SchedulerInput::Remove(name) => {
            state.entry(&name)?;
            withdraw(state, |task| task.schedule == name, SkipReason::Withdrawn, now_ms, actions);
            state.schedules.remove(&name);
        }
        SchedulerInput::Activate(agent, true) => drop(state.inactive.remove(&agent)),
        SchedulerInput::Activate(agent, false) => {
            withdraw(state, |task| task.agent == agent, SkipReason::Inactive, now_ms, actions);
            state.inactive.insert(agent);
        }
        SchedulerInput::Enable(name, enabled) => enable(state, &name, enabled, now_ms, actions)?,
        SchedulerInput::RunNow { schedule, nonce } => {
            let entry = state.entry(&schedule)?.clone();
            let mut waiting = WaitingTasks::of(state);
            add(state, &mut waiting, &entry, (now_ms, now_ms), TaskCause::Hand { nonce }, actions);
        }
        SchedulerInput::Retry(task) => retry(state, *task, now_ms)?,
        SchedulerInput::Ended(task, outcome) => ended(state, &task, outcome, now_ms, actions),
        SchedulerInput::Began { task, artifact_version } => began(state, &task, artifact_version),
        SchedulerInput::Interrupted { task, progress } => interrupted(state, &task, progress, now_ms, actions),
        SchedulerInput::InDoubt { task, error } => in_doubt(state, &task, error, now_ms, actions),
        SchedulerInput::Deferred { task, reason, until_ms } => deferred(state, &task, reason, until_ms),
        SchedulerInput::ConcurrentMax(max) => state.concurrent_max = max.max(1),
    }
    Ok(())
}

fn put(
    state: &mut SchedulerState,
    schedule: Schedule,
    now_ms: u64,
    actions: &mut Vec<SchedulerAction>,
) -> Result<(), ScheduleError> {
    schedule.check()?;
    state.has_room(&schedule.name)?;
    let others = state.schedules.values().map(|entry| &entry.schedule).filter(|other| other.name != schedule.name);
    chain::check(others.chain([&schedule]))?;
    let name = schedule.name.clone();
    let started_ms = state.schedules.get(&name).map_or(0, |entry| entry.started_ms);
    let is_new_trigger = state.schedules.get(&name).is_none_or(|entry| entry.schedule.trigger != schedule.trigger);
    if !schedule.enabled || is_new_trigger {
        withdraw(state, |task| task.schedule == name, SkipReason::Withdrawn, now_ms, actions);
    }
    let entry = ScheduleEntry { schedule, anchor_ms: now_ms, next_ms: None, started_ms };
    let kept = state.schedules.insert(name.clone(), entry);
    let entry = state.entry(&name)?;
    match kept.filter(|_| !is_new_trigger) {
        // A change of the retry count must not move the next fire.
        Some(kept) if entry.schedule.enabled && kept.next_ms.is_some() => {
            (entry.anchor_ms, entry.next_ms) = (kept.anchor_ms, kept.next_ms);
        }
        _ => arm(entry, now_ms),
    }
    Ok(())
}

fn enable(
    state: &mut SchedulerState,
    name: &Name,
    enabled: bool,
    now_ms: u64,
    actions: &mut Vec<SchedulerAction>,
) -> Result<(), ScheduleError> {
    let entry = state.entry(name)?;
    if entry.schedule.enabled == enabled {
        return Ok(());
    }
    entry.schedule.enabled = enabled;
    entry.anchor_ms = now_ms;
    arm(entry, now_ms);
    if !enabled {
        withdraw(state, |task| task.schedule == *name, SkipReason::Withdrawn, now_ms, actions);
    }
    Ok(())
}

fn arm(entry: &mut ScheduleEntry, now_ms: u64) {
    let next = entry.schedule.trigger.next_after(entry.anchor_ms, now_ms).ok().flatten();
    entry.next_ms = next.filter(|_| entry.schedule.enabled);
}

/// Waiting tasks are recorded as skipped; tasks with earlier attempts have failed.
fn withdraw(
    state: &mut SchedulerState,
    is_meant: impl Fn(&ScheduledTask) -> bool,
    why: SkipReason,
    now_ms: u64,
    actions: &mut Vec<SchedulerAction>,
) {
    let (failure, reason) = match why {
        SkipReason::Inactive => (TaskFailure::Inactive, "its agent was switched off"),
        _ => (TaskFailure::Withdrawn, "its schedule was switched off or taken away"),
    };
    let waiting: Vec<TaskId> = state.pending().filter(|task| is_meant(task)).map(|task| task.id.clone()).collect();
    for id in waiting {
        let Some(mut task) = state.tasks.remove(&id) else { continue };
        if task.attempts.is_empty() {
            actions.push(skipped(&task.schedule, task.fire_ms, why, None));
        }
        task.withdraw(failure, reason, now_ms);
        actions.push(SchedulerAction::Ended(task));
    }
}

fn skipped(schedule: &Name, fire_ms: u64, why: SkipReason, detail: Option<String>) -> SchedulerAction {
    let schedule = schedule.clone();
    SchedulerAction::Note(FireOutcome::Skipped(Skipped {
        schedule,
        first_ms: fire_ms,
        last_ms: fire_ms,
        count: 1,
        more: false,
        why,
        detail,
    }))
}

fn retry(state: &mut SchedulerState, mut task: ScheduledTask, now_ms: u64) -> Result<(), ScheduleError> {
    if task.status != TaskStatus::Failed {
        return Err(ScheduleError::NotFailed { task: task.id.to_string(), status: task.status.word() });
    }
    task.revive(now_ms);
    state.tasks.insert(task.id.clone(), task);
    Ok(())
}

fn ended(
    state: &mut SchedulerState,
    id: &TaskId,
    outcome: AttemptOutcome,
    now_ms: u64,
    actions: &mut Vec<SchedulerAction>,
) {
    // A second report of one end changes nothing.
    let Some(task) = state.tasks.get_mut(id).filter(|task| task.status == TaskStatus::Running) else { return };
    task.end(outcome, now_ms);
    leave(state, id, now_ms, actions);
}

fn interrupted(
    state: &mut SchedulerState,
    id: &TaskId,
    progress: Option<u64>,
    now_ms: u64,
    actions: &mut Vec<SchedulerAction>,
) {
    let backoff = state.limits.interruption_backoff;
    let Some(task) = state.tasks.get_mut(id).filter(|task| task.status == TaskStatus::Running) else { return };
    task.interrupt(progress, now_ms, &backoff);
    leave(state, id, now_ms, actions);
}

fn in_doubt(state: &mut SchedulerState, id: &TaskId, error: String, now_ms: u64, actions: &mut Vec<SchedulerAction>) {
    let Some(task) = state.tasks.get_mut(id) else { return };
    match task.status {
        // The attempt that it may have had.
        TaskStatus::Pending if task.due_ms <= now_ms => task.start(now_ms),
        TaskStatus::Running => {}
        TaskStatus::Pending | TaskStatus::Completed | TaskStatus::Failed => return,
    }
    task.end(AttemptOutcome::Failed { error, retryable: false }, now_ms);
    // What follows it may have been started by its real end, and waits with it for a person.
    if let Some(task) = state.tasks.remove(id) {
        actions.push(SchedulerAction::Ended(task));
    }
}

/// Removes a task that has ended for good, and starts those that follow it.
fn leave(state: &mut SchedulerState, id: &TaskId, now_ms: u64, actions: &mut Vec<SchedulerAction>) {
    let is_over = |task: &ScheduledTask| matches!(task.status, TaskStatus::Completed | TaskStatus::Failed);
    if !state.tasks.get(id).is_some_and(is_over) {
        return;
    }
    let Some(task) = state.tasks.remove(id) else { return };
    start_followers(state, &task, now_ms, actions);
    actions.push(SchedulerAction::Ended(task));
}

fn start_followers(state: &mut SchedulerState, task: &ScheduledTask, now_ms: u64, actions: &mut Vec<SchedulerAction>) {
    let follows = |entry: &&ScheduleEntry| match &entry.schedule.trigger {
        Trigger::After { agent, when } => {
            let is_end = match when {
                When::Success => task.status == TaskStatus::Completed,
                When::Failure => task.status == TaskStatus::Failed,
                When::Always => true,
            };
            entry.schedule.enabled && agent == task.agent.as_str() && is_end
        }
        Trigger::Cron(_) | Trigger::Interval { .. } => false,
    };
    let followers: Vec<ScheduleEntry> = state.schedules.values().filter(follows).cloned().collect();
    if followers.is_empty() {
        return;
    }
    let mut waiting = WaitingTasks::of(state);
    for entry in followers {
        let cause = TaskCause::After { task: task.id.clone() };
        add(state, &mut waiting, &entry, (now_ms, now_ms), cause, actions);
    }
}

fn began(state: &mut SchedulerState, id: &TaskId, artifact_version: u64) {
    let task = state.tasks.get_mut(id).filter(|task| task.status == TaskStatus::Running);
    if let Some(attempt) = task.and_then(|task| task.attempts.last_mut()) {
        attempt.artifact_version = attempt.artifact_version.or(Some(artifact_version));
    }
}

fn deferred(state: &mut SchedulerState, id: &TaskId, reason: String, until_ms: u64) {
    let Some(task) = state.tasks.get_mut(id).filter(|task| task.status == TaskStatus::Running) else { return };
    // It never started, unless it goes on with a run that an end of the host interrupted.
    task.attempts.pop_if(|attempt| attempt.artifact_version.is_none());
    (task.status, task.due_ms, task.waits_for) = (TaskStatus::Pending, until_ms, Some(reason));
}

fn fire_due(state: &mut SchedulerState, actions: &mut Vec<SchedulerAction>) {
    let now_ms = state.now_ms;
    let due: Vec<Name> = state
        .schedules
        .iter()
        .filter(|(_, entry)| entry.next_ms.is_some_and(|next| next <= now_ms))
        .map(|(name, _)| name.clone())
        .collect();
    if due.is_empty() {
        return;
    }
    let mut waiting = WaitingTasks::of(state);
    for name in due {
        let Some(entry) = state.schedules.get(&name).cloned() else { continue };
        let found = due::look(&entry, now_ms);
        if let Some(Behind { first_ms, last_ms, count, more }) = found.missed {
            let schedule = name.clone();
            let why = SkipReason::Missed;
            let skipped = Skipped { schedule, first_ms, last_ms, count, more, why, detail: None };
            actions.push(SchedulerAction::Note(FireOutcome::Skipped(skipped)));
        }
        for fire_ms in &found.run {
            let due_ms = fire_ms.saturating_add(due::jitter_ms(&entry, *fire_ms));
            add(state, &mut waiting, &entry, (*fire_ms, due_ms), TaskCause::Time, actions);
        }
        if let Some(entry) = state.schedules.get_mut(&name) {
            entry.next_ms = found.next_ms;
        }
    }
}

/// Makes a task of a fire, unless there is a reason against it.
fn add(
    state: &mut SchedulerState,
    waiting: &mut WaitingTasks,
    entry: &ScheduleEntry,
    (fire_ms, due_ms): (u64, u64),
    cause: TaskCause,
    actions: &mut Vec<SchedulerAction>,
) {
    let schedule = &entry.schedule;
    let id = TaskId::of(&schedule.name, fire_ms, &cause);
    if state.tasks.contains_key(&id) {
        return;
    }
    if state.inactive.contains(&schedule.agent) {
        return actions.push(skipped(&schedule.name, fire_ms, SkipReason::Inactive, None));
    }
    // Fires that catch up, are chained or are requested are tasks of their own.
    let is_usual = cause == TaskCause::Time && schedule.missed != crate::Missed::All;
    if is_usual && waiting.is_untried(&schedule.name) {
        return actions.push(skipped(&schedule.name, fire_ms, SkipReason::StillWaiting, None));
    }
    if let Some(limit) = waiting.full_queue(schedule, state.limits.queue_max) {
        return actions.push(skipped(&schedule.name, fire_ms, SkipReason::QueueFull, Some(limit)));
    }
    let task = ScheduledTask {
        id: id.clone(),
        schedule: schedule.name.clone(),
        agent: schedule.agent.clone(),
        fire_ms,
        due_ms,
        cause,
        status: TaskStatus::Pending,
        attempts: Vec::new(),
        retries_max: schedule.retries_max,
        backoff: schedule.backoff,
        interruptions_max: schedule.interruptions_max,
        interruptions: 0,
        progress: None,
        waits_for: None,
        failure: None,
    };
    waiting.add(&task);
    state.tasks.insert(id.clone(), task);
    actions.push(SchedulerAction::Note(FireOutcome::Task(id)));
}

/// Starts due tasks while there is capacity, and sets the reason to wait of the others.
fn start_due(state: &mut SchedulerState, actions: &mut Vec<SchedulerAction>) {
    let concurrent_max = usize::try_from(state.concurrent_max).unwrap_or(usize::MAX);
    while state.running() < concurrent_max {
        let Some(id) = first_startable(state) else { break };
        let Some(task) = state.tasks.get_mut(&id) else { break };
        task.start(state.now_ms);
        actions.push(SchedulerAction::Start(task.clone()));
        let (schedule, now_ms) = (task.schedule.clone(), state.now_ms);
        if let Some(entry) = state.schedules.get_mut(&schedule) {
            entry.started_ms = now_ms;
        }
    }
    say_what_is_waited_for(state, concurrent_max);
}

/// The schedule whose last start is the longest ago; within a schedule, the task that has been due the longest.
fn first_startable(state: &SchedulerState) -> Option<TaskId> {
    let started = |task: &ScheduledTask| state.schedules.get(&task.schedule).map_or(0, |entry| entry.started_ms);
    let busy = busy_agents(state);
    state
        .pending()
        .filter(|task| task.due_ms <= state.now_ms)
        .filter(|task| may_overlap(state, task) || !busy.contains_key(&task.agent))
        .min_by_key(|task| (started(task), task.due_ms, task.fire_ms, &task.schedule, &task.id))
        .map(|task| task.id.clone())
}

fn may_overlap(state: &SchedulerState, task: &ScheduledTask) -> bool {
    state.schedules.get(&task.schedule).is_some_and(|entry| entry.schedule.overlap)
}

fn busy_agents(state: &SchedulerState) -> BTreeMap<Name, TaskId> {
    let running = state.tasks.values().filter(|task| task.status == TaskStatus::Running);
    running.map(|task| (task.agent.clone(), task.id.clone())).collect()
}

fn say_what_is_waited_for(state: &mut SchedulerState, concurrent_max: usize) {
    let (busy, now_ms) = (busy_agents(state), state.now_ms);
    let is_full = state.running() >= concurrent_max;
    for task in state.tasks.values_mut() {
        if task.status != TaskStatus::Pending || task.due_ms > now_ms {
            continue;
        }
        task.waits_for = match busy.get(&task.agent) {
            Some(other) => Some(format!("task `{other}` of the same agent, which runs")),
            None => is_full.then(|| format!("a place: {concurrent_max} tasks run, and no more may at once")),
        };
    }
}
