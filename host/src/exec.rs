//! Running code that nobody trusts: Python, JavaScript, or a program of WASI, each in an instance of its
//! own that sees nothing of the host but what the job names.
//!
//! An [`Executor`] is made once; each [`Job`] then costs an instance. It keeps no journal and no state:
//! code that a run should be able to resume belongs into a tool. It never starts the code in a process
//! of the host, and never gives it the host's environment.
//!
//! ```no_run
//! # async fn example() -> Result<(), longhaul::exec::ExecError> {
//! use longhaul::exec::{Code, Executor, Job, Places};
//!
//! let executor = Executor::new(Places::usual()?)?;
//! let report = executor.run(Job::of(Code::Python("print(sum(range(10)))".into()))).await?;
//! assert_eq!(report.stdout, "45\n");
//! # Ok(()) }
//! ```

mod program;
mod ready;
mod report;
mod step;

use crate::plugins;
use longhaul_capabilities::{Console, Scope, Setup, null};
use longhaul_core::fault::Fault;
use longhaul_core::grant::{DirectoryGrant, Grants, HostPattern};
use longhaul_core::tool::ToolCall;
use longhaul_core::{InvocationId, LimitHit, Limits};
pub use longhaul_engine::CompileLimits;
use longhaul_engine::{Cancel, Engine, EngineOptions, Jail, LoadError, Plugin, Role, Start};
use ready::Ready;
pub use report::Report;
use report::{Ended, of_program, of_runtime};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OnceCell;

/// Bytes of a source. More is refused before anything starts; the same cap as the runtimes' own.
pub(crate) const SOURCE_BYTES_MAX: usize = 1_000_000;

/// Arrays and objects within each other in a context: as deep as JSON is read here. Writing a deeper one takes
/// stack that a thread may not have.
const CONTEXT_NESTING_MAX: usize = 127;

/// What is run.
#[derive(Clone, Debug)]
pub enum Code {
    /// Python source.
    Python(String),
    /// JavaScript source.
    JavaScript(String),
    /// The bytes of a program for WASI: a component, or a module for preview 1.
    Wasm(Vec<u8>),
}

/// The languages of [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// CPython, in WebAssembly.
    Python,
    /// QuickJS, in WebAssembly.
    #[value(name = "js", alias = "javascript")]
    JavaScript,
    /// A program of its own.
    Wasm,
}

impl Code {
    /// In which language it is.
    #[must_use]
    pub fn language(&self) -> Language {
        match self {
            Self::Python(_) => Language::Python,
            Self::JavaScript(_) => Language::JavaScript,
            Self::Wasm(_) => Language::Wasm,
        }
    }
}

/// What a job may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Time on the clock, in milliseconds. Default 300 000 (five minutes).
    pub timeout_ms: u64,
    /// All linear memory, in bytes. Default 256 MiB, of which Python's image takes 20, measured by printing one line.
    pub memory_bytes_max: u64,
    /// Instructions, in wasmtime's fuel. Default 1 000 000 000 000, about ten minutes of computing.
    pub fuel_max: u64,
    /// Bytes that are kept of standard output, and as many of standard error. Default 1 MiB. What is
    /// over it is dropped, and the code goes on.
    pub output_bytes_max: usize,
}

impl Default for JobLimits {
    fn default() -> Self {
        Self {
            timeout_ms: 300_000,
            memory_bytes_max: 256 << 20,
            fuel_max: 1_000_000_000_000,
            output_bytes_max: 1 << 20,
        }
    }
}

/// Code, and what it may see and use.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is run.
    pub code: Code,
    /// What the code sees as `CONTEXT`, an object. Default `{}`. A program reads it as its first argument.
    pub context: Value,
    /// What it reads from standard input. Default nothing.
    pub stdin: String,
    /// Directories that it sees. Default none.
    pub directories: Vec<DirectoryGrant>,
    /// Hosts that Python and programs may ask by HTTP; JavaScript has no way to. Default none.
    pub hosts: Vec<HostPattern>,
    /// What it may use.
    pub limits: JobLimits,
}

