//! Agents, and the artifacts that they pass to their next run.

use super::Page;
use crate::agents::{AgentExecution, AgentList, AgentSummary, AgentView, ArtifactList, HandedArtifact};
use longhaul_agents::{
    AgentCode as InnerCode, AgentGrants, AgentLimits, AgentPatch, Artifact as InnerArtifact,
    ExecutionResult as InnerResult, NewAgent as InnerNew, SummaryBy as InnerSummaryBy,
};
use longhaul_core::fault::{self, Fault};
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use longhaul_core::{Digest, Name};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reads a name that a person gave.
///
/// # Errors
/// [`FaultCode::Invalid`](fault::FaultCode::Invalid) at the field, where the text cannot be a name.
pub fn name(field: &str, text: &str) -> fault::Result<Name> {
    text.parse::<Name>().map_err(|error| Fault::invalid(error).at(field))
}

/// What an agent is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = Code))]
pub enum AgentCodeView {
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

impl From<InnerCode> for AgentCodeView {
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

impl TryFrom<AgentCodeView> for InnerCode {
    type Error = Fault;

    fn try_from(code: AgentCodeView) -> fault::Result<Self> {
        Ok(match code {
            AgentCodeView::Python { source } => Self::Python { source },
            AgentCodeView::JavaScript { source } => Self::JavaScript { source },
            AgentCodeView::Wasm { digest } => {
                let digest = digest.parse::<Digest>();
                Self::Wasm { digest: digest.map_err(|error| Fault::invalid(error).at("code.digest"))? }
            }
            AgentCodeView::Ask { directory, goal, agent } => Self::Ask { directory: directory.into(), goal, agent },
            AgentCodeView::Run { directory } => Self::Run { directory: directory.into() },
        })
    }
}

/// What an agent may use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = Limits))]
pub struct AgentLimitsView {
    /// Time on the clock, in milliseconds. Default 300,000.
    pub timeout_ms: u64,
    /// Memory, in bytes. Default 256 MiB.
    pub memory_bytes_max: u64,
    /// Bytes that are kept of each output. Default 1 MiB.
    pub output_bytes_max: u64,
}

impl Default for AgentLimitsView {
    fn default() -> Self {
        AgentLimits::default().into()
    }
}

impl From<AgentLimits> for AgentLimitsView {
    fn from(inner: AgentLimits) -> Self {
        let AgentLimits { timeout_ms, memory_bytes_max, output_bytes_max } = inner;
        Self { timeout_ms, memory_bytes_max, output_bytes_max }
    }
}

impl From<AgentLimitsView> for AgentLimits {
    fn from(outer: AgentLimitsView) -> Self {
        let AgentLimitsView { timeout_ms, memory_bytes_max, output_bytes_max } = outer;
        Self { timeout_ms, memory_bytes_max, output_bytes_max }
    }
}

/// A directory that an agent sees.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = Grants))]
pub struct AgentGrantsView {
    /// Hosts, such as `https://api.example.com`.
    pub hosts: Vec<String>,
    /// Directories.
    pub directories: Vec<GrantedDirectory>,
}

impl From<AgentGrants> for AgentGrantsView {
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

impl TryFrom<AgentGrantsView> for AgentGrants {
    type Error = Fault;

