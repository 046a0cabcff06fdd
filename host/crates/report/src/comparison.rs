//! A comparison of runs as text, for a terminal. It shows what differs; the same is counted. It prints nothing and
//! judges nothing: no run is called the better one.
//!
//! Runs have letters, in the order in which they were named. What plugins and models wrote is cleaned by the caller,
//! as everything that reaches a terminal.

use super::messages::{counted, short, spent_words};
use super::span;
use longhaul_api::comparison::{
    AlignedStep, ComparedFeature, ComparedRun, FeatureSide, FileComparison, RunComparison, StepChange, StepCounts,
    StepSide,
};
use longhaul_core::text::printable;
use longhaul_core::work::{FeatureStatus, Mark};
use longhaul_harness::RunStatus;
use longhaul_worktree::{CommitChange, CommitFile, TreeDiff};
use std::fmt::Write as _;

/// Steps that are shown of those that differ, and lines of an answer in the first difference.
const STEPS_SHOWN_MAX: usize = 50;
const LINES_SHOWN_MAX: usize = 20;

/// Files that are shown of one run.
const FILES_SHOWN_MAX: usize = 50;

/// Bytes of a call, or of an answer on its line.
const LINE_BYTES_MAX: usize = 120;

/// The whole text.
#[must_use]
pub fn text(comparison: &RunComparison) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = sections(comparison, &mut text);
    text
}

fn sections(comparison: &RunComparison, to: &mut String) -> std::fmt::Result {
    let RunComparison { runs, counts, first_difference, steps, features, features_left_out, files, .. } = comparison;
    for (place, run) in runs.iter().enumerate() {
        writeln!(to, "{}  {}", letter(place), run_words(run))?;
    }
    writeln!(to, "\nSteps: {}.", counts_words(*counts))?;
    for (place, run) in runs.iter().enumerate().filter(|(_, run)| run.steps_left_out > 0) {
        let left_out = counted(run.steps_left_out, "step");
        writeln!(to, "{left_out} of {} are not compared: it has more than are read.", letter(place))?;
    }
    match first_difference {
        None => writeln!(to, "No step differs.")?,
        Some(step) => first(runs.len(), step, to)?,
    }
    different(runs.len(), steps, *counts, to)?;
    answers(runs, to)?;
    feature_lines(runs.len(), features, *features_left_out, to)?;
    file_lines(files, to)
}

