//! What a surface can ask for, and what it is answered: one list each, the same for all surfaces.

use super::{
    AccessToken, CheckpointAsk, Memory, MemoryAsk, Question, Rechecked, Replayed, SecurityAsk, SecurityDone, Shown,
    TokenAsk, Trajectory, UpkeepAsk, UpkeepDone, Wanted,
};
use crate::agents::{AgentAsk, AgentSaid, ScheduleAsk, ScheduleSaid};
use crate::check::{Finding, Overview};
use crate::checkpoint::{Checkpoint, Saved, Snapshot};
use crate::graphs::GraphAsk;
use crate::resources::{ResourceAsk, Resources};
use crate::run::Reverted;
use longhaul_approval::{Approval, RunRule};
use longhaul_core::decision::{Hit, Outcome};
use longhaul_core::event::{RunEvent, Used};
use longhaul_core::graph;
use longhaul_core::journal::{Entry, Finished, Resolution};
use longhaul_core::project::ProjectStatus;
use longhaul_core::work::{FeatureSpec, Plan, Synthesis};
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::{Feature, RunStatus};
use longhaul_mcp::Definition;
use longhaul_models::set::ModelOptions;
use longhaul_records::ledger::LedgerView;
use longhaul_records::proposals::Proposal;
use longhaul_resources::Sample;
use longhaul_worktree::Logged;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Something that is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// Start a run of the project in a directory.
    Run {
        /// The project.
        directory: PathBuf,
        /// What is done to its models.
        models: ModelOptions,
        /// The plan that it follows; none: a planner is asked.
        #[serde(default)]
        plan: Option<Plan>,
        /// Pause when the plan is there.
        plan_only: bool,
        /// Pause after so many sessions.
        #[serde(default)]
        sessions: Option<u32>,
        /// Also when the project was given up.
        #[serde(default)]
        again: bool,
    },
    /// Look for what is wrong with a project, without asking a model.
    Check {
        /// The project.
        directory: PathBuf,
        /// What is done to its models.
        #[serde(default)]
        models: ModelOptions,
    },
    /// Start an ask: a run without a repository.
    Ask {
        /// What is asked.
        question: Box<Question>,
    },
    /// Correct what is worked on; the agent hears it at its next step.
    Steer {
        /// Which.
        run: Which,
        /// The task or feature; none: all that is worked on.
        task: Option<String>,
        /// What it is told.
        text: String,
    },
    /// Stop the work on one task or feature; a resume takes it up again.
    CancelTask {
        /// Which.
        run: Which,
        /// The task or feature.
        task: String,
    },
    /// Go on with a run.
    Resume {
        /// Which.
        run: Which,
        /// Try failing features again.
        retry_failing: bool,
        /// Pause after so many sessions. None: one that broke off goes as far as it was asked to, others to their end.
        #[serde(default)]
        sessions: Option<u32>,
    },
    /// Read the goal's file of a run again: features are added, changed and dropped; what passes stays.
    RereadGoal {
        /// Which.
        run: Which,
    },
    /// Start no new work and stop the work under way; it goes on from its journal later.
    Pause {
        /// Which.
        run: Which,
    },
    /// Give a run up.
    Abandon {
        /// Which.
        run: Which,
        /// Why.
        reason: String,
    },
    /// Answer a question.
    Answer {
        /// Which.
        run: Which,
        /// The feature that is blocked; none when the run waits.
        feature: Option<String>,
        /// The question about an effect, by its name.
        #[serde(default)]
        question: Option<String>,
        /// What is known of the effect that is asked about, if one is.
        resolution: Option<Resolution>,
        /// In words.
        text: String,
    },
    /// Take back what was answered about an effect, as long as nobody acted on it.
    TakeBackAnswer {
        /// Which.
        run: Which,
        /// The feature whose work asked.
        feature: Option<String>,
        /// The question, by its name.
        question: Option<String>,
    },
    /// Go back to an earlier commit of a run that is not working.
    Revert {
        /// Which.
        run: Which,
        /// The commit, or the beginning of its name.
        to: String,
        /// Keep what is in no commit instead of refusing.
        stash: bool,
    },
    /// The commits of a run.
    Log {
        /// Which.
        run: Which,
        /// At most so many.
        limit: usize,
        /// Those that reverts took back, in place of those of the branch.
        reverted: bool,
    },
    /// Run the checks of features that pass once more.
    Recheck {
        /// Which.
        run: Which,
        /// Only of this one.
        feature: Option<String>,
    },
    /// What a failing feature, or a revert, left.
    Kept {
        /// Which.
        run: Which,
        /// The feature, or the name that the revert gave it.
        name: String,
    },
    /// Make a project.
    CreateProject {
        /// Where.
        directory: PathBuf,
        /// Its name. Default: the directory's.
        name: Option<String>,
        /// Whether the directory is to be made, or is empty, or is one that holds files already.
        fresh: bool,
    },
    /// Every project.
    Projects,
    /// Backup, check and collection of the data directory.
    Upkeep {
        /// Which.
        wanted: UpkeepAsk,
    },
    /// What is used of the machine, and by whom.
    Resources {
        /// Which part of it.
        wanted: ResourceAsk,
    },
    /// Every run.
    Runs,
    /// One run.
    Status {
        /// Which.
        run: Which,
    },
    /// The invocations of a run, or the entries of one.
    Journal {
        /// Which.
        run: Which,
        /// The invocation, with or without the run's name.
        invocation: Option<String>,
        /// Entries after this one.
        after: u32,
    },
    /// Run finished invocations again from their journals and compare.
    Replay {
        /// Which.
        run: Which,
        /// Only this one.
        invocation: Option<String>,
        /// With this component in place of the pinned one.
        with: Option<PathBuf>,
    },
    /// Events of a run.
    Events {
        /// Which.
        run: Which,
        /// After this number.
        after: u64,
    },
    /// Add a feature.
    AddFeature {
        /// Which.
        run: Which,
        /// The feature.
        spec: FeatureSpec,
    },
    /// Replace what a feature asks for.
    EditFeature {
        /// Which.
        run: Which,
        /// The feature.
        spec: FeatureSpec,
    },
    /// Decisions of the project of a run.
    Decisions {
        /// Which.
        run: Which,
        /// Those that bear on this question, the best first; none: all, the newest first.
        question: Option<String>,
        /// At most so many.
        limit: usize,
    },
    /// One decision.
    Decision {
        /// The run whose project it is.
        run: Which,
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Say what came of a decision.
    JudgeDecision {
        /// The run whose project it is.
        run: Which,
        /// Its id, or the beginning of it.
        id: String,
        /// What came of it.
        outcome: Option<Outcome>,
        /// How good it was, from -1 to 1; what is beyond is cut.
        score: Option<f64>,
        /// What is to be learnt.
        lesson: Option<String>,
    },
    /// Take a feature off the list.
    DropFeature {
        /// Which.
        run: Which,
        /// Its id.
        feature: String,
    },
    /// What agents of a run proposed.
    Proposals {
        /// Which.
        run: Which,
    },
    /// Do what an agent proposed.
    AcceptProposal {
        /// Which.
        run: Which,
        /// Its id.
        proposal: String,
    },
    /// Do not do what an agent proposed.
    RejectProposal {
        /// Which.
        run: Which,
        /// Its id.
        proposal: String,
        /// Why.
        why: String,
    },
    /// Runs as they stand.
    Checkpoints {
        /// What of them.
        wanted: CheckpointAsk,
    },
    /// Graphs of steps of code.
    Graph {
        /// What of them.
        wanted: GraphAsk,
        /// Whoever asks twice, since the owner stopped before it answered, says the same here.
        token: String,
    },
    /// Agents, and what they hand from run to run.
    Agents {
        /// What of them.
        wanted: AgentAsk,
    },
    /// Schedules of agents, and tasks.
    Schedules {
        /// What of them.
        wanted: ScheduleAsk,
    },
    /// What a project remembers of its runs.
    Memory {
        /// A run of the project.
        run: Which,
        /// What of it.
        wanted: MemoryAsk,
    },
    /// What agents were told, said and did, without the messages.
    Trajectories {
        /// The run.
        run: Which,
        /// Which of them.
        wanted: Wanted,
    },
    /// One of them, with its messages.
    Trajectory {
        /// The run.
        run: Which,
        /// The invocation, with or without the run's name.
        invocation: String,
    },
    /// Say what a trajectory is worth.
    AnnotateTrajectory {
        /// The run.
        run: Which,
        /// The invocation, with or without the run's name.
        invocation: String,
        /// From 1, bad, to 5, good; none: as it was.
        rating: Option<u8>,
        /// What the answer should have been; none: as it was.
        correction: Option<String>,
    },
    /// Who carried out each invocation of a run, by the tables of `longhaul.toml`.
    Parts {
        /// Which.
        run: Which,
    },
    /// All runs summed up, for Prometheus.
    Metrics,
    /// What people were asked about calls of tools, and the rules that came of it.
    Approvals {
        /// Which run; none: all.
        run: Option<Which>,
    },
    /// One approval.
    Approval {
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Answer an approval.
    AnswerApproval {
        /// Its id, or the beginning of it.
        id: String,
        /// What the person wrote.
        text: String,
    },
    /// Revoke a rule of a run.
    RevokeRule {
        /// Which.
        run: Which,
        /// The rule.
        rule: String,
    },
    /// Who is let in over HTTP.
    Tokens {
        /// What of them.
        wanted: TokenAsk,
    },
    /// Start an MCP server and look at what it says of its tools.
    DescribeMcp {
        /// The project.
        directory: PathBuf,
        /// The server, by its name in `longhaul.toml`.
        server: String,
    },
    /// The audit log, trust, and which project a checkout is.
    Security {
        /// What.
        wanted: SecurityAsk,
    },
    /// Let an MCP server describe its tools as it does now.
    AcceptMcp {
        /// The project.
        directory: PathBuf,
        /// The server, by its name in `longhaul.toml`.
        server: String,
        /// The digest of what it says now.
        digest: String,
    },
}

/// A run, by its name, by the beginning of it, or as the newest one of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The name or its beginning.
    Named(String),
    /// The newest run of the project in this directory.
    NewestIn(PathBuf),
}

