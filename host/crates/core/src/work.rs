//! The types of the work itself: features, checks, outcomes and verdicts.

use crate::{Denial, LimitHit, Outage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of a rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// Unique within its feature.
    pub id: String,
    /// The requirement.
    pub text: String,
    /// The pinned check that decides it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// A specific fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// The criterion that it breaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// The fault.
    pub text: String,
}

impl Issue {
    /// An issue without a criterion.
    #[must_use]
    pub fn general(text: impl Into<String>) -> Self {
        Self { criterion: None, text: text.into() }
    }
}

/// The body of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckBody {
    /// Python source, run in the sandbox on a read-only copy of the work.
    Python(String),
    /// A check of `[checks]` in `longhaul.toml`, by its name.
    Native(String),
}

/// A check, by the name under which criteria refer to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// Unique within its feature.
    pub name: String,
    /// Its body.
    pub body: CheckBody,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Its name.
    pub name: String,
    /// Whether it exited with 0, and, where it runs tests, showed that they passed.
    pub passed: bool,
    /// Its exit code; -1 when a limit ended it.
    pub exit_code: i32,
    /// Its standard output, cut at the limit.
    pub stdout: String,
    /// Its standard error, cut at the limit.
    pub stderr: String,
    /// Whether either was cut.
    pub truncated: bool,
    /// Its sandbox level, if that is below `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// How long it took, in milliseconds. 0 in journals from before it was measured, and where nobody waits for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Where a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeatureStatus {
    /// Nobody worked on it.
    NotStarted,
    /// It is being worked on.
    InProgress,
    /// Judged to pass, and committed.
    Passing,
    /// Its rounds are used up, best effort kept in the store.
    Failing,
    /// It waits for a feature that fails, or for a person.
    Blocked,
    /// A person took it off the list.
    Dropped,
}

impl FeatureStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::NotStarted, Self::InProgress, Self::Passing, Self::Failing, Self::Blocked, Self::Dropped];
}

/// A feature to build, as one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureSpec {
    /// Unique within the project: letters, digits, `-` and `_`.
    pub id: String,
    /// One line, the subject of its commit.
    pub title: String,
    /// The instruction for the agent.
    pub instruction: String,
    /// `functional`, `ui`, `performance`, `security`, `integration`, `testing` or `documentation`.
    pub category: String,
    /// 1 to 10; higher goes first. Default 5.
    pub priority: u8,
    /// Its agent; none: chosen by category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The criteria.
    pub criteria: Vec<Criterion>,
    /// The checks that decide it.
    pub checks: Vec<CheckSpec>,
    /// Features that must pass before.
    pub depends_on: Vec<String>,
}

/// What follows a failed step, by the planner's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Retry, this many times.
    Retry(u32),
    /// Continue without it.
    Skip,
    /// Ask the planner again.
    Replan,
    /// Abort.
    Abort,
}

impl Default for OnFailure {
    fn default() -> Self {
        Self::Retry(1)
    }
}

/// One step of a plan. The harness takes its [`FeatureSpec`] and has rules of its own for failures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// The feature of the step.
    #[serde(flatten)]
    pub spec: FeatureSpec,
    /// What follows its failure, by the planner's choice. Plans from before this field have the default.
    #[serde(default)]
    pub on_failure: OnFailure,
}

/// The result of a planner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in the planner's order.
    pub steps: Vec<PlanStep>,
    /// Notes for people.
    pub notes: String,
}

/// The result of a step, for a planner that replans or synthesises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The step's id.
    pub step: String,
    /// Whether it was judged to pass.
    pub passed: bool,
    /// Its agent's outcome, if there is one.
    pub outcome: Option<Outcome>,
    /// The issues that were found.
    pub issues: Vec<Issue>,
}

/// A planner's answer to a goal, made of the results of its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Synthesis {
    /// JSON.
    pub answer: String,
    /// Between 0 and 1, in the planner's own opinion. None: it gave no estimate.
    pub confidence: Option<f64>,
    /// Contradictions between results.
    pub conflicts: Vec<String>,
    /// Questions that stayed open.
    pub unknowns: Vec<String>,
}

/// A goal, for a planner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// The operator's text.
    pub text: String,
    /// The harness's context, an object.
    pub context: serde_json::Value,
    /// The operator's settings for this planner, an object.
    pub settings: serde_json::Value,
    /// Criteria for the whole. Left out when empty, so that the digest of an earlier goal stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
}

/// A piece of work, for an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The feature or step.
    pub id: String,
    /// The instruction.
    pub instruction: String,
    /// The harness's context, an object.
    pub context: serde_json::Value,
    /// The operator's settings for this agent, an object.
    pub settings: serde_json::Value,
    /// The criteria.
    pub criteria: Vec<Criterion>,
    /// The evaluator's issues of the round before.
    pub feedback: Vec<Issue>,
    /// Counts rounds, from 1.
    pub attempt: u32,
}

/// The result of an agent. It cannot mark its own work as passing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// JSON.
    pub output: String,
    /// A line or two for people.
    pub summary: String,
    /// Between 0 and 1, in the agent's own opinion.
    pub confidence: Option<f64>,
    /// Questions that stayed open.
    pub unknowns: Vec<String>,
}

/// The evaluator's input: the output, never how it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The instruction.
    pub instruction: String,
    /// The agent's output, JSON.
    pub output: String,
    /// Named texts, for example the files that changed.
    pub evidence: Vec<(String, String)>,
}

