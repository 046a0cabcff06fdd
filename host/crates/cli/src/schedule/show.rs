//! Schedules and tasks on a terminal.

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::order::print_json;
use longhaul_agents::rfc3339;
use longhaul_api::agents::{ScheduleList, ScheduleView, SchedulerStatus, SkippedList, TaskList, TaskView};
use longhaul_api::wire::Page;
use longhaul_api::wire::schedules::{AgentTasks, ScheduleDetails, SkippedPage, TaskDetails};
use longhaul_core::fault;
use longhaul_core::text::printable;
use longhaul_report::messages::counted;
use longhaul_schedule::{Attempt, AttemptOutcome, INTERRUPTED, SkipReason, Skipped, TaskCause};

/// Longest text on one line, in bytes.
const LINE_BYTES_MAX: usize = 200;

pub fn schedule(context: &Context, view: &ScheduleView, done: &str) -> fault::Result<Exit> {
    if context.json {
        print_json(&ScheduleDetails::from(view.clone()))?;
    } else {
        outln!("schedule {}: {done}; {}", view.schedule.name, next(view).unwrap_or_else(|| view.when.clone()));
    }
    Ok(Exit::Done)
}

/// A schedule that was removed or switched off, so that no fire of it comes.
pub fn ended(context: &Context, view: &ScheduleView, done: &str) -> fault::Result<Exit> {
    if context.json {
        print_json(&ScheduleDetails::from(view.clone()))?;
    } else {
        outln!("schedule {}: {done}", view.schedule.name);
    }
    Ok(Exit::Done)
}

pub fn schedules(context: &Context, list: &ScheduleList) -> fault::Result<Exit> {
    let ScheduleList { schedules, total_count, .. } = list;
    if context.json {
        print_json(&Page::<ScheduleDetails>::from(list.clone()))?;
        return Ok(Exit::Done);
    }
    for view in schedules {
        let next = next(view).map(|next| format!("; {next}")).unwrap_or_default();
        let refused = view.last_skipped.as_ref().filter(|last| last.why == SkipReason::QueueFull);
        let refused = refused.map(|last| format!("; refused {}", skipped_words(last))).unwrap_or_default();
        let (name, agent) = (view.schedule.name.as_str(), view.schedule.agent.as_str());
        outln!("{name:<24} {agent:<24} {}{next}{refused}", view.when);
    }
    match (schedules.len(), *total_count) {
        (0, 0) => {
            outln!("there is no schedule; add one with `longhaul schedule add NAME --agent AGENT --cron '0 * * * *'`")
        }
        (shown, total) if shown < total => outln!("{shown} of {total}; more with --offset"),
        _ => {}
    }
    Ok(Exit::Done)
}

/// The next fire, or that the schedule is off. None: its fires come from another agent's tasks, or no fire comes.
fn next(view: &ScheduleView) -> Option<String> {
    match view.next_ms.first() {
        Some(next_ms) => Some(format!("next {}", rfc3339(*next_ms))),
        None if !view.schedule.enabled => Some("off".to_owned()),
        None => None,
    }
}

pub fn schedule_whole(context: &Context, view: &ScheduleView) -> fault::Result<Exit> {
    if context.json {
        print_json(&ScheduleDetails::from(view.clone()))?;
        return Ok(Exit::Done);
    }
    let ScheduleView { schedule, when, next_ms, open, tally, last_skipped } = view;
    outln!("schedule  {}, {}", schedule.name, if schedule.enabled { "on" } else { "off" });
    outln!("runs      {} {when}", schedule.agent);
    let overlap = if schedule.overlap { "may overlap" } else { "does not overlap" };
    let (jitter_ms, retries) = (schedule.jitter_ms, schedule.retries_max);
    let missed = schedule.missed.word();
    outln!("rules     missed: {missed}, {overlap}, jitter {jitter_ms} ms, retries: {retries}");
    let (first, max, factor) = (schedule.backoff.ms_first, schedule.backoff.ms_max, schedule.backoff.factor);
    outln!("waits     {first} ms before a retry, each time {factor} times as long, at most {max} ms");
    let (interruptions, queue) = (schedule.interruptions_max, schedule.queue_max);
    outln!("limits    {interruptions} interruptions by the host in a row, {queue} waiting tasks");
    for next_ms in next_ms {
        outln!("next      {}", rfc3339(*next_ms));
    }
    for id in open {
        outln!("open      task {id}");
    }
    if let Some(last) = last_skipped {
        outln!("skipped   {}", skipped_words(last));
    }
    let skipped: Vec<String> = tally.skipped.iter().map(|(why, count)| format!("{count} {why}")).collect();
    let skipped = if skipped.is_empty() { "none".to_owned() } else { skipped.join(", ") };
    let (completed, failed, retries) = (tally.completed, tally.failed, tally.retries);
    outln!(
        "so far    {} ended: {completed} completed, {failed} failed, {}; skipped: {skipped}",
        counted(tally.tasks, "task"),
        counted(retries, "retry")
    );
    Ok(Exit::Done)
}

pub fn tasks(context: &Context, list: &TaskList) -> fault::Result<Exit> {
    if context.json {
        print_json(&Page::<TaskDetails>::from(list.clone()))?;
        return Ok(Exit::Done);
    }
    task_lines(list);
    Ok(Exit::Done)
}

