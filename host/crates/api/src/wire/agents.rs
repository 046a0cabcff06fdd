//! Agents, and the artifacts that they pass to their next run.

use super::Page;
use crate::agents::{AgentExecution, AgentList, AgentSummary, AgentView, ArtifactList, HandedArtifact};
use longhaul_agents::{
    AgentCode as InnerCode, AgentGrants, AgentLimits, AgentPatch, Artifact as InnerArtifact,
    ArtifactOutcome as InnerOutcome, ExecutionResult as InnerResult, NewAgent as InnerNew, SummaryBy as InnerSummaryBy,
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

/// The code of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = AgentCode))]
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
        /// The question.
        goal: String,
        /// The agent that answers; null: the project decides.
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

/// The limits of an agent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = AgentLimits))]
pub struct AgentLimitsView {
    /// Longest wall-clock time, in milliseconds. Default 300,000.
    pub timeout_ms: u64,
    /// Most memory, in bytes. Default 256 MiB.
    pub memory_bytes_max: u64,
    /// Most bytes that are kept of each output. Default 1 MiB.
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

/// A directory that an agent may use.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantedDirectory {
    /// Its absolute path on the server's machine.
    pub host: String,
    /// Its path for the code.
    pub guest: String,
    /// True when the code may change it.
    #[serde(default)]
    pub write: bool,
}

/// The hosts and directories that an agent may use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = AgentGrants))]
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

/// The model that summarizes the results of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = SummaryBy))]
pub struct SummaryByView {
    /// The directory of the project whose `longhaul.toml` names the model.
    pub directory: String,
    /// Name of the model in that file.
    pub model: String,
}

/// A new agent.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(as = NewAgent))]
pub struct NewAgentBody {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`; it does not begin with `.`.
    pub name: String,
    /// Its purpose.
    #[serde(default)]
    pub description: String,
    /// Its code.
    pub code: AgentCodeView,
    /// True when it may be run. Default true.
    #[serde(default)]
    pub active: Option<bool>,
    /// The value of `CONTEXT["config"]` in its code, any JSON.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub config: Value,
    /// Its limits.
    #[serde(default)]
    pub limits: AgentLimitsView,
    /// Its grants. Default: none.
    #[serde(default)]
    pub grants: AgentGrantsView,
    /// The model that summarizes its results; null: none.
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

/// A change of an agent. Fields that are left out keep their value.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AgentChange {
    /// Its purpose.
    pub description: Option<String>,
    /// Its code.
    pub code: Option<AgentCodeView>,
    /// True when it may be run.
    pub active: Option<bool>,
    /// The value of `CONTEXT["config"]` in its code, any JSON but null.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub config: Option<Value>,
    /// Its limits.
    pub limits: Option<AgentLimitsView>,
    /// Its grants.
    pub grants: Option<AgentGrantsView>,
    /// The model that summarizes its results.
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

impl From<AgentList> for Page<AgentSummary> {
    fn from(inner: AgentList) -> Self {
        let AgentList { agents, total_count, limit, offset } = inner;
        Self { items: agents, total: total_count, limit, offset }
    }
}

/// An agent with all its settings.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Agent))]
pub struct AgentDetails {
    /// Its summary.
    #[serde(flatten)]
    pub short: AgentSummary,
    /// Its code.
    pub code: AgentCodeView,
    /// The value of `CONTEXT["config"]` in its code.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub config: Value,
    /// Its limits.
    pub limits: AgentLimitsView,
    /// Its grants.
    pub grants: AgentGrantsView,
    /// The model that summarizes its results.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub summary_by: Option<SummaryByView>,
    /// Runs that have ended since its artifact was cleared.
    pub run_count: u64,
    /// Version of its artifact; 0: there never was one.
    pub artifact_version: u64,
    /// The reason why its artifact cannot be read.
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
            short: AgentSummary {
                name: agent.name,
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

/// The result of an execution.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ExecutionResult))]
pub struct ExecutionResultView {
    /// True when it succeeded.
    pub success: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Its exit code; -1 if it was stopped, or if there was nothing to run.
    pub exit_code: i32,
    /// Its duration.
    pub duration_seconds: f64,
    /// The reason why it failed.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error_message: Option<String>,
    /// True when the same execution may succeed later.
    pub retryable: bool,
    /// The limit that stopped it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub limit: Option<String>,
    /// True when some of the output was dropped.
    pub truncated: bool,
    /// The run of an ask or of a project.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub run: Option<String>,
    /// The outcome for the agent's artifact; null if it was not the last attempt of its task, or never began.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub artifact: Option<ArtifactOutcomeView>,
    /// Notes for a person.
    pub notes: Vec<String>,
}

/// The outcome of an execution for the artifact of its agent.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = ArtifactOutcome))]
pub struct ArtifactOutcomeView {
    /// The version that the execution began with; 0 is none.
    pub base_version: u64,
    /// The version at its end.
    pub version: u64,
    /// True when the execution made that version. False: another run or a person did while it ran, and it stays whole.
    pub saved: bool,
}

impl From<InnerOutcome> for ArtifactOutcomeView {
    fn from(inner: InnerOutcome) -> Self {
        let InnerOutcome { base_version, version, saved } = inner;
        Self { base_version, version, saved }
    }
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
            artifact: inner.artifact.map(Into::into),
            notes: inner.notes,
        }
    }
}

/// An execution that has ended.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = AgentExecution))]
pub struct Executed {
    /// Its task; null if there was nothing to run.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub task: Option<String>,
    /// Its result.
    #[serde(flatten)]
    pub result: ExecutionResultView,
}

impl From<AgentExecution> for Executed {
    fn from(inner: AgentExecution) -> Self {
        let AgentExecution { task, result } = inner;
        Self { task: task.map(|task| task.to_string()), result: result.into() }
    }
}

/// The artifact that an agent passes to its next run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Artifact))]
pub struct ArtifactView {
    /// Name of the agent.
    pub agent: String,
    /// The state, any JSON.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub state: Value,
    /// The state in words.
    pub summary: String,
    /// Time of its creation, as RFC 3339 writes it.
    pub created_at: String,
    /// Runs that have ended since the artifact was cleared.
    pub run_count: u64,
    /// Counts its changes.
    pub version: u64,
    /// The author of this version.
    pub created_by: String,
}

impl From<InnerArtifact> for ArtifactView {
    fn from(inner: InnerArtifact) -> Self {
        let InnerArtifact { agent, state, summary, created_at, run_count, version, made_by } = inner;
        Self { agent: agent.to_string(), state, summary, created_at, run_count, version, created_by: made_by }
    }
}

/// The current artifact of an agent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = CurrentArtifact))]
pub struct PassedArtifact {
    /// The artifact; null before the first run and after it was cleared.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub artifact: Option<ArtifactView>,
    /// Its version, for `If-Match`.
    pub version: u64,
    /// Runs that have ended since this version, and that had begun with an earlier one: they changed nothing.
    pub conflict_count: u64,
}

impl From<HandedArtifact> for PassedArtifact {
    fn from(inner: HandedArtifact) -> Self {
        let HandedArtifact { artifact, version, conflict_count } = inner;
        Self { artifact: artifact.map(Into::into), version, conflict_count }
    }
}

/// The kept versions of an artifact.
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
