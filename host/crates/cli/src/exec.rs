//! `longhaul exec`: runs a file of untrusted code in the sandbox, prints its output while it runs, and ends with its
//! exit code.

mod live;
mod rich;
mod sessions;

use super::code_file::Refusals;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::package_args::PackageArgs;
use super::{code_file, grant_args, terminal};
use clap::{Args, ValueEnum};
use live::{LivePrinter, PrintedBytes};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::grant::{DirectoryGrant, HostPattern};
use longhaul_exec::{
    Code, Executor, ExecutorPaths, Job, JobLimits, JobReport, Level, NativeRuntime, OutputSink, Runtime,
    SOURCE_BYTES_MAX,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Longest WASI program that is read, in bytes.
const PROGRAM_BYTES_MAX: usize = 64 << 20;

/// Exit codes of this command, beside those of the code that it runs; 124 and 125 are those of `timeout`. The help of
/// the command lists them.
const OTHER_LIMIT: u8 = 120;
const MEMORY: u8 = 121;
const FUEL: u8 = 122;
const TIMEOUT: u8 = 124;
const NOT_RUN: u8 = 125;
const STOPPED: u8 = 126;
const INTERRUPTED: u8 = 130;

#[derive(Args, Debug)]
pub struct ExecArgs {
    /// The file to run; `-` reads source from standard input.
    #[arg(required_unless_present_any = ["sessions", "end_session"])]
    file: Option<PathBuf>,
    /// The language. Default: by the extension of the file: `.py`, `.js`, `.mjs`, `.ts`, `.mts` or `.wasm`.
    #[arg(long)]
    lang: Option<LanguageArg>,
    /// The value of `CONTEXT` in the code, a JSON object. A program gets it as its first argument.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    context: String,
    /// A module that the code may import, by the name of the file, such as `lib/helper.js`. May be given several times.
    /// A session takes them only natively.
    #[arg(long = "module", value_name = "FILE")]
    modules: Vec<PathBuf>,
    /// The runtime of the code. Native is for Python that needs packages of this machine: its interpreter is a process
    /// in the sandbox of native programs.
    #[arg(long, value_name = "RUNTIME", default_value = "wasm")]
    runtime: RuntimeArg,
    /// The virtual environment with the packages of native code. Default: the `python3` of PATH.
    #[arg(long, value_name = "DIR")]
    venv: Option<PathBuf>,
    /// The lowest level of the sandbox that native code may run at: full, namespaces, landlock, none, or runsc.
    #[arg(long, value_name = "LEVEL", value_parser = grant_args::sandbox_level)]
    sandbox_min: Option<Level>,
    /// Return typed results: the value of the last expression, what `display(value)` is given, and of Python figures of
    /// matplotlib, as JSON, tables, PNG and SVG. `outputs` with --json. A WASI program has none, and is refused.
    #[arg(long)]
    rich: bool,
    /// Run Python as the next step of a session of this name: its variables are kept for the steps after it. Begins the
    /// session if there is none. Typed results are returned, as with --rich.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// List the sessions instead of running a file.
    #[arg(long, conflicts_with_all = ["file", "session", "end_session"])]
    sessions: bool,
    /// End the session of this name, and remove its variables, instead of running a file.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "session"])]
    end_session: Option<String>,
    /// A directory for the code, writable unless `:ro` follows; native code has it at the path HOST, so GUEST must be
    /// the same. May be given several times.
    #[arg(long, value_name = "HOST:GUEST[:ro]", value_parser = grant_args::directory)]
    dir: Vec<DirectoryGrant>,
    /// A host that the code may reach by HTTP, such as `https://api.example.com`. May be given several times. Python
    /// uses `urllib.request` or `http.client`, JavaScript `fetch`.
    #[arg(long, value_name = "PATTERN", value_parser = grant_args::host)]
    allow_host: Vec<HostPattern>,
    #[command(flatten)]
    packages: PackageArgs,
    /// Longest wall-clock time, in milliseconds.
    #[arg(long, default_value_t = JobLimits::default().timeout_ms)]
    timeout_ms: u64,
    /// Most memory, in bytes. Default 268435456, and 1073741824 for native code.
    #[arg(long, value_name = "BYTES")]
    memory_bytes_max: Option<u64>,
    /// Most fuel, in units of wasmtime. Default 1000000000000; native code has none.
    #[arg(long, value_name = "FUEL")]
    fuel_max: Option<u64>,
    /// Most bytes that it writes into directories.
    #[arg(long, default_value_t = JobLimits::default().disk_bytes_max)]
    disk_bytes_max: u64,
    /// Most output that is kept of each stream, in bytes.
    #[arg(long, default_value_t = JobLimits::default().output_bytes_max)]
    output_bytes_max: usize,
    /// End with 0 once the code was run and its result printed, whatever the result is, and with 1 if it was not run.
    #[arg(long)]
    exit_code_of_longhaul: bool,
}

/// The languages, as words of the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LanguageArg {
    /// CPython, in WebAssembly.
    Python,
    /// QuickJS, in WebAssembly.
    #[value(name = "js", alias = "javascript")]
    JavaScript,
    /// QuickJS, in WebAssembly; types are taken out and not checked.
    #[value(name = "ts", alias = "typescript")]
    TypeScript,
    /// A WASI program.
    Wasm,
}