/// What is answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It is done; the run is this one.
    Run {
        /// Its name.
        run: RunId,
    },
    /// A run came from elsewhere.
    Imported {
        /// Its name.
        run: RunId,
        /// Who signed it.
        signer: String,
        /// What the longhaul.toml in it asks for beyond the tree of a run. None of it counts here.
        powers: Vec<String>,
    },
    /// The goal is read again.
    Reread {
        /// The run.
        run: RunId,
        /// What changed, one line each.
        changes: Vec<String>,
    },
    /// What is wrong with a project.
    Checked {
        /// All of it; none: nothing is.
        findings: Vec<Finding>,
        /// What would run.
        overview: Box<Overview>,
    },
    /// A revert is done.
    Reverted(Box<Reverted>),
    /// Commits.
    Log {
        /// The branch.
        branch: String,
        /// The commit that the run began at.
        base: String,
        /// Newest first.
        commits: Vec<Logged>,
    },
    /// What the checks said.
    Rechecked {
        /// Its name.
        run: RunId,
        /// The features that pass, or did.
        features: Vec<Rechecked>,
    },
    /// What was kept.
    Kept {
        /// JSON, or whatever was kept.
        text: String,
    },
    /// A project is made.
    Project {
        /// Its name.
        project: String,
        /// Where it is.
        directory: PathBuf,
        /// Whether its git repository was made, too.
        repository_is_new: bool,
    },
    /// Projects.
    Projects {
        /// The one that something happened to last comes first.
        projects: Vec<ProjectSummary>,
    },
    /// Runs in short.
    Runs {
        /// Oldest first.
        runs: Vec<Summary>,
    },
    /// A run.
    Status(Box<Status>),
    /// The invocations of a run.
    Invocations {
        /// In the order in which they started; a delegation follows the one that asked for it.
        invocations: Vec<InvocationId>,
    },
    /// The entries of an invocation.
    Entries {
        /// Which.
        invocation: InvocationId,
        /// With their numbers.
        entries: Vec<(u32, Entry)>,
        /// How it ended, if it has.
        finished: Option<Finished>,
    },
    /// What replays gave.
    Replayed {
        /// One for each invocation.
        invocations: Vec<Replayed>,
    },
    /// Decisions.
    Decisions {
        /// Each with why it is among them.
        hits: Vec<Hit>,
    },
    /// Events.
    Events {
        /// In order.
        events: Vec<RunEvent>,
    },
    /// Proposals.
    Proposals {
        /// Oldest first, the decided ones included.
        proposals: Vec<Proposal>,
    },
    /// Approvals, oldest first in each run.
    Approvals {
        /// The answered ones included.
        approvals: Vec<Approval>,
        /// The revoked ones included.
        rules: Vec<(RunId, RunRule)>,
    },
    /// An approval has its answer.
    Approved {
        /// With the answer.
        approval: Box<Approval>,
        /// What the answer allows from now on.
        rule: Option<RunRule>,
        /// Whether its run is worked on in this moment.
        active: bool,
    },
    /// Where runs can be gone on from.
    Checkpoints {
        /// Positions in journals.
        checkpoints: Vec<Checkpoint>,
        /// What is saved in the data directory.
        saved: Vec<Saved>,
        /// What is on the server.
        shared: Vec<String>,
    },
    /// A run as it stands.
    Snapshot {
        /// All of it.
        snapshot: Box<Snapshot>,
    },
    /// What a graph answers.
    Graph {
        /// To what it was asked.
        said: Box<graph::Answer>,
    },
    /// Graphs in short.
    Graphs {
        /// By name.
        graphs: Vec<graph::Summary>,
    },
    /// What was changed in a graph.
    GraphVersions {
        /// The newest first.
        versions: Vec<graph::Version>,
    },
    /// What is answered of agents.
    Agents {
        /// As it was asked for.
        said: Box<AgentSaid>,
    },
    /// What is answered of schedules and tasks.
    Schedules {
        /// As it was asked for.
        said: Box<ScheduleSaid>,
    },
    /// What is remembered.
    Memories {
        /// In the order of the request.
        memories: Vec<Memory>,
    },
    /// Trajectories.
    Trajectories {
        /// In the order in which they started.
        trajectories: Vec<Trajectory>,
    },
    /// Who carried out what.
    Parts {
        /// In the order in which they started; a delegation follows the one that asked for it.
        parts: Vec<Carried>,
    },
    /// What upkeep came to.
    Upkeep {
        /// What was done.
        done: Box<UpkeepDone>,
    },
    /// What is used of the machine.
    Resources {
        /// Now.
        resources: Box<Resources>,
    },
    /// What was used of it.
    ResourceHistory {
        /// Oldest first.
        samples: Vec<Sample>,
    },
    /// A child is ended.
    ChildEnded {
        /// Processes that went when they were asked.
        asked: usize,
        /// Processes that had to be killed.
        killed: usize,
    },
    /// All runs summed up.
    Metrics {
        /// In Prometheus' text format.
        text: String,
    },
    /// Tokens.
    Tokens {
        /// By name; the one that was removed.
        tokens: Vec<AccessToken>,
    },
    /// A token is made.
    TokenMade {
        /// What is kept of it.
        token: AccessToken,
        /// All of it, for the only time.
        shown: Shown,
    },
    /// What an MCP server says of its tools.
    McpTools {
        /// The digest of all of it, by which it is accepted.
        digest: String,
        /// Each tool.
        tools: Vec<Definition>,
    },
    /// What was asked of the audit log, of trust, or of projects.
    Security {
        /// As it was asked for.
        done: Box<SecurityDone>,
    },
    /// It is accepted.
    Accepted {
        /// The digest.
        digest: String,
    },
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
pub struct Summary {
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
    pub summary: Summary,
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
    pub used: Used,
    /// The cap on money, in millionths of a US dollar, if one is set.
    pub cost_microdollars_max: Option<u64>,
    /// The cap on tokens: the run's own, or what its invocations may use together.
    pub tokens_max: u64,
}

/// A question about an effect whose outcome nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its name.
    pub id: String,
    /// The feature whose work asks; none: the planner's.
    pub feature: Option<String>,
    /// The question.
    pub text: String,
    /// What a person types to answer it: one of three commands.
    pub answer_with: String,
}

impl From<longhaul_core::journal::Question> for OpenQuestion {
    fn from(of: longhaul_core::journal::Question) -> Self {
        let feature = of.invocation.feature().map(str::to_owned);
        Self { id: of.id(), feature, answer_with: of.answer_with(), text: of.text }
    }
}

/// Who carried out an invocation, and when.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
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
