//! Projects and runs.

use super::features::FeatureView;
use super::spent::{LedgerDetails, UsageView, WorkUsageView};
use super::words;
use crate::projects::CreatedProject;
use crate::runs::{AffectedRun, CommitLog, OpenQuestion, ProjectSummary, RunSummary, Status};
use longhaul_core::work as inner;
use longhaul_worktree::Logged;
use serde::Serialize;
use std::path::Path;

words! {
    /// Where a run is.
    RunStatus of longhaul_harness::RunStatus as InnerStatus {
        /// It was accepted and has not begun.
        New,
        /// A planner is at work.
        Planning,
        /// Features are worked on.
        Working,
        /// It waits for a person, or for a service until `wakes_at_ms`.
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
    /// Where a project is.
    ProjectStatus of longhaul_core::project::ProjectStatus as InnerProjectStatus {
        /// It has no features yet.
        Initializing,
        /// It is worked on, or waits.
        Active,
        /// A person paused it.
        Paused,
        /// All its features pass.
        Completed,
        /// A person gave it up.
        Abandoned,
    }
}

/// How many are done.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Passing {
    /// Those that pass.
    pub done: usize,
    /// All that were not dropped.
    pub of: usize,
}

impl From<(usize, usize)> for Passing {
    fn from((done, of): (usize, usize)) -> Self {
        Self { done, of }
    }
}

/// A project in short.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Project))]
pub struct ProjectView {
    /// Its name.
    pub project: String,
    /// Where it is.
    pub directory: String,
    /// That of its newest run.
    pub status: ProjectStatus,
    /// Features of its newest run.
    pub passing: Passing,
    /// Its newest run.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// How many runs it had.
    pub runs: usize,
    /// When it was made, or first run, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// When something last happened in its newest run, likewise.
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

/// A project that was made.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProjectMade {
    /// Its name.
    pub project: String,
    /// Where it is.
    pub directory: String,
    /// Whether its git repository was made, too.
    pub repository_is_new: bool,
}

impl From<CreatedProject> for ProjectMade {
    fn from(inner: CreatedProject) -> Self {
        let CreatedProject { project, directory, repository_is_new } = inner;
        Self { project, directory: text(&directory), repository_is_new }
    }
}

/// What a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// It works on the features of a project and commits them.
    Project,
    /// It answers a question and commits nothing.
    Ask,
}

/// A run in short.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Run))]
pub struct RunView {
    /// Its name.
    pub run: String,
    /// Its project.
    pub project: String,
    /// Where that is.
    pub directory: String,
    /// What it is.
    pub kind: RunKind,
    /// Where it is.
    pub status: RunStatus,
    /// What that means for its project.
    pub project_status: ProjectStatus,
    /// Its features.
    pub passing: Passing,
    /// When it was asked for, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// When something last happened, likewise.
    pub last_ms: u64,
    /// Whether it is being worked on in this moment.
    pub active: bool,
    /// When it tries again by itself, if it waits for a service.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub wakes_at_ms: Option<u64>,
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
            wakes_at_ms: inner.wakes_at_ms,
        }
    }
}

/// What the results of a run come to.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Answer))]
pub struct AnswerView {
    /// The answer: JSON as text.
    pub answer: String,
    /// Between 0 and 1, in the planner's own opinion. Null: it gave no estimate.
    pub confidence: Option<f64>,
    /// Where results contradict each other.
    pub conflicts: Vec<String>,
    /// What is still not known.
    pub unknowns: Vec<String>,
}

impl From<inner::Synthesis> for AnswerView {
    fn from(inner: inner::Synthesis) -> Self {
        let inner::Synthesis { answer, confidence, conflicts, unknowns } = inner;
        Self { answer, confidence, conflicts, unknowns }
    }
}

/// A run at length.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunDetails {
    /// In short.
    #[serde(flatten)]
    pub summary: RunView,
    /// The branch that it commits to; empty for an ask.
    pub branch: String,
    /// What is asked, if it is an ask.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub asked: Option<String>,
    /// What the results come to, once there is an answer.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub answer: Option<AnswerView>,
    /// Why it waits or how it ended, in one line.
    pub why: String,
    /// The question that it waits with, if one is about an effect: the first of `questions`.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub question: Option<String>,
    /// The questions about effects that it waits with.
    pub questions: Vec<OpenQuestion>,
    /// Its features, which with `depends_on` are its plan.
    pub features: Vec<FeatureView>,
    /// What it used.
    pub used: WorkUsageView,
    /// What it spent, and what it still may.
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
            asked: inner.asked,
            answer: inner.synthesis.map(Into::into),
            why: inner.why,
            question: inner.question,
            questions: inner.questions,
            features: inner.features.into_iter().map(Into::into).collect(),
            used: inner.used.into(),
            ledger: inner.ledger.into(),
            cost_microdollars_max: inner.cost_microdollars_max,
            tokens_max: inner.tokens_max,
        }
    }
}

/// The run that something was done to.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunNamed {
    /// Its name.
    pub run: String,
}

impl From<AffectedRun> for RunNamed {
    fn from(affected: AffectedRun) -> Self {
        Self { run: affected.run.to_string() }
    }
}

/// A commit.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Commit {
    /// 40 hexadecimal digits.
    pub commit: String,
    /// When it was made, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The first line of its message.
    pub subject: String,
    /// The feature that it is of; null when a person made it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub feature: Option<String>,
    /// What became of the feature with it.
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
pub struct Log {
    /// The branch.
    pub branch: String,
    /// The commit that the run began at.
    pub base: String,
    /// Newest first.
    pub commits: Vec<Commit>,
}

impl From<CommitLog> for Log {
    fn from(inner: CommitLog) -> Self {
        let CommitLog { branch, base, commits } = inner;
        Self { branch, base, commits: commits.into_iter().map(Into::into).collect() }
    }
}

/// What one run cost.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunCost {
    /// Its name.
    pub run: String,
    /// Its project.
    pub project: String,
    /// Where it is.
    pub status: RunStatus,
    /// When it was asked for, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// Tokens and money.
    pub usage: UsageView,
    /// What calls of models that were cut off may have cost at most, beside that.
    pub cut_off: UsageView,
    /// Answers of models.
    pub model_calls: u32,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Instructions, in wasmtime's fuel.
    pub fuel: u64,
    /// How long it worked, in milliseconds.
    pub wall_ms: u64,
}

/// What runs cost, a page of them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Costs {
    /// Of all runs that were asked for, and not only of those on the page.
    pub sum: UsageView,
    /// Newest first.
    pub items: Vec<RunCost>,
    /// Runs that were asked for.
    pub total: usize,
    /// Runs of a page.
    pub limit: usize,
    /// Runs before this page.
    pub offset: usize,
}

/// A path as text; what is not UTF-8 is replaced.
pub fn text(path: &Path) -> String {
    path.display().to_string()
}
