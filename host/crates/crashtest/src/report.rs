//! The report of a crash test: each kill with its findings, and the sums by point.

use crate::plan::PlannedKill;
use crate::reference::{EffectTotals, TrialFindings};
use longhaul_core::text::{count, printable};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Findings of one kill that a text shows; JSON and HTML have all.
const FINDINGS_SHOWN_MAX: usize = 5;

/// Longest finding on a line, in bytes.
const LINE_BYTES_MAX: usize = 400;

/// A kill, and the run that was resumed after it.
#[derive(Clone, Debug, Serialize)]
pub struct CrashTrial {
    /// The kill.
    #[serde(flatten)]
    pub kill: PlannedKill,
    /// True when the process died of SIGKILL at that point. False: the run ended before it reached the point so often.
    pub killed: bool,
    /// Processes that were started after the kill until the run had ended.
    pub resumes: u32,
    /// Questions about an effect in flight that were answered by what the receiver saw.
    pub questions: u32,
    /// The findings.
    #[serde(flatten)]
    pub findings: TrialFindings,
    /// Time of all its processes, in milliseconds.
    pub took_ms: u64,
}

/// The sums of one point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PointSummary {
    /// The name of the point.
    pub point: String,
    /// How often a run without a kill reaches it.
    pub reached: u32,
    /// Kills at it.
    pub kills: u32,
    /// Planned kills that a run ended before.
    pub missed: u32,
    /// Effects that happened once more than they should.
    pub duplicates: usize,
    /// Steps that are not there.
    pub lost: usize,
    /// Other differences of results.
    pub results: usize,
    /// Differences of the history in git.
    pub history: usize,
}

/// The report as `--json` prints it.
#[derive(Serialize)]
struct Published<'a> {
    holds: bool,
    verdict: String,
    points: Vec<PointSummary>,
    #[serde(flatten)]
    report: &'a CrashReport,
}

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct CrashReport {
    /// The project.
    pub project: String,
    /// The seed of the random kills.
    pub seed: u64,
    /// The end of the runs without a kill.
    pub ends_as: String,
    /// The effects of a run without a kill.
    pub effects: EffectTotals,
    /// How often a run without a kill reaches each point.
    pub reached: BTreeMap<String, u32>,
    /// Traces that differ without a kill, which were not compared.
    pub varying: Vec<String>,
    /// The kills.
    pub trials: Vec<CrashTrial>,
}

impl CrashReport {
    /// True when every kill was survived without a finding, and each planned point was killed at least once.
    #[must_use]
    pub fn holds(&self) -> bool {
        let is_clean = |trial: &CrashTrial| trial.findings.is_clean();
        !self.trials.is_empty() && self.trials.iter().all(is_clean) && self.never_killed().is_empty()
    }

    /// Planned points at which no process was killed.
    #[must_use]
    pub fn never_killed(&self) -> Vec<&str> {
        let mut planned: BTreeSet<&str> = self.trials.iter().map(|trial| trial.kill.at.point.as_str()).collect();
        for trial in self.trials.iter().filter(|trial| trial.killed) {
            planned.remove(trial.kill.at.point.as_str());
        }
        planned.into_iter().collect()
    }

    /// Kills that were made.
    #[must_use]
    pub fn kills(&self) -> usize {
        self.trials.iter().filter(|trial| trial.killed).count()
    }

    /// The sums of each point that was planned, by name.
    #[must_use]
    pub fn points(&self) -> Vec<PointSummary> {
        let mut sums = BTreeMap::<&str, PointSummary>::new();
        for CrashTrial { kill, killed, findings, .. } in &self.trials {
            let point = kill.at.point.as_str();
            let sum = sums.entry(point).or_insert_with(|| PointSummary {
                point: point.to_owned(),
                reached: self.reached.get(point).copied().unwrap_or_default(),
                kills: 0,
                missed: 0,
                duplicates: 0,
                lost: 0,
                results: 0,
                history: 0,
            });
            sum.kills += u32::from(*killed);
            sum.missed += u32::from(!killed);
            sum.duplicates += findings.duplicates.len();
            sum.lost += findings.lost.len();
            sum.results += findings.results.len();
            sum.history += findings.history.len();
        }
        sums.into_values().collect()
    }

    /// The verdict in one line.
    #[must_use]
    pub fn verdict(&self) -> String {
        let points = self.points();
        let sum = |of: fn(&PointSummary) -> usize| points.iter().map(of).sum::<usize>();
        format!(
            "{}: {} at {}; {}, {}, {}, {}",
            if self.holds() { "survived" } else { "NOT survived" },
            count(self.kills(), "kill"),
            count(points.len(), "point"),
            count(sum(|point| point.duplicates), "duplicate"),
            count(sum(|point| point.lost), "lost step"),
            count(sum(|point| point.results), "differing result"),
            count(sum(|point| point.history), "differing commit"),
        )
    }

