//! Features: their specification and their state.

use super::usage::WorkUsageView;
use super::words;
use longhaul_core::work as inner;
use longhaul_harness::Feature as InnerFeature;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

words! {
    /// The status of a feature.
    FeatureStatus of longhaul_core::work::FeatureStatus as InnerStatus {
        /// No session has begun.
        NotStarted,
        /// A session works on it.
        InProgress,
        /// It passes and is committed.
        Passing,
        /// Its rounds are used up.
        Failing,
        /// It waits; see `blocked_by`.
        Blocked,
        /// It was taken off the list.
        Dropped,
    }
}

words! {
    /// The reason why a feature is blocked.
    BlockedBy of longhaul_harness::state::BlockedBy as InnerBlockedBy {
        /// A feature that it depends on does not pass yet.
        Dependency,
        /// A question waits for an answer.
        Question,
        /// A call was refused.
        Denial,
        /// A person stopped the work on it.
        Cancel,
    }
}

/// A criterion by which a feature is judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = Criterion))]
pub struct CriterionView {
    /// Its id, unique within the feature.
    pub id: String,
    /// The condition.
    pub text: String,
    /// The check that decides; null: the evaluator decides.
    #[serde(default)]
    pub check: Option<String>,
}

/// The language of a check.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckLanguage {
    /// A script in Python; `body` is its source.
    Python,
    /// A check of `[checks]` in `longhaul.toml`; `body` is its name there.
    Native,
}

/// A check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = Check))]
pub struct CheckView {
    /// Its name, unique within the feature.
    pub name: String,
    /// Its language.
    pub language: CheckLanguage,
    /// Its source or name.
    pub body: String,
}

/// The specification of a feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = FeatureSpec))]
pub struct FeatureSpecView {
    /// Its id, unique within the run.
    pub id: String,
    /// Its title, in one line.
    pub title: String,
    /// The instruction for the agent.
    pub instruction: String,
    /// Its category, one of the project. Default `functional`.
    #[serde(default = "category")]
    pub category: String,
    /// Its priority from 1 to 10; higher ones come first. Default 5.
    #[serde(default = "priority", deserialize_with = "of_priorities")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 10))]
    pub priority: u8,
    /// The agent that works on it; null: the agent of its category.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its criteria; at least one.
    #[serde(default)]
    pub criteria: Vec<CriterionView>,
    /// Checks that its criteria name.
    #[serde(default)]
    pub checks: Vec<CheckView>,
    /// Ids of features that must pass first.
    #[serde(default)]
    pub depends_on: Vec<String>,
}

fn category() -> String {
    "functional".to_owned()
}

fn priority() -> u8 {
    5
}

fn of_priorities<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let priority = u8::deserialize(from)?;
    if (1..=10).contains(&priority) {
        return Ok(priority);
    }
    Err(D::Error::custom(format!("{priority} is no priority; write a number from 1 to 10")))
}

/// A defect of an output.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Issue))]
pub struct IssueView {
    /// The criterion that is not met.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub criterion: Option<String>,
    /// The defect.
    pub text: String,
}

/// The reaction to the failure of a step of a plan.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = OnFailure))]
pub enum OnFailureView {
    /// This many retries.
    Retry(u32),
    /// The step is skipped.
    Skip,
    /// The planner makes a new plan.
    Replan,
    /// The run ends.
    Abort,
}

/// A feature with its state.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Feature))]
pub struct FeatureView {
    /// Its id.
    pub id: String,
    /// Its title, in one line.
    pub title: String,
    /// The instruction for the agent.
    pub instruction: String,
    /// Its category.
    pub category: String,
    /// Its priority, from 1 to 10.
    pub priority: u8,
    /// The agent that works on it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub agent: Option<String>,
    /// Its criteria.
    pub criteria: Vec<CriterionView>,
    /// Checks that its criteria name.
    pub checks: Vec<CheckView>,
    /// Ids of features that must pass first.
    pub depends_on: Vec<String>,
    /// Its status.
    pub status: FeatureStatus,
    /// The reason of its status, in one line.
    pub reason: String,
    /// The reason why it is blocked; null unless its status is `blocked`.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub blocked_by: Option<BlockedBy>,
    /// Number of times that it ended as failing.
    pub attempts: u32,
    /// Number of sessions that have begun.
    pub sessions: u32,
    /// The reason of its last failure.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub last_error: Option<String>,
    /// The agent's summary of its last output.
    pub summary: String,
    /// Its last commit.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub commit: Option<String>,
    /// The files of that commit.
    pub files: Vec<String>,
    /// Checks that passed before the work began.
    pub vacuous: Vec<String>,
    /// The defects of its last output.
    pub issues: Vec<IssueView>,
    /// Its earlier sessions, one line a round.
    pub history: Vec<String>,
    /// The agent's confidence in its last output, from 0 to 1.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub confidence: Option<f64>,
    /// The answer of a task of an ask: JSON, or its beginning.
    pub answer: String,
    /// The reaction to its failure, by the plan.
    pub on_failure: OnFailureView,
    /// The usage of its work.
    pub resource_usage: WorkUsageView,
}

