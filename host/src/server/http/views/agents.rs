//! Agents as records, what they hand on, their schedules and their tasks.

use crate::agents::record::{
    AgentGrants, AgentLimits, AgentPatch, Artifact as InnerArtifact, Code as InnerCode, ExecutionResult as InnerResult,
    NewAgent as InnerNew, SummaryBy as InnerSummaryBy,
};
use crate::agents::{AgentSummary, AgentView, AttemptView, ScheduleView, TaskView};
use crate::server::http::problem::Problem;
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use longhaul_core::{Digest, Name};
use longhaul_schedule::{Cause as InnerCause, Outcome, Schedule as InnerSchedule, Skipped as InnerSkipped};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A name that people give.
pub fn name(field: &str, text: &str) -> Result<Name, Problem> {
    text.parse().map_err(|error| Problem::invalid(field, format!("{error}")))
}

/// What an agent is made of.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Code {
    /// Python, in the sandbox.
    Python {
        /// The source.
        source: String,
    },
    /// JavaScript, in the sandbox.
    JavaScript {
        /// The source.
        source: String,
    },
    /// A program for WASI.
    Wasm {
        /// The digest of its bytes: 64 hexadecimal digits.
        digest: String,
    },
    /// A question to the agents of a project.
    Ask {
        /// The project's directory on the server's machine.
        directory: String,
        /// What is asked.
        goal: String,
        /// Who answers; null: as the project says.
        #[serde(default)]
        agent: Option<String>,
    },
    /// A run of a project.
    Run {
        /// The project's directory on the server's machine.
        directory: String,
    },
}

impl From<InnerCode> for Code {
    fn from(inner: InnerCode) -> Self {
        match inner {
            InnerCode::Python { source } => Self::Python { source },
            InnerCode::JavaScript { source } => Self::JavaScript { source },
            InnerCode::Wasm { digest } => Self::Wasm { digest: digest.to_string() },
            InnerCode::Ask { directory, goal, agent } => {
                Self::Ask { directory: directory.display().to_string(), goal, agent }
            }
            InnerCode::Run { directory } => Self::Run { directory: directory.display().to_string() },
        }
    }
}

impl TryFrom<Code> for InnerCode {
    type Error = Problem;

    fn try_from(code: Code) -> Result<Self, Problem> {
        Ok(match code {
            Code::Python { source } => Self::Python { source },
            Code::JavaScript { source } => Self::JavaScript { source },
            Code::Wasm { digest } => {
                let digest = digest.parse::<Digest>();
                Self::Wasm { digest: digest.map_err(|error| Problem::invalid("code.digest", error.to_string()))? }
            }
            Code::Ask { directory, goal, agent } => Self::Ask { directory: directory.into(), goal, agent },
            Code::Run { directory } => Self::Run { directory: directory.into() },
        })
    }
}

/// What an agent may use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Time on the clock, in milliseconds. Default 300,000.
    pub timeout_ms: u64,
    /// Memory, in bytes. Default 256 MiB.
    pub memory_bytes_max: u64,
    /// Bytes that are kept of each output. Default 1 MiB.
    pub output_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        AgentLimits::default().into()
    }
}

impl From<AgentLimits> for Limits {
    fn from(inner: AgentLimits) -> Self {
        let AgentLimits { timeout_ms, memory_bytes_max, output_bytes_max } = inner;
        Self { timeout_ms, memory_bytes_max, output_bytes_max }
    }
}

impl From<Limits> for AgentLimits {
    fn from(outer: Limits) -> Self {
        let Limits { timeout_ms, memory_bytes_max, output_bytes_max } = outer;
        Self { timeout_ms, memory_bytes_max, output_bytes_max }
    }
}

/// A directory that an agent sees.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantedDirectory {
    /// Where it is on the server's machine, an absolute path.
    pub host: String,
    /// Where the code sees it.
    pub guest: String,
    /// Whether the code may change it.
    #[serde(default)]
    pub write: bool,
}

