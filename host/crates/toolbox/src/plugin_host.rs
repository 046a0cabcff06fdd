//! The resources of a data directory with which plugins are loaded, confined and served: its store, the clock, the
//! engine, and the secrets that are redacted.
//!
//! It outlives a run, and holds the lock of the data directory for as long as anything works with it. It knows no
//! callers: the crates of runs, agents and notifications are built on it.

use longhaul_core::Clock;
use longhaul_core::fault;
use longhaul_core::redact::Redact;
use longhaul_core::store::Store;
use longhaul_engine::Engine;
use longhaul_home::crash::CrashPoints;
use longhaul_home::{Home, Owned, own_program};
use longhaul_plugins::LoadedPlugins;
use longhaul_sandbox::{Level, SandboxHost};
use longhaul_security::audit::AuditLog;
use longhaul_security::secrets::KnownSecrets;
use std::path::Path;
use std::sync::Arc;

/// The resources with which plugins of a data directory are loaded, confined and served.
pub struct PluginHost {
    /// The data directory.
    pub home: Home,
    /// The store with all state.
    pub store: Arc<dyn Store>,
    /// The machine's clock.
    pub clock: Arc<dyn Clock>,
    /// The engine that runs components.
    pub engine: Engine,
    /// The loaded plugins.
    pub loaded: LoadedPlugins,
    /// The secrets that are redacted from the output of programs.
    pub secrets: Arc<KnownSecrets>,
    /// The audit log.
    pub audit: AuditLog,
    /// The points where crash tests end the process.
    pub crash: CrashPoints,
    _owned: Owned,
}

impl PluginHost {
    /// The plugin host of a data directory that this process owns, with the store that was opened there.
    pub fn new(owned: Owned, store: Arc<dyn Store>, clock: Arc<dyn Clock>, engine: Engine, crash: CrashPoints) -> Self {
        let home = owned.home().clone();
        Self {
            secrets: Arc::new(KnownSecrets::new(&home)),
            audit: AuditLog::new(Arc::clone(&store), Arc::clone(&clock)),
            home,
            store,
            clock,
            engine,
            loaded: LoadedPlugins::default(),
            crash,
            _owned: owned,
        }
    }

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
        Ok(SandboxHost { program, prefix_args, scratch, hidden, checkout, level_min, redact })
    }

    /// Randomness for one invocation, from the system.
    pub fn fresh_seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        // The system always has randomness, and an invocation with a guessable seed would be worse than none.
        getrandom::fill(&mut seed).expect("the system gives randomness");
        seed
    }
}