    /// The report for programs, with its verdict and its sums.
    #[must_use]
    pub fn published(&self) -> impl Serialize + '_ {
        Published { holds: self.holds(), verdict: self.verdict(), points: self.points(), report: self }
    }

    /// The report for people, of many lines.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) -> std::fmt::Result {
        let EffectTotals { journal_entries, tool_requests, model_requests, commits, .. } = &self.effects;
        writeln!(
            to,
            "{}: without a kill {}; {journal_entries} journal entries, {model_requests} requests to models, \
             {tool_requests} requests with an effect to hosts, {commits} commits",
            printable(&self.project, LINE_BYTES_MAX),
            printable(&self.ends_as, LINE_BYTES_MAX),
        )?;
        let head = ["reached", "kills", "duplicates", "lost", "results", "history"].map(|word| format!("{word:>11}"));
        let name = "point";
        writeln!(to, "{name:<32}{}", head.concat())?;
        for sum in self.points() {
            let PointSummary { point, reached, kills, duplicates, lost, results, history, missed } = sum;
            let note = if missed > 0 { format!("  {missed} not reached this time") } else { String::new() };
            writeln!(
                to,
                "{point:<32}{reached:>11}{kills:>11}{duplicates:>11}{lost:>11}{results:>11}{history:>11}{note}"
            )?;
        }
        for trial in self.trials.iter().filter(|trial| !trial.findings.is_clean()) {
            let TrialFindings { duplicates, lost, results, history } = &trial.findings;
            writeln!(to, "killed at {}:", trial.kill.at)?;
            for (what, found) in [("duplicate", duplicates), ("lost", lost), ("result", results), ("history", history)]
            {
                for finding in found.iter().take(FINDINGS_SHOWN_MAX) {
                    writeln!(to, "  {what}: {}", printable(finding, LINE_BYTES_MAX))?;
                }
                if found.len() > FINDINGS_SHOWN_MAX {
                    writeln!(to, "  {what}: and {} more", found.len() - FINDINGS_SHOWN_MAX)?;
                }
            }
        }
        if !self.varying.is_empty() {
            let number = count(self.varying.len(), "trace");
            writeln!(to, "not compared, since two runs without a kill differ in it: {number}, see --json")?;
        }
        let never = self.never_killed();
        if !never.is_empty() {
            writeln!(to, "never killed at: {}; run it again with --points {}", never.join(", "), never.join(","))?;
        }
        writeln!(to, "seed {}", self.seed)?;
        writeln!(to, "{}", self.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::PointOccurrence;
    use crate::receivers::Likeness;

    fn trial(point: &str, number: u32, killed: bool, findings: TrialFindings) -> CrashTrial {
        let kill = PlannedKill { at: PointOccurrence { point: point.to_owned(), number }, random: false };
        CrashTrial { kill, killed, resumes: 1, questions: 0, findings, took_ms: 5 }
    }

    fn report(trials: Vec<CrashTrial>) -> CrashReport {
        CrashReport {
            project: "shop".to_owned(),
            seed: 7,
            ends_as: "Completed".to_owned(),
            effects: EffectTotals {
                journal_entries: 9,
                tool_requests: 2,
                model_requests: 3,
                commits: 1,
                requests_told_apart_by: Likeness::Whole,
            },
            reached: [("work.end".to_owned(), 4)].into(),
            varying: Vec::new(),
            trials,
        }
    }

    fn found(duplicates: &[&str]) -> TrialFindings {
        let duplicates = duplicates.iter().map(|text| (*text).to_owned()).collect();
        TrialFindings { duplicates, ..TrialFindings::default() }
    }

    #[test]
    fn a_report_holds_when_each_point_was_killed_and_nothing_was_found() {
        let clean = || trial("work.end", 1, true, found(&[]));
        assert!(report(vec![clean()]).holds());
        // An occurrence that was not reached is no finding, where the point was killed at another one.
        assert!(report(vec![clean(), trial("work.end", 4, false, found(&[]))]).holds());
        assert!(!report(vec![trial("work.end", 1, false, found(&[]))]).holds());
        assert!(!report(vec![clean(), trial("work.end", 2, true, found(&["paid twice"]))]).holds());
        assert!(!report(Vec::new()).holds());
    }

    #[test]
    fn a_report_is_written_for_people_with_its_sums_and_findings() {
        let shown = report(vec![
            trial("work.end", 1, true, found(&[])),
            trial("work.end", 4, true, found(&["paid twice"])),
            trial("tool.after-call", 1, false, found(&[])),
        ])
        .to_text();
        for part in [
            "shop: without a kill Completed; 9 journal entries, 3 requests to models, 2 requests with an effect",
            "work.end                                  4          2          1          0          0          0",
            "killed at work.end:4:\n  duplicate: paid twice\n",
            "never killed at: tool.after-call; run it again with --points tool.after-call",
            "NOT survived: 2 kills at 2 points; 1 duplicate, 0 lost steps, 0 differing results, 0 differing commits",
        ] {
            assert!(shown.contains(part), "no `{part}` in\n{shown}");
        }
    }

    #[test]
    fn a_report_is_json_with_a_row_for_each_kill() {
        let report = report(vec![trial("work.end", 1, true, found(&["paid twice"]))]);
        let json = serde_json::to_value(report.published()).expect("JSON");
        assert_eq!((&json["holds"], &json["points"][0]["kills"]), (&serde_json::json!(false), &serde_json::json!(1)));
        assert_eq!(json["trials"][0]["at"]["point"], "work.end");
        assert_eq!(json["trials"][0]["duplicates"][0], "paid twice");
        assert_eq!(json["effects"]["requests_told_apart_by"], "whole");
    }
}