/// What an agent may reach.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// Hosts, such as `https://api.example.com`.
    pub hosts: Vec<String>,
    /// Directories.
    pub directories: Vec<GrantedDirectory>,
}

impl From<AgentGrants> for Grants {
    fn from(inner: AgentGrants) -> Self {
        let directory = |DirectoryGrant { guest, host, access }: DirectoryGrant| GrantedDirectory {
            host: host.display().to_string(),
            guest,
            write: access == Access::Write,
        };
        Self {
            hosts: inner.hosts.into_iter().map(String::from).collect(),
            directories: inner.directories.into_iter().map(directory).collect(),
        }
    }
}

impl TryFrom<Grants> for AgentGrants {
    type Error = Problem;

    fn try_from(grants: Grants) -> Result<Self, Problem> {
        let host = |(at, host): (usize, String)| {
            HostPattern::try_from(host)
                .map_err(|error| Problem::invalid(format!("grants.hosts[{at}]"), error.to_string()))
        };
        let directory = |(at, one): (usize, GrantedDirectory)| {
            if !one.guest.starts_with('/') {
                let field = format!("grants.directories[{at}].guest");
                return Err(Problem::invalid(field, "write an absolute path, such as /work"));
            }
            let access = if one.write { Access::Write } else { Access::Read };
            Ok(DirectoryGrant { guest: one.guest, host: one.host.into(), access })
        };
        Ok(Self {
            hosts: grants.hosts.into_iter().enumerate().map(host).collect::<Result<_, _>>()?,
            directories: grants.directories.into_iter().enumerate().map(directory).collect::<Result<_, _>>()?,
        })
    }
}

/// Which model sums up what an agent came to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SummaryBy {
    /// The project's directory, whose `longhaul.toml` has the model.
    pub directory: String,
    /// The model's name there.
    pub model: String,
}

/// An agent that is to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`, and no `.` in front.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it is made of.
    pub code: Code,
    /// Whether it may be run. Default yes.
    #[serde(default)]
    pub active: Option<bool>,
    /// What its code sees as `CONTEXT["config"]`, any JSON.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub config: Value,
    /// What it may use.
    #[serde(default)]
    pub limits: Limits,
    /// What it may reach. Default nothing.
    #[serde(default)]
    pub grants: Grants,
    /// Which model sums up what it came to; null: none.
    #[serde(default)]
    pub summary_by: Option<SummaryBy>,
    /// The bytes of its program in base64, if its code is `wasm`.
    #[serde(default)]
    pub wasm: Option<String>,
}

impl NewAgent {
    /// Within, and its program.
    pub fn taken(self) -> Result<(InnerNew, Option<String>), Problem> {
        let inner = InnerNew {
            name: name("name", &self.name)?,
            description: self.description,
            code: self.code.try_into()?,
            active: self.active.unwrap_or(true),
            config: self.config,
            limits: self.limits.into(),
            grants: self.grants.try_into()?,
            summary_by: self.summary_by.map(summary_by),
        };
        Ok((inner, self.wasm))
    }
}

fn summary_by(by: SummaryBy) -> InnerSummaryBy {
    InnerSummaryBy { directory: by.directory.into(), model: by.model }
}

/// What is changed of an agent; what is left out stays as it was.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentChange {
    /// What it is for.
    pub description: Option<String>,
    /// What it is made of.
    pub code: Option<Code>,
    /// Whether it may be run.
    pub active: Option<bool>,
    /// What its code sees as `CONTEXT["config"]`, any JSON but null.
    #[schema(value_type = Option<Value>)]
    pub config: Option<Value>,
    /// What it may use.
    pub limits: Option<Limits>,
    /// What it may reach.
    pub grants: Option<Grants>,
    /// Which model sums up what it came to.
    pub summary_by: Option<SummaryBy>,
    /// The bytes of its program in base64, if its code is `wasm`.
    pub wasm: Option<String>,
}

