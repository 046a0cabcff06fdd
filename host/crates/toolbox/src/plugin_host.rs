//! What plugins of a data directory are loaded, confined and served with: its store, the clock, the engine, and the
//! secrets that nobody may see.
//!
//! It outlives a run, and holds the lock of the data directory for as long as anything works with it. Refuses to know who
//! asks: runs, agents and letters have rooms of their own, which are given this.

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

/// What plugins of a data directory are loaded, confined and served with.
pub struct PluginHost {
    /// The data directory.
    pub home: Home,
    /// All state.
    pub store: Arc<dyn Store>,
    /// The machine's clock.
    pub clock: Arc<dyn Clock>,
    /// Runs components.
    pub engine: Engine,
    /// Plugins that were loaded.
    pub loaded: LoadedPlugins,
    /// What is taken out of what programs print.
    pub secrets: Arc<KnownSecrets>,
    /// Who was let do what.
    pub audit: AuditLog,
    /// Where crash tests end the process.
    pub crash: CrashPoints,
    _owned: Owned,
}

impl PluginHost {
    /// That of a data directory which this process owns, with the store that was opened there.
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

    /// How programs that nobody trusts are confined: checks, and what agents start. `level_min` is the least that must
    /// hold them, `project` is the directory whose work they are for.
    pub fn check_host(&self, level_min: Level, project: &Path) -> fault::Result<SandboxHost> {
        let scratch = self.home.scratch();
        std::fs::create_dir_all(&scratch)?;
        let hidden = vec![self.home.path().to_owned()];
        let prefix_args = vec!["check-child".into()];
        let redact: Arc<dyn Redact> = self.secrets.clone();
        // Outside of a repository, as for a graph, there is no more than that directory.
        let found = longhaul_worktree::UserRepository::open(project).map(|found| found.root().to_owned());
        let checkout = Some(found.unwrap_or_else(|_| project.to_owned()));
        let (program, redact) = (own_program()?, Some(redact));
        Ok(SandboxHost { program, prefix_args, scratch, hidden, checkout, level_min, redact })
    }

    /// Randomness for one invocation, from the system.
    pub fn fresh_seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        // There is no machine without it, and an invocation with a guessable seed would be worse than none.
        getrandom::fill(&mut seed).expect("the system gives randomness");
        seed
    }
}
