//! Shows runs: `status`, `journal`, `replay`, `metrics`.

use super::answer;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use longhaul_api::journal::{InvocationEntries, ListCarried, ListEntries, ListInvocations, ReplayInvocations};
use longhaul_api::operations::{JournalOperations as _, ResourceOperations as _, RunOperations as _};
use longhaul_api::points::{LaneAtPoint, Point, RunAtPoint, ShowPoint};
use longhaul_api::resources::ReadMetrics;
use longhaul_api::runs::ShowRun;
use longhaul_api::runs::{RunRef, RunSummary, Status};
use longhaul_api::wire::Page;
use longhaul_api::wire::journal::{Entries, Invocation, Replays};
use longhaul_api::wire::points::RunAtPointView;
use longhaul_api::wire::runs::RunDetails;
use longhaul_core::fault;
use longhaul_core::journal::{Finished, JournalEntry};
use longhaul_core::text::printable;
use longhaul_core::work::FeatureStatus;
use longhaul_harness::RunStatus;
use longhaul_harness::state::{BlockedBy, count};
use longhaul_report::messages;
use std::path::PathBuf;

/// Longest summary of an entry on a line, in bytes.
const LINE_BYTES_MAX: usize = 400;

/// Most entries that `--json` prints; `next_after` is then the `--after` of the next ones.
const ENTRIES_MAX: usize = 1_000;

/// `longhaul status`.
pub async fn status(context: &Context, run: RunRef) -> fault::Result<Exit> {
    let status = context.run_status(ShowRun { run }).await?;
    match context.json {
        true => print_json(&RunDetails::from(status))?,
        false => print_status(&status),
    }
    Ok(Exit::Done)
}

fn print_status(status: &Status) {
    let RunSummary { run, project, status: word, passing, active, queue_place, archived_ms, .. } = &status.summary;
    let what = if status.branch.is_empty() { "tasks are answered" } else { "features pass" };
    let shown = word_of(*word, *active, *queue_place);
    outln!("run {run} of {project}: {shown}, {} of {} {what}", passing.0, passing.1);
    let branch = if status.branch.is_empty() { String::new() } else { format!("branch {}, ", status.branch) };
    outln!("  {branch}{}", messages::used_words(&status.resource_usage));
    outln!("  {}", messages::ledger_words(&status.ledger));
    if let Some(fork) = &status.fork {
        let inherited = messages::used_words(&fork.inherited);
        outln!("  forked from {} at {}; inherited, and not counted here: {inherited}", fork.parent, fork.at);
    }
    if let Some(at_ms) = archived_ms {
        outln!("  archived {}; take it back with: longhaul runs unarchive {run}", messages::moment(*at_ms));
    }
    let asked: Vec<&str> = status.questions.iter().map(|question| question.text.as_str()).collect();
    if !status.reason.is_empty() && status.reason != asked.join("; ") {
        outln!("  {}", status.reason);
    }
    status.questions.iter().for_each(answer::show);
    status.answer_with.iter().for_each(|command| outln!("  answer with: {command}"));
    if !status.questions.is_empty() {
        outln!("  when all are answered: longhaul resume {run}");
    } else if !active && matches!(word, RunStatus::New | RunStatus::Planning | RunStatus::Working | RunStatus::Paused) {
        outln!("  go on with: longhaul resume {run}");
    }
    for feature in &status.features {
        let why = if feature.why.is_empty() { String::new() } else { format!(": {}", feature.why) };
        outln!("  {:<12} {}{why}", feature_word(feature.status), feature.spec.id);
        if feature.blocked_by == Some(BlockedBy::Question) {
            outln!("  answer with: longhaul answer {run} --feature {} --text ANSWER", feature.spec.id);
        }
    }
}

/// `longhaul metrics`.
pub async fn metrics(context: &Context) -> fault::Result<Exit> {
    let metrics = context.metrics(ReadMetrics {}).await?;
    match context.json {
        true => print_json(&metrics)?,
        false => outtext!(metrics.text),
    }
    Ok(Exit::Done)
}

/// `longhaul journal`.
pub async fn journal(context: &Context, run: RunRef, invocation: Option<String>, after: u32) -> fault::Result<Exit> {
    let Some(invocation) = invocation else {
        return invocations(context, run).await;
    };
    let journal = context.journal_entries(ListEntries { run, invocation, after }).await?;
    let InvocationEntries { invocation, entries, finished } = journal;
    if context.json {
        print_json(&Entries::of(&invocation, entries, finished, ENTRIES_MAX))?;
    } else {
        print_entries(invocation.as_str(), &entries, finished.as_ref());
    }
    Ok(Exit::Done)
}