impl Job {
    /// Code that sees nothing, within the default limits.
    #[must_use]
    pub fn of(code: Code) -> Self {
        Self {
            code,
            context: json!({}),
            stdin: String::new(),
            directories: Vec::new(),
            hosts: Vec::new(),
            limits: JobLimits::default(),
        }
    }
}

/// Where an executor finds what it needs.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where compiled code is kept; a private directory of this user.
    pub cache: PathBuf,
    /// Directories with `python.wasm` and `javascript.wasm`.
    pub runtimes: Vec<PathBuf>,
    /// The program whose hidden command `compile-child` compiles: `longhaul`, or one whose `main` begins
    /// with [`compile_if_asked`].
    pub compiler: PathBuf,
    /// What compiling a program, or an interpreter for the first time, may cost.
    pub compile_limits: CompileLimits,
}

impl Places {
    /// Those of the command line: the user's cache, installed and shipped plugins, this very program.
    ///
    /// # Errors
    /// When there is no home directory.
    pub fn usual() -> Result<Self, ExecError> {
        let unknown = |error: Fault| ExecError::Host(format!("{error:#}"));
        let home = crate::home::Home::find(None).map_err(unknown)?;
        Ok(Self {
            cache: crate::wiring::cache().map_err(unknown)?.join("compiled"),
            runtimes: plugins::directories(&home),
            compiler: crate::wiring::own_program().map_err(unknown)?,
            compile_limits: CompileLimits::default(),
        })
    }
}

/// Compiles and ends the process, if that is what it was started for. An embedder's `main` begins with
/// it, so that hostile modules are compiled in a child that is bounded, and not in the embedder itself.
pub fn compile_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, child, limits, text] = arguments.as_slice()
        && [child.as_str(), limits.as_str()] == ["compile-child", "--limits"]
    {
        std::process::exit(longhaul_engine::compile_child(text));
    }
}

/// Why a job was not run. What the code does wrong is in its [`Report`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The language's interpreter is not installed.
    #[error("there is no `{name}.wasm` in {searched}; fetch it with: longhaul runtimes pull {name}")]
    NoRuntime {
        /// `python` or `javascript`.
        name: &'static str,
        /// Where it was looked for.
        searched: String,
    },
    /// The source is too long.
    #[error(
        "the source has {bytes} bytes, and at most {SOURCE_BYTES_MAX} are run; hand data over as a file or as context"
    )]
    SourceTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The context is not an object.
    #[error("the context is {found}, and must be a JSON object, such as {{\"name\": 1}}")]
    ContextNotObject {
        /// What it is.
        found: String,
    },
    /// The context nests too deep.
    #[error("the context nests deeper than {CONTEXT_NESTING_MAX} levels; hand it over flatter, or as text")]
    ContextTooDeep,
    /// To compile it takes more than [`Places::compile_limits`] allow.
    #[error("the {name} takes too much to compile: {hit}; make it smaller, or raise the limit where it is embedded")]
    CompileLimit {
        /// `program`, or the interpreter.
        name: String,
        /// The limit.
        hit: LimitHit,
    },
    /// The interpreter, or the program, cannot be loaded.
    #[error(transparent)]
    Load(LoadError),
    /// Something of the host.
    #[error("{0}")]
    Host(String),
}

impl From<LoadError> for ExecError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Limit { name, hit } => Self::CompileLimit { name, hit },
            error @ LoadError::Host { .. } => Self::Host(error.to_string()),
            other => Self::Load(other),
        }
    }
}

/// Runs jobs. Clones share everything.
#[derive(Clone)]
pub struct Executor {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    places: Places,
    python: OnceCell<Arc<Plugin>>,
    javascript: OnceCell<Arc<Plugin>>,
    ready: Ready,
}

