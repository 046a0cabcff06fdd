//! Requests and responses about runs, and the summaries of projects and runs. This module looks nothing up.

use longhaul_core::event::WorkUsage;
use longhaul_core::journal::Resolution;
use longhaul_core::model::Usage;
use longhaul_core::project::ProjectStatus;
use longhaul_core::supervisor::InvocationUsage;
use longhaul_core::work::{Plan, Synthesis};
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::{Dispatch, Feature, RunStatus};
use longhaul_models::set::ModelOptions;
use longhaul_records::ledger::LedgerView;
use longhaul_worktree::Logged;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A reference to a run: its id, a unique beginning of the id, or the newest run of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunRef {
    /// The id, or a unique beginning of it.
    Named(String),
    /// The newest run of the project in this directory.
    NewestIn(PathBuf),
}

/// The run that an operation is about, as its request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunSubject {
    /// The run itself.
    Run(RunRef),
    /// The key of a checkpoint: `RUN`, or `RUN:PART`.
    Checkpoint(String),
    /// The id of an approval, or a unique beginning of it. Its run is that of the call that it is about.
    Approval(String),
}

/// Start a run of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BeginRun {
    /// The directory of the project.
    pub directory: PathBuf,
    /// The options of its models.
    pub models: ModelOptions,
    /// The plan to follow. None: the goal's file or a planner makes one.
    #[serde(default)]
    pub plan: Option<Plan>,
    /// True when the run pauses when the plan exists.
    pub plan_only: bool,
    /// The number of sessions after which the run pauses. None: it does not pause by itself.
    #[serde(default)]
    pub sessions: Option<u32>,
    /// True when a run starts even if the project was abandoned. Default false: it is refused.
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

/// Give guidance to the agents at work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SteerRun {
    /// The run.
    pub run: RunRef,
    /// The id of the task or feature. None: all work in progress.
    pub task: Option<String>,
    /// The guidance for the agent.
    pub text: String,
}

/// Stop the work on one task or feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CancelTask {
    /// The run.
    pub run: RunRef,
    /// The id of the task or feature.
    pub task: String,
}

/// Resume a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResumeRun {
    /// The run.
    pub run: RunRef,
    /// True when failing features are tried again.
    pub retry_failing: bool,
    /// The number of sessions after which the run pauses. None: an interrupted run keeps its own condition, and others
    /// do not pause by themselves.
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

/// Abandon a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AbandonRun {
    /// The run.
    pub run: RunRef,
    /// The reason, for people.
    pub reason: String,
}

/// Archive a run, or take it back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchiveRun {
    /// The run.
    pub run: RunRef,
    /// True: into the archive. False: out of it.
    pub archived: bool,
}

/// Answer a question of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRun {
    /// The run.
    pub run: RunRef,
    /// The id of the blocked feature. None: the run itself waits.
    pub feature: Option<String>,
    /// The id of the question about an effect. None: the only open one, or another kind of question.
    #[serde(default)]
    pub question: Option<String>,
    /// The person's finding about the effect. None: the question is about no effect.
    pub resolution: Option<Resolution>,
    /// The answer in words.
    pub text: String,
}

/// Withdraw the answer to a question about an effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TakeBackAnswer {
    /// The run.
    pub run: RunRef,
    /// The id of the feature whose work asked. None: the run itself asked.
    pub feature: Option<String>,
    /// The id of the question. None: the only answered one.
    pub question: Option<String>,
}

/// Go back to an earlier commit of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RevertRun {
    /// The run.
    pub run: RunRef,
    /// The id of the commit, or a unique beginning of it.
    pub to: String,
    /// True when uncommitted work is kept under a name. False: uncommitted work refuses the revert.
    pub stash: bool,
}

/// List the commits of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCommits {
    /// The run.
    pub run: RunRef,
    /// The most commits to list.
    pub limit: usize,
    /// True: the commits that reverts removed. False: the commits of the branch.
    pub reverted: bool,
}

impl BeginRun {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        with_models(&self.directory, &self.models)
    }
}

/// The run that an operation affected.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RunReference))]
pub struct AffectedRun {
    /// The id of the run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
}

