//! Jobs: untrusted code, each run in an instance of its own.
//!
//! Without directories and hosts a job sees nothing of this machine; only the scope `admin` may name them, or run code
//! natively. A native job runs at the sandbox level `full`, and at no lower one.

use super::super::exec_stream::{self, PrintedText};
use super::super::gate::By;
use super::super::input::{Json, PageParams, Query};
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out, Page};
use super::super::sse::{self, Pulse};
use super::super::state::{Place, SharedState, place};
use super::events::seat;
use super::projects::absolute;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use longhaul_api::tokens::TokenScope;
use longhaul_core::Clock as _;
use longhaul_core::fault::Fault;
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use longhaul_exec::{
    Code, ExecError, ExecSessions, Executor, Job, JobLimits, JobReport, NativeRuntime, Runtime, SessionSummary,
};
use longhaul_home::MachineClock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// Most memory that a job, or a step of a graph, may ask for, in bytes.
pub(super) const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Most output that a job may have kept of each stream, in bytes: it is kept in memory and in the answer.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// Longest time that a job, or a step of a graph, may ask for, in milliseconds.
pub(super) const TIMEOUT_MS_MAX: u64 = 3_600_000;

/// In which language a job is.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobLanguage {
    /// CPython, in WebAssembly.
    Python,
    /// QuickJS, in WebAssembly.
    JavaScript,
    /// QuickJS, in WebAssembly; types are taken out and not checked.
    TypeScript,
}

/// The runtime of a job.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobRuntime {
    /// In an instance of WebAssembly.
    #[default]
    Wasm,
    /// Python of the server's machine, in the full sandbox of native programs. Needs the scope `admin`.
    Native,
}

/// A directory of the server's machine.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// Its absolute path on the server's machine.
    host: String,
    /// Its path for the code; native code sees it at `host`, so this must be the same.
    guest: String,
    /// True when the code may change it.
    #[serde(default)]
    write: bool,
}

/// Code, and what it may see and use.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// In which language it is.
    language: JobLanguage,
    /// The runtime. Default `wasm`.
    #[serde(default)]
    runtime: JobRuntime,
    /// The virtual environment with the packages of native code, an absolute path on the server's machine. Default: the
    /// `python3` of the server's PATH.
    #[serde(default)]
    venv: Option<String>,
    /// True when the report shall have typed results: the value of the last expression, what `display` is given, and of
    /// Python figures.
    #[serde(default)]
    rich: bool,
    /// The name of a session of Python, whose next step this is: its variables are kept for the steps after it. Begins
    /// the session if there is none. Needs the scope `admin` where an earlier step had directories or hosts; a step
    /// with some is refused where one without that scope came before.
    #[serde(default)]
    session: Option<String>,
    /// The source, of at most 1,000,000 bytes.
    source: String,
    /// The value of `CONTEXT` in the code. Default `{}`.
    #[serde(default)]
    #[schema(value_type = Object)]
    context: Map<String, Value>,
    /// The text of its standard input.
    #[serde(default)]
    stdin: String,
    /// Modules that it may import, by file name such as `helper.js`. They count as source.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Directories that it sees. Needs the scope `admin`.
    #[serde(default)]
    directories: Vec<Directory>,
    /// Hosts that it may ask, such as `https://api.example.com`. Needs the scope `admin`.
    #[serde(default)]
    hosts: Vec<String>,
    /// Longest time on the clock, in milliseconds. Default 300,000.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3_600_000)]
    timeout_ms: Option<u64>,
    /// Most memory, in bytes. Default 256 MiB, and 1 GiB for native code.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 4_294_967_296u64)]
    memory_bytes_max: Option<u64>,
    /// Most instructions, in wasmtime's fuel. Native code has none.
    #[serde(default)]
    #[schema(minimum = 1)]
    fuel_max: Option<u64>,
    /// Most bytes that it writes into directories. Default 1 GiB.
    #[serde(default)]
    #[schema(minimum = 1)]
    disk_bytes_max: Option<u64>,
    /// Most output that is kept, in bytes, of each stream. Default 1 MiB.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 8_388_608)]
    output_bytes_max: Option<usize>,
}

