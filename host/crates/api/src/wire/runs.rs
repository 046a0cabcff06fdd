//! Projects and runs.

use super::features::FeatureView;
use super::usage::{LedgerDetails, UsageView, WorkUsageView};
use super::words;
use crate::projects::CreatedProject;
use crate::runs::{CommitLog, CostSum, ForkOrigin, OpenQuestion, ProjectSummary, RunSummary, Status};
use longhaul_core::work as inner;
use longhaul_worktree::Logged;
use serde::Serialize;
use std::path::Path;

words! {
    /// The status of a run.
    RunStatus of longhaul_harness::RunStatus as InnerStatus {
        /// It was accepted and has not begun.
        New,
        /// A planner works.
        Planning,
        /// Agents work on its features.
        Working,
        /// It waits for a person, or for a service until `next_wake_ms`.
        Parked,
        /// A person paused it.
        Paused,
        /// It ended, and all features pass.
        Completed,
        /// It ended, and some features do not pass.
        Incomplete,
        /// It ended with an error.
        Failed,
        /// A person gave it up.
        Abandoned,
    }
}

words! {
    /// The status of a project.
    ProjectStatus of longhaul_core::project::ProjectStatus as InnerProjectStatus {
        /// It has no features yet.
        Initializing,
        /// Its newest run works, or waits.
        Active,
        /// A person paused it.
        Paused,
        /// All its features pass.
        Completed,
        /// A person gave it up.
        Abandoned,
    }
}

/// Number of features that pass.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = PassingCount))]
pub struct Passing {
    /// Features that pass.
    pub done: usize,
    /// All features that were not dropped.
    pub of: usize,
}

impl From<(usize, usize)> for Passing {
    fn from((done, of): (usize, usize)) -> Self {
        Self { done, of }
    }
}

/// A summary of a project.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Project))]
pub struct ProjectView {
    /// Its name.
    pub project: String,
    /// Its directory.
    pub directory: String,
    /// The status of its newest run.
    pub status: ProjectStatus,
    /// Number of features of its newest run that pass.
    pub passing: Passing,
    /// Its newest run.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// Number of its runs.
    pub runs: usize,
    /// Time when it was made, or first run, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// Time of the last event of its newest run, in milliseconds since 1970-01-01 UTC.
    pub last_ms: u64,
}

impl From<ProjectSummary> for ProjectView {
    fn from(inner: ProjectSummary) -> Self {
        Self {
            project: inner.project,
            directory: text(&inner.directory),
            status: inner.status.into(),
            passing: inner.passing.into(),
            run: inner.run.map(|run| run.to_string()),
            runs: inner.runs,
            created_ms: inner.created_ms,
            last_ms: inner.last_ms,
        }
    }
}

/// A new project.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = CreatedProject))]
pub struct ProjectMade {
    /// Its name.
    pub project: String,
    /// Its directory.
    pub directory: String,
    /// True when its git repository was made, too.
    pub repository_is_new: bool,
}

impl From<CreatedProject> for ProjectMade {
    fn from(inner: CreatedProject) -> Self {
        let CreatedProject { project, directory, repository_is_new } = inner;
        Self { project, directory: text(&directory), repository_is_new }
    }
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// It works on the features of a project and commits them.
    Project,
    /// It answers a question and commits nothing.
    Ask,
}

/// A summary of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Run))]
pub struct RunView {
    /// Its name.
    pub run: String,
    /// Its project.
    pub project: String,
    /// The directory of its project.
    pub directory: String,
    /// Its kind.
    pub kind: RunKind,
    /// Its status.
    pub status: RunStatus,
    /// The status of its project that follows from it.
    pub project_status: ProjectStatus,
    /// Number of its features that pass.
    pub passing: Passing,
    /// Time of its request, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// Time of its last event, in milliseconds since 1970-01-01 UTC.
    pub last_ms: u64,
    /// True when it is worked on at this moment.
    pub active: bool,
    /// Time of its next attempt, in milliseconds since 1970-01-01 UTC, if it waits for a service.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub next_wake_ms: Option<u64>,
    /// Its place among the runs that wait until fewer work at once, from 1; null: it does not wait there.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub queue_place: Option<u32>,
    /// Time at which it was archived, in milliseconds since 1970-01-01 UTC; null: it is not in the archive.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub archived_ms: Option<u64>,
    /// Its question or its goal, in one line.
    pub title: String,
    /// The agents of its features; before there are features, the agents of its project.
    pub agents: Vec<String>,
    /// Tokens and money in all attempts.
    pub usage: UsageView,
    /// Working time, in milliseconds.
    pub wall_ms: u64,
    /// The run that it was forked from; null: it is no fork.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub forked_from: Option<String>,
}

