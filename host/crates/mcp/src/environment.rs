//! The environment of every server: directories, the sandbox, the store of pins, and secrets.
//!
//! The host makes one value for a run. This file starts nothing and knows no table of a server.

use longhaul_core::store::Store;
use longhaul_egress::Secret;
use longhaul_sandbox::SandboxHost;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Returns the value of a secret by its name, or why there is none.
pub type SecretOf = Arc<dyn Fn(&str) -> Result<Secret, String> + Send + Sync>;

/// The environment of a server.
#[derive(Clone)]
pub struct McpEnvironment {
    /// The name of the project, which owns the pins.
    pub project: String,
    /// The working directory of commands whose table names none: the tree of the run.
    pub tree: PathBuf,
    /// The project's directory, to which a table's paths are relative.
    pub base: PathBuf,
    /// This very binary, with the arguments that lead to [`crate::keep_child`]; the host's id and the command follow.
    pub keeper: Vec<OsString>,
    /// The sandbox of programs, and the lowest level of a server.
    pub host: SandboxHost,
    /// Arguments of this very binary that lead to [`crate::mcp_child`].
    pub inside: Vec<String>,
    /// The store of pins.
    pub store: Arc<dyn Store>,
    /// Secrets.
    pub secret: SecretOf,
    /// Returns unguessable bytes.
    pub random: Arc<dyn Fn() -> [u8; 32] + Send + Sync>,
}