impl AgentChange {
    /// Within, and its program.
    pub fn taken(self) -> Result<(AgentPatch, Option<String>), Problem> {
        let inner = AgentPatch {
            description: self.description,
            code: self.code.map(TryInto::try_into).transpose()?,
            active: self.active,
            config: self.config,
            limits: self.limits.map(Into::into),
            grants: self.grants.map(TryInto::try_into).transpose()?,
            summary_by: self.summary_by.map(|by| Some(summary_by(by))),
        };
        Ok((inner, self.wasm))
    }
}

/// An agent in short.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentShort {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// `python`, `javascript`, `wasm`, `ask` or `run`.
    pub kind: String,
    /// Whether it may be run.
    pub active: bool,
    /// Counts its changes.
    pub version: u64,
    /// When it was made, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// When it was changed last.
    pub updated_ms: u64,
}

impl From<AgentSummary> for AgentShort {
    fn from(inner: AgentSummary) -> Self {
        let AgentSummary { name, description, kind, active, version, created_ms, updated_ms } = inner;
        Self { name: name.to_string(), description, kind, active, version, created_ms, updated_ms }
    }
}

/// An agent at length.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Agent {
    /// In short.
    #[serde(flatten)]
    pub short: AgentShort,
    /// What it is made of.
    pub code: Code,
    /// What its code sees as `CONTEXT["config"]`.
    #[schema(value_type = Value)]
    pub config: Value,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub grants: Grants,
    /// Which model sums up what it came to.
    #[schema(required = true)]
    pub summary_by: Option<SummaryBy>,
    /// Runs that have ended since what it hands on was cleared.
    pub run_count: u64,
    /// The version of what it hands on; 0 is that there never was any.
    pub artifact_version: u64,
    /// What is wrong with what it hands on, if it cannot be read.
    #[schema(required = true)]
    pub artifact_error: Option<String>,
    /// The schedules that run it.
    pub schedules: Vec<String>,
}

impl From<AgentView> for Agent {
    fn from(inner: AgentView) -> Self {
        let AgentView { record, run_count, artifact_version, artifact_error, schedules } = inner;
        let agent = record.agent;
        Self {
            short: AgentShort {
                name: agent.name.to_string(),
                description: agent.description,
                kind: agent.code.kind().to_owned(),
                active: agent.active,
                version: record.version,
                created_ms: record.created_ms,
                updated_ms: record.updated_ms,
            },
            code: agent.code.into(),
            config: agent.config,
            limits: agent.limits.into(),
            grants: agent.grants.into(),
            summary_by: agent.summary_by.map(|InnerSummaryBy { directory, model }| SummaryBy {
                directory: directory.display().to_string(),
                model,
            }),
            run_count,
            artifact_version,
            artifact_error,
            schedules: schedules.into_iter().map(|name| name.to_string()).collect(),
        }
    }
}

/// What an execution comes to.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExecutionResult {
    /// Whether it did what it was for.
    pub success: bool,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
    /// Its exit code; -1 where it was stopped, or there was nothing to run.
    pub exit_code: i32,
    /// How long it took.
    pub duration_seconds: f64,
    /// Why it did not succeed.
    #[schema(required = true)]
    pub error_message: Option<String>,
    /// Whether the same may succeed later.
    pub retryable: bool,
    /// The limit that stopped it.
    #[schema(required = true)]
    pub limit: Option<String>,
    /// Whether some of the output was dropped.
    pub truncated: bool,
    /// The run that it was, for an ask or a run.
    #[schema(required = true)]
    pub run: Option<String>,
    /// What a person should know.
    pub notes: Vec<String>,
}

impl From<InnerResult> for ExecutionResult {
    fn from(inner: InnerResult) -> Self {
        Self {
            success: inner.success,
            stdout: inner.stdout,
            stderr: inner.stderr,
            exit_code: inner.exit_code,
            duration_seconds: inner.duration_seconds,
            error_message: inner.error_message,
            retryable: inner.retryable,
            limit: inner.limit,
            truncated: inner.truncated,
            run: inner.run.map(|run| run.to_string()),
            notes: inner.notes,
        }
    }
}

