//! The environment of the tools: the user's project, the tree of a run, the sandbox and the clock.
//!
//! The host makes one value for a run. This file opens nothing by itself and depends on no tool.

use longhaul_core::Clock;
use longhaul_sandbox::SandboxHost;
use longhaul_worktree::{Tree, TreeError, UserRepository};
use std::path::PathBuf;
use std::sync::Arc;

/// The place in which tools work.
#[derive(Clone)]
pub struct ToolRoot {
    /// The user's project.
    pub project: PathBuf,
    /// The tree of the run.
    pub tree: PathBuf,
    /// The branch of the run, `longhaul/NAME`.
    pub branch: String,
    /// The confinement of programs on this machine.
    pub host: SandboxHost,
    /// The machine's clock.
    pub clock: Arc<dyn Clock>,
}

impl ToolRoot {
    pub(crate) fn tree(&self) -> Tree {
        Tree::in_dir(&self.tree)
    }

    pub(crate) fn project(&self) -> Result<UserRepository, TreeError> {
        UserRepository::open(&self.project)
    }
}