/// The criteria of a judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rubric {
    /// The criteria; each gets one mark.
    pub criteria: Vec<Criterion>,
    /// The operator's settings for this evaluator, an object.
    pub settings: serde_json::Value,
}

/// The mark of one criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// Cannot be told; counts as not passed.
    Unknown,
}

/// One criterion, one mark, one line why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The criterion's id.
    pub criterion: String,
    /// Its mark.
    pub mark: Mark,
    /// One line.
    pub why: String,
}

/// What the PASS of one criterion rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Its check failed before the work began, and passes on the work.
    Check,
    /// Its check passed before the work began, or the work changed nothing: this shows nothing.
    VacuousCheck,
    /// As [`Evidence::Check`], by an exit code alone, which the code under test can choose.
    ExitCode,
    /// As [`Evidence::Check`], by a report in the form of JUnit, which the code under test can write.
    Junit,
    /// As [`Evidence::Check`], by tests by name and canaries, without counterexamples: `twins = false`.
    TestNames,
    /// The evaluator read the work.
    Reading,
}

/// The result of an evaluator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// One for each criterion.
    pub judgements: Vec<Judgement>,
    /// Issues to fix.
    pub issues: Vec<Issue>,
}

impl Verdict {
    /// True when each of `criteria` has the mark PASS. A criterion without a mark is not passed, and a rubric without
    /// criteria never passes.
    #[must_use]
    pub fn passes(&self, criteria: &[Criterion]) -> bool {
        let passed = |criterion: &Criterion| {
            let mut marks = self.judgements.iter().filter(|judgement| judgement.criterion == criterion.id);
            marks.next().is_some_and(|first| first.mark == Mark::Pass) && marks.all(|other| other.mark == Mark::Pass)
        };
        !criteria.is_empty() && criteria.iter().all(passed)
    }
}

/// Why an export returned an error, in cases that every role shares.
///
/// Lossy on purpose: the harness acts on the class and shows the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleError {
    /// The task cannot be done as written.
    Impossible(String),
    /// A question for a person.
    Blocked(String),
    /// Not allowed.
    Denied(Denial),
    /// A cap was reached.
    Limit(LimitHit),
    /// A service is not there.
    Unavailable(Outage),
    /// Anything else.
    Failed(String),
}

impl std::fmt::Display for RoleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Impossible(text) => write!(f, "cannot be done as written: {text}"),
            Self::Blocked(question) => write!(f, "asks: {question}"),
            Self::Denied(denial) => denial.fmt(f),
            Self::Limit(hit) => hit.fmt(f),
            Self::Unavailable(outage) => outage.fmt(f),
            Self::Failed(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_was_kept_without_what_to_do_on_failure_is_still_read() {
        let step = r#""id":"a","title":"A","instruction":"do","category":"ui","priority":5,"criteria":[],"checks":[],"depends_on":[]"#;
        for (more, expected) in [("", OnFailure::Retry(1)), (r#","on_failure":"skip""#, OnFailure::Skip)] {
            let kept = format!(r#"{{"steps":[{{{step}{more}}}],"notes":""}}"#);
            let plan: Plan = serde_json::from_str(&kept).unwrap();
            assert_eq!((plan.steps[0].spec.id.as_str(), plan.steps[0].on_failure), ("a", expected));
        }
    }

    #[test]
    fn a_report_of_earlier_journals_is_still_read_and_written_alike() {
        let kept = r#"{"name":"c","passed":false,"exit_code":-1,"stdout":"","stderr":"","truncated":false}"#;
        let report: CheckReport = serde_json::from_str(kept).unwrap();
        assert_eq!((report.duration_ms, report.sandbox.as_deref()), (0, None));
        assert_eq!(serde_json::to_string(&report).unwrap(), kept);
    }

    #[test]
    fn evidence_of_earlier_journals_is_still_read() {
        let kept = ["check", "vacuous_check", "exit_code", "reading"].map(|word| format!("\"{word}\""));
        let read = kept.map(|word| serde_json::from_str::<Evidence>(&word).unwrap());
        assert_eq!(read, [Evidence::Check, Evidence::VacuousCheck, Evidence::ExitCode, Evidence::Reading]);
        assert_eq!(
            serde_json::to_string(&[Evidence::Junit, Evidence::TestNames]).unwrap(),
            r#"["junit","test_names"]"#
        );
    }

    #[track_caller]
    fn check(criteria: &[&str], marks: &[(&str, Mark)], expected: bool) {
        let criteria: Vec<_> =
            criteria.iter().map(|id| Criterion { id: (*id).into(), text: String::new(), check: None }).collect();
        let judgements = marks
            .iter()
            .map(|(id, mark)| Judgement { criterion: (*id).into(), mark: *mark, why: String::new() })
            .collect();
        assert_eq!(Verdict { judgements, issues: vec![] }.passes(&criteria), expected);
    }

    #[test]
    fn a_verdict_passes_only_with_a_pass_for_each_criterion() {
        check(&["a", "b"], &[("a", Mark::Pass), ("b", Mark::Pass)], true);
        check(&["a", "b"], &[("a", Mark::Pass)], false);
        check(&["a"], &[("a", Mark::Pass), ("a", Mark::Fail)], false);
        check(&["a"], &[("a", Mark::Unknown)], false);
        check(&[], &[], false);
    }
}
