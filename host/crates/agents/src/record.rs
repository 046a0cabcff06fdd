//! Records of agents. A record changes as a whole, and its writer names the version.

use crate::AgentError;
use longhaul_core::grant::{DirectoryGrant, HostPattern};
use longhaul_core::{Digest, Name};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Bytes of a source: the limit of the interpreters.
pub const SOURCE_BYTES_MAX: usize = 1_000_000;
/// Bytes of a program in WebAssembly.
pub const WASM_BYTES_MAX: usize = 16 << 20;
/// Bytes of a configuration.
pub const CONFIG_BYTES_MAX: usize = 64 << 10;

const DESCRIPTION_BYTES_MAX: usize = 4_000;
const GOAL_BYTES_MAX: usize = 64 << 10;
const GRANTS_MAX: usize = 100;

/// The longest time of an execution: a day.
const TIMEOUT_MS_MAX: u64 = 86_400_000;
const MEMORY_BYTES_MIN: u64 = 1 << 20;
const MEMORY_BYTES_MAX: u64 = 4 << 30;
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// The code of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum AgentCode {
    /// Python, in the sandbox.
    Python {
        /// Source text, at most 1,000,000 bytes.
        source: String,
    },
    /// JavaScript, in the sandbox.
    JavaScript {
        /// Source text, at most 1,000,000 bytes.
        source: String,
    },
    /// A program of WASI, in the sandbox.
    Wasm {
        /// Digest of the component's bytes, which the store keeps. At most 16 MiB.
        digest: Digest,
    },
    /// A question to the agents of a project, as with `longhaul ask`.
    Ask {
        /// The project; an absolute path.
        directory: PathBuf,
        /// The question. At most 64 KiB.
        goal: String,
        /// The agent that answers; none: as the project says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A run of a project, as with `longhaul run`.
    Run {
        /// The project; an absolute path.
        directory: PathBuf,
    },
}

impl AgentCode {
    /// The word of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Python { .. } => "python",
            Self::JavaScript { .. } => "javascript",
            Self::Wasm { .. } => "wasm",
            Self::Ask { .. } => "ask",
            Self::Run { .. } => "run",
        }
    }

    /// True when it is a run of its own, which continues after a kill.
    #[must_use]
    pub fn is_run(&self) -> bool {
        matches!(self, Self::Ask { .. } | Self::Run { .. })
    }

    fn check(&self) -> Result<(), AgentError> {
        match self {
            Self::Python { source } | Self::JavaScript { source } => {
                fits("source", source.len(), SOURCE_BYTES_MAX, "hand data over as a file with a directory")
            }
            Self::Wasm { .. } => Ok(()),
            Self::Ask { directory, goal, .. } => {
                if goal.trim().is_empty() {
                    return Err(AgentError::Code("the goal is empty; write what is asked".to_owned()));
                }
                fits("goal", goal.len(), GOAL_BYTES_MAX, "name files instead")?;
                is_absolute(directory)
            }
            Self::Run { directory } => is_absolute(directory),
        }
    }
}

/// Limits of one execution. An ask and a run are bounded by their project's `longhaul.toml` instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// Time on the clock, in milliseconds. Default 300,000, at most a day.
    pub timeout_ms: u64,
    /// All linear memory, in bytes. Default 256 MiB, at least 1 MiB and at most 4 GiB.
    pub memory_bytes_max: u64,
    /// The longest standard output that is stored, in bytes, and the same for standard error. Default 1 MiB, at most 16
    /// MiB.
    pub output_bytes_max: u64,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { timeout_ms: 300_000, memory_bytes_max: 256 << 20, output_bytes_max: 1 << 20 }
    }
}

impl AgentLimits {
    fn check(&self) -> Result<(), AgentError> {
        let within = |field, value: u64, min: u64, max: u64| match (min..=max).contains(&value) {
            true => Ok(()),
            false => Err(AgentError::Limit { field, value, min, max }),
        };
        within("timeout_ms", self.timeout_ms, 1, TIMEOUT_MS_MAX)?;
        within("memory_bytes_max", self.memory_bytes_max, MEMORY_BYTES_MIN, MEMORY_BYTES_MAX)?;
        within("output_bytes_max", self.output_bytes_max, 1, OUTPUT_BYTES_MAX)
    }
}

/// Grants of one execution. An ask and a run have the grants of their project's `longhaul.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentGrants {
    /// Hosts that Python and programs may reach by HTTP. Default none.
    pub hosts: Vec<HostPattern>,
    /// Directories that it sees, by absolute paths. Default none.
    pub directories: Vec<DirectoryGrant>,
}

impl AgentGrants {
    fn check(&self) -> Result<(), AgentError> {
        for (field, count) in [("grants.hosts", self.hosts.len()), ("grants.directories", self.directories.len())] {
            if count > GRANTS_MAX {
                let (value, max) = (count as u64, GRANTS_MAX as u64);
                return Err(AgentError::Limit { field, value, min: 0, max });
            }
        }
        self.directories.iter().try_for_each(|directory| is_absolute(&directory.host))
    }
}

