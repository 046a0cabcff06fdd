//! The types of the work itself: features, checks, outcomes and verdicts.

use crate::{Denial, LimitHit, Outage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One criterion of a rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// The id, unique within the feature.
    pub id: String,
    /// The statement that must hold.
    pub text: String,
    /// The name of the pinned check that decides it. None: the evaluator decides by reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// A specific defect of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// The id of the criterion that the defect breaks. None: it belongs to no single criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// The defect and its place.
    pub text: String,
}

impl Issue {
    /// An issue without a criterion.
    #[must_use]
    pub fn general(text: impl Into<String>) -> Self {
        Self { criterion: None, text: text.into() }
    }
}

/// The content of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckBody {
    /// Python source, run in the sandbox on a read-only copy of the work.
    Python(String),
    /// The name of a check of `[checks]` in `longhaul.toml`.
    Native(String),
}

/// A check of a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// The name by which criteria refer to it, unique within the feature.
    pub name: String,
    /// The content of the check.
    pub body: CheckBody,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// The name of the check.
    pub name: String,
    /// True when the check exited with 0 and, where it runs tests, showed that they passed.
    pub passed: bool,
    /// The exit code. -1: a limit ended the check.
    pub exit_code: i32,
    /// The standard output, cut at the limit of the check.
    pub stdout: String,
    /// The standard error, cut at the limit of the check.
    pub stderr: String,
    /// True when `stdout` or `stderr` was cut.
    pub truncated: bool,
    /// The level of the sandbox. None: it was `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The duration in milliseconds. 0: the journal is older than this field, or no caller waits for the check.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The status of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeatureStatus {
    /// No work on it began.
    NotStarted,
    /// An agent works on it.
    InProgress,
    /// All checks passed, and it was committed.
    Passing,
    /// Its rounds are used up. The store keeps the best work.
    Failing,
    /// It waits for a feature that fails, or for a person.
    Blocked,
    /// A person, or a new plan, removed it.
    Dropped,
}

impl FeatureStatus {
    /// All statuses.
    pub const ALL: [Self; 6] =
        [Self::NotStarted, Self::InProgress, Self::Passing, Self::Failing, Self::Blocked, Self::Dropped];
}

/// A feature to build: one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureSpec {
    /// The id, unique within the project: letters, digits, `-` and `_`.
    pub id: String,
    /// The title in one line: the subject of the commit.
    pub title: String,
    /// The instruction to the agent.
    pub instruction: String,
    /// `functional`, `ui`, `performance`, `security`, `integration`, `testing` or `documentation`.
    pub category: String,
    /// The priority, 1 to 10; a higher one goes first. Default 5.
    pub priority: u8,
    /// The name of the agent. None: the host chooses by category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The criteria that the work is judged by.
    pub criteria: Vec<Criterion>,
    /// The checks that decide criteria.
    pub checks: Vec<CheckSpec>,
    /// The ids of the features that must pass before.
    pub depends_on: Vec<String>,
}

/// The reaction to a failed step, chosen by the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Retry the step, this many times.
    Retry(u32),
    /// Continue without the step.
    Skip,
    /// Ask the planner for another plan.
    Replan,
    /// End the run as incomplete.
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
    /// The feature that the step builds.
    #[serde(flatten)]
    pub spec: FeatureSpec,
    /// The reaction to its failure. Plans from before this field have the default.
    #[serde(default)]
    pub on_failure: OnFailure,
}

/// The result of a planner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in the planner's order.
    pub steps: Vec<PlanStep>,
    /// Notes for people. May be empty.
    pub notes: String,
}

/// The result of a step, for a planner that replans or synthesises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The id of the step.
    pub step: String,
    /// True when all checks of the step passed.
    pub passed: bool,
    /// The last outcome of the agent. None: there is none.
    pub outcome: Option<Outcome>,
    /// The issues of the last round.
    pub issues: Vec<Issue>,
}

/// A planner's answer to a goal, made from the results of the steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Synthesis {
    /// The answer, as JSON text.
    pub answer: String,
    /// The planner's own estimate, from 0 to 1. None: it gave no estimate.
    pub confidence: Option<f64>,
    /// Contradictions between results, one per item.
    pub conflicts: Vec<String>,
    /// Open questions, one per item.
    pub unknowns: Vec<String>,
}

/// A goal, for a planner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// The goal in the words of its author.
    pub text: String,
    /// Facts from the harness: a JSON object.
    pub context: serde_json::Value,
    /// The operator's settings for this planner: a JSON object.
    pub settings: serde_json::Value,
    /// Criteria for the result as a whole. Left out of the JSON when empty, so that the digest of an earlier goal
    /// stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
}

/// A piece of work, for an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The id of the feature or step.
    pub id: String,
    /// The instruction to the agent.
    pub instruction: String,
    /// Facts from the harness: a JSON object.
    pub context: serde_json::Value,
    /// The operator's settings for this agent: a JSON object.
    pub settings: serde_json::Value,
    /// The criteria that the work is judged by.
    pub criteria: Vec<Criterion>,
    /// The evaluator's issues of the previous round. Empty in the first one.
    pub feedback: Vec<Issue>,
    /// The number of the round, from 1.
    pub attempt: u32,
}

/// The result of an agent. It cannot mark its own work as passing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The result, as JSON text.
    pub output: String,
    /// One or two lines for people.
    pub summary: String,
    /// The agent's own estimate that the task is done, from 0 to 1. None: it gave no estimate.
    pub confidence: Option<f64>,
    /// Open questions, one per item.
    pub unknowns: Vec<String>,
}

/// The evaluator's input: the output, and nothing of how it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The instruction that the agent was given.
    pub instruction: String,
    /// The agent's output, as JSON text.
    pub output: String,
    /// Named texts, for example the changed files: the name and the content of each.
    pub evidence: Vec<(String, String)>,
}

/// The criteria of a judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rubric {
    /// The criteria. Each gets one mark.
    pub criteria: Vec<Criterion>,
    /// The operator's settings for this evaluator: a JSON object.
    pub settings: serde_json::Value,
}

/// The mark of one criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The criterion holds.
    Pass,
    /// The criterion does not hold.
    Fail,
    /// The evaluator cannot tell. It counts as not passed.
    Unknown,
}

/// The judgement of one criterion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The id of the criterion.
    pub criterion: String,
    /// The mark.
    pub mark: Mark,
    /// The reason, in one line.
    pub why: String,
}

/// The evidence for a criterion that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Its check failed before the work began, and passes now.
    Check,
    /// Its check passed before the work began, or the work changed nothing. It proves nothing.
    VacuousCheck,
    /// As `check`, by an exit code alone, which the code under test can choose.
    ExitCode,
    /// As `check`, by a JUnit report, which the code under test can write.
    Junit,
    /// As `check`, by the names of tests and canaries, without counterexamples (`twins = false`).
    TestNames,
    /// The evaluator read the work.
    Reading,
}

/// The result of an evaluator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// One judgement for each criterion.
    pub judgements: Vec<Judgement>,
    /// The issues for the next round.
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

/// The reason for which an export returned an error, in the cases that all roles share.
///
/// It is lossy on purpose: the harness acts on the case and shows the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleError {
    /// The task cannot be done as written. The text says why.
    Impossible(String),
    /// The guest needs an answer from a person. The text is the question.
    Blocked(String),
    /// The operator does not allow it.
    Denied(Denial),
    /// A limit was reached.
    Limit(LimitHit),
    /// A service is not available now.
    Unavailable(Outage),
    /// Any other failure.
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
