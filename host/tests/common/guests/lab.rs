//! One engine for a process, a store for a test, and calls of guests in one form.

use crate::common::of_this_user;
use longhaul_capabilities::null::NullServices;
use longhaul_capabilities::{InvocationScope, InvocationSetup, LogLine, Services};
use longhaul_core::event::WorkUsage;
use longhaul_core::grant::{DirectoryGrant, Grants};
use longhaul_core::journal::{Began, Journal};
use longhaul_core::store::Store;
use longhaul_core::tool::ToolCall;
use longhaul_core::work::Task;
use longhaul_core::{Clock, Digest, InvocationId, Limits};
use longhaul_engine::{
    CallError, Called, Cancel, CompileLimits, Engine, EngineOptions, Jail, LoadError, Plugin, Role, ToolAttempt,
};
use longhaul_journal::{Opened, Recorder};
use longhaul_store::{RedbStore, StoreOptions};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;

/// The engine that the tests of this process share, since its pool takes terabytes of address space.
/// Its cache outlives the process: code is found there by the digest of what it was compiled from.
static ENGINE: LazyLock<Engine> =
    LazyLock::new(|| pooled_engine(of_this_user("compiled")).unwrap_or_else(|error| panic!("{error}")));

/// An engine of its own, that allocates instances one by one.
pub fn engine_with(cache: PathBuf, limits: CompileLimits) -> Result<Engine, LoadError> {
    Engine::new(cache, jail(limits), &EngineOptions { on_demand: true, ..EngineOptions::default() })
}

/// An engine of its own with a pool of its own, where the machine gives the address space.
pub fn pooled_engine(cache: PathBuf) -> Result<Engine, LoadError> {
    Engine::new(cache, jail(CompileLimits::default()), &EngineOptions::default())
}

/// The same, and what calls leave is cleared beside their path.
pub fn engine_that_clears_aside(cache: PathBuf) -> Result<Engine, LoadError> {
    let options = EngineOptions { clears_aside: true, ..EngineOptions::default() };
    Engine::new(cache, jail(CompileLimits::default()), &options)
}

fn jail(limits: CompileLimits) -> Jail {
    Jail { program: env!("CARGO_BIN_EXE_longhaul").into(), arguments: vec!["compile-child".into()], limits }
}

/// A new directory that only we can reach.
pub fn private_directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).expect("ours");
    directory
}

/// Where guests are run.
pub struct Lab {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    calls: AtomicU64,
    _directory: TempDir,
}

impl Lab {
    /// With an empty store.
    pub fn new() -> Self {
        let directory = private_directory();
        let store =
            RedbStore::open(directory.path(), StoreOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        Self { store: Arc::new(store), clock: Arc::new(Machine), calls: AtomicU64::new(0), _directory: directory }
    }

    /// The engine that all share.
    pub fn engine(&self) -> &'static Engine {
        &ENGINE
    }

