//! `longhaul exec`: runs a file of untrusted code in the sandbox, prints its output, and ends with its exit code.

use super::code_file::Refusals;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::{code_file, grant_args, terminal};
use clap::{Args, ValueEnum};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::grant::{DirectoryGrant, HostPattern};
use longhaul_exec::{Code, Executor, ExecutorPaths, Job, JobLimits, JobReport, SOURCE_BYTES_MAX};
use longhaul_home::plugin_directories;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Longest WASI program that is read, in bytes.
const PROGRAM_BYTES_MAX: usize = 64 << 20;

/// Exit codes of this command, beside those of the code that it runs; 124 and 125 are those of `timeout`. The help of the
/// command lists them.
const OTHER_LIMIT: u8 = 120;
const MEMORY: u8 = 121;
const FUEL: u8 = 122;
const TIMEOUT: u8 = 124;
const NOT_RUN: u8 = 125;
const STOPPED: u8 = 126;

#[derive(Args, Debug)]
pub struct ExecArgs {
    /// The file to run; `-` reads source from standard input.
    file: PathBuf,
    /// The language. Default: by the extension of the file: `.py`, `.js`, `.mjs`, `.ts`, `.mts` or `.wasm`.
    #[arg(long)]
    lang: Option<LanguageArg>,
    /// The value of `CONTEXT` in the code, a JSON object. A program gets it as its first argument.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    context: String,
    /// A module that the code may import, by the name of the file, such as `lib/helper.js`. May be given several times.
    #[arg(long = "module", value_name = "FILE")]
    modules: Vec<PathBuf>,
    /// A directory for the code, writable unless `:ro` follows. May be given several times.
    #[arg(long, value_name = "HOST:GUEST[:ro]", value_parser = grant_args::directory)]
    dir: Vec<DirectoryGrant>,
    /// A host that the code may reach by HTTP, such as `https://api.example.com`. May be given several times. Python
    /// uses `urllib.request` or `http.client`, JavaScript `fetch`.
    #[arg(long, value_name = "PATTERN", value_parser = grant_args::host)]
    allow_host: Vec<HostPattern>,
    /// Longest wall-clock time, in milliseconds.
    #[arg(long, default_value_t = JobLimits::default().timeout_ms)]
    timeout_ms: u64,
    /// Most memory, in bytes.
    #[arg(long, default_value_t = JobLimits::default().memory_bytes_max)]
    memory_bytes_max: u64,
    /// Most fuel, in units of wasmtime.
    #[arg(long, default_value_t = JobLimits::default().fuel_max)]
    fuel_max: u64,
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

/// Runs the command.
pub async fn run(context: &Context, args: ExecArgs) -> fault::Result<Exit> {
    let of_longhaul = args.exit_code_of_longhaul;
    match report(context, args).await {
        Ok(report) => {
            show(context, &report)?;
            Ok(if of_longhaul { Exit::Done } else { Exit::OfCode(exit_code(&report)) })
        }
        Err(error) if of_longhaul => Err(error),
        Err(error) => {
            terminal::error(&error);
            Ok(Exit::OfCode(NOT_RUN))
        }
    }
}

/// The exit code for a report. A limit counts first: a language may make an exit of its own of memory that it is refused.
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

async fn report(context: &Context, args: ExecArgs) -> fault::Result<JobReport> {
    let job = Job {
        code: code(&args)?,
        context: serde_json::from_str::<Value>(&args.context).context("--context is not JSON")?,
        stdin: String::new(),
        files: modules(&args.modules)?,
        directories: args.dir,
        hosts: args.allow_host,
        limits: JobLimits {
            timeout_ms: args.timeout_ms,
            memory_bytes_max: args.memory_bytes_max,
            fuel_max: args.fuel_max,
            disk_bytes_max: args.disk_bytes_max,
            output_bytes_max: args.output_bytes_max,
        },
    };
    // The data directory of the command line, as in `runtimes list`.
    let paths = ExecutorPaths { runtimes: plugin_directories(&context.home), ..ExecutorPaths::usual()? };
    Ok(Executor::new(paths)?.run(job).await?)
}

fn show(context: &Context, report: &JobReport) -> fault::Result<()> {
    if context.json {
        print_json(report)?;
        return Ok(());
    }
    terminal::pass_output(&report.stdout);
    terminal::pass_error(&report.stderr);
    if let Some(error) = &report.error_message {
        errln!("longhaul: {error}");
    }
    if report.truncated {
        errln!("longhaul: some output was dropped; raise --output-bytes-max to keep more");
    }
    Ok(())
}

fn code(args: &ExecArgs) -> fault::Result<Code> {
    let language = language(args)?;
    Ok(match language {
        LanguageArg::Wasm => Code::Wasm(read(&args.file, PROGRAM_BYTES_MAX)?),
        LanguageArg::Python => Code::Python(source(&args.file)?),
        LanguageArg::JavaScript => Code::JavaScript(source(&args.file)?),
        LanguageArg::TypeScript => Code::TypeScript(source(&args.file)?),
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

fn language(args: &ExecArgs) -> fault::Result<LanguageArg> {
    if let Some(language) = args.lang {
        return Ok(language);
    }
    match args.file.extension().and_then(|end| end.to_str()) {
        Some("py") => Ok(LanguageArg::Python),
        Some("js" | "mjs") => Ok(LanguageArg::JavaScript),
        Some("ts" | "mts") => Ok(LanguageArg::TypeScript),
        Some("wasm") => Ok(LanguageArg::Wasm),
        _ => {
            bail!("the name of `{}` does not tell its language; say --lang python, js, ts or wasm", args.file.display())
        }
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