fn run_words(run: &ComparedRun) -> String {
    let ComparedRun { summary, steps, .. } = run;
    let (done, of) = summary.passing;
    let usage = spent_words(&summary.spent.usage);
    let mut parts = vec![
        format!("{} of {}", summary.run, printable(&summary.project, LINE_BYTES_MAX)),
        status_word(summary.status).to_owned(),
        format!("{done} of {} pass", counted(of, "feature")),
        counted(*steps, "step"),
        usage,
        format!("{} worked", span(summary.wall_ms)),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn first(runs: usize, step: &AlignedStep, to: &mut String) -> std::fmt::Result {
    writeln!(to, "\nThe first difference: step {}, {}.", step.number, step_words(runs, step))?;
    for side in &step.sides {
        writeln!(to, "{}  {}", letter(side.run), printable(&side.call, LINE_BYTES_MAX))?;
        if side.skipped_bytes > 0 {
            writeln!(to, "   | ({} before are the same)", counted(side.skipped_bytes, "byte"))?;
        }
        for line in side.answer.lines().take(LINES_SHOWN_MAX) {
            writeln!(to, "   | {line}")?;
        }
        if side.is_cut || side.answer.lines().count() > LINES_SHOWN_MAX {
            writeln!(to, "   | ...")?;
        }
    }
    Ok(())
}

fn different(runs: usize, steps: &[AlignedStep], counts: StepCounts, to: &mut String) -> std::fmt::Result {
    let all = counts.call + counts.answer + counts.missing;
    if all == 0 {
        return Ok(());
    }
    writeln!(to, "\nSteps that differ:")?;
    let shown: Vec<_> = steps.iter().filter(|step| !step.change.is_same()).take(STEPS_SHOWN_MAX).collect();
    for step in &shown {
        writeln!(to, "{:>6}  {}", step.number, step_words(runs, step))?;
        for side in &step.sides {
            writeln!(to, "        {}  {}", letter(side.run), side_words(side))?;
        }
    }
    if all > shown.len() {
        writeln!(to, "        and {} more; `--html FILE` and `--json` have more of them", all - shown.len())?;
    }
    Ok(())
}

/// The call, and where its answer leads, in one line.
pub(super) fn side_words(side: &StepSide) -> String {
    let parts = [side.call.as_str(), side.answer.trim()].map(|part| printable(part, LINE_BYTES_MAX));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" -> ")
}

fn answers(runs: &[ComparedRun], to: &mut String) -> std::fmt::Result {
    let answers = || runs.iter().enumerate().filter_map(|(place, run)| Some((place, run.answer.as_ref()?)));
    if answers().next().is_none() {
        return Ok(());
    }
    writeln!(to, "\nAnswers:")?;
    for (place, answer) in answers() {
        let text = super::messages::plain(&answer.answer);
        let confidence = answer.confidence.map(|confidence| format!(" (confidence {confidence:.2})"));
        writeln!(to, "{}{}", letter(place), confidence.unwrap_or_default())?;
        for line in text.lines().take(LINES_SHOWN_MAX) {
            writeln!(to, "   | {line}")?;
        }
        if text.lines().count() > LINES_SHOWN_MAX {
            writeln!(to, "   | ...")?;
        }
    }
    Ok(())
}

fn feature_lines(runs: usize, features: &[ComparedFeature], left_out: usize, to: &mut String) -> std::fmt::Result {
    if features.is_empty() {
        return Ok(());
    }
    writeln!(to, "\nFeatures:")?;
    for feature in features {
        let same = if feature.is_same { "  " } else { "* " };
        let title = printable(&feature.title, LINE_BYTES_MAX);
        writeln!(to, "{same}{}: {title}", printable(&feature.feature, LINE_BYTES_MAX))?;
        for place in 0..runs {
            let side = feature.sides.iter().find(|side| side.run == place);
            let words = side.map_or_else(|| "does not have it".to_owned(), feature_words);
            writeln!(to, "    {}  {words}", letter(place))?;
        }
    }
    if left_out > 0 {
        writeln!(to, "  and {} more", counted(left_out, "feature"))?;
    }
    Ok(())
}

/// The status of a feature with its verdict, in one line.
pub(super) fn feature_words(side: &FeatureSide) -> String {
    let mut parts = vec![feature_status_word(side.status).to_owned()];
    if side.sessions > 1 {
        parts.push(counted(side.sessions, "session"));
    }
    if let Some(verdict) = &side.verdict {
        parts.push(format!("{} judged, the last in round {}", counted(verdict.verdicts, "round"), verdict.round));
        let not_passed = verdict.judgements.iter().filter(|one| one.mark != Mark::Pass);
        let failed: Vec<String> = not_passed.map(|one| printable(&one.criterion, LINE_BYTES_MAX)).collect();
        if !failed.is_empty() {
            parts.push(format!("not passed: {}", failed.join(" ")));
        }
    }
    parts.push(spent_words(&side.resource_usage.usage));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn file_lines(files: &[FileComparison], to: &mut String) -> std::fmt::Result {
    for FileComparison { run, diff, reason } in files {
        let (first, other) = (letter(0), letter(*run));
        match diff {
            None => {
                let reason = printable(reason.as_deref().unwrap_or_default(), usize::MAX);
                writeln!(to, "\nFiles of {other} are not compared: {reason}.")?;
            }
            Some(diff) => tree(&first, &other, diff, to)?,
        }
    }
    Ok(())
}

fn tree(first: &str, other: &str, diff: &TreeDiff, to: &mut String) -> std::fmt::Result {
    writeln!(to, "\nFiles from {first} to {other}: {}.", tree_words(diff))?;
    for file in diff.files.iter().take(FILES_SHOWN_MAX) {
        writeln!(to, "  {}", file_words(file))?;
    }
    let more = diff.counts.files.saturating_sub(FILES_SHOWN_MAX.min(diff.files.len()));
    if more > 0 {
        writeln!(to, "  and {} more", counted(more, "file"))?;
    }
    if diff.counts.files > 0 {
        writeln!(to, "  `git diff {} {}` has every line", short(&diff.from), short(&diff.to))?;
    }
    Ok(())
}

/// The number of files and lines.
pub(super) fn tree_words(diff: &TreeDiff) -> String {
    match diff.counts.files {
        0 => "no file differs".to_owned(),
        files => format!("{}, +{} -{}", counted(files, "file"), diff.counts.added_lines, diff.counts.removed_lines),
    }
}

/// A changed file in one line.
pub(super) fn file_words(file: &CommitFile) -> String {
    let sign = match file.change {
        CommitChange::Added => "A",
        CommitChange::Modified => "M",
        CommitChange::Deleted => "D",
        CommitChange::Renamed => "R",
    };
    let lines = match file {
        CommitFile { is_binary: true, .. } => "binary".to_owned(),
        CommitFile { patch, .. } if patch.is_empty() && file.is_cut => "too large to compare".to_owned(),
        _ => format!("+{} -{}", file.added_lines, file.removed_lines),
    };
    format!("{sign} {} {lines}", file.path)
}

/// The letter of a run, by its place.
pub(super) fn letter(place: usize) -> String {
    u8::try_from(place)
        .ok()
        .filter(|place| *place < 26)
        .map_or_else(|| place.to_string(), |place| char::from(b'A' + place).to_string())
}

/// The work and kind of a step, and what differs.
pub(super) fn step_words(runs: usize, step: &AlignedStep) -> String {
    let (work, kind) = (printable(&step.work, LINE_BYTES_MAX), printable(&step.kind, LINE_BYTES_MAX));
    format!("{work}, {kind}: {}", change_words(runs, step))
}

fn change_words(runs: usize, step: &AlignedStep) -> String {
    match step.change {
        StepChange::Same => "the same".to_owned(),
        StepChange::Request => "the same reply to another request".to_owned(),
        StepChange::Call => "the call differs".to_owned(),
        StepChange::Answer => "the answer differs".to_owned(),
        StepChange::Missing => {
            let has = |place: &usize| step.sides.iter().any(|side| side.run == *place);
            let missing: Vec<String> = (0..runs).filter(|place| !has(place)).map(letter).collect();
            format!(
                "{} not have it",
                match missing.as_slice() {
                    [one] => format!("{one} does"),
                    many => format!("{} do", many.join(" and ")),
                }
            )
        }
    }
}

/// The numbers of steps; those that are none are left out.
pub(super) fn counts_words(counts: StepCounts) -> String {
    let StepCounts { same, request, call, answer, missing } = counts;
    let parts = [
        (same, "the same"),
        (request, "with the same reply to another request"),
        (call, "with another call"),
        (answer, "with another answer"),
        (missing, "that not all runs have"),
    ];
    let told: Vec<String> =
        parts.into_iter().filter(|(number, _)| *number > 0).map(|(number, of)| format!("{number} {of}")).collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

/// The status of a run, as people read it.
pub(super) fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::New => "new",
        RunStatus::Planning => "planning",
        RunStatus::Working => "working",
        RunStatus::Parked => "parked",
        RunStatus::Paused => "paused",
        RunStatus::Completed => "completed",
        RunStatus::Incomplete => "incomplete",
        RunStatus::Failed => "failed",
        RunStatus::Abandoned => "abandoned",
    }
}

fn feature_status_word(status: FeatureStatus) -> &'static str {
    match status {
        FeatureStatus::NotStarted => "not started",
        FeatureStatus::InProgress => "in progress",
        FeatureStatus::Passing => "passing",
        FeatureStatus::Failing => "failing",
        FeatureStatus::Blocked => "blocked",
        FeatureStatus::Dropped => "dropped",
    }
}

#[cfg(test)]
mod tests;
