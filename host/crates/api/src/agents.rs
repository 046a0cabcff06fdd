//! Agents, schedules and tasks, as they are asked for and shown.

use longhaul_agents::{AgentPatch, AgentRecord, Artifact, ExecutionResult, NewAgent};
use longhaul_core::Name;
use longhaul_core::RunId;
use longhaul_schedule::{Attempt, Schedule, Skipped, TaskCause, TaskId, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Entries of a page, unless another number is asked for.
pub const PAGE: usize = 100;
/// The most entries of a page.
pub const PAGE_MAX: usize = 1_000;

/// Fires ahead that are shown of a schedule, unless another number is asked for.
pub const FIRES: usize = 5;
/// The most fires ahead.
pub const FIRES_MAX: usize = 1_000;

/// Register an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegisterAgent {
    /// What it is.
    pub agent: NewAgent,
    /// The bytes of its program in base64, if its code is `wasm` and the store may not have them.
    #[serde(default)]
    pub wasm: Option<String>,
}

/// Change an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateAgent {
    /// Its name.
    pub name: Name,
    /// What of it is changed.
    pub patch: AgentPatch,
    /// As in [`RegisterAgent`].
    #[serde(default)]
    pub wasm: Option<String>,
    /// Only if it has this version.
    #[serde(default)]
    pub version: Option<u64>,
}

/// List agents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListAgents {
    /// Only those that are active, or are not.
    #[serde(default)]
    pub active: Option<bool>,
    /// At most so many, and at most [`PAGE_MAX`].
    pub limit: usize,
    /// Without the first so many.
    #[serde(default)]
    pub offset: usize,
}

/// Show an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowAgent {
    /// The name of the agent.
    pub name: Name,
}

/// Switch an agent on or off.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ActivateAgent {
    /// Its name.
    pub name: Name,
    /// Whether it may be run from now on.
    pub active: bool,
}

/// Remove an agent with its artifacts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveAgent {
    /// The name of the agent.
    pub name: Name,
}

/// Run an agent now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecuteAgent {
    /// Its name.
    pub name: Name,
    /// What its code sees as `CONTEXT["input"]`.
    #[serde(default)]
    pub input: Option<Value>,
}

/// Show an artifact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowArtifact {
    /// The name of the agent.
    pub name: Name,
    /// None: the present version.
    #[serde(default)]
    pub version: Option<u64>,
}

/// Replace an artifact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetArtifact {
    /// The name of the agent.
    pub name: Name,
    /// Any JSON.
    pub state: Value,
    /// None: as it was.
    #[serde(default)]
    pub summary: Option<String>,
    /// Only if it has this version; 0 is that there never was one.
    #[serde(default)]
    pub version: Option<u64>,
}

/// Clear an artifact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClearArtifact {
    /// The name of the agent.
    pub name: Name,
    /// Only if it has this version.
    #[serde(default)]
    pub version: Option<u64>,
}

/// List the kept versions of an artifact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListArtifacts {
    /// The name of the agent.
    pub name: Name,
}

/// A page of agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentList {
    /// By name.
    pub agents: Vec<AgentSummary>,
    /// How many there are in all.
    pub total_count: usize,
    /// As it was asked for.
    pub limit: usize,
    /// As it was asked for.
    pub offset: usize,
}

/// An execution that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentExecution {
    /// The task that it was; none where there was nothing to run.
    pub task: Option<TaskId>,
    /// What it came to.
    pub result: ExecutionResult,
}

/// The artifact that an agent passes to its next run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandedArtifact {
    /// None before the first run and after a clearing.
    pub artifact: Option<Artifact>,
    /// By which a change can be made that overwrites nothing unseen.
    pub version: u64,
}

/// Kept versions of an artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArtifactList {
    /// The newest first.
    pub artifacts: Vec<Artifact>,
}

/// An agent at length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentView {
    /// What it is.
    #[serde(flatten)]
    pub record: AgentRecord,
    /// Runs that have ended since what it hands on was cleared.
    pub run_count: u64,
    /// The version of what it hands on; 0 is that there never was any.
    pub artifact_version: u64,
    /// What is wrong with what it hands on, if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_error: Option<String>,
    /// The schedules that run it.
    pub schedules: Vec<Name>,
}

/// An agent in short: without its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Its name.
    pub name: Name,
    /// What it is for.
    pub description: String,
    /// `python`, `javascript`, `wasm`, `ask` or `run`.
    pub kind: String,
    /// Whether it may be run.
    pub active: bool,
    /// Counts its changes.
    pub version: u64,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was changed last.
    pub updated_ms: u64,
}

/// Make a schedule, or replace the one of its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutSchedule {
    /// What it is. Its agent must be there.
    pub schedule: Schedule,
    /// Also in place of another one.
    #[serde(default)]
    pub replace: bool,
}

/// List schedules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListSchedules {
    /// At most so many, and at most [`PAGE_MAX`].
    pub limit: usize,
    /// Without the first so many.
    #[serde(default)]
    pub offset: usize,
}

