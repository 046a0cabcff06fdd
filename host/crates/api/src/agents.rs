//! What can be asked of agents and schedules, and what is answered: the same for all surfaces.

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

/// What is asked of the agents of a data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum AgentRequest {
    /// Make one. Answered by [`AgentResponse::Agent`].
    Register {
        /// What it is.
        agent: Box<NewAgent>,
        /// The bytes of its program in base64, if its code is `wasm` and the store may not have them.
        #[serde(default)]
        wasm: Option<String>,
    },
    /// Change one. Answered by [`AgentResponse::Agent`].
    Update {
        /// Which.
        name: Name,
        /// What of it.
        patch: Box<AgentPatch>,
        /// As in [`AgentRequest::Register`].
        #[serde(default)]
        wasm: Option<String>,
        /// Only if it has this version.
        #[serde(default)]
        version: Option<u64>,
    },
    /// Some of them, by name. Answered by [`AgentResponse::Agents`].
    List {
        /// Only those that are active, or are not.
        #[serde(default)]
        active: Option<bool>,
        /// At most so many, and at most [`PAGE_MAX`].
        limit: usize,
        /// Without the first so many.
        #[serde(default)]
        offset: usize,
    },
    /// One. Answered by [`AgentResponse::Agent`].
    Show {
        /// Which.
        name: Name,
    },
    /// Switch one on or off: what its schedules have waiting is noted as skipped. Answered by [`AgentResponse::Agent`].
    Activate {
        /// Which.
        name: Name,
        /// On.
        active: bool,
    },
    /// Remove one with what it handed on. Its tasks stay. Answered by [`AgentResponse::Agent`], as it was.
    Remove {
        /// Which.
        name: Name,
    },
    /// Run one now, and wait for it. Answered by [`AgentResponse::Executed`], also where there is nothing to run.
    Execute {
        /// Which.
        name: Name,
        /// What its code sees as `CONTEXT["input"]`.
        #[serde(default)]
        input: Option<Value>,
    },
    /// What it hands on. Answered by [`AgentResponse::Artifact`].
    Artifact {
        /// Whose.
        name: Name,
        /// None: the present version.
        #[serde(default)]
        version: Option<u64>,
    },
    /// Put a state in the place of what it hands on. Answered by [`AgentResponse::Artifact`].
    SetArtifact {
        /// Whose.
        name: Name,
        /// Any JSON.
        state: Value,
        /// None: as it was.
        #[serde(default)]
        summary: Option<String>,
        /// Only if it has this version; 0 is that there never was one.
        #[serde(default)]
        version: Option<u64>,
    },
    /// Have its next run be a first one. Answered by [`AgentResponse::Artifact`] with none.
    ClearArtifact {
        /// Whose.
        name: Name,
        /// Only if it has this version.
        #[serde(default)]
        version: Option<u64>,
    },
    /// The versions that are kept, the newest first. Answered by [`AgentResponse::Artifacts`].
    ArtifactHistory {
        /// Whose.
        name: Name,
    },
}

/// What is answered of agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum AgentResponse {
    /// One.
    Agent(Box<AgentView>),
    /// A page of them.
    Agents {
        /// By name.
        agents: Vec<AgentSummary>,
        /// How many there are in all.
        total_count: usize,
        /// As it was asked for.
        limit: usize,
        /// As it was asked for.
        offset: usize,
    },
    /// An execution has ended.
    Executed {
        /// The task that it was; none where there was nothing to run.
        task: Option<TaskId>,
        /// What it came to.
        result: Box<ExecutionResult>,
    },
    /// What is handed on.
    Artifact {
        /// None before the first run and after a clearing.
        artifact: Option<Box<Artifact>>,
        /// By which a change can be made that overwrites nothing unseen.
        version: u64,
    },
    /// Versions of it.
    Artifacts {
        /// The newest first.
        artifacts: Vec<Artifact>,
    },
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

