//! The user's own settings for all projects: `config.toml` in the user's configuration directory, on Linux
//! `~/.config/longhaul/config.toml`. A missing file counts as an empty one.
//!
//! The permissions of a project are in its own file and never here.

use longhaul_core::fault::{self, Context as _};
use serde::Deserialize;
use std::path::PathBuf;

/// The settings in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserSettings {
    /// Actions that need no question.
    pub auto: AutoSettings,
}

/// `[auto]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoSettings {
    /// True when `longhaul do` makes projects. Default false.
    pub projects: bool,
    /// The template of `longhaul.toml` for such projects, relative to this file; `{{name}}` in it stands for the
    /// project's name. Default: the template of `longhaul new`.
    pub template: Option<PathBuf>,
}

impl UserSettings {
    /// Reads the file.
    pub fn read() -> fault::Result<Self> {
        let Some(path) = path() else { return Ok(Self::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).with_context(|| format!("`{}`", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        }
    }
}

impl AutoSettings {
    /// Reads the template, if one is named.
    pub fn template(&self) -> fault::Result<Option<String>> {
        let Some(named) = &self.template else { return Ok(None) };
        let path = path().and_then(|path| Some(path.parent()?.join(named))).unwrap_or_else(|| named.clone());
        std::fs::read_to_string(&path).map(Some).with_context(|| format!("cannot read `{}`", path.display()))
    }
}

/// The path of the file; none if the user has no home directory.
pub fn path() -> Option<PathBuf> {
    Some(directories::ProjectDirs::from("", "", "longhaul")?.config_dir().join("config.toml"))
}
