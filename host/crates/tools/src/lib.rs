//! The host's own tools on the tree of a run: `git`, `search` and `shell`.
//!
//! They are no components since a sandbox of WebAssembly cannot hold them: `git` reads the user's object database,
//! `shell` starts programs, `search` reads many files at the speed of the machine. So each checks a model's request
//! itself: paths stay below the tree and pass through no link, every answer is bounded, and a refusal names its reason.
//! Refuses to decide on permissions, to ask a person, and to keep a journal: the host does that.

mod arguments;
mod environment;
mod error;
mod git;
mod search;
mod shell;

pub use environment::ToolRoot;
pub use error::ToolsError;
pub use git::Git;
pub use search::Search;
pub use shell::{Shell, ShellSettings};

use longhaul_core::tool::HostTool;
use serde_json::Value;
use std::sync::Arc;

/// The names of the tools.
pub const NAMES: [&str; 3] = ["git", "search", "shell"];

/// The tools whose every call a person should approve.
pub const ALWAYS_ASK: [&str; 1] = ["shell"];

/// The tool of that name, with the operator's settings.
///
/// # Errors
/// When there is no such tool, or its settings are wrong.
pub fn open(name: &str, settings: &Value, place: &ToolRoot) -> Result<Arc<dyn HostTool>, ToolsError> {
    check(name, settings)?;
    Ok(match name {
        "git" => Arc::new(Git::new(place.clone())),
        "search" => Arc::new(Search::new(place.clone())),
        _ => Arc::new(Shell::new(place.clone(), ShellSettings::read(settings)?)),
    })
}

/// Checks settings before a tool is made of them.
///
/// # Errors
/// As [`open`].
pub fn check(name: &str, settings: &Value) -> Result<(), ToolsError> {
    match name {
        "git" | "search" if settings.as_object().is_none_or(serde_json::Map::is_empty) => Ok(()),
        "git" | "search" => Err(ToolsError::Settings { why: format!("`{name}` has none; remove the line") }),
        "shell" => ShellSettings::read(settings).map(|_| ()),
        _ => Err(ToolsError::Unknown { name: name.to_owned() }),
    }
}