/// The runtimes, as words of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RuntimeArg {
    /// An instance of WebAssembly.
    Wasm,
    /// Python of this machine, in the sandbox of native programs.
    Native,
}

impl ExecArgs {
    /// True when the command waits for nothing but a guest, so that one thread is enough. Native code has processes and
    /// a proxy beside it.
    pub fn needs_one_thread(&self) -> bool {
        self.runtime == RuntimeArg::Wasm
    }
}

/// Runs the command.
pub async fn run(context: &Context, args: ExecArgs) -> fault::Result<Exit> {
    if args.sessions {
        return sessions::list(context);
    }
    if let Some(name) = &args.end_session {
        return sessions::end(context, name);
    }
    let of_longhaul = args.exit_code_of_longhaul;
    // JSON has the output in the report alone.
    let printer = (!context.json).then(LivePrinter::start);
    let ran = report(context, &args, printer.as_ref().map(LivePrinter::sink)).await;
    let printed = printer.map(LivePrinter::end).unwrap_or_default();
    match ran {
        Ok(Some(report)) => {
            show(context, &report, printed)?;
            Ok(if of_longhaul { Exit::Done } else { Exit::OfCode(exit_code(&report)) })
        }
        Ok(None) => Ok(Exit::OfCode(INTERRUPTED)),
        Err(error) if of_longhaul => Err(error),
        Err(error) => {
            terminal::error(&error);
            Ok(Exit::OfCode(NOT_RUN))
        }
    }
}

/// The exit code for a report. A limit counts first: a language may make an exit of its own of memory that it is
/// refused.
fn exit_code(report: &JobReport) -> u8 {
    match (report.limit.as_deref(), report.exit_code) {
        (Some("timeout_ms"), _) => TIMEOUT,
        (Some("fuel_max"), _) => FUEL,
        (Some("memory_bytes_max"), _) => MEMORY,
        (Some(_), _) => OTHER_LIMIT,
        (None, Some(code)) => u8::try_from(code).unwrap_or(STOPPED),
        (None, None) => STOPPED,
    }
}

/// The report of the code; none when it was interrupted.
async fn report(
    context: &Context,
    args: &ExecArgs,
    sink: Option<Arc<dyn OutputSink>>,
) -> fault::Result<Option<JobReport>> {
    let code = code(args)?;
    let job = Job {
        runtime: runtime(args)?,
        context: serde_json::from_str::<Value>(&args.context).context("--context is not JSON")?,
        files: modules(&args.modules)?,
        directories: directories(args, &code)?,
        hosts: args.allow_host.clone(),
        rich: args.rich,
        limits: limits(args),
        sink,
        ..Job::of(code)
    };
    // The data directory of the command line, as in `runtimes list`.
    let paths = ExecutorPaths::of_home(&context.home)?;
    // The process ends next, and the system takes its memory back sooner than it could be returned.
    let executor = ManuallyDrop::new(Executor::for_one_job(paths)?);
    if args.session.is_some() {
        context.home.make()?;
    }
    let running = async {
        match &args.session {
            None => executor.run(job).await,
            Some(name) => executor.run_in_session(name, job).await,
        }
    };
    // An interrupted job is dropped, so that its processes end and its files are removed.
    tokio::select! {
        report = running => Ok(Some(report?)),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            Ok(None)
        }
    }
}

fn runtime(args: &ExecArgs) -> fault::Result<Runtime> {
    if args.runtime == RuntimeArg::Native {
        if args.fuel_max.is_some() {
            bail!("native code has no fuel; leave out --fuel-max, and use --timeout-ms");
        }
        let sandbox_min = args.sandbox_min.unwrap_or_default();
        return Ok(Runtime::Native(NativeRuntime { venv: args.venv.clone(), sandbox_min, ..NativeRuntime::default() }));
    }
    if args.venv.is_some() || args.sandbox_min.is_some() {
        bail!("--venv and --sandbox-min are for native code; add --runtime native");
    }
    Ok(Runtime::Wasm)
}

fn limits(args: &ExecArgs) -> JobLimits {
    let usual = if args.runtime == RuntimeArg::Native { JobLimits::native() } else { JobLimits::default() };
    JobLimits {
        timeout_ms: args.timeout_ms,
        memory_bytes_max: args.memory_bytes_max.unwrap_or(usual.memory_bytes_max),
        fuel_max: args.fuel_max.unwrap_or(usual.fuel_max),
        disk_bytes_max: args.disk_bytes_max,
        output_bytes_max: args.output_bytes_max,
    }
}

