//! The plugins of a run, pinned by the digest of their bytes.

use longhaul_config::asks::RequestedGrants;
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part that runs checks written in Python; it exists without being configured.
pub const PYTHON_CHECKS: &str = "checks.python";

/// A plugin that a run pinned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PinnedPlugin {
    /// The name in the configuration.
    pub plugin: String,
    /// The digest of its bytes, which the store keeps.
    pub digest: Digest,
    /// The grants that it requested when it was pinned.
    pub asks: RequestedGrants,
    /// The world that its manifest names.
    #[serde(default)]
    pub world: Option<String>,
    /// The lock of the packages that its interpreter imports, as text; empty: none. Runs that were begun before there
    /// were packages have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub packages: String,
}

/// The pins of a run, by the tables of `longhaul.toml`.
pub type PinnedPlugins = BTreeMap<String, PinnedPlugin>;