/// Show a schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowSchedule {
    /// Its name.
    pub name: Name,
    /// With so many fires ahead; at most [`FIRES_MAX`].
    pub fires: usize,
}

/// Remove a schedule with its waiting tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveSchedule {
    /// The name of the schedule.
    pub name: Name,
}

/// Switch a schedule on or off.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnableSchedule {
    /// Its name.
    pub name: Name,
    /// Whether it fires from now on.
    pub enabled: bool,
}

/// Fire a schedule now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FireSchedule {
    /// The name of the schedule.
    pub name: Name,
}

/// List tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListTasks {
    /// Only of this agent.
    #[serde(default)]
    pub agent: Option<Name>,
    /// Only with this status.
    #[serde(default)]
    pub status: Option<StatusFilter>,
    /// At most so many, and at most [`PAGE_MAX`].
    pub limit: usize,
    /// Without the first so many.
    #[serde(default)]
    pub offset: usize,
}

/// Show a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowTask {
    /// Its id.
    pub id: String,
}

/// Try a failed task again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetryTask {
    /// Its id.
    pub id: String,
}

/// List fires that became no task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListSkipped {
    /// The name of the schedule.
    pub name: Name,
    /// At most so many, and at most [`PAGE_MAX`].
    pub limit: usize,
}

/// Set how many tasks run at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetConcurrentMax {
    /// At least 1 and at most 1,000.
    pub max: u32,
}

/// Show how the scheduler stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowScheduler {}

/// The statuses that tasks are listed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatusFilter {
    /// It waits.
    Pending,
    /// It is being done.
    Running,
    /// It was done.
    Completed,
    /// It failed, and is not tried again by itself.
    Failed,
}

impl StatusFilter {
    /// Whether it is this one.
    #[must_use]
    pub fn is(self, status: TaskStatus) -> bool {
        TaskStatus::from(self) == status
    }
}

impl From<StatusFilter> for TaskStatus {
    fn from(filter: StatusFilter) -> Self {
        match filter {
            StatusFilter::Pending => Self::Pending,
            StatusFilter::Running => Self::Running,
            StatusFilter::Completed => Self::Completed,
            StatusFilter::Failed => Self::Failed,
        }
    }
}

/// A page of schedules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleList {
    /// By name.
    pub schedules: Vec<ScheduleView>,
    /// How many there are in all.
    pub total_count: usize,
    /// As it was asked for.
    pub limit: usize,
    /// As it was asked for.
    pub offset: usize,
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskList {
    /// As they were asked for.
    pub tasks: Vec<TaskView>,
    /// How many there are in all.
    pub total_count: usize,
    /// As it was asked for.
    pub limit: usize,
    /// As it was asked for.
    pub offset: usize,
}

/// Fires that became no task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkippedList {
    /// The newest first.
    pub skipped: Vec<Skipped>,
}

/// A schedule, and where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleView {
    /// What it is.
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Its trigger in words.
    pub when: String,
    /// Its next fires, in milliseconds since 1970, without jitter. None while it is switched off.
    pub next_ms: Vec<u64>,
    /// Its tasks that have not ended.
    pub open: Vec<TaskId>,
    /// What became of its fires.
    pub tally: ScheduleTally,
}

/// What became of the fires of a schedule, since it was first made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleTally {
    /// Fires that became tasks and were not withdrawn.
    pub tasks: u64,
    /// Of these, tasks that completed.
    pub completed: u64,
    /// Of these, tasks that failed for good.
    pub failed: u64,
    /// Attempts that were not the first of their task.
    pub retries: u64,
    /// Fires that became no task, by why.
    pub skipped: BTreeMap<String, u64>,
}

/// A task with all its attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its name.
    pub id: TaskId,
    /// Of which schedule; none if somebody asked for it.
    pub schedule: Option<Name>,
    /// Which agent does it.
    pub agent: Name,
    /// When it was to be, in milliseconds since 1970.
    pub fire_ms: u64,
    /// Not started before this.
    pub due_ms: u64,
    /// What made it.
    pub cause: TaskCause,
    /// Where it is.
    pub status: TaskStatus,
    /// Why it is not running though it is due.
    pub waits_for: Option<String>,
    /// How often it was tried again.
    pub retry_count: u32,
    /// How often it may be.
    pub retries_max: u32,
    /// All its attempts, the first in front.
    pub attempts: Vec<AttemptView>,
    /// When it ended.
    pub ended_ms: Option<u64>,
}

/// An attempt, and what it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptView {
    /// When, and how it ended.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// What it printed, in part. None while it runs, and in a list of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ExecutionResult>,
    /// The run that it is, for an ask or a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// The state of the scheduler of a data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SchedulerStatus {
    /// Whether a scheduler works. Due tasks wait otherwise.
    pub working: bool,
    /// Most tasks that run at once.
    pub concurrent_max: u32,
    /// Number of running tasks.
    pub running: usize,
    /// Number of waiting tasks.
    pub pending: usize,
    /// Number of schedules.
    pub schedules: usize,
    /// Time of the next fire or attempt, in milliseconds since 1970-01-01 UTC.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub wake_ms: Option<u64>,
}