    fn try_from(grants: AgentGrantsView) -> fault::Result<Self> {
        let host = |(at, host): (usize, String)| {
            HostPattern::try_from(host).map_err(|error| Fault::invalid(error).at(format!("grants.hosts[{at}]")))
        };
        let directory = |(at, one): (usize, GrantedDirectory)| {
            if !one.guest.starts_with('/') {
                let field = format!("grants.directories[{at}].guest");
                return Err(Fault::invalid("write an absolute path, such as /work").at(field));
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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = SummaryBy))]
pub struct SummaryByView {
    /// The project's directory, whose `longhaul.toml` has the model.
    pub directory: String,
    /// The model's name there.
    pub model: String,
}

/// An agent that is to be made.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = NewAgent))]
pub struct NewAgentBody {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`, and no `.` in front.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it is made of.
    pub code: AgentCodeView,
    /// Whether it may be run. Default yes.
    #[serde(default)]
    pub active: Option<bool>,
    /// What its code sees as `CONTEXT["config"]`, any JSON.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub config: Value,
    /// What it may use.
    #[serde(default)]
    pub limits: AgentLimitsView,
    /// What it may reach. Default nothing.
    #[serde(default)]
    pub grants: AgentGrantsView,
    /// Which model sums up what it came to; null: none.
    #[serde(default)]
    pub summary_by: Option<SummaryByView>,
    /// The bytes of its program in base64, if its code is `wasm`.
    #[serde(default)]
    pub wasm: Option<String>,
}

impl NewAgentBody {
    /// The agent as the service takes it, and its program.
    ///
    /// # Errors
    /// At the first field that holds no valid value.
    pub fn taken(self) -> fault::Result<(InnerNew, Option<String>)> {
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

fn summary_by(by: SummaryByView) -> InnerSummaryBy {
    InnerSummaryBy { directory: by.directory.into(), model: by.model }
}

/// What is changed of an agent; what is left out stays as it was.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AgentChange {
    /// What it is for.
    pub description: Option<String>,
    /// What it is made of.
    pub code: Option<AgentCodeView>,
    /// Whether it may be run.
    pub active: Option<bool>,
    /// What its code sees as `CONTEXT["config"]`, any JSON but null.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub config: Option<Value>,
    /// What it may use.
    pub limits: Option<AgentLimitsView>,
    /// What it may reach.
    pub grants: Option<AgentGrantsView>,
    /// Which model sums up what it came to.
    pub summary_by: Option<SummaryByView>,
    /// The bytes of its program in base64, if its code is `wasm`.
    pub wasm: Option<String>,
}

impl AgentChange {
    /// The change as the service takes it, and the program.
    ///
    /// # Errors
    /// At the first field that holds no valid value.
    pub fn taken(self) -> fault::Result<(AgentPatch, Option<String>)> {
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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

impl From<AgentList> for Page<AgentShort> {
    fn from(inner: AgentList) -> Self {
        let AgentList { agents, total_count, limit, offset } = inner;
        Self { items: agents.into_iter().map(Into::into).collect(), total: total_count, limit, offset }
    }
}

/// An agent at length.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Agent))]
pub struct AgentDetails {
    /// In short.
    #[serde(flatten)]
    pub short: AgentShort,
    /// What it is made of.
    pub code: AgentCodeView,
    /// What its code sees as `CONTEXT["config"]`.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub config: Value,
    /// What it may use.
    pub limits: AgentLimitsView,
    /// What it may reach.
    pub grants: AgentGrantsView,
    /// Which model sums up what it came to.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub summary_by: Option<SummaryByView>,
    /// Runs that have ended since what it hands on was cleared.
    pub run_count: u64,
    /// The version of what it hands on; 0 is that there never was any.
    pub artifact_version: u64,
    /// What is wrong with what it hands on, if it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub artifact_error: Option<String>,
    /// The schedules that run it.
    pub schedules: Vec<String>,
}

impl From<AgentView> for AgentDetails {
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
            summary_by: agent.summary_by.map(|InnerSummaryBy { directory, model }| SummaryByView {
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ExecutionResult))]
pub struct ExecutionResultView {
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
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error_message: Option<String>,
    /// Whether the same may succeed later.
    pub retryable: bool,
    /// The limit that stopped it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub limit: Option<String>,
    /// Whether some of the output was dropped.
    pub truncated: bool,
    /// The run that it was, for an ask or a run.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// What a person should know.
    pub notes: Vec<String>,
}

impl From<InnerResult> for ExecutionResultView {
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Executed {
    /// The task that it was; null where there was nothing to run.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub task: Option<String>,
    /// What it came to.
    #[serde(flatten)]
    pub result: ExecutionResultView,
}

impl From<AgentExecution> for Executed {
    fn from(inner: AgentExecution) -> Self {
        let AgentExecution { task, result } = inner;
        Self { task: task.map(|task| task.to_string()), result: result.into() }
    }
}

/// What a run hands to the next one.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Artifact))]
pub struct ArtifactView {
    /// Whose.
    pub agent: String,
    /// Any JSON.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
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

impl From<InnerArtifact> for ArtifactView {
    fn from(inner: InnerArtifact) -> Self {
        let InnerArtifact { agent, state, summary, created_at, run_count, version, made_by } = inner;
        Self { agent: agent.to_string(), state, summary, created_at, run_count, version, made_by }
    }
}

/// What is handed on now.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = HandedOn))]
pub struct PassedArtifact {
    /// Null before the first run and after a clearing.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub artifact: Option<ArtifactView>,
    /// The version, which `If-Match` names.
    pub version: u64,
}

impl From<HandedArtifact> for PassedArtifact {
    fn from(inner: HandedArtifact) -> Self {
        let HandedArtifact { artifact, version } = inner;
        Self { artifact: artifact.map(Into::into), version }
    }
}

/// Versions of what was handed on.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ArtifactVersions {
    /// The newest first.
    pub items: Vec<ArtifactView>,
}

impl From<ArtifactList> for ArtifactVersions {
    fn from(inner: ArtifactList) -> Self {
        Self { items: inner.artifacts.into_iter().map(Into::into).collect() }
    }
}