impl Executor {
    /// An executor with nothing loaded yet. It reserves address space for 256 instances.
    ///
    /// # Errors
    /// [`ExecError::Load`] when the cache is not ours alone, [`ExecError::Host`] when wasmtime does not start.
    pub fn new(places: Places) -> Result<Self, ExecError> {
        let jail = Jail {
            program: places.compiler.clone(),
            arguments: vec!["compile-child".into()],
            limits: places.compile_limits.clone(),
        };
        let options = EngineOptions { clears_aside: true, ..EngineOptions::default() };
        let engine = Engine::new(places.cache.clone(), jail, &options)?;
        let inner =
            Inner { engine, places, python: OnceCell::new(), javascript: OnceCell::new(), ready: Ready::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs a job to its end.
    ///
    /// # Errors
    /// Every [`ExecError`]; the code was not started then.
    pub async fn run(&self, job: Job) -> Result<Report, ExecError> {
        if nests_deeper(&job.context, CONTEXT_NESTING_MAX) {
            return Err(ExecError::ContextTooDeep);
        }
        if !job.context.is_object() {
            return Err(ExecError::ContextNotObject {
                found: longhaul_core::text::truncate(&job.context.to_string(), 60),
            });
        }
        match &job.code {
            Code::Python(source) | Code::JavaScript(source) => self.run_source(&job, source).await,
            Code::Wasm(bytes) => self.run_program(&job, bytes).await,
        }
    }

    /// Keeps `count` instances of a language ready for jobs that see nothing and have these limits. They
    /// are made off the path of such a job, which then skips making its own; each holds its memory while
    /// it waits, of Python's about 2 MiB of pages that it wrote. Each has run a source of ours before, so that
    /// what an interpreter writes at its first run is written already; the fuel of it is not in the job's
    /// report. Returns when the first are there.
    ///
    /// # Errors
    /// [`ExecError::NoRuntime`], or [`ExecError::Load`] when an instance cannot be made.
    pub async fn keep_ready(&self, language: Language, limits: JobLimits, count: usize) -> Result<(), ExecError> {
        let plugin = self.runtime(language).await?;
        self.inner.ready.keep(language, plugin, limits, count).await
    }

    async fn run_source(&self, job: &Job, source: &str) -> Result<Report, ExecError> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(ExecError::SourceTooLong { bytes: source.len() });
        }
        let language = job.code.language();
        let plugin = self.runtime(language).await?;
        let since = Instant::now();
        let (start, console) = match self.inner.ready.take(job) {
            Some((standby, console)) => (Start::from(standby), console),
            None => {
                let console = Console::new(job.limits.output_bytes_max);
                (Start::from(setup(&job.limits, job.directories.clone(), job.hosts.clone(), &console)), console)
            }
        };
        let call = run_call(&plugin, source, &job.context, &job.stdin);
        let called = plugin.call_tool(start, &Cancel::default(), &call, "exec", 1, &streaming(&job.limits)).await;
        self.inner.ready.restock(language);
        Ok(of_runtime(called, Ended { since, console, limits: &job.limits }))
    }

    async fn run_program(&self, job: &Job, bytes: &[u8]) -> Result<Report, ExecError> {
        let component = component(bytes).await?;
        let command = self.inner.engine.load_command("program", &component).await?;
        let since = Instant::now();
        let console = Console {
            arguments: vec!["program".into(), job.context.to_string()],
            stdin: job.stdin.clone().into(),
            ..Console::new(job.limits.output_bytes_max)
        };
        let setup = setup(&job.limits, job.directories.clone(), job.hosts.clone(), &console);
        let called = command.run(setup, &Cancel::default()).await;
        Ok(of_program(called, Ended { since, console, limits: &job.limits }))
    }

    async fn runtime(&self, language: Language) -> Result<Arc<Plugin>, ExecError> {
        let (cell, name) = match language {
            Language::Python => (&self.inner.python, "python"),
            Language::JavaScript => (&self.inner.javascript, "javascript"),
            Language::Wasm => return Err(ExecError::Host("a program brings its own runtime".into())),
        };
        Ok(Arc::clone(cell.get_or_try_init(|| self.load(name)).await?))
    }