/// Start an ask: a run without a repository.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AskRequest {
    /// The directory of the project, whose `longhaul.toml` configures the agents. It needs no repository.
    pub directory: PathBuf,
    /// The question or task. At most 1 MiB.
    pub goal: String,
    /// The agent, the route or the plan that answers.
    pub dispatch: Dispatch,
    /// The tasks to do. None: a planner makes them where the ask needs a plan.
    #[serde(default)]
    pub plan: Option<Plan>,
    /// The options of its models.
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

/// The changes of a goal that was read again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RereadOutcome {
    /// The id of the run.
    pub run: RunId,
    /// The changes, one line each.
    pub changes: Vec<String>,
}

/// The commits of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommitLog {
    /// The name of the branch.
    pub branch: String,
    /// The id of the commit from which the run started.
    pub base: String,
    /// The commits, the newest first.
    pub commits: Vec<Logged>,
}

/// All runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunList {
    /// The runs, the oldest first.
    pub runs: Vec<RunSummary>,
}

/// List what runs cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListCosts {
    /// The name of the project. None: all projects.
    #[serde(default)]
    pub project: Option<String>,
    /// The most entries of the page.
    pub limit: usize,
    /// The number of entries to skip.
    #[serde(default)]
    pub offset: usize,
}

/// A page of what runs cost, and the sums over all that match.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CostList {
    /// The entries, the newest run first.
    pub runs: Vec<RunSummary>,
    /// The number of runs that match.
    pub total_count: usize,
    /// The sum of their ledgers.
    pub sum: Usage,
    /// The sums of their ledgers by project.
    pub by_project: Vec<CostSum>,
    /// The usage of models by model.
    pub by_model: Vec<CostSum>,
    /// The usage of models by the table of the agent.
    pub by_agent: Vec<CostSum>,
    /// The usage of models by day in UTC, such as `2026-01-31`, the oldest first.
    pub by_day: Vec<CostSum>,
}

/// A sum under one name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CostSum {
    /// The name.
    pub name: String,
    /// The number of runs, or of replies of models.
    pub count: u64,
    /// The tokens and the cost.
    pub usage: Usage,
}

/// A summary of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectSummary {
    /// The name of the project.
    pub project: String,
    /// The directory of the project.
    pub directory: PathBuf,
    /// The status of the project.
    pub status: ProjectStatus,
    /// In its newest run: the number of passing features, and of all features that were not dropped.
    pub passing: (usize, usize),
    /// The id of its newest run. None: it has none.
    pub run: Option<RunId>,
    /// The number of its runs.
    pub runs: usize,
    /// The time of its creation, or of its first run, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time of the latest event of its newest run, in milliseconds since 1970-01-01 UTC.
    pub last_ms: u64,
}

/// A summary of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSummary {
    /// The id of the run.
    pub run: RunId,
    /// The name of its project.
    pub project: String,
    /// The directory of its project.
    pub directory: PathBuf,
    /// The status of the run.
    pub status: RunStatus,
    /// The status of its project as far as this run decides it.
    pub project_status: ProjectStatus,
    /// The number of passing features, and of all features that were not dropped.
    pub passing: (usize, usize),
    /// The time of its request, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time of its latest event, in milliseconds since 1970-01-01 UTC.
    #[serde(default)]
    pub last_ms: u64,
    /// True when it is an ask, which has no repository and commits nothing.
    #[serde(default)]
    pub is_ask: bool,
    /// True when a process works on it now.
    pub active: bool,
    /// The time of its next automatic attempt, in milliseconds since 1970-01-01 UTC. None: it does not wait for a
    /// service.
    pub wakes_at_ms: Option<u64>,
    /// Its place among the runs that wait for their turn, from 1. None: it does not wait there.
    #[serde(default)]
    pub queue_place: Option<u32>,
    /// The time from which it waits, or waited when its process died, in milliseconds since 1970-01-01 UTC. None: it
    /// does not wait for its turn.
    #[serde(default)]
    pub queued_ms: Option<u64>,
    /// The time at which it was archived, in milliseconds since 1970-01-01 UTC. None: it is not in the archive.
    #[serde(default)]
    pub archived_ms: Option<u64>,
    /// The question of an ask, or the goal, in one line.
    #[serde(default)]
    pub title: String,
    /// The agents of its features, by name. Before there are features: the agents of its project.
    #[serde(default)]
    pub agents: Vec<String>,
    /// The usage of all its work, in all attempts.
    #[serde(default)]
    pub spent: InvocationUsage,
    /// The time that it worked, in milliseconds.
    #[serde(default)]
    pub wall_ms: u64,
    /// The cap on its cost, in millionths of a US dollar. None: there is none.
    #[serde(default)]
    pub budget_microdollars: Option<u64>,
    /// The run that it was forked from. None: it is no fork.
    #[serde(default)]
    pub forked_from: Option<RunId>,
}