    /// Loads a plugin.
    pub async fn load(&self, name: &str, bytes: &[u8]) -> Plugin {
        ENGINE.load(name, bytes).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs one call to its end.
    pub async fn call(&self, plugin: &Plugin, call: &Call) -> Ended {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let invocation = InvocationId::from_text(format!("r-test/{number}"));
        let journal = plugin.role().is_pure().then(|| self.journal(plugin, &invocation, &call.limits));
        let setup = self.setup(invocation, journal, call);
        match plugin.role() {
            Role::Tool if call.function == "describe" => {
                let told = plugin.describe(setup, &call.cancel, &json!({})).await;
                Ended::of(told, |answer| answer.map(|info| format!("{} functions", info.functions.len())))
            }
            Role::Tool => {
                let asked = ToolCall {
                    tool: plugin.name().into(),
                    function: call.function.clone(),
                    arguments: call.arguments.clone(),
                };
                let settings = json!({});
                let attempt = ToolAttempt { key: "key", number: 1, settings: &settings };
                let told = plugin.call_tool(setup, &call.cancel, &asked, attempt).await;
                Ended::of(told, |answer| answer.map(|output| output.output))
            }
            Role::Agent => {
                let told = plugin.run(setup, &call.cancel, task(call)).await;
                Ended::of(told, |answer| answer.map(|outcome| outcome.output).map_err(|error| format!("{error:?}")))
            }
            other => panic!("no {} is called here", other.name()),
        }
    }

    fn journal(&self, plugin: &Plugin, invocation: &InvocationId, limits: &Limits) -> Arc<dyn Journal> {
        let began = Began {
            plugin: plugin.name().into(),
            table: "tools.test".into(),
            component: plugin.digest(),
            export: "agent.run".into(),
            input: Digest::of(b""),
            seed: [7; 32],
            fingerprint: ENGINE.fingerprint().into(),
            context: None,
            told: None,
            at_ms: self.clock.now_ms(),
        };
        match Recorder::open(self.store.clone(), self.clock.clone(), invocation.clone(), began, limits) {
            Ok(Opened::Running(recorder)) => Arc::new(recorder),
            Ok(Opened::Finished { .. }) => panic!("`{invocation}` ended before"),
            Err(error) => panic!("{error}"),
        }
    }

    fn setup(&self, invocation: InvocationId, journal: Option<Arc<dyn Journal>>, call: &Call) -> InvocationSetup {
        let null = Arc::new(NullServices);
        InvocationSetup {
            invocation,
            scope: InvocationScope { project: "test".into(), plugin: "tools.test".into() },
            grants: Grants { table: "tools.test".into(), directories: call.directories.clone(), ..Grants::default() },
            limits: call.limits.clone(),
            services: Services {
                models: null.clone(),
                tools: null.clone(),
                checks: null.clone(),
                delegate: null.clone(),
                graphs: null.clone(),
                approvals: null.clone(),
                supervisor: Arc::new(longhaul_core::supervisor::Unsupervised),
                store: self.store.clone(),
                memory: Arc::new(longhaul_core::memory::Embedded::new(self.store.clone(), self.clock.clone())),
                clock: self.clock.clone(),
                watch: null,
                exchange: None,
            },
            journal,
            seed: [7; 32],
            context: None,
            console: None,
            placeholders: Arc::default(),
            told: None,
        }
    }
}

fn task(call: &Call) -> Task {
    Task {
        id: call.function.clone(),
        instruction: call.arguments.clone(),
        context: json!({}),
        settings: json!({}),
        criteria: Vec::new(),
        feedback: Vec::new(),
        attempt: 1,
    }
}

/// A call of a guest, and its limits.
#[derive(Clone, Default)]
pub struct Call {
    /// The function of a tool, or the id of a task.
    pub function: String,
    /// The arguments of a function, or the instruction of a task.
    pub arguments: String,
    pub limits: Limits,
    pub directories: Vec<DirectoryGrant>,
    pub cancel: Cancel,
}

impl Call {
    /// A call of `function`, within `limits`.
    pub fn of(function: &str, limits: Limits) -> Self {
        Self { function: function.into(), limits, ..Self::default() }
    }
}

/// The result of a call.
#[derive(Debug)]
pub struct Ended {
    /// The guest's answer: its output, or its error.
    pub answer: Result<Result<String, String>, CallError>,
    pub used: WorkUsage,
    pub log: Vec<LogLine>,
    pub log_dropped: u64,
}

impl Ended {
    fn of<T, E: ToString>(called: Called<T>, answer: impl FnOnce(T) -> Result<String, E>) -> Self {
        let Called { result, used, log, log_dropped, .. } = called;
        let answer = result.map(|told| answer(told).map_err(|error| error.to_string()));
        Self { answer, used, log, log_dropped }
    }
}

/// The machine's clock: these guests wait for it.
struct Machine;

impl Clock for Machine {
    fn now_ms(&self) -> u64 {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
