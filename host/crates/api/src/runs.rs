//! Projects and runs as surfaces see them. Looks nothing up: whoever answers fills these in.

use longhaul_core::event::WorkUsage;
use longhaul_core::journal::Resolution;
use longhaul_core::project::ProjectStatus;
use longhaul_core::work::{Plan, Synthesis};
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::{Dispatch, Feature, RunStatus};
use longhaul_models::set::ModelOptions;
use longhaul_records::ledger::LedgerView;
use longhaul_worktree::Logged;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A run, by its name, by the beginning of it, or as the newest one of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunRef {
    /// The name or its beginning.
    Named(String),
    /// The newest run of the project in this directory.
    NewestIn(PathBuf),
}

/// Begin a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BeginRun {
    /// The project.
    pub directory: PathBuf,
    /// What is done to its models.
    pub models: ModelOptions,
    /// The plan that it follows; none: a planner is asked.
    #[serde(default)]
    pub plan: Option<Plan>,
    /// Pause when the plan is there.
    pub plan_only: bool,
    /// Pause after so many sessions.
    #[serde(default)]
    pub sessions: Option<u32>,
    /// Also when the project was given up.
    #[serde(default)]
    pub again: bool,
}

/// List the runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListRuns {}

/// Show a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowRun {
    /// The run.
    pub run: RunRef,
}

/// Correct what is worked on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SteerRun {
    /// The run.
    pub run: RunRef,
    /// The task or feature; none: all that is worked on.
    pub task: Option<String>,
    /// What the agent is told.
    pub text: String,
}

/// Stop the work on one task or feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CancelTask {
    /// The run.
    pub run: RunRef,
    /// The task or feature.
    pub task: String,
}

/// Go on with a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResumeRun {
    /// The run.
    pub run: RunRef,
    /// Try failing features again.
    pub retry_failing: bool,
    /// Pause after so many sessions. None: one that broke off goes as far as it was asked to, others to their end.
    #[serde(default)]
    pub sessions: Option<u32>,
}

/// Read the goal's file of a run again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RereadGoal {
    /// The run.
    pub run: RunRef,
}

/// Pause a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PauseRun {
    /// The run.
    pub run: RunRef,
}

/// Give a run up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AbandonRun {
    /// The run.
    pub run: RunRef,
    /// Why.
    pub reason: String,
}

/// Answer a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRun {
    /// The run.
    pub run: RunRef,
    /// The feature that is blocked; none when the run waits.
    pub feature: Option<String>,
    /// The question about an effect, by its name.
    #[serde(default)]
    pub question: Option<String>,
    /// What is known of the effect that is asked about, if one is.
    pub resolution: Option<Resolution>,
    /// In words.
    pub text: String,
}

/// Take back what was answered about an effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TakeBackAnswer {
    /// The run.
    pub run: RunRef,
    /// The feature whose work asked.
    pub feature: Option<String>,
    /// The question, by its name.
    pub question: Option<String>,
}

/// Go back to an earlier commit of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RevertRun {
    /// The run.
    pub run: RunRef,
    /// The commit, or the beginning of its name.
    pub to: String,
    /// Keep what is in no commit instead of refusing.
    pub stash: bool,
}

/// List the commits of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCommits {
    /// The run.
    pub run: RunRef,
    /// At most so many.
    pub limit: usize,
    /// Those that reverts took back, in place of those of the branch.
    pub reverted: bool,
}

impl BeginRun {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        with_models(&self.directory, &self.models)
    }
}

/// The run that something was done to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AffectedRun {
    /// Its name.
    pub run: RunId,
}

/// What is asked, and of whom.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AskRequest {
    /// The project, whose `longhaul.toml` says which agents there are. It needs no repository.
    pub directory: PathBuf,
    /// What is asked. At most 1 MiB.
    pub goal: String,
    /// Who answers.
    pub dispatch: Dispatch,
    /// The tasks that are to be done; none: a planner says which, if it comes to a plan.
    #[serde(default)]
    pub plan: Option<Plan>,
    /// What is done to its models.
    #[serde(default)]
    pub models: ModelOptions,
}

impl AskRequest {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        with_models(&self.directory, &self.models)
    }
}

fn with_models<'a>(directory: &'a Path, models: &'a ModelOptions) -> Vec<&'a Path> {
    let files = models.replay_from.iter().chain(&models.record_to).map(PathBuf::as_path);
    std::iter::once(directory).chain(files).collect()
}

/// A goal that was read again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RereadOutcome {
    /// The run.
    pub run: RunId,
    /// What changed, one line each.
    pub changes: Vec<String>,
}

/// The commits of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommitLog {
    /// The branch.
    pub branch: String,
    /// The commit that the run began at.
    pub base: String,
    /// Newest first.
    pub commits: Vec<Logged>,
}