impl From<RunSummary> for RunView {
    fn from(inner: RunSummary) -> Self {
        Self {
            run: inner.run.to_string(),
            project: inner.project,
            directory: text(&inner.directory),
            kind: if inner.is_ask { RunKind::Ask } else { RunKind::Project },
            status: inner.status.into(),
            project_status: inner.project_status.into(),
            passing: inner.passing.into(),
            created_ms: inner.created_ms,
            last_ms: inner.last_ms,
            active: inner.active,
            next_wake_ms: inner.wakes_at_ms,
            queue_place: inner.queue_place,
            archived_ms: inner.archived_ms,
            title: inner.title,
            agents: inner.agents,
            usage: inner.spent.usage.into(),
            wall_ms: inner.wall_ms,
            forked_from: inner.forked_from.map(|parent| parent.to_string()),
        }
    }
}

/// The answer of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Answer))]
pub struct AnswerView {
    /// The answer: JSON as text.
    pub answer: String,
    /// The planner's confidence, from 0 to 1; null if it gave no estimate.
    pub confidence: Option<f64>,
    /// Contradictions between results.
    pub conflicts: Vec<String>,
    /// Open questions.
    pub unknowns: Vec<String>,
}

impl From<inner::Synthesis> for AnswerView {
    fn from(inner: inner::Synthesis) -> Self {
        let inner::Synthesis { answer, confidence, conflicts, unknowns } = inner;
        Self { answer, confidence, conflicts, unknowns }
    }
}

/// A run with its features and its ledger.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunDetails {
    /// Its summary.
    #[serde(flatten)]
    pub summary: RunView,
    /// The branch of its commits; empty for an ask.
    pub branch: String,
    /// Its origin, if it is a fork; null: it is none.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub fork: Option<ForkOriginView>,
    /// The goal of the request, if it is an ask.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub goal: Option<String>,
    /// Its answer, once there is one.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub answer: Option<AnswerView>,
    /// The reason why it waits or ended, in one line.
    pub reason: String,
    /// The question about an effect that it waits for: the first of `questions`.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub question: Option<String>,
    /// The questions about effects that it waits for.
    pub questions: Vec<OpenQuestion>,
    /// Its features; with `depends_on` they are its plan.
    pub features: Vec<FeatureView>,
    /// Its usage.
    pub resource_usage: WorkUsageView,
    /// Its usage in all attempts, and its caps.
    pub ledger: LedgerDetails,
    /// The cap on money, in millionths of a US dollar.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub cost_microdollars_max: Option<u64>,
    /// The cap on tokens: the run's own, or what its invocations may use together.
    pub tokens_max: u64,
}

impl From<Status> for RunDetails {
    fn from(inner: Status) -> Self {
        Self {
            summary: inner.summary.into(),
            branch: inner.branch,
            fork: inner.fork.map(Into::into),
            goal: inner.asked,
            answer: inner.synthesis.map(Into::into),
            reason: inner.reason,
            question: inner.question,
            questions: inner.questions,
            features: inner.features.into_iter().map(Into::into).collect(),
            resource_usage: inner.resource_usage.into(),
            ledger: inner.ledger.into(),
            cost_microdollars_max: inner.cost_microdollars_max,
            tokens_max: inner.tokens_max,
        }
    }
}

/// A commit.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Commit {
    /// Its name: 40 hexadecimal digits.
    pub commit: String,
    /// Time of the commit, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The first line of its message.
    pub subject: String,
    /// The feature of the commit; null if a person made it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub feature: Option<String>,
    /// The result of the feature with this commit.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub outcome: Option<String>,
    /// The run that made it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
}