/// What is asked of the schedules and tasks of a data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum ScheduleRequest {
    /// Make one, or replace the one of its name. Answered by [`ScheduleResponse::Schedule`].
    Put {
        /// What it is. Its agent must be there.
        schedule: Box<Schedule>,
        /// Also in place of another one.
        #[serde(default)]
        replace: bool,
    },
    /// All of them, by name. Answered by [`ScheduleResponse::Schedules`].
    List {
        /// At most so many, and at most [`PAGE_MAX`].
        limit: usize,
        /// Without the first so many.
        #[serde(default)]
        offset: usize,
    },
    /// One. Answered by [`ScheduleResponse::Schedule`].
    Show {
        /// Which.
        name: Name,
        /// With so many fires ahead; at most [`FIRES_MAX`].
        fires: usize,
    },
    /// Remove one, with what it has waiting. Answered by [`ScheduleResponse::Schedule`], as it was.
    Remove {
        /// Which.
        name: Name,
    },
    /// Switch one on or off. Answered by [`ScheduleResponse::Schedule`].
    Enable {
        /// Which.
        name: Name,
        /// On.
        enabled: bool,
    },
    /// Have one fire now. Answered by [`ScheduleResponse::Task`].
    RunNow {
        /// Which.
        name: Name,
    },
    /// Tasks: those that have not ended in front, then the others, the newest first. Answered by
    /// [`ScheduleResponse::Tasks`].
    Tasks {
        /// Only of this agent.
        #[serde(default)]
        agent: Option<Name>,
        /// Only with this status.
        #[serde(default)]
        status: Option<StatusFilter>,
        /// At most so many, and at most [`PAGE_MAX`].
        limit: usize,
        /// Without the first so many.
        #[serde(default)]
        offset: usize,
    },
    /// One task. Answered by [`ScheduleResponse::Task`].
    Task {
        /// Which.
        id: String,
    },
    /// Try a task again that failed: the same one. Answered by [`ScheduleResponse::Task`].
    Retry {
        /// Which.
        id: String,
    },
    /// Fires of a schedule that became no task, the newest first. Answered by [`ScheduleResponse::Skipped`].
    Skipped {
        /// Of which.
        name: Name,
        /// At most so many, and at most [`PAGE_MAX`].
        limit: usize,
    },
    /// How many tasks run at once, from now on. Answered by [`ScheduleResponse::Status`].
    ConcurrentMax {
        /// At least 1 and at most 1,000.
        max: u32,
    },
    /// How the scheduler stands. Answered by [`ScheduleResponse::Status`].
    Status,
}

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

/// What is answered of schedules and tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum ScheduleResponse {
    /// One schedule.
    Schedule(Box<ScheduleView>),
    /// A page of them.
    Schedules {
        /// By name.
        schedules: Vec<ScheduleView>,
        /// How many there are in all.
        total_count: usize,
        /// As it was asked for.
        limit: usize,
        /// As it was asked for.
        offset: usize,
    },
    /// One task.
    Task(Box<TaskView>),
    /// A page of tasks.
    Tasks {
        /// As they were asked for.
        tasks: Vec<TaskView>,
        /// How many there are in all.
        total_count: usize,
        /// As it was asked for.
        limit: usize,
        /// As it was asked for.
        offset: usize,
    },
    /// Fires that became no task.
    Skipped {
        /// The newest first.
        skipped: Vec<Skipped>,
    },
    /// How the scheduler stands.
    Status(SchedulerStatus),
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

/// How the scheduler of a data directory stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerStatus {
    /// Whether one is at work. What is due waits for one otherwise.
    pub working: bool,
    /// How many tasks run at once at most.
    pub concurrent_max: u32,
    /// How many do.
    pub running: usize,
    /// How many wait.
    pub pending: usize,
    /// How many schedules there are.
    pub schedules: usize,
    /// When something happens next without anybody's doing.
    pub wake_ms: Option<u64>,
}