/// Prints a report, without the output that was printed while the code ran.
fn show(context: &Context, report: &JobReport, printed: PrintedBytes) -> fault::Result<()> {
    if context.json {
        print_json(report)?;
        return Ok(());
    }
    terminal::pass_output(report.stdout.get(printed.stdout..).unwrap_or_default());
    report.outputs.iter().for_each(rich::show);
    terminal::pass_error(report.stderr.get(printed.stderr..).unwrap_or_default());
    if let Some(error) = &report.error_message {
        errln!("longhaul: {error}");
    }
    if report.truncated {
        errln!("longhaul: some output was dropped; raise --output-bytes-max to keep more");
    }
    for unkept in report.session.iter().flat_map(|session| &session.unkept) {
        errln!("longhaul: the session does not keep `{}`: {}", unkept.names.join("`, `"), unkept.reason);
    }
    Ok(())
}

fn code(args: &ExecArgs) -> fault::Result<Code> {
    let file = args.file.as_deref().context("there is no file to run; name one")?;
    Ok(match language(file, args.lang)? {
        LanguageArg::Wasm => Code::Wasm(read(file, PROGRAM_BYTES_MAX)?),
        LanguageArg::Python => Code::Python(source(file)?),
        LanguageArg::JavaScript => Code::JavaScript(source(file)?),
        LanguageArg::TypeScript => Code::TypeScript(source(file)?),
    })
}

fn source(path: &Path) -> fault::Result<String> {
    String::from_utf8(read(path, SOURCE_BYTES_MAX)?)
        .map_err(|_| Fault::msg(format!("`{}` is not UTF-8, which source is; save it as UTF-8", path.display())))
}

/// The modules by the names that the code imports them by: their paths from the working directory.
fn modules(paths: &[PathBuf]) -> fault::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for path in paths {
        let relative = path.strip_prefix(".").unwrap_or(path);
        if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            bail!("--module `{}` is not below the working directory; name a file in it", path.display());
        }
        if found.insert(relative.display().to_string(), source(path)?).is_some() {
            bail!("--module names `{}` twice; name each module once", path.display());
        }
    }
    Ok(found)
}

/// The directories of the code, and that of its packages.
fn directories(args: &ExecArgs, code: &Code) -> fault::Result<Vec<DirectoryGrant>> {
    if !args.packages.is_empty() && !matches!(code, Code::Python(_)) {
        bail!("--with gives packages to Python, and to no other language; leave it out");
    }
    if !args.packages.is_empty() && args.runtime == RuntimeArg::Native {
        bail!("--with gives packages to Python in WebAssembly, and native code has those of --venv DIR; leave one out");
    }
    Ok(args.dir.iter().cloned().chain(args.packages.grant()?).collect())
}

fn language(file: &Path, said: Option<LanguageArg>) -> fault::Result<LanguageArg> {
    if let Some(language) = said {
        return Ok(language);
    }
    match file.extension().and_then(|end| end.to_str()) {
        Some("py") => Ok(LanguageArg::Python),
        Some("js" | "mjs") => Ok(LanguageArg::JavaScript),
        Some("ts" | "mts") => Ok(LanguageArg::TypeScript),
        Some("wasm") => Ok(LanguageArg::Wasm),
        _ => bail!("the name of `{}` does not tell its language; say --lang python, js, ts or wasm", file.display()),
    }
}

fn read(path: &Path, bytes_max: usize) -> fault::Result<Vec<u8>> {
    let refusals = Refusals {
        not_a_file: "is not a file; name one, or pipe source into `longhaul exec - --lang python`",
        too_long: format!("is longer than {bytes_max} bytes; hand data over as a file with --dir"),
    };
    code_file::read(path, bytes_max, &refusals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(exit_code: Option<i32>, limit: Option<&str>, expected: u8) {
        let report = JobReport {
            success: exit_code == Some(0),
            stdout: String::new(),
            stderr: String::new(),
            exit_code,
            duration_seconds: 0.0,
            error_message: None,
            fuel_used: 0,
            memory_bytes_peak: 0,
            limit: limit.map(str::to_owned),
            truncated: false,
            outputs: Vec::new(),
            sandbox: None,
            session: None,
        };
        assert_eq!(super::exit_code(&report), expected, "{exit_code:?} {limit:?}");
    }

    #[test]
    fn the_command_ends_as_the_code_does_or_with_a_code_for_what_stopped_it() {
        for code in [0_u8, 1, 3, 255] {
            check(Some(code.into()), None, code);
        }
        check(None, Some("timeout_ms"), 124);
        check(None, Some("fuel_max"), 122);
        check(None, Some("memory_bytes_max"), 121);
        // Python makes a MemoryError of refused memory, and ends with 1.
        check(Some(1), Some("memory_bytes_max"), 121);
        check(None, Some("stack_bytes_max"), 120);
        check(None, None, 126);
        check(Some(256), None, 126);
    }
}
