//! The arguments of callers and the settings of the operator, read strictly: an unknown field is an error by its name.

use longhaul_sdk::json;
use longhaul_sdk::tools::ToolError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) offset: u64,
    pub(crate) limit: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    #[serde(default)]
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) recursive: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    pub(crate) query: String,
    /// The query is a pattern with `*` and `?`, not a plain text.
    #[serde(default)]
    pub(crate) glob: bool,
    #[serde(default)]
    pub(crate) path: String,
    /// A pattern that the names of the files must match.
    #[serde(default)]
    pub(crate) files: String,
    #[serde(default)]
    pub(crate) ignore_case: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    pub(crate) path: String,
    pub(crate) content: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    pub(crate) path: String,
    pub(crate) old: String,
    pub(crate) new: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MultiEdit {
    pub(crate) path: String,
    pub(crate) edits: Vec<Replacement>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replacement {
    pub(crate) old: String,
    pub(crate) new: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Patch {
    pub(crate) patch: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delete {
    pub(crate) path: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Move {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// Under `[tools.files.settings]` of `longhaul.toml`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Most that one `read` gives, in bytes. Default 256 KiB, at most 4 MiB.
    pub(crate) read_bytes_max: u64,
    /// Largest file that a change makes, in bytes. Default 1 MiB, at most 4 MiB.
    pub(crate) write_bytes_max: u64,
}

const BYTES_MAX: u64 = 4 * 1024 * 1024;

impl Default for Settings {
    fn default() -> Self {
        Self { read_bytes_max: 256 * 1024, write_bytes_max: 1024 * 1024 }
    }
}

impl Settings {
    pub(crate) fn read(text: &str) -> Result<Self, ToolError> {
        let settings: Self = json::read("settings of the tool `files`", text)?;
        Ok(Self {
            read_bytes_max: settings.read_bytes_max.clamp(1, BYTES_MAX),
            write_bytes_max: settings.write_bytes_max.clamp(1, BYTES_MAX),
        })
    }
}

pub(crate) fn arguments<T: DeserializeOwned>(text: &str) -> Result<T, ToolError> {
    json::read("arguments", text).map_err(ToolError::from)
}
