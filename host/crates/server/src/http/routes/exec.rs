//! Jobs: untrusted code, each run in an instance of its own.
//!
//! Without directories and hosts a job sees nothing of this machine; only the scope `admin` may name them.

use super::super::gate::By;
use super::super::input::Json;
use super::super::problem::Problem;
use super::super::reply::{ApiResult, Out};
use super::super::state::{SharedState, place};
use super::projects::absolute;
use axum::extract::State;
use http::StatusCode;
use longhaul_api::tokens::TokenScope;
use longhaul_core::fault::Fault;
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use longhaul_exec::{Code, ExecError, Job, JobLimits, JobReport};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

/// Most memory that a job may ask for, in bytes.
const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Most output that a job may have kept of each stream, in bytes: it is kept in memory and in the answer.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// Longest time that a job may ask for, in milliseconds.
const TIMEOUT_MS_MAX: u64 = 3_600_000;

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

/// A directory of the server's machine.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// Where it is, an absolute path.
    host: String,
    /// Where the code sees it.
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
    /// The source, of at most 1,000,000 bytes.
    source: String,
    /// What it sees as `CONTEXT`. Default `{}`.
    #[serde(default)]
    #[schema(value_type = Object)]
    context: Map<String, Value>,
    /// What it reads from standard input.
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
    /// Most memory, in bytes. Default 256 MiB.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 4_294_967_296u64)]
    memory_bytes_max: Option<u64>,
    /// Most instructions, in wasmtime's fuel.
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
/// What the code does wrong is in the report, and is no error of the request.
#[utoipa::path(post, path = "/api/v1/exec", tag = "exec", request_body = NewJob, responses((status = 200, description = "What came of it", body = JobReport)))]
pub async fn run(State(state): State<SharedState>, By(caller): By, Json(new): Json<NewJob>) -> ApiResult<JobReport> {
    if !new.directories.is_empty() || !new.hosts.is_empty() {
        caller.expect(TokenScope::Admin)?;
    }
    let job = job(new)?;
    let most = state.settings().exec_max;
    let full = || {
        let detail = format!("{most} jobs run, which is exec_max in [server] of server.toml; come again");
        Problem::later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(1), detail)
    };
    let _place = place(&state, most, |state| &state.jobs).ok_or_else(full)?;
    let executor = state.executor().await.map_err(of_exec)?;
    Ok(Out(executor.run(job).await.map_err(of_exec)?))
}

fn job(new: NewJob) -> Result<Job, Problem> {
    let usual = JobLimits::default();
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
        code,
        context: Value::Object(new.context),
        stdin: new.stdin,
        files: new.files,
        directories: new.directories.iter().enumerate().map(directory).collect::<Result<_, _>>()?,
        hosts: new.hosts.iter().enumerate().map(host).collect::<Result<_, _>>()?,
        limits,
    })
}

fn within(field: &str, said: Option<u64>, default: u64, most: u64) -> Result<u64, Problem> {
    match said.unwrap_or(default) {
        value if (1..=most).contains(&value) => Ok(value),
        value => Err(Problem::invalid(field, format!("{field} is {value}; write a number from 1 to {most}"))),
    }
}

fn directory((at, said): (usize, &Directory)) -> Result<DirectoryGrant, Problem> {
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

fn host((at, said): (usize, &String)) -> Result<HostPattern, Problem> {
    HostPattern::try_from(said.clone()).map_err(|error| Problem::invalid(format!("hosts[{at}]"), error.to_string()))
}

fn of_exec(error: ExecError) -> Problem {
    Fault::from(error).into()
}
