//! Requests and responses about agents, schedules and tasks.

use longhaul_agents::{AgentPatch, AgentRecord, Artifact, ExecutionResult, NewAgent};
use longhaul_core::Name;
use longhaul_core::RunId;
use longhaul_schedule::{Attempt, Schedule, Skipped, TaskCause, TaskFailure, TaskId, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The default number of entries of a page.
pub const PAGE: usize = 100;
/// The most entries of a page.
pub const PAGE_MAX: usize = 1_000;

/// The default number of future fires that [`ShowSchedule`] lists.
pub const FIRES: usize = 5;
/// The most future fires that [`ShowSchedule`] lists.
pub const FIRES_MAX: usize = 1_000;

/// Register an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegisterAgent {
    /// The definition of the agent. Its name must not be in use.
    pub agent: NewAgent,
    /// The component in base64, for an agent whose code is `wasm`. None: the store has it already.
    #[serde(default)]
    pub wasm: Option<String>,
}

/// Change an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateAgent {
    /// The name of the agent.
    pub name: Name,
    /// The changes. Fields that are none stay as they are.
    pub patch: AgentPatch,
    /// The component in base64, as in [`RegisterAgent`].
    #[serde(default)]
    pub wasm: Option<String>,
    /// The expected version of the agent; another one refuses the change. None: any version.
    #[serde(default)]
    pub version: Option<u64>,
}

/// List agents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListAgents {
    /// True: active agents alone. False: inactive ones alone. None: both.
    #[serde(default)]
    pub active: Option<bool>,
    /// The most entries of the page; a number above [`PAGE_MAX`] counts as that.
    pub limit: usize,
    /// The number of entries to skip.
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
    /// The name of the agent.
    pub name: Name,
    /// True when the agent may run from now on.
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
    /// The name of the agent.
    pub name: Name,
    /// The input of any shape, which the agent's code reads as `CONTEXT["input"]`. None: no input.
    #[serde(default)]
    pub input: Option<Value>,
}

/// Show an artifact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowArtifact {
    /// The name of the agent.
    pub name: Name,
    /// The version to show. None: the present one.
    #[serde(default)]
    pub version: Option<u64>,
}

/// Replace an artifact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetArtifact {
    /// The name of the agent.
    pub name: Name,
    /// The new state, of any shape.
    pub state: Value,
    /// The new summary. None: the summary stays.
    #[serde(default)]
    pub summary: Option<String>,
    /// The expected version of the artifact; another one refuses the change. 0: no artifact was ever saved. None: any
    /// version.
    #[serde(default)]
    pub version: Option<u64>,
}

/// Clear an artifact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClearArtifact {
    /// The name of the agent.
    pub name: Name,
    /// The expected version of the artifact; another one refuses the change. None: any version.
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
    /// The agents, sorted by name.
    pub agents: Vec<AgentSummary>,
    /// The number of all matching agents, on every page.
    pub total_count: usize,
    /// The limit of the request.
    pub limit: usize,
    /// The offset of the request.
    pub offset: usize,
}

/// An ended execution of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentExecution {
    /// The id of its task. None: there was nothing to run.
    pub task: Option<TaskId>,
    /// The result of the execution.
    pub result: ExecutionResult,
}

/// The artifact that an agent passes to its next run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandedArtifact {
    /// The artifact. None: no run ended yet, or it was cleared.
    pub artifact: Option<Artifact>,
    /// The version, which a conditional change names. 0: no artifact was ever saved.
    pub version: u64,
    /// The number of runs that ended since this version, and that had begun with an earlier one. They changed nothing.
    #[serde(default)]
    pub conflict_count: u64,
}

/// The kept versions of an artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArtifactList {
    /// The versions, the newest first.
    pub artifacts: Vec<Artifact>,
}

/// An agent with its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentView {
    /// The definition of the agent.
    #[serde(flatten)]
    pub record: AgentRecord,
    /// The number of runs that ended since its artifact was cleared.
    pub run_count: u64,
    /// The version of its artifact. 0: no artifact was ever saved.
    pub artifact_version: u64,
    /// The fault of its artifact. None: it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_error: Option<String>,
    /// The names of the schedules that run it.
    pub schedules: Vec<Name>,
}

/// A summary of an agent, without its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentSummary {
    /// The name of the agent.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub name: Name,
    /// Its purpose, for people.
    pub description: String,
    /// `python`, `javascript`, `wasm`, `ask` or `run`.
    pub kind: String,
    /// True when the agent may run.
    pub active: bool,
    /// The version of its definition: each change adds 1.
    pub version: u64,
    /// The time of its registration, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time of its last change, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: u64,
}

/// Make a schedule, or replace the one with the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutSchedule {
    /// The schedule. Its agent must exist.
    pub schedule: Schedule,
    /// True when an existing schedule of that name is replaced. Default false: it is refused.
    #[serde(default)]
    pub replace: bool,
}

/// List schedules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListSchedules {
    /// The most entries of the page; a number above [`PAGE_MAX`] counts as that.
    pub limit: usize,
    /// The number of entries to skip.
    #[serde(default)]
    pub offset: usize,
}