/// That an agent was run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Executed {
    /// The task that it was; null where there was nothing to run.
    #[schema(required = true)]
    pub task: Option<String>,
    /// What it came to.
    #[serde(flatten)]
    pub result: ExecutionResult,
}

/// What a run hands to the next one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Artifact {
    /// Whose.
    pub agent: String,
    /// Any JSON.
    #[schema(value_type = Value)]
    pub state: Value,
    /// In words.
    pub summary: String,
    /// When it was made, as RFC 3339 has it.
    pub created_at: String,
    /// Runs that have ended since it was cleared.
    pub run_count: u64,
    /// Counts its changes.
    pub version: u64,
    /// Who made it.
    pub made_by: String,
}

impl From<InnerArtifact> for Artifact {
    fn from(inner: InnerArtifact) -> Self {
        let InnerArtifact { agent, state, summary, created_at, run_count, version, made_by } = inner;
        Self { agent: agent.to_string(), state, summary, created_at, run_count, version, made_by }
    }
}

/// What is handed on now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HandedOn {
    /// Null before the first run and after a clearing.
    #[schema(required = true)]
    pub artifact: Option<Artifact>,
    /// The version, which `If-Match` names.
    pub version: u64,
}

/// Versions of what was handed on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ArtifactVersions {
    /// The newest first.
    pub items: Vec<Artifact>,
}

/// When an agent is due.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum TriggerForm {
    /// By the clock.
    Cron {
        /// Minute, hour, day, month and weekday; optional seconds in front; `@hourly` and the like.
        cron: String,
        /// An IANA name. Default `UTC`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timezone: Option<String>,
    },
    /// Each so many seconds.
    Interval {
        /// From 1 to a leap year.
        interval_seconds: u64,
    },
    /// When another agent has ended.
    After {
        /// Which.
        after: String,
        /// How it ended: `success`, `failure` or `always`. Default `success`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<String>,
    },
}

/// A schedule that is to be made.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Its name.
    pub name: String,
    /// Which agent is run.
    pub agent: String,
    /// When.
    pub trigger: TriggerForm,
    /// Whether it fires. Default yes.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// Whether the agent may be run while it runs. Default no.
    #[serde(default)]
    pub overlap: Option<bool>,
    /// What becomes of fires that nobody was there for: `skip`, `once` or `all`. Default `once`.
    #[serde(default)]
    pub missed: Option<String>,
    /// How many of them are run with `all`. Default 10.
    #[serde(default)]
    pub missed_max: Option<u32>,
    /// A fire waits for up to this long, in milliseconds. Default 0.
    #[serde(default)]
    pub jitter_ms: Option<u64>,
    /// How often a task that failed is tried again. Default and at most 3.
    #[serde(default)]
    pub retries_max: Option<u32>,
}

impl NewSchedule {
    /// Within.
    pub fn taken(self) -> Result<InnerSchedule, Problem> {
        let word = |field: &'static str| move |error: serde_json::Error| Problem::invalid(field, error.to_string());
        let trigger = serde_json::to_value(self.trigger).and_then(serde_json::from_value).map_err(word("trigger"))?;
        let usual = InnerSchedule::new(name("name", &self.name)?, name("agent", &self.agent)?, trigger);
        let missed = self.missed.map(|missed| serde_json::from_value(missed.into()).map_err(word("missed")));
        Ok(InnerSchedule {
            enabled: self.enabled.unwrap_or(usual.enabled),
            overlap: self.overlap.unwrap_or(usual.overlap),
            missed: missed.transpose()?.unwrap_or(usual.missed),
            missed_max: self.missed_max.unwrap_or(usual.missed_max),
            jitter_ms: self.jitter_ms.unwrap_or(usual.jitter_ms),
            retries_max: self.retries_max.unwrap_or(usual.retries_max),
            ..usual
        })
    }
}