impl From<Logged> for Commit {
    fn from(inner: Logged) -> Self {
        let Logged { commit, at_ms, subject, feature, outcome, run } = inner;
        Self { commit, at_ms, subject, feature, outcome, run }
    }
}

/// The commits of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = CommitLog))]
pub struct Log {
    /// The branch.
    pub branch: String,
    /// The commit that the run began at.
    pub base: String,
    /// The commits, the newest first.
    pub commits: Vec<Commit>,
}

impl From<CommitLog> for Log {
    fn from(inner: CommitLog) -> Self {
        let CommitLog { branch, base, commits } = inner;
        Self { branch, base, commits: commits.into_iter().map(Into::into).collect() }
    }
}

/// The cost of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunCost {
    /// Its name.
    pub run: String,
    /// Its project.
    pub project: String,
    /// Its status.
    pub status: RunStatus,
    /// Time of its request, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// Tokens and money.
    pub usage: UsageView,
    /// Calls of models that were interrupted, and may have been paid although their answers were lost.
    pub possibly_paid_twice: u32,
    /// The most that these calls may have cost beside that.
    pub interrupted_usage_max: UsageView,
    /// Replies of models.
    pub model_calls: u32,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Fuel of its components.
    pub fuel: u64,
    /// Working time, in milliseconds.
    pub wall_ms: u64,
    /// The cap on its cost, in millionths of a US dollar; null: no cap.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub budget_microdollars: Option<u64>,
}

impl From<RunSummary> for RunCost {
    fn from(inner: RunSummary) -> Self {
        Self {
            run: inner.run.to_string(),
            project: inner.project,
            status: inner.status.into(),
            created_ms: inner.created_ms,
            usage: inner.spent.usage.into(),
            possibly_paid_twice: inner.spent.possibly_paid_twice,
            interrupted_usage_max: inner.spent.cut_off.into(),
            model_calls: inner.spent.model_calls,
            tool_calls: inner.spent.tool_calls,
            fuel: inner.spent.fuel,
            wall_ms: inner.wall_ms,
            budget_microdollars: inner.budget_microdollars,
        }
    }
}

/// A page of the costs of runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Costs {
    /// The sum over all matching runs, not only over those of the page.
    pub sum: UsageView,
    /// The sums by project, the name first in the alphabet first.
    pub by_project: Vec<NamedCost>,
    /// The usage of models by their names in longhaul.toml.
    pub by_model: Vec<NamedCost>,
    /// The usage of models by agent.
    pub by_agent: Vec<NamedCost>,
    /// The usage of models by day in UTC, the oldest first.
    pub by_day: Vec<NamedCost>,
    /// The costs, the newest run first.
    pub items: Vec<RunCost>,
    /// Number of matching runs.
    pub total: usize,
    /// Runs of a page.
    pub limit: usize,
    /// Runs before this page.
    pub offset: usize,
}

/// A sum of costs under one name.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NamedCost {
    /// The project, the model, the agent, or the day, such as `2026-01-31`.
    pub name: String,
    /// Number of runs of a project; of the others, of replies of models.
    pub count: u64,
    /// Tokens and money.
    pub usage: UsageView,
}

impl From<CostSum> for NamedCost {
    fn from(CostSum { name, count, usage }: CostSum) -> Self {
        Self { name, count, usage: usage.into() }
    }
}

/// A path as text; what is not UTF-8 is replaced.
fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The origin of a run that is a fork.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ForkOrigin))]
pub struct ForkOriginView {
    /// The other run.
    pub parent: String,
    /// The point, as it was named.
    pub at: String,
    /// The number of the last event before the point.
    pub event: u64,
    /// Time of the point, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The usage of the other run up to the point, which does not count for the fork.
    pub inherited_usage: WorkUsageView,
}

impl From<ForkOrigin> for ForkOriginView {
    fn from(ForkOrigin { parent, at, event, at_ms, inherited }: ForkOrigin) -> Self {
        Self { parent: parent.to_string(), at, event, at_ms, inherited_usage: inherited.into() }
    }
}
