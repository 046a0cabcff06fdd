//! A report as one HTML file: no script, no font, no address; plots are drawn in it. What plugins and models wrote is
//! escaped.

use super::escape::escaped;
use super::messages::{ledger_words, moment, short, short_number, used_words};
use super::shares::Share;
use super::{RunReport, TimelineRow, plot, span};
use longhaul_core::work::FeatureStatus;
use std::fmt::Write as _;

/// Lines of the timeline that are shown; the newest.
const TIMELINE_LINES: usize = 5_000;

/// The style of reports, which pages of their own kind add to.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2330;--soft:#5d6675;--line:#d9dee6;--page:#fbfcfd;--mark:#2f6fde;--good:#1a7f4b;--bad:#b3372f}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--soft:#9aa4b2;--line:#333b47;--page:#14181f;--mark:#6ea0f7;--good:#4fc285;--bad:#ef7d74}}
body{margin:2rem auto;max-width:62rem;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page)}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin-top:2rem}
p.about,time,td.why{color:var(--soft)}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
.passing{color:var(--good)}.failing,.blocked{color:var(--bad)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1.5rem}
figure{margin:0}figcaption{color:var(--soft);font-size:.9rem}
svg{width:100%;height:auto}svg text{fill:var(--soft);font-size:11px}svg .axis{stroke:var(--line)}svg .mark{stroke:var(--mark);fill:none;stroke-width:2}
svg .bar{fill:var(--mark)}
ol.timeline{list-style:none;padding:0;font-size:.9rem}ol.timeline li{display:grid;grid-template-columns:11rem 1fr;gap:.6rem}
ol.timeline span{white-space:pre-wrap;overflow-wrap:anywhere}
";

/// The whole page.
pub(super) fn write(report: &RunReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = page(report, &mut text);
    text
}