impl From<InnerFeature> for FeatureView {
    fn from(feature: InnerFeature) -> Self {
        let FeatureSpecView { id, title, instruction, category, priority, agent, criteria, checks, depends_on } =
            feature.spec.into();
        let issue = |inner::Issue { criterion, text }| IssueView { criterion, text };
        Self {
            id,
            title,
            instruction,
            category,
            priority,
            agent,
            criteria,
            checks,
            depends_on,
            status: feature.status.into(),
            reason: feature.why,
            blocked_by: feature.blocked_by.map(Into::into),
            attempts: feature.attempts,
            sessions: feature.sessions,
            last_error: feature.last_error,
            summary: feature.summary,
            commit: feature.commit,
            files: feature.files,
            vacuous: feature.vacuous,
            issues: feature.issues.into_iter().map(issue).collect(),
            history: feature.history,
            confidence: feature.confidence,
            answer: feature.answer,
            on_failure: feature.on_failure.into(),
            resource_usage: feature.used.into(),
        }
    }
}

impl From<inner::FeatureSpec> for FeatureSpecView {
    fn from(spec: inner::FeatureSpec) -> Self {
        let criterion = |inner::Criterion { id, text, check }| CriterionView { id, text, check };
        let check = |inner::CheckSpec { name, body }| {
            let (language, body) = match body {
                inner::CheckBody::Python(source) => (CheckLanguage::Python, source),
                inner::CheckBody::Native(name) => (CheckLanguage::Native, name),
            };
            CheckView { name, language, body }
        };
        Self {
            id: spec.id,
            title: spec.title,
            instruction: spec.instruction,
            category: spec.category,
            priority: spec.priority,
            agent: spec.agent,
            criteria: spec.criteria.into_iter().map(criterion).collect(),
            checks: spec.checks.into_iter().map(check).collect(),
            depends_on: spec.depends_on,
        }
    }
}

impl From<FeatureSpecView> for inner::FeatureSpec {
    fn from(spec: FeatureSpecView) -> Self {
        let criterion = |CriterionView { id, text, check }| inner::Criterion { id, text, check };
        let check = |CheckView { name, language, body }| {
            let body = match language {
                CheckLanguage::Python => inner::CheckBody::Python(body),
                CheckLanguage::Native => inner::CheckBody::Native(body),
            };
            inner::CheckSpec { name, body }
        };
        Self {
            id: spec.id,
            title: spec.title,
            instruction: spec.instruction,
            category: spec.category,
            priority: spec.priority,
            agent: spec.agent,
            criteria: spec.criteria.into_iter().map(criterion).collect(),
            checks: spec.checks.into_iter().map(check).collect(),
            depends_on: spec.depends_on,
        }
    }
}

impl From<inner::OnFailure> for OnFailureView {
    fn from(inner: inner::OnFailure) -> Self {
        match inner {
            inner::OnFailure::Retry(times) => Self::Retry(times),
            inner::OnFailure::Skip => Self::Skip,
            inner::OnFailure::Replan => Self::Replan,
            inner::OnFailure::Abort => Self::Abort,
        }
    }
}

impl From<OnFailureView> for inner::OnFailure {
    fn from(outer: OnFailureView) -> Self {
        match outer {
            OnFailureView::Retry(times) => Self::Retry(times),
            OnFailureView::Skip => Self::Skip,
            OnFailureView::Replan => Self::Replan,
            OnFailureView::Abort => Self::Abort,
        }
    }
}

/// A step of a plan.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = PlanStep))]
pub struct PlanStepView {
    /// The specification of its feature.
    pub feature: FeatureSpecView,
    /// The reaction to its failure. Default: one retry.
    #[serde(default)]
    pub on_failure: Option<OnFailureView>,
}

/// A plan that replaces the plan of a planner.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = Plan))]
pub struct PlanView {
    /// Its steps.
    pub steps: Vec<PlanStepView>,
    /// Notes of the author.
    #[serde(default)]
    pub notes: String,
}

impl From<PlanView> for inner::Plan {
    fn from(plan: PlanView) -> Self {
        let step = |PlanStepView { feature, on_failure }| inner::PlanStep {
            spec: feature.into(),
            on_failure: on_failure.map(Into::into).unwrap_or_default(),
        };
        Self { steps: plan.steps.into_iter().map(step).collect(), notes: plan.notes }
    }
}
