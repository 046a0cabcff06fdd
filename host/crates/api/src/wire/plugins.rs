//! Plugins that are installed or shipped.

use serde::Serialize;

/// One version that is installed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InstalledVersion {
    /// As its manifest says.
    pub version: String,
    /// The digest of its bytes.
    pub digest: String,
    /// How many.
    pub bytes: u64,
}

/// A plugin.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Plugin))]
pub struct PluginView {
    /// Its name.
    pub name: String,
    /// Where the component is that a run takes.
    pub path: String,
    /// What it is; null where it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub role: Option<String>,
    /// As its manifest says.
    pub version: String,
    /// In one line.
    pub description: String,
    /// The digest of its bytes; null where it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub digest: Option<String>,
    /// What it asks for, one line each.
    pub asks: Vec<String>,
    /// Why it cannot be read.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub error: Option<String>,
    /// The versions that are installed.
    pub installed: Vec<InstalledVersion>,
}
