//! Plugins that are installed or shipped.

use serde::Serialize;

/// One installed version of a plugin.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InstalledVersion {
    /// The version of its manifest.
    pub version: String,
    /// The digest of its bytes.
    pub digest: String,
    /// The number of its bytes.
    pub bytes: u64,
}

/// A plugin.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Plugin))]
pub struct PluginView {
    /// Its name.
    pub name: String,
    /// Path of the component that a run uses.
    pub path: String,
    /// Its role, for example `tool`; null if it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub role: Option<String>,
    /// The version of its manifest.
    pub version: String,
    /// Its description, in one line.
    pub description: String,
    /// The digest of its bytes; null if it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub digest: Option<String>,
    /// The grants that it asks for, one line each.
    pub requested_grants: Vec<String>,
    /// The reason why it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// Its installed versions.
    pub installed: Vec<InstalledVersion>,
}
