//! The resources of a data directory with which plugins are loaded, confined and served: its store, the clock, the
//! engine, and the secrets that are redacted.
//!
//! It outlives a run, and holds the lock of the data directory for as long as anything works with it. It knows no
//! callers: the crates of runs, agents and notifications are built on it.

use crate::loaded::LoadedPlugins;
use longhaul_core::Clock;
use longhaul_core::fault;
use longhaul_core::store::Store;
use longhaul_engine::Engine;
use longhaul_home::crash::CrashPoints;
use longhaul_home::{Home, Owned};
use longhaul_sandbox::{Level, SandboxHost};
use longhaul_security::audit::AuditLog;
use longhaul_security::secrets::KnownSecrets;
use longhaul_toolbox::environment::ToolEnvironment;
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
    pub audit: Arc<AuditLog>,
    /// The points where crash tests end the process.
    pub crash: CrashPoints,
    owned: Arc<Owned>,
}

impl PluginHost {
    /// The plugin host of a data directory that this process owns, with the store that was opened there.
    pub fn new(
        owned: Arc<Owned>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        engine: Engine,
        crash: CrashPoints,
    ) -> Self {
        let home = owned.home().clone();
        Self {
            secrets: Arc::new(KnownSecrets::new(&home)),
            audit: Arc::new(AuditLog::new(Arc::clone(&store), Arc::clone(&clock))),
            home,
            store,
            clock,
            engine,
            loaded: LoadedPlugins::default(),
            crash,
            owned,
        }
    }

    /// The sandbox of untrusted programs: checks, and programs that agents start. `level_min` is the lowest level that
    /// they may run at, `project` is the directory that they work for.
    pub fn check_host(&self, level_min: Level, project: &Path) -> fault::Result<SandboxHost> {
        self.tool_environment().check_host(level_min, project)
    }

    /// The resources with which tools work here.
    pub fn tool_environment(&self) -> ToolEnvironment {
        ToolEnvironment {
            home: self.home.clone(),
            owned: Arc::clone(&self.owned),
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            secrets: Arc::clone(&self.secrets),
            audit: Arc::clone(&self.audit),
            crash: self.crash.clone(),
            random: fresh_seed,
        }
    }

    /// Randomness for one invocation, from the system.
    pub fn fresh_seed(&self) -> [u8; 32] {
        fresh_seed()
    }
}

fn fresh_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    // The system always has randomness, and an invocation with a guessable seed would be worse than none.
    getrandom::fill(&mut seed).expect("the system gives randomness");
    seed
}
