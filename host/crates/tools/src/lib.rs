//! The host's own tools on the tree of a run: `git`, `search` and `shell`.
//!
//! They are no components since a sandbox of WebAssembly cannot hold them: `git` reads the user's object database,
//! `shell` starts programs, `search` goes through many files at the speed of the machine. So each takes apart itself
//! what a model asks for: paths stay below the tree and pass through no link, every answer is bounded, and what is
//! refused is said by its name. Refuses to decide who may call them, to ask a person, and to keep a journal: that is
//! the host's.

mod arguments;
mod git;
mod search;
mod shell;

pub use git::Git;
pub use search::Search;
pub use shell::{Shell, ShellSettings};

use longhaul_core::Clock;
use longhaul_core::tool::HostTool;
use longhaul_sandbox::SandboxHost;
use longhaul_worktree::{Project, Tree, TreeError};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// The tools that there are.
pub const NAMES: [&str; 3] = ["git", "search", "shell"];

/// Those of them whose every call a person should approve of.
pub const ALWAYS_ASK: [&str; 1] = ["shell"];

/// Where tools work.
#[derive(Clone)]
pub struct Place {
    /// The user's project.
    pub project: PathBuf,
    /// The tree of the run.
    pub tree: PathBuf,
    /// The branch of the run, `longhaul/NAME`.
    pub branch: String,
    /// How programs are confined on this machine.
    pub host: SandboxHost,
    /// The machine's clock.
    pub clock: Arc<dyn Clock>,
}

impl Place {
    fn tree(&self) -> Tree {
        Tree::in_dir(&self.tree)
    }

    fn project(&self) -> Result<Project, TreeError> {
        Project::open(&self.project)
    }
}

/// Why a tool cannot be had as it is configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// No such tool.
    #[error("there is no tool `{name}`; there are git, search and shell")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// Its settings cannot be read.
    #[error("its settings are wrong: {why}")]
    Settings {
        /// What is wrong, and what to do.
        why: String,
    },
}

/// The tool of that name, with the operator's settings.
///
/// # Errors
/// When there is no such tool, or its settings are wrong.
pub fn open(name: &str, settings: &Value, place: &Place) -> Result<Arc<dyn HostTool>, ToolsError> {
    check(name, settings)?;
    Ok(match name {
        "git" => Arc::new(Git::new(place.clone())),
        "search" => Arc::new(Search::new(place.clone())),
        _ => Arc::new(Shell::new(place.clone(), ShellSettings::read(settings)?)),
    })
}

/// Looks at settings before anything is made of them.
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
