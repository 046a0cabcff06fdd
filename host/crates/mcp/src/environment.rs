//! The parts of the host that every server is started with: where it runs, the sandbox, the store of pins and secrets.
//!
//! The host makes one value for a run. This file starts nothing and knows no table of a server.

use longhaul_core::store::Store;
use longhaul_egress::Secret;
use longhaul_sandbox::SandboxHost;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Gives the value of a secret by its name, or why there is none.
pub type SecretOf = Arc<dyn Fn(&str) -> Result<Secret, String> + Send + Sync>;

/// What a server needs of the host.
#[derive(Clone)]
pub struct McpEnvironment {
    /// The project's name, whose pins these are.
    pub project: String,
    /// Where commands run whose table names no directory: the tree of the run.
    pub tree: PathBuf,
    /// The project's directory, which those are relative to that a table names.
    pub base: PathBuf,
    /// This very binary, with the arguments that lead to [`crate::keep_child`]; the host's id and the command come after.
    pub keeper: Vec<OsString>,
    /// How programs are confined, and the least that must hold a server.
    pub host: SandboxHost,
    /// Arguments of this very binary that lead to [`crate::mcp_child`].
    pub inside: Vec<String>,
    /// Where pins are kept.
    pub store: Arc<dyn Store>,
    /// Secrets.
    pub secret: SecretOf,
    /// Bytes that nobody can guess.
    pub random: Arc<dyn Fn() -> [u8; 32] + Send + Sync>,
}
