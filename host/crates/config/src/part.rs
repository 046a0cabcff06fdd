//! The table of one plugin: the component or tool of a part, and the operator's grants to it.
//!
//! Refuses to decide a plugin's grants: those depend on its requests as well, see [`crate::grants`].

use crate::secrets::SecretConfig;
use longhaul_approval::ApprovalPolicy;
use longhaul_core::grant::{Access, HostPattern};
use longhaul_core::packages::{PACKAGES_MAX, PackageRequirement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The word that stands for the tree of a run where a directory is granted.
pub(crate) const TREE: &str = "tree";

/// A table that names the plugin of a part, and the operator's grants to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PluginConfig {
    /// The name of a plugin, or the path of a `.wasm` file, which starts with `.` or `/`.
    pub plugin: String,
    /// The runtime of the tool `python`: `wasm`, or `native`, which is Python of this machine in the sandbox of native
    /// programs. Default `wasm`.
    #[serde(skip_serializing_if = "ToolRuntime::is_wasm")]
    pub runtime: ToolRuntime,
    /// The virtual environment with the packages of native Python, relative to the project. Default: the `python3` of
    /// PATH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venv: Option<PathBuf>,
    /// Models that it may ask; the first is the default.
    pub models: Vec<String>,
    /// Tools that it may call, by their names under `[tools]`.
    pub tools: Vec<String>,
    /// Agents that it may delegate to, by their names under `[agents]`.
    pub agents: Vec<String>,
    /// Categories of features that go to this agent, over the usual ones. Only for agents.
    pub categories: Vec<String>,
    /// Steps between its checkpoints, over `every` of `[checkpoints]`. Only for agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u32>,
    /// True when it reads untrusted text in quarantine: it has only tools that read, and returns only data that fits
    /// `schema`. Only for agents that others delegate to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quarantine: bool,
    /// The schema of the data that a quarantined agent returns; see [`crate::quarantine`].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub schema: Option<serde_json::Value>,
    /// The strengths of the agent, for the choice between agents. Only for agents.
    pub description: Option<String>,
    /// True when its own confidence counts in an ask. Default true. Only for agents.
    pub confidence_from_llm: Option<bool>,
    /// Directories that it may use. Only for tools.
    pub directories: Vec<DirectoryConfig>,
    /// Hosts that it may reach. Only for tools.
    pub hosts: Vec<HostPattern>,
    /// Secrets that it may send, each to its hosts and in its header. Only for tools.
    pub secrets: Vec<SecretConfig>,
    /// True when the operator vouches for the tool's claims about its effects. Without it every effect that its grants
    /// do not prove harmless counts as `acts`.
    pub confirm_effects: bool,
    /// Calls of the tool that need an approval, and calls that are refused. Only for tools.
    pub approval: ApprovalPolicy,
    /// Commands that run without an approval. Only for `builtin:shell`; see [`longhaul_approval::AllowedCommand`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Packages of Python that its interpreter imports, such as `tabulate==0.9.0`, as `packages.lock` has them. Only
    /// for tools that ask for `/packages`, such as `python`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = PACKAGES_MAX))]
    pub packages: Vec<PackageRequirement>,
    /// Passed to the plugin unchanged.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The limits of the part. A missing field has the value of `[limits]`.
    #[schemars(with = "longhaul_core::Limits")]
    pub limits: toml::Table,
    /// The rules that trim its conversations, over `[context]` in the same way.
    #[schemars(with = "longhaul_core::context::ContextRules")]
    pub context: toml::Table,
}

/// The runtime of the code of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolRuntime {
    /// In an instance of WebAssembly.
    #[default]
    Wasm,
    /// In an interpreter of this machine.
    Native,
}

impl ToolRuntime {
    fn is_wasm(&self) -> bool {
        *self == Self::Wasm
    }
}

/// One granted directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryConfig {
    /// The path in the guest.
    pub guest: String,
    /// `tree` for the tree of the run, otherwise a path, relative to the project.
    #[serde(default = "default_tree")]
    pub host: PathBuf,
    /// `read` or `write`.
    pub access: Access,
}

impl DirectoryConfig {
    /// True when it is the tree of a run.
    pub fn is_tree(&self) -> bool {
        self.host == Path::new(TREE)
    }
}

fn default_tree() -> PathBuf {
    TREE.into()
}