fn page(report: &RunReport, to: &mut String) -> std::fmt::Result {
    let RunReport { run, project, branch, status, reason, passing, resource_usage, created_ms, last_ms, .. } = report;
    let title = format!("{}: {} of {} features pass", escaped(project), passing.0, passing.1);
    writeln!(to, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
    writeln!(to, "<meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>")?;
    writeln!(to, "<style>\n{STYLE}</style></head><body>\n<h1>{title}</h1>")?;
    let status = format!("{status:?}").to_lowercase();
    writeln!(to, "<p>Run {run} is {status}, on branch {}. {}</p>", escaped(branch), escaped(reason))?;
    let took = span(last_ms.saturating_sub(*created_ms));
    writeln!(
        to,
        "<p class=\"about\">From {} to {} UTC ({took}); resumed {} times. Used: {}.</p>",
        moment(*created_ms),
        moment(*last_ms),
        report.resumes,
        used_words(resource_usage)
    )?;
    writeln!(to, "<p class=\"about\">{}.</p>", escaped(&ledger_words(&report.ledger)))?;
    plots(report, to)?;
    features(report, to)?;
    evidence(report, to)?;
    commits(report, to)?;
    decisions(report, to)?;
    lines(to, "Contexts", &report.resets)?;
    lines(to, "Caps that were reached", &report.caps)?;
    lines(to, "Warnings", &report.warnings)?;
    lines(to, "Timeline", &report.timeline)?;
    writeln!(to, "</body></html>")
}

fn plots(report: &RunReport, to: &mut String) -> std::fmt::Result {
    let (from, until) = (report.created_ms, report.last_ms);
    let passing: Vec<(u64, u64)> = report.passing_over_time.iter().map(|(at, count)| (*at, *count as u64)).collect();
    writeln!(to, "<div class=\"plots\">")?;
    writeln!(to, "{}", plot::steps("Features that pass", from..=until, &passing, report.passing.1 as u64))?;
    writeln!(to, "{}", plot::steps("Tokens used", from..=until, &report.tokens_over_time, 0))?;
    let tokens =
        report.agents.iter().map(|share| (share.agent.as_str(), share.resource_usage.usage.tokens(), None)).collect();
    // Bars are drawn in whole units, so money is in millionths and shown in dollars.
    let costs = report.agents.iter().map(|share| {
        (
            share.agent.as_str(),
            microdollars(share.resource_usage.usage.cost_microdollars),
            Some(share.resource_usage.usage.cost_text()),
        )
    });
    writeln!(to, "{}", plot::bars("Tokens by agent", tokens))?;
    writeln!(to, "{}\n</div>", plot::bars("Cost by agent", costs.collect()))?;
    agents(report, to)
}

/// Money in whole millionths of a dollar. What is no amount is none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what a u64 holds")]
fn microdollars(cost: f64) -> u64 {
    cost.max(0.0) as u64
}

fn agents(report: &RunReport, to: &mut String) -> std::fmt::Result {
    write!(to, "<h2>Usage by agent</h2>\n<table><tr><th>agent<th>plugin")?;
    for heading in ["calls", "failed", "time", "tokens", "cost", "fuel"] {
        write!(to, "<th class=\"number\">{heading}")?;
    }
    writeln!(to, "</tr>")?;
    for Share { agent, plugin, calls, failed, worked_ms, resource_usage: used } in &report.agents {
        write!(to, "<tr><td>{}<td>{}", escaped(agent), escaped(plugin))?;
        for cell in [
            calls.to_string(),
            failed.to_string(),
            span(*worked_ms),
            used.usage.tokens().to_string(),
            used.usage.cost_text(),
            short_number(used.fuel),
        ] {
            write!(to, "<td class=\"number\">{cell}")?;
        }
        writeln!(to, "</tr>")?;
    }
    writeln!(to, "</table>")
}

fn features(report: &RunReport, to: &mut String) -> std::fmt::Result {
    writeln!(
        to,
        "<h2>Features</h2>\n<table><tr><th>feature<th>status<th class=\"number\">attempts<th>used<th>why</tr>"
    )?;
    for row in &report.features {
        let (class, word) = match row.status {
            FeatureStatus::NotStarted => ("", "not started"),
            FeatureStatus::InProgress => ("", "in progress"),
            FeatureStatus::Passing => ("passing", "passing"),
            FeatureStatus::Failing => ("failing", "failing"),
            FeatureStatus::Blocked => ("blocked", "blocked"),
            FeatureStatus::Dropped => ("", "dropped"),
        };
        let mut why = row.reason.clone();
        if !row.by_exit_code.is_empty() {
            write!(why, " (by an exit code alone: {})", row.by_exit_code.join(", "))?;
        }
        if !row.near_judge.is_empty() {
            write!(why, " (near the judge: {})", row.near_judge.join(", "))?;
        }
        writeln!(
            to,
            "<tr><td>{}: {}<td class=\"{class}\">{word}<td class=\"number\">{}<td>{}<td class=\"why\">{}</tr>",
            escaped(&row.id),
            escaped(&row.title),
            row.attempts,
            used_words(&row.resource_usage),
            escaped(&why),
        )?;
    }
    writeln!(to, "</table>")
}

fn evidence(report: &RunReport, to: &mut String) -> std::fmt::Result {
    if report.features.iter().all(|row| row.evidence.is_empty()) {
        return Ok(());
    }
    writeln!(to, "<h2>What passes rest on</h2>\n<table><tr><th>feature<th>criterion<th>evidence</tr>")?;
    for row in &report.features {
        for basis in &row.evidence {
            let (feature, criterion) = (escaped(&row.id), escaped(&basis.criterion));
            writeln!(to, "<tr><td>{feature}<td>{criterion}<td class=\"why\">{}</tr>", basis.rests_on.words())?;
        }
    }
    writeln!(to, "</table>")
}

fn commits(report: &RunReport, to: &mut String) -> std::fmt::Result {
    if report.commits.is_empty() {
        return Ok(());
    }
    writeln!(to, "<h2>Commits</h2>\n<table><tr><th>when<th>commit<th>feature<th>files</tr>")?;
    for commit in report.commits.iter().rev() {
        let (at, name) = (moment(commit.at_ms), escaped(short(&commit.commit)));
        let (feature, files) =
            (escaped(&commit.feature), escaped(&commit.shown_files().collect::<Vec<_>>().join(", ")));
        let reverted = if commit.reverted { " (reverted)" } else { "" };
        writeln!(to, "<tr><td><time>{at}</time><td><code>{name}</code><td>{feature}<td>{files}{reverted}</tr>")?;
    }
    writeln!(to, "</table>")
}

fn decisions(report: &RunReport, to: &mut String) -> std::fmt::Result {
    if report.decisions.is_empty() {
        return Ok(());
    }
    writeln!(to, "<h2>Decisions</h2>\n<table><tr><th>when<th>by<th>decision<th>why<th>came out</tr>")?;
    for one in report.decisions.iter().rev() {
        let feature = one.feature.as_deref().map(|feature| format!(" for {feature}")).unwrap_or_default();
        writeln!(
            to,
            "<tr><td><time>{}</time><td>{}<td>{}<td class=\"why\">{}<td>{}</tr>",
            moment(one.at_ms),
            escaped(&format!("{}{feature}", one.by)),
            escaped(&one.decision),
            escaped(&one.reasoning),
            one.outcome.as_str(),
        )?;
    }
    writeln!(to, "</table>")
}

fn lines(to: &mut String, heading: &str, lines: &[TimelineRow]) -> std::fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(to, "<h2>{heading}</h2>\n<ol class=\"timeline\">")?;
    for TimelineRow { at_ms, text } in &lines[lines.len().saturating_sub(TIMELINE_LINES)..] {
        writeln!(to, "<li><time>{}</time><span>{}</span></li>", moment(*at_ms), escaped(text))?;
    }
    writeln!(to, "</ol>")
}
