//! The resources of a data directory with which the tools of a run are opened, confined and recorded.
//!
//! Refuses to know an engine or a component: the crate that loads components makes this value.

use longhaul_core::Clock;
use longhaul_core::fault;
use longhaul_core::redact::Redact;
use longhaul_core::store::Store;
use longhaul_home::crash::CrashPoints;
use longhaul_home::{Home, Owned, own_program};
use longhaul_sandbox::{Level, SandboxHost};
use longhaul_security::audit::AuditLog;
use longhaul_security::secrets::KnownSecrets;
use std::path::Path;
use std::sync::Arc;

/// The resources with which tools work in a data directory.
#[derive(Clone)]
pub struct ToolEnvironment {
    /// The data directory.
    pub home: Home,
    /// The lock of the data directory, held for as long as a tool works there.
    pub owned: Arc<Owned>,
    /// The store with all state.
    pub store: Arc<dyn Store>,
    /// The machine's clock.
    pub clock: Arc<dyn Clock>,
    /// The secrets that are redacted from the output of programs.
    pub secrets: Arc<KnownSecrets>,
    /// The audit log.
    pub audit: Arc<AuditLog>,
    /// The points where crash tests end the process.
    pub crash: CrashPoints,
    /// Returns unguessable bytes.
    pub random: fn() -> [u8; 32],
}

impl ToolEnvironment {
    /// The sandbox of untrusted programs: checks, and programs that agents start. `level_min` is the lowest level that
    /// they may run at, `project` is the directory that they work for.
    pub fn check_host(&self, level_min: Level, project: &Path) -> fault::Result<SandboxHost> {
        let scratch = self.home.scratch();
        std::fs::create_dir_all(&scratch)?;
        let hidden = vec![self.home.path().to_owned()];
        let prefix_args = vec!["check-child".into()];
        let redact: Arc<dyn Redact> = self.secrets.clone();
        // Outside of a repository, as for a graph, the directory itself is the root.
        let found = longhaul_worktree::UserRepository::open(project).map(|found| found.root().to_owned());
        let checkout = Some(found.unwrap_or_else(|_| project.to_owned()));
        let (program, redact) = (own_program()?, Some(redact));
        let cache = longhaul_home::cache().ok();
        Ok(SandboxHost { program, prefix_args, scratch, cache, hidden, checkout, level_min, redact })
    }
}
