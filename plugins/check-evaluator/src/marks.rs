//! From what a check said to a mark, one line why, and an issue that says what to mend.

use longhaul_sdk::checks::CheckReport;
use longhaul_sdk::evaluator::{Judgement, Mark, Verdict};
use longhaul_sdk::json;
use longhaul_sdk::types::{Criterion, Issue};
use serde::Deserialize;

/// Under `[evaluator.settings]` of `longhaul.toml`. Unknown fields are errors.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Longest line why. Default 200.
    pub(crate) why_chars_max: usize,
    /// The most characters of a failing check's output, from its end, that go back to the agent. Default 1500.
    pub(crate) issue_chars_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { why_chars_max: 200, issue_chars_max: 1_500 }
    }
}

/// The facts about one criterion.
#[derive(Clone, Debug)]
pub(crate) enum Finding {
    Ran(CheckReport),
    CannotRun(String),
    NoCheck,
}

/// A verdict without judgements; nothing to judge is an issue, not a pass.
pub(crate) fn empty(criteria: &[Criterion]) -> Verdict {
    let mut issues = Vec::new();
    if criteria.is_empty() {
        let text = "there is nothing to judge by: the feature has no criteria".to_owned();
        issues.push(Issue { criterion: None, text });
    }
    Verdict { judgements: Vec::new(), issues }
}

pub(crate) fn add(
    verdict: &mut Verdict,
    criterion: &Criterion,
    finding: &Finding,
    vacuous: &[String],
    settings: &Settings,
) {
    let (mark, why) = judged(criterion, finding, vacuous);
    let why = json::cut(&why, settings.why_chars_max);
    if mark != Mark::Pass {
        let text = issue(criterion, finding, &why, settings);
        verdict.issues.push(Issue { criterion: Some(criterion.id.clone()), text });
    }
    verdict.judgements.push(Judgement { criterion: criterion.id.clone(), mark, reason: why });
}

fn judged(criterion: &Criterion, finding: &Finding, vacuous: &[String]) -> (Mark, String) {
    let name = criterion.check.as_deref().unwrap_or_default();
    match finding {
        Finding::Ran(report) if !report.passed => (Mark::Fail, last_line(report)),
        Finding::Ran(_) if vacuous.iter().any(|vacuous| vacuous == name) => {
            (Mark::Pass, format!("the check `{name}` passes, as it did before the work began"))
        }
        Finding::Ran(_) => (Mark::Pass, format!("the check `{name}` passes")),
        Finding::CannotRun(why) => (Mark::Unknown, format!("the check `{name}` cannot be run: {why}")),
        Finding::NoCheck => (
            Mark::Unknown,
            "it names no check, and this evaluator has nothing else; use `rubric-evaluator` or \
             add a check"
                .to_owned(),
        ),
    }
}

fn issue(criterion: &Criterion, finding: &Finding, why: &str, settings: &Settings) -> String {
    let Finding::Ran(report) = finding else {
        return format!("{}: {why}", criterion.text);
    };
    let said = said(report);
    let output = json::tail(said, settings.issue_chars_max);
    format!("the check `{}` fails ({}):\n{output}", report.name, ending(report))
}

/// The last line of what a check said: of a traceback it names the error.
fn last_line(report: &CheckReport) -> String {
    let last = said(report).lines().rev().find(|line| !line.trim().is_empty());
    let exit = || format!("{}, without a word", ending(report));
    last.map_or_else(exit, |line| line.trim().to_owned())
}

fn ending(report: &CheckReport) -> String {
    report.exit_code.map_or_else(|| "ended at a limit".to_owned(), |code| format!("exit code {code}"))
}

/// Standard error, or standard output where that is empty.
fn said(report: &CheckReport) -> &str {
    let stderr = report.stderr.trim();
    if stderr.is_empty() { report.stdout.trim() } else { stderr }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: bool, stdout: &str, stderr: &str) -> Finding {
        Finding::Ran(CheckReport {
            name: "sum".to_owned(),
            passed,
            exit_code: Some(i32::from(!passed)),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            truncated: false,
            duration_ms: 1,
            sandbox_level: None,
        })
    }

    #[track_caller]
    fn check(finding: &Finding, vacuous: bool, mark: Mark, why: &str, issue: Option<&str>) {
        let check = (!matches!(finding, Finding::NoCheck)).then(|| "sum".to_owned());
        let criterion = Criterion { id: "c1".to_owned(), text: "it adds".to_owned(), check };
        let vacuous: Vec<String> = vacuous.then(|| "sum".to_owned()).into_iter().collect();
        let settings = Settings { why_chars_max: 40, issue_chars_max: 23 };
        let mut verdict = empty(std::slice::from_ref(&criterion));
        add(&mut verdict, &criterion, finding, &vacuous, &settings);
        let judgement = &verdict.judgements[0];
        assert_eq!((judgement.mark, judgement.reason.as_str()), (mark, why));
        let text = verdict.issues.first().map(|issue| issue.text.as_str());
        assert_eq!(text, issue);
    }

    #[test]
    fn the_check_decides() {
        check(&report(true, "ok", ""), false, Mark::Pass, "the check `sum` passes", None);
        check(
            &report(true, "", ""),
            true,
            Mark::Pass,
            "the check `sum` passes, as it did before… (15 more characters)",
            None,
        );
        check(
            &report(false, "noise", "Traceback\n  f(3)\nAssertionError: 9 != 14\n\n"),
            false,
            Mark::Fail,
            "AssertionError: 9 != 14",
            Some("the check `sum` fails (exit code 1):\nAssertionError: 9 != 14"),
        );
        check(
            &report(false, "", ""),
            false,
            Mark::Fail,
            "exit code 1, without a word",
            Some("the check `sum` fails (exit code 1):\n"),
        );
    }

    #[test]
    fn what_no_check_decides_is_unknown() {
        let why = "it names no check, and this evaluator ha… (53 more characters)";
        check(&Finding::NoCheck, false, Mark::Unknown, why, Some(&format!("it adds: {why}")));
        assert_eq!(empty(&[]).issues.len(), 1);
    }
}