/// What became of the fires of a schedule, since it was first made.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Tally {
    /// Fires that became tasks.
    pub tasks: u64,
    /// Tasks that completed.
    pub completed: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// Attempts that were not the first of their task.
    pub retries: u64,
    /// Fires that became no task, by why.
    pub skipped: BTreeMap<String, u64>,
}

/// A schedule, and where it is.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// Which agent is run.
    pub agent: String,
    /// When, in the form in which it is made.
    #[schema(value_type = Object)]
    pub trigger: Value,
    /// The same in words.
    pub when: String,
    /// Whether it fires.
    pub enabled: bool,
    /// Whether the agent may be run while it runs.
    pub overlap: bool,
    /// What becomes of fires that nobody was there for.
    #[schema(value_type = String)]
    pub missed: Value,
    /// How many of them are run with `all`.
    pub missed_max: u32,
    /// A fire waits for up to this long, in milliseconds.
    pub jitter_ms: u64,
    /// How often a task that failed is tried again.
    pub retries_max: u32,
    /// Its next fires, in milliseconds since 1970-01-01 UTC, without jitter. Empty while it is switched off.
    pub next_ms: Vec<u64>,
    /// Its tasks that have not ended.
    pub open: Vec<String>,
    /// What became of its fires.
    pub tally: Tally,
}

impl From<ScheduleView> for Schedule {
    fn from(inner: ScheduleView) -> Self {
        let ScheduleView { schedule, when, next_ms, open, tally } = inner;
        Self {
            name: schedule.name.to_string(),
            agent: schedule.agent.to_string(),
            trigger: serde_json::to_value(&schedule.trigger).unwrap_or_default(),
            when,
            enabled: schedule.enabled,
            overlap: schedule.overlap,
            missed: serde_json::to_value(schedule.missed).unwrap_or_default(),
            missed_max: schedule.missed_max,
            jitter_ms: schedule.jitter_ms,
            retries_max: schedule.retries_max,
            next_ms,
            open: open.iter().map(ToString::to_string).collect(),
            tally: Tally {
                tasks: tally.tasks,
                completed: tally.completed,
                failed: tally.failed,
                retries: tally.retries,
                skipped: tally.skipped,
            },
        }
    }
}

/// Fires of a schedule that became no task.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkippedFires {
    /// The first of them, in milliseconds since 1970-01-01 UTC.
    pub first_ms: u64,
    /// The last of them.
    pub last_ms: u64,
    /// How many they are.
    pub count: u32,
    /// Whether they were more than were counted.
    pub more: bool,
    /// Why: `missed`, `still_waiting`, `queue_full` or `withdrawn`.
    #[schema(value_type = String)]
    pub why: Value,
}

impl From<InnerSkipped> for SkippedFires {
    fn from(inner: InnerSkipped) -> Self {
        let InnerSkipped { first_ms, last_ms, count, more, why, .. } = inner;
        Self { first_ms, last_ms, count, more, why: serde_json::to_value(why).unwrap_or_default() }
    }
}

/// Fires that became no task.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Skipped {
    /// The newest first.
    pub items: Vec<SkippedFires>,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// It waits.
    Pending,
    /// It is being done.
    Running,
    /// It was done.
    Completed,
    /// It failed, and is not tried again by itself.
    Failed,
}

impl From<longhaul_schedule::TaskStatus> for TaskStatus {
    fn from(inner: longhaul_schedule::TaskStatus) -> Self {
        use longhaul_schedule::TaskStatus as Inner;
        match inner {
            Inner::Pending => Self::Pending,
            Inner::Running => Self::Running,
            Inner::Completed => Self::Completed,
            Inner::Failed => Self::Failed,
        }
    }
}