async fn invocations(context: &Context, run: RunRef) -> fault::Result<Exit> {
    if context.json {
        print_json(&Page::whole(context.carried_invocations(ListCarried { run }).await?, Invocation::from))?;
    } else {
        let list = context.invocations(ListInvocations { run }).await?;
        list.invocations.iter().for_each(|invocation| outln!("{invocation}"));
    }
    Ok(Exit::Done)
}

fn print_entries(invocation: &str, entries: &[(u32, JournalEntry)], finished: Option<&Finished>) {
    outln!("{invocation}");
    for (number, entry) in entries {
        let answer =
            entry.answered.as_ref().map_or("in flight".to_owned(), |answered| printable(&answered.answer, 160));
        outln!("{number:>5}  {} {}", entry.asked.name, printable(&entry.asked.summary, LINE_BYTES_MAX));
        outln!("       -> {answer}");
    }
    match finished {
        Some(finished) => outln!("  end  {} fuel", messages::short_number(finished.fuel_used)),
        None => outln!("  not finished"),
    }
}

/// `longhaul journal --at`.
pub async fn journal_at(context: &Context, run: RunRef, point: Point) -> fault::Result<Exit> {
    let shown = context.run_at_point(ShowPoint { run, point }).await?;
    match context.json {
        true => print_json(&RunAtPointView::from(shown))?,
        false => print_point(&shown),
    }
    Ok(Exit::Done)
}

fn print_point(shown: &RunAtPoint) {
    let RunAtPoint { run, point, event, at_ms, status, features, lanes, questions, usage, commit } = shown;
    let passing = count(features, FeatureStatus::Passing);
    let kept = features.len() - count(features, FeatureStatus::Dropped);
    let what = if commit.is_none() { "tasks are answered" } else { "features pass" };
    let word = word_of(*status, true, None);
    outln!("run {run} at {point}: {word}, {passing} of {kept} {what}");
    outln!("  event {event}, {} UTC", messages::moment(*at_ms));
    if let Some(commit) = commit {
        outln!("  commit {}", messages::short(commit));
    }
    outln!("  {}, {}", messages::counted(usage.tokens(), "token"), usage.cost_text());
    for LaneAtPoint { invocation, entries, waiting_for, .. } in lanes {
        let waits = waiting_for.as_ref().map(|why| format!(", held back: {why}")).unwrap_or_default();
        outln!("  in flight: {invocation}, {} answered{waits}", messages::count(*entries as usize, "entry"));
    }
    questions.iter().for_each(|question| outln!("  open question: {question}"));
    for feature in features {
        let why = if feature.why.is_empty() { String::new() } else { format!(": {}", feature.why) };
        outln!("  {:<12} {}{why}", feature_word(feature.status), feature.spec.id);
    }
}

/// `longhaul replay`.
pub async fn replay(
    context: &Context,
    run: RunRef,
    invocation: Option<String>,
    with: Option<PathBuf>,
) -> fault::Result<Exit> {
    let with = with.map(|path| context.whole(path));
    let outcome = context.replay(ReplayInvocations { run, invocation, with }).await?;
    let same = outcome.invocations.iter().all(|replayed| replayed.same);
    if context.json {
        print_json(&Replays::from(outcome.invocations))?;
    } else {
        for replayed in &outcome.invocations {
            let word = replayed.difference.clone().unwrap_or_else(|| "same result, calls and fuel".into());
            let calls = messages::counted(replayed.calls, "call");
            outln!("{}: {calls}, {} fuel: {word}", replayed.invocation, replayed.fuel.1);
        }
    }
    Ok(if same { Exit::Done } else { Exit::Error })
}

/// A word for the status. Work without a process at it is marked as such, and so is work that waits for its turn.
pub(super) fn word_of(status: RunStatus, active: bool, queue_place: Option<u32>) -> String {
    if let Some(place) = queue_place {
        return format!("queued {place}");
    }
    let word = match status {
        RunStatus::New | RunStatus::Planning | RunStatus::Working if !active => "broken off",
        RunStatus::New => "new",
        RunStatus::Planning => "planning",
        RunStatus::Working => "working",
        RunStatus::Parked => "parked",
        RunStatus::Paused => "paused",
        RunStatus::Completed => "completed",
        RunStatus::Incomplete => "incomplete",
        RunStatus::Failed => "failed",
        RunStatus::Abandoned => "abandoned",
    };
    word.to_owned()
}

/// A word for the status of a feature.
pub fn feature_word(status: FeatureStatus) -> &'static str {
    match status {
        FeatureStatus::NotStarted => "not started",
        FeatureStatus::InProgress => "in progress",
        FeatureStatus::Passing => "passing",
        FeatureStatus::Failing => "failing",
        FeatureStatus::Blocked => "blocked",
        FeatureStatus::Dropped => "dropped",
    }
}