/// Run untrusted code
///
/// Failures of the code are in the report, and are no errors of the request. A client that goes away stops the code.
///
/// With the header `Accept: text/event-stream` the answer is server-sent events without ids: `stdout` and `stderr`
/// while the code runs, whose data is the next text of that stream, and at the end `result`, whose data is the report.
/// The texts of a stream are the beginning of its text in the report; of native code they are the first half of
/// `output_bytes_max`. A slow reader receives `lagged`, with how many bytes were left out (`bytes_dropped`), which the
/// report has. A comment every 15 s says that the stream lives. The last event is `problem` in the place of `result`
/// where there is no report: the job cannot be run, or the token was removed, which stops the code.
#[utoipa::path(
    post,
    path = "/api/v1/exec",
    tag = "exec",
    request_body = NewJob,
    responses((status = 200, description = "The report of the job, or frames until it", content((JobReport = "application/json"), (PrintedText = "text/event-stream"))))
)]
pub async fn run(
    State(state): State<SharedState>,
    By(caller): By,
    headers: HeaderMap,
    Json(new): Json<NewJob>,
) -> Result<Response, Problem> {
    if !new.directories.is_empty() || !new.hosts.is_empty() || new.runtime == JobRuntime::Native {
        caller.expect(TokenScope::Admin)?;
    }
    let session = new.session.clone();
    let job = job(new)?;
    let most = state.settings().exec_max;
    let full = || {
        let detail = format!("{most} jobs run, which is exec_max in [server] of server.toml; come again");
        Problem::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(1), detail)
    };
    let place = place(&state, most, |state| &state.jobs).ok_or_else(full)?;
    let executor = state.executor().await.map_err(of_exec)?.clone();
    let may_grant = caller.expect(TokenScope::Admin).is_ok();
    let runner = JobRunner { executor, session, may_grant, _place: place };
    if sse::is_wanted(&headers) {
        let seat = seat(&state)?;
        return Ok(exec_stream::of_job(Pulse::of_request(&state, caller), seat, job, |job| runner.run(job)));
    }
    Ok(Out(runner.run(job).await?).into_response())
}

/// Runs one job, alone or as the next step of a session.
struct JobRunner {
    executor: Executor,
    session: Option<String>,
    /// True when the caller may grant directories and hosts.
    may_grant: bool,
    /// Given back when the job has ended.
    _place: Place,
}

impl JobRunner {
    async fn run(self, job: Job) -> Result<JobReport, Problem> {
        let ran = match &self.session {
            None => self.executor.run(job).await,
            Some(name) if self.may_grant => self.executor.run_in_session(name, job).await,
            Some(name) => self.executor.run_in_shared_session(name, job).await,
        };
        ran.map_err(of_exec)
    }
}

/// The window of a list of sessions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SessionsQuery {
    /// Items of a page. Default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Items before it. Default 0.
    offset: Option<usize>,
}

/// List sessions of code
#[utoipa::path(get, path = "/api/v1/exec/sessions", tag = "exec", params(SessionsQuery), responses((status = 200, description = "A page of sessions, by name", body = Page<SessionSummary>)))]
pub async fn sessions(
    State(state): State<SharedState>,
    Query(query): Query<SessionsQuery>,
) -> ApiResult<Page<SessionSummary>> {
    let window = PageParams::of(query.limit, query.offset)?;
    let sessions = ExecSessions::new(state.home.path());
    let all = on_disk(move || sessions.list(MachineClock.now_ms())).await?;
    Ok(Out(Page::of(all, window, |session| session)))
}

/// End a session of code
///
/// Its variables are removed.
#[utoipa::path(
    delete,
    path = "/api/v1/exec/sessions/{name}",
    tag = "exec",
    params(("name" = String, Path, description = "The session's name")),
    responses((status = 200, description = "It is gone", body = EndedSession))
)]
pub async fn end_session(State(state): State<SharedState>, Path(name): Path<String>) -> ApiResult<EndedSession> {
    let (sessions, wanted) = (ExecSessions::new(state.home.path()), name.clone());
    if !on_disk(move || sessions.end(&wanted)).await? {
        return Err(Problem::unknown(format!("there is no session `{name}`")));
    }
    Ok(Out(EndedSession { name }))
}

