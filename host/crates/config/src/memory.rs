//! `[memory]`: the backend of a project's memory, and how much of it planners and sessions get.

use crate::part::PluginConfig;
use crate::toml_text;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_redis::RedisConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table of the memory component.
pub const PLUGIN: &str = "memory.plugin";

/// The table `[memory]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// The backend of memory. Default `embedded`.
    pub backend: BackendName,
    /// The model that extracts the memory of a run, by its name under `[models]`. Default: none, and a rule keeps the
    /// outcome of each feature.
    pub model: Option<String>,
    /// True when runs are remembered when they end, and later runs get that memory. Default true.
    pub episodic: bool,
    /// Episodes that a planner or a session gets. Default 3.
    pub episodes_max: usize,
    /// Facts that it gets. Default 20.
    pub facts_max: usize,
    /// The sentence model that finds memories with the same meaning in other words; `minilm` is one. Default: none, and
    /// a memory that shares no word with a question is not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<String>,
    /// The server, for the backend `redis`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisConfig>,
    /// The component, for the backend `plugin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginConfig>,
}

/// The backend of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendName {
    /// The data directory.
    #[default]
    Embedded,
    /// A server that several machines share.
    Redis,
    /// A component.
    Plugin,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            backend: BackendName::default(),
            model: None,
            episodic: true,
            episodes_max: 3,
            facts_max: 20,
            embeddings: None,
            redis: None,
            plugin: None,
        }
    }
}

impl MemoryConfig {
    /// Refuses invalid values.
    pub fn check(&self, models: &[&String]) -> fault::Result<()> {
        if let Some(model) = self.model.as_ref().filter(|model| !models.contains(model)) {
            let or = toml_text::or_make(model, models, &format!("add [models.{model}], or remove the line"));
            bail!("[memory] model names `{model}`, and there is no [models.{model}]{or}");
        }
        match self.backend {
            BackendName::Redis if self.redis.is_none() => {
                bail!("[memory] backend is `redis`; add [memory.redis] url = \"redis://HOST:PORT/0\"")
            }
            BackendName::Plugin if self.plugin.is_none() => {
                bail!("[memory] backend is `plugin`; add [memory.plugin] plugin = \"NAME\"")
            }
            BackendName::Plugin if self.embeddings.is_some() => {
                bail!(
                    "[memory] embeddings is for backends of the host's own, and a component finds by itself; remove it"
                )
            }
            _ => {}
        }
        if let Some(redis) = &self.redis {
            redis.check().map_err(|wrong| Fault::invalid(format!("[memory.redis] {wrong}")))?;
        }
        if self.plugin.iter().flat_map(|part| &part.directories).any(|given| given.is_tree()) {
            bail!("[memory.plugin] is given the tree of a run, and it outlives runs; name a directory with host");
        }
        Ok(())
    }
}
