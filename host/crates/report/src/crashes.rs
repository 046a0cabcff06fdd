//! The report of a crash test as one HTML file: no script, no font, no address. What plugins, models and hosts wrote is
//! escaped.

use super::escape::escaped;
use super::html::STYLE;
use super::span;
use longhaul_crashtest::{CrashReport, CrashTrial, EffectTotals, Likeness, PointSummary, TrialFindings};
use std::fmt::Write as _;

/// Traces that vary without a kill that are listed.
const VARYING_MAX: usize = 200;

/// The whole page.
#[must_use]
pub fn crash_page(report: &CrashReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = page(report, &mut text);
    text
}

fn page(report: &CrashReport, to: &mut String) -> std::fmt::Result {
    let CrashReport { project, seed, ends_as, effects, trials, .. } = report;
    let title = format!("Crash test of {}", escaped(project));
    writeln!(to, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
    writeln!(to, "<meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>")?;
    writeln!(to, "<style>\n{STYLE}</style></head><body>\n<h1>{title}</h1>")?;
    let class = if report.holds() { "passing" } else { "failing" };
    writeln!(to, "<p class=\"{class}\">{}</p>", escaped(&report.verdict()))?;
    let took: u64 = trials.iter().map(|trial| trial.took_ms).sum();
    let random = trials.iter().filter(|trial| trial.kill.random).count();
    writeln!(
        to,
        "<p class=\"about\">Without a kill the run ends {}. Processes took {}. {random} kills were drawn at random, \
         with --seed {seed}.</p>",
        escaped(ends_as),
        span(took),
    )?;
    counted(effects, to)?;
    points(report, to)?;
    findings(trials, to)?;
    kills(trials, to)?;
    varying(&report.varying, to)?;
    writeln!(to, "</body></html>")
}

/// The places of the counts, so that nobody takes one count for another.
fn counted(effects: &EffectTotals, to: &mut String) -> std::fmt::Result {
    let EffectTotals { journal_entries, tool_requests, model_requests, commits, requests_told_apart_by } = effects;
    let told_apart = match requests_told_apart_by {
        Likeness::Whole => "told apart by method, address and body",
        Likeness::Address => "told apart by method and address, since bodies or queries differ without a kill",
        Likeness::Nothing => "not compared, since they differ without a kill",
    };
    writeln!(
        to,
        "<h2>What is counted where</h2>\n<table><tr><th>effects<th class=\"number\">without a kill<th>counted by</tr>"
    )?;
    for (what, number, by) in [
        ("calls of imports", journal_entries, "the journals: an answer that was there at the kill has to stay"),
        ("requests to models", model_requests, "the recording, which notes each request that it answers"),
        ("requests to hosts", tool_requests, told_apart),
        ("commits", commits, "git: the effect in each message, the tree and the message"),
    ] {
        writeln!(to, "<tr><td>{what}<td class=\"number\">{number}<td class=\"why\">{by}</tr>")?;
    }
    writeln!(to, "</table>")
}

fn points(report: &CrashReport, to: &mut String) -> std::fmt::Result {
    write!(to, "<h2>Points</h2>\n<table><tr><th>point")?;
    for heading in ["reached", "kills", "missed", "duplicates", "lost steps", "results", "commits"] {
        write!(to, "<th class=\"number\">{heading}")?;
    }
    writeln!(to, "</tr>")?;
    for PointSummary { point, reached, kills, missed, duplicates, lost, results, history } in report.points() {
        write!(to, "<tr><td>{}", escaped(&point))?;
        for number in [reached, kills, missed] {
            write!(to, "<td class=\"number\">{number}")?;
        }
        for number in [duplicates, lost, results, history] {
            let class = if number > 0 { " failing" } else { "" };
            write!(to, "<td class=\"number{class}\">{number}")?;
        }
        writeln!(to, "</tr>")?;
    }
    writeln!(to, "</table>")
}

fn findings(trials: &[CrashTrial], to: &mut String) -> std::fmt::Result {
    if trials.iter().all(|trial| trial.findings.is_clean()) {
        return Ok(());
    }
    writeln!(to, "<h2>Findings</h2>\n<table><tr><th>killed at<th>kind<th>finding</tr>")?;
    for trial in trials {
        let TrialFindings { duplicates, lost, results, history } = &trial.findings;
        for (kind, found) in [("duplicate", duplicates), ("lost", lost), ("result", results), ("commit", history)] {
            for finding in found {
                let at = escaped(&trial.kill.at.to_string());
                writeln!(to, "<tr><td>{at}<td class=\"failing\">{kind}<td class=\"why\">{}</tr>", escaped(finding))?;
            }
        }
    }
    writeln!(to, "</table>")
}

fn kills(trials: &[CrashTrial], to: &mut String) -> std::fmt::Result {
    write!(to, "<h2>Kills</h2>\n<table><tr><th>at<th>end")?;
    for heading in ["resumes", "questions", "time"] {
        write!(to, "<th class=\"number\">{heading}")?;
    }
    writeln!(to, "</tr>")?;
    for CrashTrial { kill, killed, resumes, questions, findings, took_ms } in trials {
        let (class, end) = match (killed, findings.is_clean()) {
            (false, _) => ("", "not reached this time"),
            (true, true) => ("passing", "survived"),
            (true, false) => ("failing", "not survived"),
        };
        let at = escaped(&kill.at.to_string());
        let random = if kill.random { " (random)" } else { "" };
        write!(to, "<tr><td>{at}{random}<td class=\"{class}\">{end}<td class=\"number\">{resumes}")?;
        writeln!(to, "<td class=\"number\">{questions}<td class=\"number\">{}</tr>", span(*took_ms))?;
    }
    writeln!(to, "</table>")
}

fn varying(varying: &[String], to: &mut String) -> std::fmt::Result {
    if varying.is_empty() {
        return Ok(());
    }
    writeln!(to, "<h2>Not compared</h2>\n<p class=\"about\">Two runs without a kill differ in these.</p>\n<ul>")?;
    for trace in varying.iter().take(VARYING_MAX) {
        writeln!(to, "<li>{}</li>", escaped(trace))?;
    }
    if varying.len() > VARYING_MAX {
        writeln!(to, "<li>and {} more</li>", varying.len() - VARYING_MAX)?;
    }
    writeln!(to, "</ul>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_crashtest::{PlannedKill, PointOccurrence};

    fn report(findings: TrialFindings) -> CrashReport {
        let at = PointOccurrence { point: "work.end".to_owned(), number: 2 };
        let kill = PlannedKill { at, random: true };
        CrashReport {
            project: "/home/<me>/shop".to_owned(),
            seed: 7,
            ends_as: "completed".to_owned(),
            effects: EffectTotals {
                journal_entries: 9,
                tool_requests: 2,
                model_requests: 3,
                commits: 1,
                requests_told_apart_by: Likeness::Address,
            },
            reached: [("work.end".to_owned(), 4)].into(),
            varying: vec!["entry f-a/1/generate 3".to_owned()],
            trials: vec![CrashTrial { kill, killed: true, resumes: 1, questions: 0, findings, took_ms: 4_000 }],
        }
    }

    #[test]
    fn a_page_shows_each_kill_and_what_was_counted_where() {
        let page = crash_page(&report(TrialFindings::default()));
        for part in [
            "<title>Crash test of /home/&lt;me&gt;/shop</title>",
            "<p class=\"passing\">survived: 1 kill at 1 point",
            "<tr><td>requests to hosts<td class=\"number\">2<td class=\"why\">told apart by method and address",
            "<tr><td>work.end<td class=\"number\">4<td class=\"number\">1<td class=\"number\">0",
            "<tr><td>work.end:2 (random)<td class=\"passing\">survived",
            "<li>entry f-a/1/generate 3</li>",
        ] {
            assert!(page.contains(part), "no `{part}` in\n{page}");
        }
        assert!(!page.contains("<h2>Findings</h2>"), "{page}");
        assert!(!page.contains("http://") && !page.contains("https://"), "it needs nothing else");
    }

    #[test]
    fn findings_are_text_and_no_markup() {
        let duplicates = vec!["`POST https://a.example/<script>` was received twice".to_owned()];
        let page = crash_page(&report(TrialFindings { duplicates, ..TrialFindings::default() }));
        assert!(page.contains("<p class=\"failing\">NOT survived") && page.contains("&lt;script&gt;"), "{page}");
        assert!(page.contains("<td class=\"number failing\">1"), "{page}");
        assert!(!page.contains("<script>"), "{page}");
    }
}
