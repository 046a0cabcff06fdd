//! The executor: loads the interpreters, refuses invalid jobs, and runs the others, each in an instance.
//!
//! It starts no code of a refused job, and keeps nothing of a job afterwards, unless the process ends with that job.

mod step;

use crate::call::{run_call, setup, streaming};
use crate::error::ExecError;
use crate::job::{CONTEXT_NESTING_MAX, Code, GraphLanguage, Job, JobLimits, Runtime, SOURCE_BYTES_MAX};
use crate::native;
use crate::places::ExecutorPaths;
use crate::program::component;
use crate::ready::WarmPool;
use crate::report::{FinishedCall, JobReport, of_program, of_runtime};
use longhaul_capabilities::Console;
use longhaul_engine::{CallStart, Cancel, Engine, EngineOptions, Jail, Plugin, Role, ToolAttempt};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OnceCell;

/// Runs jobs. Clones share everything.
#[derive(Clone)]
pub struct Executor {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    places: ExecutorPaths,
    python: OnceCell<Arc<Plugin>>,
    javascript: OnceCell<Arc<Plugin>>,
    ready: WarmPool,
}

impl Executor {
    /// An executor with nothing loaded yet. It reserves address space for 256 instances.
    ///
    /// # Errors
    /// [`ExecError::Load`] when the cache is not ours alone, [`ExecError::Host`] when wasmtime does not start.
    pub fn new(places: ExecutorPaths) -> Result<Self, ExecError> {
        Self::with(places, &EngineOptions { clears_aside: true, ..EngineOptions::default() })
    }

    /// An executor for a process that ends after one job, as the command line does. It has room for 8 jobs, which is
    /// made sooner than room for 256, and gives back nothing of a job: the system takes it back with the process. So
    /// each job keeps its memory and its room until then, and a ninth job fails.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub fn for_one_job(places: ExecutorPaths) -> Result<Self, ExecError> {
        Self::with(places, &EngineOptions { ends_after_call: true, ..EngineOptions::default() })
    }

    fn with(places: ExecutorPaths, options: &EngineOptions) -> Result<Self, ExecError> {
        let jail = Jail {
            program: places.compiler.clone(),
            arguments: vec!["compile-child".into()],
            limits: places.compile_limits.clone(),
        };
        let engine = Engine::new(places.cache.clone(), jail, options)?;
        let inner =
            Inner { engine, places, python: OnceCell::new(), javascript: OnceCell::new(), ready: WarmPool::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs a job to its end.
    ///
    /// # Errors
    /// Every [`ExecError`]; the code was not started then.
    pub async fn run(&self, job: Job) -> Result<JobReport, ExecError> {
        self.check(&job)?;
        match (&job.code, &job.runtime) {
            (_, Runtime::Native(_)) => native::run(&self.inner.places, &job).await,
            (Code::Python(source) | Code::JavaScript(source) | Code::TypeScript(source), Runtime::Wasm) => {
                self.run_source(&job, source).await
            }
            (Code::Wasm(bytes), Runtime::Wasm) => self.run_program(&job, bytes).await,
        }
    }

    /// Keeps `count` instances of a language ready for jobs without grants and with these limits. They are made off the
    /// path of such a job, which then skips making its own; each holds its memory while it waits, of Python's about 2
    /// MiB of pages that it wrote. Each has run a source of the host before, so that the pages an interpreter writes at
    /// its first run are written already; the fuel of that run is not in the job's report. Returns when the first
    /// instances exist.
    ///
    /// # Errors
    /// [`ExecError::NoRuntime`], or [`ExecError::Load`] when an instance cannot be made.
    pub async fn keep_ready(&self, language: GraphLanguage, limits: JobLimits, count: usize) -> Result<(), ExecError> {
        let plugin = self.runtime(language).await?;
        self.inner.ready.keep(language, plugin, limits, count).await
    }

    /// Refuses a job with an unusable context or source, or a program with typed outputs, before anything starts.
    pub(crate) fn check(&self, job: &Job) -> Result<(), ExecError> {
        if nests_deeper(&job.context, CONTEXT_NESTING_MAX) {
            return Err(ExecError::ContextTooDeep);
        }
        if !job.context.is_object() {
            return Err(ExecError::ContextNotObject {
                found: longhaul_core::text::truncate(&job.context.to_string(), 60),
            });
        }
        let source = match &job.code {
            Code::Python(source) | Code::JavaScript(source) | Code::TypeScript(source) => source,
            Code::Wasm(_) if job.rich => return Err(ExecError::RichProgram),
            Code::Wasm(_) => return Ok(()),
        };
        let bytes = source.len() + job.files.values().map(String::len).sum::<usize>();
        if bytes > SOURCE_BYTES_MAX {
            return Err(ExecError::SourceTooLong { bytes });
        }
        Ok(())
    }

    pub(crate) fn paths(&self) -> &ExecutorPaths {
        &self.inner.places
    }

    async fn run_source(&self, job: &Job, source: &str) -> Result<JobReport, ExecError> {
        let language = job.code.language();
        let plugin = self.runtime(language).await?;
        let since = Instant::now();
        let (start, console) = self.start_of(job);
        let call = run_call(&plugin, job, source);
        let settings = streaming(&job.limits);
        let attempt = ToolAttempt { key: "exec", number: 1, settings: &settings };
        let called = plugin.call_tool(start, &Cancel::default(), &call, attempt).await;
        self.inner.ready.restock(language);
        Ok(of_runtime(called, FinishedCall { since, console, limits: &job.limits }))
    }

    async fn run_program(&self, job: &Job, bytes: &[u8]) -> Result<JobReport, ExecError> {
        let component = component(bytes).await?;
        let command = self.inner.engine.load_command("program", &component).await?;
        let since = Instant::now();
        let console = Console {
            arguments: vec!["program".into(), job.context.to_string()],
            stdin: job.stdin.clone().into(),
            ..Console::new(job.limits.output_bytes_max)
        };
        connect(&console, job);
        let setup = setup(&job.limits, job.directories.clone(), job.hosts.clone(), &console);
        let called = command.run(setup, &Cancel::default()).await;
        Ok(of_program(called, FinishedCall { since, console, limits: &job.limits }))
    }

    /// A start of an instance for a job, with its console: a waiting instance, if one fits.
    fn start_of(&self, job: &Job) -> (CallStart, Console) {
        let (start, console) = match self.inner.ready.take(job) {
            Some((standby, console)) => (CallStart::from(standby), console),
            None => {
                let console = Console::new(job.limits.output_bytes_max);
                (CallStart::from(setup(&job.limits, job.directories.clone(), job.hosts.clone(), &console)), console)
            }
        };
        connect(&console, job);
        (start, console)
    }

    async fn runtime(&self, language: GraphLanguage) -> Result<Arc<Plugin>, ExecError> {
        let (cell, name) = match language {
            GraphLanguage::Python => (&self.inner.python, "python"),
            GraphLanguage::JavaScript => (&self.inner.javascript, "javascript"),
            GraphLanguage::Wasm => return Err(ExecError::Host("a program brings its own runtime".into())),
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

/// Passes what the job prints to its sink, if it has one.
fn connect(console: &Console, job: &Job) {
    if let Some(sink) = &job.sink {
        console.pass_to(sink);
    }
}

/// True when there are more levels than `levels_max`; looks no deeper than that.
fn nests_deeper(value: &Value, levels_max: usize) -> bool {
    let Some(left) = levels_max.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(items) => items.iter().any(|inner| nests_deeper(inner, left)),
        Value::Object(fields) => fields.values().any(|inner| nests_deeper(inner, left)),
        _ => false,
    }
}