impl From<TaskStatus> for crate::agents::StatusFilter {
    fn from(outer: TaskStatus) -> Self {
        match outer {
            TaskStatus::Pending => Self::Pending,
            TaskStatus::Running => Self::Running,
            TaskStatus::Completed => Self::Completed,
            TaskStatus::Failed => Self::Failed,
        }
    }
}

/// What made a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The time came.
    Time,
    /// Somebody asked for it.
    Hand,
    /// Another task ended.
    After,
}

/// One try of a task.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Attempt {
    /// When it was started, in milliseconds since 1970-01-01 UTC.
    pub started_ms: u64,
    /// When it ended; null while it runs.
    #[schema(required = true)]
    pub ended_ms: Option<u64>,
    /// Whether it did what it was for; null while it runs.
    #[schema(required = true)]
    pub success: Option<bool>,
    /// What went wrong.
    #[schema(required = true)]
    pub error: Option<String>,
    /// What it came to; null while it runs, and in lists.
    #[schema(required = true)]
    pub result: Option<ExecutionResult>,
    /// The run that it is, for an ask or a run.
    #[schema(required = true)]
    pub run: Option<String>,
}

impl From<AttemptView> for Attempt {
    fn from(inner: AttemptView) -> Self {
        let AttemptView { attempt, result, run } = inner;
        let (success, error) = match attempt.outcome {
            None => (None, None),
            Some(Outcome::Completed) => (Some(true), None),
            Some(Outcome::Failed { error, .. }) => (Some(false), Some(error)),
        };
        Self {
            started_ms: attempt.started_ms,
            ended_ms: attempt.ended_ms,
            success,
            error,
            result: result.map(Into::into),
            run: run.map(|run| run.to_string()),
        }
    }
}

/// A task with all its attempts.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Task {
    /// Its name.
    pub id: String,
    /// Which agent does it.
    pub agent: String,
    /// Of which schedule; null if somebody asked for it.
    #[schema(required = true)]
    pub schedule: Option<String>,
    /// Where it is.
    pub status: TaskStatus,
    /// What made it.
    pub cause: Cause,
    /// When it was to be, in milliseconds since 1970-01-01 UTC.
    pub fire_ms: u64,
    /// Not started before this.
    pub due_ms: u64,
    /// When it ended.
    #[schema(required = true)]
    pub ended_ms: Option<u64>,
    /// How often it was tried again.
    pub retry_count: u32,
    /// How often it may be.
    pub max_retries: u32,
    /// Why it is not running though it is due.
    #[schema(required = true)]
    pub waits_for: Option<String>,
    /// All its attempts, the first in front.
    pub attempts: Vec<Attempt>,
}

impl From<TaskView> for Task {
    fn from(inner: TaskView) -> Self {
        Self {
            id: inner.id.to_string(),
            agent: inner.agent.to_string(),
            schedule: inner.schedule.map(|name| name.to_string()),
            status: inner.status.into(),
            cause: match inner.cause {
                InnerCause::Time => Cause::Time,
                InnerCause::Hand { .. } => Cause::Hand,
                InnerCause::After { .. } => Cause::After,
            },
            fire_ms: inner.fire_ms,
            due_ms: inner.due_ms,
            ended_ms: inner.ended_ms,
            retry_count: inner.retry_count,
            max_retries: inner.retries_max,
            waits_for: inner.waits_for,
            attempts: inner.attempts.into_iter().map(Into::into).collect(),
        }
    }
}

/// Tasks of an agent.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentTasks {
    /// Those that have not ended in front, then the others, the newest first.
    pub tasks: Vec<Task>,
    /// How many there are in all.
    pub total_count: usize,
    /// Tasks of a page.
    pub limit: usize,
    /// Tasks before this page.
    pub offset: usize,
}

/// That a task is tried again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Retried {
    /// In words.
    pub message: String,
    /// How often it was tried again, this time included.
    pub retry_count: u32,
    /// How often it may be.
    pub max_retries: u32,
}