/// Show a schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowSchedule {
    /// The name of the schedule.
    pub name: Name,
    /// The number of future fires to list; a number above [`FIRES_MAX`] counts as that.
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
    /// The name of the schedule.
    pub name: Name,
    /// True when the schedule fires from now on.
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
    /// The name of the agent whose tasks are listed. None: all agents.
    #[serde(default)]
    pub agent: Option<Name>,
    /// The status of the listed tasks. None: every status.
    #[serde(default)]
    pub status: Option<StatusFilter>,
    /// The most entries of the page; a number above [`PAGE_MAX`] counts as that.
    pub limit: usize,
    /// The number of entries to skip.
    #[serde(default)]
    pub offset: usize,
}

/// Show a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowTask {
    /// The id of the task.
    pub id: String,
}

/// Try a failed task again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetryTask {
    /// The id of the task.
    pub id: String,
}

/// List the fires of a schedule that became no task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListSkipped {
    /// The name of the schedule.
    pub name: Name,
    /// The most fires to list; a number above [`PAGE_MAX`] counts as that.
    pub limit: usize,
}

/// Set the number of tasks that may run at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetConcurrentMax {
    /// The number of tasks, from 1 to 1 000.
    pub max: u32,
}

/// Show the status of the scheduler.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowScheduler {}

/// The statuses by which tasks can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatusFilter {
    /// The task waits.
    Pending,
    /// An attempt runs.
    Running,
    /// The task completed.
    Completed,
    /// The task failed, and has no automatic retries left.
    Failed,
}

impl StatusFilter {
    /// True when it is the filter of this status.
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
    /// The schedules, sorted by name.
    pub schedules: Vec<ScheduleView>,
    /// The number of all schedules, on every page.
    pub total_count: usize,
    /// The limit of the request.
    pub limit: usize,
    /// The offset of the request.
    pub offset: usize,
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskList {
    /// The tasks: those that have not ended, then the others, the newest first.
    pub tasks: Vec<TaskView>,
    /// The number of all matching tasks, on every page.
    pub total_count: usize,
    /// The limit of the request.
    pub limit: usize,
    /// The offset of the request.
    pub offset: usize,
}

/// The fires of a schedule that became no task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkippedList {
    /// The fires, the newest first.
    pub skipped: Vec<Skipped>,
}

/// A schedule and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleView {
    /// The definition of the schedule.
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Its trigger in words.
    pub when: String,
    /// Its next fires, in milliseconds since 1970-01-01 UTC, without jitter. Empty while it is disabled.
    pub next_ms: Vec<u64>,
    /// The ids of its tasks that have not ended.
    pub open: Vec<TaskId>,
    /// The outcomes of its fires.
    pub tally: ScheduleTally,
    /// The last of its fires that became no task, with the reason. None: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_skipped: Option<Skipped>,
}

/// The outcomes of the fires of a schedule, counted since it was first made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleTally {
    /// The number of fires that became tasks and were not withdrawn.
    pub tasks: u64,
    /// The number of these tasks that completed.
    pub completed: u64,
    /// The number of these tasks that failed finally.
    pub failed: u64,
    /// The number of attempts after the first one of a task.
    pub retries: u64,
    /// The number of fires that became no task, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// A task with all its attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// The id of the task.
    pub id: TaskId,
    /// The name of its schedule. None: a person or a program requested it.
    pub schedule: Option<Name>,
    /// The name of the agent that carries it out.
    pub agent: Name,
    /// The time of its fire, in milliseconds since 1970-01-01 UTC.
    pub fire_ms: u64,
    /// The earliest time of its start, in milliseconds since 1970-01-01 UTC.
    pub due_ms: u64,
    /// The cause of the task.
    pub cause: TaskCause,
    /// The status of the task.
    pub status: TaskStatus,
    /// The reason for which it does not run though it is due, or for which it failed without an error of its own. None:
    /// there is no such reason.
    pub waits_for: Option<String>,
    /// The number of retries so far.
    pub retry_count: u32,
    /// The most automatic retries.
    pub retries_max: u32,
    /// The number of times that the host ended while it ran, since it last made progress.
    pub interruption_count: u32,
    /// The most of them.
    pub interruptions_max: u32,
    /// The reason for which it failed for good. None: it did not, or it was run by hand.
    pub failure: Option<TaskFailure>,
    /// Its attempts, the first one first.
    pub attempts: Vec<AttemptView>,
    /// The time of its end, in milliseconds since 1970-01-01 UTC. None: it has not ended.
    pub ended_ms: Option<u64>,
}

/// An attempt and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptView {
    /// The times and the outcome of the attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The result, with a part of the output. None while it runs, and in a list of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ExecutionResult>,
    /// The run that it started, for an agent whose code is `ask` or `run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// The state of the scheduler of a data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SchedulerStatus {
    /// True when a scheduler works. Due tasks wait otherwise.
    pub working: bool,
    /// Most tasks that run at once.
    pub concurrent_max: u32,
    /// Number of running tasks.
    pub running: usize,
    /// Number of waiting tasks.
    pub pending: usize,
    /// Most waiting tasks. Fires beyond them become no tasks.
    pub queue_max: u32,
    /// Number of schedules.
    pub schedules: usize,
    /// Time of the next fire or attempt, in milliseconds since 1970-01-01 UTC.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub next_wake_ms: Option<u64>,
}