/// Runs in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunList {
    /// Oldest first.
    pub runs: Vec<RunSummary>,
}

/// A project in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectSummary {
    /// Its name.
    pub project: String,
    /// Where it is.
    pub directory: PathBuf,
    /// That of its newest run.
    pub status: ProjectStatus,
    /// Features that pass, of all that were not dropped, in its newest run.
    pub passing: (usize, usize),
    /// Its newest run.
    pub run: Option<RunId>,
    /// How many runs it had.
    pub runs: usize,
    /// When it was made, or first run, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// When something last happened in its newest run.
    pub last_ms: u64,
}

/// A run in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its name.
    pub run: RunId,
    /// Its project.
    pub project: String,
    /// Where that is.
    pub directory: PathBuf,
    /// Where the run is.
    pub status: RunStatus,
    /// What that means for its project.
    pub project_status: ProjectStatus,
    /// Features that pass, of all that were not dropped.
    pub passing: (usize, usize),
    /// When it was asked for.
    pub created_ms: u64,
    /// When something last happened in it, in milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    pub last_ms: u64,
    /// Whether it is an ask, which commits nothing.
    #[serde(default)]
    pub is_ask: bool,
    /// Whether it is being worked on in this moment.
    pub active: bool,
    /// When it tries again by itself, in milliseconds since 1970-01-01 UTC, if it waits for a service.
    pub wakes_at_ms: Option<u64>,
}

/// A run at length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// In short.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The branch that it commits to; empty for an ask.
    pub branch: String,
    /// What is asked, if it is an ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// What the results come to, once there is an answer.
    #[serde(default)]
    pub synthesis: Option<Synthesis>,
    /// What it spent, and what it still may.
    #[serde(default)]
    pub ledger: LedgerView,
    /// Why it waits or how it ended, in one line.
    pub why: String,
    /// The question that it waits with, if one is about an effect: the first of `questions`.
    pub question: Option<String>,
    /// The questions about effects that it waits with.
    #[serde(default)]
    pub questions: Vec<OpenQuestion>,
    /// What a person types for each of its other waits for one.
    #[serde(default)]
    pub answer_with: Vec<String>,
    /// Its features.
    pub features: Vec<Feature>,
    /// What it used.
    pub used: WorkUsage,
    /// The cap on money, in millionths of a US dollar, if one is set.
    pub cost_microdollars_max: Option<u64>,
    /// The cap on tokens: the run's own, or what its invocations may use together.
    pub tokens_max: u64,
}

/// A question about an effect whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OpenQuestion {
    /// Its id, for `question` of an answer.
    pub id: String,
    /// The feature whose work asks; null: the planner asks.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub feature: Option<String>,
    /// The question.
    pub text: String,
    /// The command that answers it, in its three forms.
    pub answer_with: String,
}

impl From<longhaul_core::journal::EffectQuestion> for OpenQuestion {
    fn from(of: longhaul_core::journal::EffectQuestion) -> Self {
        let feature = of.invocation.feature().map(str::to_owned);
        Self { id: of.id(), feature, answer_with: of.answer_with(), text: of.text }
    }
}

/// Who carried out an invocation, and when.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CarriedInvocation {
    /// Which.
    pub invocation: InvocationId,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub table: String,
    /// The plugin.
    pub plugin: String,
    /// When it first began, in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// When it ended; none while it has not.
    pub until_ms: Option<u64>,
}

/// The result of the checks of one feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RecheckedFeature))]
pub struct FeatureRecheck {
    /// The feature.
    pub feature: String,
    /// The checks that were run.
    pub checks: Vec<String>,
    /// Those of them that failed.
    pub failed: Vec<String>,
    /// The reason why the checks could not run; the feature passes as before.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub not_run: Option<String>,
}

/// What a replay gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// Which invocation.
    pub invocation: InvocationId,
    /// Calls that were answered from the journal.
    pub calls: u32,
    /// Fuel that the journal holds, and that the replay used.
    pub fuel: (u64, u64),
    /// Whether result, calls and fuel are the same.
    pub same: bool,
    /// What differs, in one line.
    pub difference: Option<String>,
}

/// The result of a revert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Reverted))]
pub struct RevertOutcome {
    /// The run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
    /// The commit of the branch before.
    pub from: String,
    /// The commit of branch and tree now.
    pub to: String,
    /// The commits that were left behind, newest first.
    pub left: Vec<String>,
    /// The ref that keeps them; null if the branch did not move.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub kept_as: Option<String>,
    /// Features that no longer pass, or are no longer worked on.
    pub features: Vec<String>,
    /// The names of kept uncommitted work, one for each tree that had some.
    pub stashed: Vec<String>,
}

impl RevertOutcome {
    /// Whether there was nothing to do.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.left.is_empty() && self.stashed.is_empty()
    }
}
