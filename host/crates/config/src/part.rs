//! The table of one plugin: which component or tool plays a part, and what it is given.
//!
//! Refuses to say what a plugin may do: that is what it asks for as well, see [`crate::grants`].

use crate::secrets::SecretConfig;
use longhaul_approval::ApprovalPolicy;
use longhaul_core::grant::{Access, HostPattern};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The word that stands for the tree of a run where a directory is granted.
pub(crate) const TREE: &str = "tree";

/// A table that says which plugin plays a part, and what it may do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginConfig {
    /// The name of a plugin, or the path of a `.wasm` file, which starts with `.` or `/`.
    pub plugin: String,
    /// Models that it may ask; the first is the default.
    pub models: Vec<String>,
    /// Tools that it may call, by their names under `[tools]`.
    pub tools: Vec<String>,
    /// Agents that it may delegate to, by their names under `[agents]`.
    pub agents: Vec<String>,
    /// Categories of features that go to this agent, over the usual ones. Only for agents.
    pub categories: Vec<String>,
    /// After how many of its steps there is a checkpoint, over `every` of `[checkpoints]`. Only for agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u32>,
    /// Whether it hears untrusted words in quarantine: it has only tools that read, and hands back only data that fits
    /// `schema`. Only for agents that others delegate to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quarantine: bool,
    /// The data that an agent in quarantine hands back; see [`crate::quarantine`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// What it is good at, for whoever chooses between agents. Only for agents.
    pub description: Option<String>,
    /// Whether its own opinion of how sure it is counts in an ask. Default true. Only for agents.
    pub confidence_from_llm: Option<bool>,
    /// Directories that it may use. Only for tools.
    pub directories: Vec<DirectoryConfig>,
    /// Hosts that it may reach. Only for tools.
    pub hosts: Vec<HostPattern>,
    /// Secrets that it may send, each to its hosts and in its header. Only for tools.
    pub secrets: Vec<SecretConfig>,
    /// Whether the operator vouches for what the tool says of its effects. Without it every effect
    /// that its grants do not prove harmless counts as `acts`.
    pub confirm_effects: bool,
    /// What asks first, and what is refused, of a tool's calls. Only for tools.
    pub approval: ApprovalPolicy,
    /// Commands that run without a question. Only for `builtin:shell`; see [`longhaul_approval::AllowedCommand`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Handed to the plugin as it is.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// Its own limits, over those of `[limits]`: a field that is missing is as there.
    pub limits: toml::Table,
    /// When and how its conversations are cut back, over `[context]` in the same way.
    pub context: toml::Table,
}

/// One granted directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryConfig {
    /// Where the guest sees it.
    pub guest: String,
    /// `tree` for the tree of the run, otherwise a path, relative to the project.
    #[serde(default = "default_tree")]
    pub host: PathBuf,
    /// `read` or `write`.
    pub access: Access,
}

impl DirectoryConfig {
    /// Whether it is the tree of a run.
    pub fn is_tree(&self) -> bool {
        self.host == Path::new(TREE)
    }
}

fn default_tree() -> PathBuf {
    TREE.into()
}