/// The origin of a run that is a fork.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkOrigin {
    /// The other run.
    pub parent: RunId,
    /// The point, as it was named.
    pub at: String,
    /// The number of the last event before the point.
    pub event: u64,
    /// The time of the point, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The usage of the other run up to the point, which does not count for the fork.
    pub inherited: WorkUsage,
}

/// A run with its details.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The summary of the run.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The branch that it commits to. Empty for an ask.
    pub branch: String,
    /// Its origin, if it is a fork.
    #[serde(default)]
    pub fork: Option<ForkOrigin>,
    /// The question or task of an ask. None: it is no ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The answer to an ask. None: there is none yet.
    #[serde(default)]
    pub synthesis: Option<Synthesis>,
    /// The used and the remaining budget.
    #[serde(default)]
    pub ledger: LedgerView,
    /// The reason for which it waits or ended, in one line.
    pub reason: String,
    /// The first of `questions`. None: there is none.
    pub question: Option<String>,
    /// The open questions about effects.
    #[serde(default)]
    pub questions: Vec<OpenQuestion>,
    /// The command that ends each of its other waits for a person.
    #[serde(default)]
    pub answer_with: Vec<String>,
    /// The features of the run.
    pub features: Vec<Feature>,
    /// The resources that the run used.
    pub resource_usage: WorkUsage,
    /// The limit of its cost, in millionths of a US dollar. None: there is none.
    pub cost_microdollars_max: Option<u64>,
    /// The limit of its tokens: that of the run, or that of its invocations together.
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
    pub answer_command: String,
}

impl From<longhaul_core::journal::EffectQuestion> for OpenQuestion {
    fn from(of: longhaul_core::journal::EffectQuestion) -> Self {
        let feature = of.invocation.feature().map(str::to_owned);
        Self { id: of.id(), feature, answer_command: of.answer_with(), text: of.text }
    }
}

/// The plugin and the times of an invocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CarriedInvocation {
    /// The id of the invocation.
    pub invocation: InvocationId,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub table: String,
    /// The name of the plugin.
    pub plugin: String,
    /// The time of its first start, in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// The time of its end, in milliseconds since 1970-01-01 UTC. None: it has not ended.
    pub until_ms: Option<u64>,
}

/// The result of the checks of one feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FeatureRecheck {
    /// The id of the feature.
    pub feature: String,
    /// The names of the checks that ran.
    pub checks: Vec<String>,
    /// The names of the checks that failed.
    pub failed: Vec<String>,
    /// The reason why the checks could not run; the feature passes as before.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// The id of the invocation.
    pub invocation: InvocationId,
    /// The number of calls that the journal answered.
    pub calls: u32,
    /// The fuel in the journal, and the fuel of the replay.
    pub fuel: (u64, u64),
    /// True when result, calls and fuel are the same.
    pub same: bool,
    /// The first difference, in one line. None: there is none.
    pub difference: Option<String>,
}

/// The result of a revert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RevertOutcome {
    /// The run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
    /// The commit of the branch before.
    pub from: String,
    /// The commit of branch and tree now.
    pub to: String,
    /// The ids of the commits that the branch no longer has, the newest first.
    pub left: Vec<String>,
    /// The ref that keeps them; null if the branch did not move.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub kept_as: Option<String>,
    /// The ids of the features that no longer pass, or whose work was discarded.
    pub features: Vec<String>,
    /// The names of kept uncommitted work, one for each tree that had some.
    pub stashed: Vec<String>,
}

impl RevertOutcome {
    /// True when the revert changed nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.left.is_empty() && self.stashed.is_empty()
    }
}