/// A session that was ended.
#[derive(Serialize, ToSchema)]
pub struct EndedSession {
    /// Its name.
    name: String,
}

/// Reads or removes sessions, of many megabytes, where no other request waits for it.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExecError> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::internal())?.map_err(of_exec)
}

fn job(new: NewJob) -> Result<Job, Problem> {
    let runtime = runtime(&new)?;
    let usual = if new.runtime == JobRuntime::Native { JobLimits::native() } else { JobLimits::default() };
    let limits = JobLimits {
        timeout_ms: within("timeout_ms", new.timeout_ms, usual.timeout_ms, TIMEOUT_MS_MAX)?,
        memory_bytes_max: within("memory_bytes_max", new.memory_bytes_max, usual.memory_bytes_max, MEMORY_BYTES_MAX)?,
        fuel_max: within("fuel_max", new.fuel_max, usual.fuel_max, u64::MAX)?,
        disk_bytes_max: within("disk_bytes_max", new.disk_bytes_max, usual.disk_bytes_max, u64::MAX)?,
        output_bytes_max: match new.output_bytes_max {
            Some(bytes) if bytes > OUTPUT_BYTES_MAX => {
                return Err(Problem::invalid("output_bytes_max", format!("write at most {OUTPUT_BYTES_MAX}")));
            }
            bytes => bytes.unwrap_or(usual.output_bytes_max),
        },
    };
    let code = match new.language {
        JobLanguage::Python => Code::Python(new.source),
        JobLanguage::JavaScript => Code::JavaScript(new.source),
        JobLanguage::TypeScript => Code::TypeScript(new.source),
    };
    Ok(Job {
        runtime,
        code,
        rich: new.rich,
        context: Value::Object(new.context),
        stdin: new.stdin,
        files: new.files,
        directories: new.directories.iter().enumerate().map(directory).collect::<Result<_, _>>()?,
        hosts: new.hosts.iter().enumerate().map(host).collect::<Result<_, _>>()?,
        limits,
        sink: None,
    })
}

fn runtime(new: &NewJob) -> Result<Runtime, Problem> {
    if new.runtime == JobRuntime::Wasm {
        return match new.venv {
            None => Ok(Runtime::Wasm),
            Some(_) => Err(Problem::invalid("venv", "only native code has one; set runtime to native")),
        };
    }
    if new.fuel_max.is_some() {
        return Err(Problem::invalid("fuel_max", "native code has no fuel; use timeout_ms"));
    }
    let venv = new.venv.as_deref().map(|said| absolute("venv", said)).transpose()?;
    Ok(Runtime::Native(NativeRuntime { venv, ..NativeRuntime::default() }))
}

pub(super) fn within(field: &str, said: Option<u64>, default: u64, most: u64) -> Result<u64, Problem> {
    match said.unwrap_or(default) {
        value if (1..=most).contains(&value) => Ok(value),
        value => Err(Problem::invalid(field, format!("{field} is {value}; write a number from 1 to {most}"))),
    }
}

pub(super) fn directory((at, said): (usize, &Directory)) -> Result<DirectoryGrant, Problem> {
    let field = format!("directories[{at}].host");
    let host = absolute(&field, &said.host)?;
    if !host.is_dir() {
        return Err(Problem::invalid(field, "there is no such directory"));
    }
    if !said.guest.starts_with('/') {
        return Err(Problem::invalid(format!("directories[{at}].guest"), "write an absolute path, such as /work"));
    }
    let access = if said.write { Access::Write } else { Access::Read };
    Ok(DirectoryGrant { host, guest: said.guest.clone(), access })
}

pub(super) fn host((at, said): (usize, &String)) -> Result<HostPattern, Problem> {
    HostPattern::try_from(said.clone()).map_err(|error| Problem::invalid(format!("hosts[{at}]"), error.to_string()))
}

fn of_exec(error: ExecError) -> Problem {
    Fault::from(error).into()
}