/// The tasks of one agent.
pub fn tasks_of_agent(context: &Context, list: &TaskList) -> fault::Result<Exit> {
    if context.json {
        print_json(&AgentTasks::from(list.clone()))?;
    } else {
        task_lines(list);
    }
    Ok(Exit::Done)
}

fn task_lines(TaskList { tasks, total_count, .. }: &TaskList) {
    tasks.iter().for_each(line);
    match (tasks.len(), *total_count) {
        (0, 0) => outln!("there is no task"),
        (shown, total) if shown < total => outln!("{shown} of {total}; more with --offset"),
        _ => {}
    }
}

pub fn task(context: &Context, view: &TaskView) -> fault::Result<Exit> {
    if context.json {
        print_json(&TaskDetails::from(view.clone()))?;
    } else {
        line(view);
    }
    Ok(Exit::Done)
}

fn line(task: &TaskView) {
    let of = task.schedule.as_ref().map_or("by hand", |schedule| schedule.as_str());
    let why = match (&task.waits_for, task.attempts.last().and_then(|last| last.attempt.outcome.as_ref())) {
        (Some(reason), _) if task.ended_ms.is_none() => format!("; waits for {reason}"),
        (_, Some(AttemptOutcome::Failed { error, .. })) => format!("; {error}"),
        (Some(reason), None | Some(AttemptOutcome::Interrupted)) => format!("; {reason}"),
        (None, Some(AttemptOutcome::Interrupted)) => format!("; {INTERRUPTED}"),
        _ => String::new(),
    };
    let (id, agent, fire, attempts) = (&task.id, &task.agent, rfc3339(task.fire_ms), task.attempts.len());
    let rest = format!("{of}, {fire}, {}{why}", counted(attempts, "attempt"));
    outln!("{id}  {:<9}  {:<24} {}", task.status.word(), agent.as_str(), printable(&rest, LINE_BYTES_MAX));
}

pub fn task_whole(context: &Context, view: &TaskView) -> fault::Result<Exit> {
    if context.json {
        print_json(&TaskDetails::from(view.clone()))?;
        return Ok(Exit::Done);
    }
    line(view);
    match &view.cause {
        TaskCause::Time => outln!("made by the clock"),
        TaskCause::Hand { .. } => outln!("started by hand"),
        TaskCause::After { task } => outln!("made by the end of task {task}"),
    }
    if view.interruption_count > 0 {
        let (count, max) = (view.interruption_count, view.interruptions_max);
        outln!("interrupted by the host {count} of at most {max} times in a row");
    }
    for (number, one) in (1..).zip(&view.attempts) {
        let Attempt { started_ms, ended_ms, outcome, .. } = &one.attempt;
        let ended = ended_ms.map_or_else(|| "still runs".to_owned(), |ended_ms| format!("ended {}", rfc3339(ended_ms)));
        let how = match outcome {
            None => String::new(),
            Some(AttemptOutcome::Completed) => ", completed".to_owned(),
            Some(AttemptOutcome::Failed { error, .. }) => format!(", failed: {}", printable(error, LINE_BYTES_MAX)),
            Some(AttemptOutcome::Interrupted) => format!(", interrupted: {INTERRUPTED}"),
        };
        outln!("attempt {number}: began {}, {ended}{how}", rfc3339(*started_ms));
        if let Some(run) = &one.run {
            outln!("  run {run}");
        }
        let Some(result) = &one.result else { continue };
        for note in &result.notes {
            outln!("  note: {}", printable(note, LINE_BYTES_MAX));
        }
        for (stream, text) in [("stdout", &result.stdout), ("stderr", &result.stderr)] {
            for text in text.lines() {
                outln!("  {stream}: {}", printable(text, LINE_BYTES_MAX));
            }
        }
    }
    Ok(Exit::Done)
}

pub fn skipped(context: &Context, list: &SkippedList) -> fault::Result<Exit> {
    let SkippedList { skipped } = list;
    if context.json {
        print_json(&SkippedPage::from(list.clone()))?;
        return Ok(Exit::Done);
    }
    for one in skipped {
        outln!("{}", skipped_words(one));
    }
    if skipped.is_empty() {
        outln!("no fire of it was skipped");
    }
    Ok(Exit::Done)
}

fn skipped_words(one: &Skipped) -> String {
    let more = if one.more { " and more" } else { "" };
    let (first, last, why) = (rfc3339(one.first_ms), rfc3339(one.last_ms), one.why.word());
    let detail = one.detail.as_ref().map(|detail| format!(" ({})", printable(detail, LINE_BYTES_MAX)));
    let detail = detail.unwrap_or_default();
    match one.count {
        1 => format!("{first}: {why}{detail}"),
        count => format!("{first} to {last}, {count}{more}: {why}{detail}"),
    }
}

pub fn status(context: &Context, status: &SchedulerStatus) -> fault::Result<Exit> {
    if context.json {
        print_json(status)?;
        return Ok(Exit::Done);
    }
    let works = if status.working { "a scheduler works" } else { "no scheduler works: `longhaul schedule work`" };
    let next =
        status.next_wake_ms.map_or_else(|| "nothing is due".to_owned(), |at_ms| format!("next {}", rfc3339(at_ms)));
    let (running, pending, max, schedules) = (status.running, status.pending, status.concurrent_max, status.schedules);
    let (queue, schedules) = (status.queue_max, counted(schedules, "schedule"));
    outln!("{works}; {running} of at most {max} tasks run, {pending} of at most {queue} wait, {schedules}; {next}");
    Ok(Exit::Done)
}