/// A model that summarises a run's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryBy {
    /// The project whose `longhaul.toml` has the model; an absolute path.
    pub directory: PathBuf,
    /// Name of the model in that file.
    pub model: String,
}

/// A caller's description of a new agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// Name of the agent.
    pub name: Name,
    /// Purpose of the agent. At most 4,000 bytes.
    #[serde(default)]
    pub description: String,
    /// The code.
    pub code: AgentCode,
    /// True when the agent may be run. Default true.
    #[serde(default = "yes")]
    pub active: bool,
    /// Value of `CONTEXT["config"]` in the code; any JSON, at most 64 KiB. Default none.
    #[serde(default)]
    pub config: Value,
    /// Limits of one execution.
    #[serde(default)]
    pub limits: AgentLimits,
    /// Grants of one execution.
    #[serde(default)]
    pub grants: AgentGrants,
    /// Model that sums up a run's output. Default none: the summary is the first 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_by: Option<SummaryBy>,
}

fn yes() -> bool {
    true
}

/// A change of an agent; a missing field stays unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentPatch {
    /// Purpose of the agent.
    pub description: Option<String>,
    /// The code.
    pub code: Option<AgentCode>,
    /// True when the agent may be run after the change.
    pub active: Option<bool>,
    /// The configuration; `null` removes it.
    #[serde(deserialize_with = "given")]
    pub config: Option<Value>,
    /// Limits of one execution, all of them.
    pub limits: Option<AgentLimits>,
    /// Grants of one execution, all of them.
    pub grants: Option<AgentGrants>,
    /// Model that sums up a run's output; `null` removes it.
    #[serde(deserialize_with = "given")]
    pub summary_by: Option<Option<SummaryBy>>,
}

/// Distinguishes a present `null` from a missing field.
fn given<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// The agent as its caller described it.
    #[serde(flatten)]
    pub agent: NewAgent,
    /// Counts its changes from 1 on.
    pub version: u64,
    /// Time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// Time of its last change, in milliseconds since 1970.
    pub updated_ms: u64,
}

impl NewAgent {
    /// An agent with the defaults.
    #[must_use]
    pub fn new(name: Name, code: AgentCode) -> Self {
        Self {
            name,
            description: String::new(),
            code,
            active: true,
            config: Value::Null,
            limits: AgentLimits::default(),
            grants: AgentGrants::default(),
            summary_by: None,
        }
    }

    /// Checks that the agent is valid.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn check(&self) -> Result<(), AgentError> {
        fits("description", self.description.len(), DESCRIPTION_BYTES_MAX, "say it shorter")?;
        fits("config", self.config.to_string().len(), CONFIG_BYTES_MAX, "hand data over as a file with a directory")?;
        self.code.check()?;
        self.limits.check()?;
        self.grants.check()?;
        match &self.summary_by {
            Some(by) => is_absolute(&by.directory),
            None => Ok(()),
        }
    }
}

impl AgentRecord {
    /// A new record.
    ///
    /// # Errors
    /// As [`NewAgent::check`].
    pub fn made(agent: NewAgent, now_ms: u64) -> Result<Self, AgentError> {
        agent.check()?;
        Ok(Self { agent, version: 1, created_ms: now_ms, updated_ms: now_ms })
    }

    /// The record with a change, one version on.
    ///
    /// # Errors
    /// [`AgentError::Changed`] when `expected` is another version than this, and as [`NewAgent::check`].
    pub fn changed(&self, patch: AgentPatch, expected: Option<u64>, now_ms: u64) -> Result<Self, AgentError> {
        if let Some(expected) = expected.filter(|expected| *expected != self.version) {
            let name = self.agent.name.to_string();
            return Err(AgentError::Changed { what: "the record", name, found: self.version, expected });
        }
        let AgentPatch { description, code, active, config, limits, grants, summary_by } = patch;
        let old = self.agent.clone();
        let agent = NewAgent {
            name: old.name,
            description: description.unwrap_or(old.description),
            code: code.unwrap_or(old.code),
            active: active.unwrap_or(old.active),
            config: config.unwrap_or(old.config),
            limits: limits.unwrap_or(old.limits),
            grants: grants.unwrap_or(old.grants),
            summary_by: summary_by.unwrap_or(old.summary_by),
        };
        agent.check()?;
        Ok(Self { agent, version: self.version + 1, created_ms: self.created_ms, updated_ms: now_ms })
    }

    /// Reads a stored record.
    ///
    /// # Errors
    /// [`AgentError::DamagedRecord`].
    pub fn read(name: &Name, bytes: &[u8]) -> Result<Self, AgentError> {
        let damaged = |why: String| AgentError::DamagedRecord { name: name.to_string(), why };
        let record: Self = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if record.agent.name == *name {
            return Ok(record);
        }
        Err(damaged(format!("it is that of `{}`", record.agent.name)))
    }
}

fn fits(field: &'static str, bytes: usize, max: usize, remedy: &'static str) -> Result<(), AgentError> {
    if bytes <= max { Ok(()) } else { Err(AgentError::TooLong { field, bytes, max, remedy }) }
}

fn is_absolute(path: &Path) -> Result<(), AgentError> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(AgentError::Code(format!("`{}` is no absolute path; write it from the root on", path.display())))
}