    async fn load(&self, name: &'static str) -> Result<Arc<Plugin>, ExecError> {
        let Inner { engine, places, .. } = &*self.inner;
        let files = places.runtimes.iter().map(|directory| directory.join(format!("{name}.wasm")));
        let Some(path) = files.into_iter().find(|path| path.is_file()) else {
            let searched: Vec<String> = places.runtimes.iter().map(|path| path.display().to_string()).collect();
            return Err(ExecError::NoRuntime { name, searched: searched.join(", ") });
        };
        let plugin = engine.load_file(name, &path).await?;
        plugin.expect(Role::Tool)?;
        Ok(Arc::new(plugin))
    }
}

/// The component of a program, whichever form it has.
///
/// # Errors
/// [`LoadError::NotAComponent`].
pub(crate) async fn component(bytes: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    let refused = |reason| LoadError::NotAComponent { name: "program".into(), reason };
    program::component(bytes).await.map_err(refused)
}

/// Whether there are more levels than `levels_max`; looks no deeper than that.
fn nests_deeper(value: &Value, levels_max: usize) -> bool {
    let Some(left) = levels_max.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(items) => items.iter().any(|inner| nests_deeper(inner, left)),
        Value::Object(fields) => fields.values().any(|inner| nests_deeper(inner, left)),
        _ => false,
    }
}

/// What a runtime is asked to do.
fn run_call(runtime: &Plugin, source: &str, context: &Value, stdin: &str) -> ToolCall {
    let arguments = json!({ "source": source, "context": context, "stdin": stdin });
    ToolCall { tool: runtime.name().into(), function: "run".into(), arguments: arguments.to_string() }
}

/// The settings of a runtime that prints into its console. One byte more than is kept, so that the console
/// sees what is over, also of code that is stopped.
fn streaming(limits: &JobLimits) -> Value {
    json!({ "stream": true, "output_bytes_max": limits.output_bytes_max.saturating_add(1) })
}

/// What an instance for a job starts with.
fn setup(limits: &JobLimits, directories: Vec<DirectoryGrant>, hosts: Vec<HostPattern>, console: &Console) -> Setup {
    Setup {
        invocation: InvocationId::from_text("exec"),
        scope: Scope { project: "exec".into(), plugin: "exec".into() },
        // Without a table: a refusal names the option of the command line instead.
        grants: Grants { directories, hosts, ..Grants::default() },
        limits: limits.of_call(),
        services: null::services(Arc::new(crate::wiring::MachineClock)),
        journal: None,
        context: None,
        seed: [0; 32],
        console: Some(console.clone()),
        keyring: Arc::default(),
        told: None,
    }
}

impl JobLimits {
    fn of_call(&self) -> Limits {
        Limits {
            fuel_max: self.fuel_max,
            memory_bytes_max: self.memory_bytes_max,
            wall_ms_max: self.timeout_ms,
            cpu_ms_max: self.timeout_ms,
            // An endless print is bounded by what is kept of it, and by time.
            host_calls_max: u64::MAX,
            // A step of a graph answers with its values.
            output_bytes_max: 64 << 20,
            ..Limits::default()
        }
    }
}

/// What a limit is called in a report.
fn words(hit: &LimitHit, limits: &JobLimits) -> String {
    match hit.name.as_str() {
        "wall_ms_max" | "cpu_ms_max" => format!("Timeout: it ran longer than {} ms", limits.timeout_ms),
        "memory_bytes_max" => format!("memory limit: it needs more than {} bytes", limits.memory_bytes_max),
        "fuel_max" => format!("fuel limit: it needs more than {} fuel", limits.fuel_max),
        "stack_bytes_max" => "stack limit: it calls too deep".to_owned(),
        _ => format!("limit: it used {} of {} {}", hit.used, hit.max, hit.name),
    }
}
