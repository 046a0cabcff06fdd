//! A report as Markdown. What plugins and models wrote is escaped, so that it stays text.

use super::messages::{self, ledger_words, moment, short, short_number, used_words};
use super::shares::Share;
use super::{RunReport, TimelineRow, span};
use longhaul_core::text::printable;
use std::fmt::Write as _;

/// Lines of the log, and commits, that are shown; the newest.
const LOG_LINES: usize = 50;
const COMMITS: usize = 20;

/// Decisions that are shown, the newest, and bytes of what one was about.
const DECISIONS: usize = 20;
const CONTEXT_BYTES_MAX: usize = 100;

/// The whole report.
pub(super) fn write(report: &RunReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = sections(report, &mut text);
    text
}

fn sections(report: &RunReport, to: &mut String) -> std::fmt::Result {
    let RunReport { run, project, branch, status, reason, passing, resource_usage, .. } = report;
    writeln!(to, "# {}: {} of {} features pass\n", plain(project), passing.0, passing.1)?;
    let status = format!("{status:?}").to_lowercase();
    writeln!(to, "Run `{run}` is {status}, on branch `{}`. {}\n", plain(branch), plain(reason))?;
    let (from, to_end) = (moment(report.created_ms), moment(report.last_ms));
    let took = span(report.last_ms.saturating_sub(report.created_ms));
    writeln!(
        to,
        "From {from} to {to_end} UTC ({took}); resumed {} times. Used: {}.",
        report.resumes,
        used_words(resource_usage)
    )?;
    writeln!(to, "\n{}.", ledger_words(&report.ledger))?;
    if let Some(answer) = &report.answer {
        writeln!(to, "\n## Answer\n\n{}", plain(&messages::plain(&answer.answer)))?;
        for (what, texts) in [("Conflict", &answer.conflicts), ("Unknown", &answer.unknowns)] {
            texts.iter().try_for_each(|text| writeln!(to, "\n{what}: {}", plain(text)))?;
        }
    }
    features(report, to)?;
    evidence(report, to)?;
    commits(report, to)?;
    agents(report, to)?;
    decisions(report, to)?;
    lines(to, "Contexts", &report.resets, LOG_LINES)?;
    lines(to, "Caps that were reached", &report.caps, usize::MAX)?;
    lines(to, "Warnings", &report.warnings, LOG_LINES)?;
    lines(to, "Log", &report.timeline, LOG_LINES)
}

fn features(report: &RunReport, to: &mut String) -> std::fmt::Result {
    writeln!(to, "\n## Features\n\n| feature | status | attempts | used | why |\n|---|---|---|---|---|")?;
    for row in &report.features {
        let status = serde_json::to_value(row.status).unwrap_or_default();
        let status = status.as_str().unwrap_or_default().replace('_', " ");
        let vacuous = match row.vacuous.is_empty() {
            true => String::new(),
            false => format!(" (passed before the work: {})", row.vacuous.join(", ")),
        };
        let by_exit = match row.by_exit_code.is_empty() {
            true => String::new(),
            false => format!(" (by an exit code alone: {})", row.by_exit_code.join(", ")),
        };
        let near = match row.near_judge.is_empty() {
            true => String::new(),
            false => format!(" (near the judge: {})", row.near_judge.join(", ")),
        };
        writeln!(
            to,
            "| {}: {} | {status} | {} | {} | {} |",
            plain(&row.id),
            plain(&row.title),
            row.attempts,
            used_words(&row.resource_usage),
            plain(&format!("{}{vacuous}{by_exit}{near}", row.reason)),
        )?;
    }
    Ok(())
}

fn evidence(report: &RunReport, to: &mut String) -> std::fmt::Result {
    if report.features.iter().all(|row| row.evidence.is_empty()) {
        return Ok(());
    }
    writeln!(to, "\n## What passes rest on\n\n| feature | criterion | evidence |\n|---|---|---|")?;
    for row in &report.features {
        for basis in &row.evidence {
            writeln!(to, "| {} | {} | {} |", plain(&row.id), plain(&basis.criterion), basis.rests_on.words())?;
        }
    }
    Ok(())
}

fn commits(report: &RunReport, to: &mut String) -> std::fmt::Result {
    if report.commits.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n## Commits\n")?;
    for commit in report.commits.iter().rev().take(COMMITS) {
        let files: Vec<String> = commit.shown_files().map(|file| plain(&file)).collect();
        let (at, name) = (moment(commit.at_ms), short(&commit.commit));
        let reverted = if commit.reverted { " (reverted)" } else { "" };
        writeln!(to, "- {at} `{name}` {}: {}{reverted}", plain(&commit.feature), files.join(", "))?;
    }
    Ok(())
}

fn agents(report: &RunReport, to: &mut String) -> std::fmt::Result {
    writeln!(
        to,
        "\n## Usage by agent\n\n| agent | plugin | calls | failed | time | tokens | cost | fuel |\n|---|---|---|---|---|---|---|---|"
    )?;
    for Share { agent, plugin, calls, failed, worked_ms, resource_usage: used } in &report.agents {
        let (tokens, cost) = (used.usage.tokens(), used.usage.cost_text());
        let (agent, plugin, time, fuel) = (plain(agent), plain(plugin), span(*worked_ms), short_number(used.fuel));
        writeln!(to, "| {agent} | {plugin} | {calls} | {failed} | {time} | {tokens} | {cost} | {fuel} |")?;
    }
    Ok(())
}

fn decisions(report: &RunReport, to: &mut String) -> std::fmt::Result {
    if report.decisions.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n## Decisions\n")?;
    for one in report.decisions.iter().rev().take(DECISIONS) {
        let context = &one.context[..one.context.floor_char_boundary(CONTEXT_BYTES_MAX)];
        let (at, outcome, by) = (moment(one.at_ms), one.outcome.as_str(), plain(&one.by));
        writeln!(to, "- {at} {by} ({outcome}): {}. About: {}", plain(one.decision.trim()), plain(context.trim()))?;
    }
    Ok(())
}

fn lines(to: &mut String, heading: &str, lines: &[TimelineRow], newest: usize) -> std::fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n## {heading}\n")?;
    for TimelineRow { at_ms, text } in &lines[lines.len().saturating_sub(newest)..] {
        writeln!(to, "- {} {}", moment(*at_ms), plain(text.trim()))?;
    }
    Ok(())
}

/// Text on one line without markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in printable(text, usize::MAX).chars() {
        match char {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' => plain.extend(['\\', char]),
            char => plain.push(char),
        }
    }
    plain
}
