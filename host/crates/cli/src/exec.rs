//! `longhaul exec`: runs a file of untrusted code in the sandbox and prints its output.

use super::code_file::Refusals;
use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::{code_file, grant_args, terminal};
use clap::{Args, ValueEnum};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::grant::{DirectoryGrant, HostPattern};
use longhaul_exec::{Code, Executor, ExecutorPaths, Job, JobLimits, JobReport, SOURCE_BYTES_MAX};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Longest WASI program that is read, in bytes.
const PROGRAM_BYTES_MAX: usize = 64 << 20;

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
    /// Most output that is kept of each stream, in bytes.
    #[arg(long, default_value_t = JobLimits::default().output_bytes_max)]
    output_bytes_max: usize,
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

/// Runs the command. Exit code 0 if the code ended by itself with exit code 0, and 1 otherwise.
pub async fn run(context: &Context, args: ExecArgs) -> fault::Result<Exit> {
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
            output_bytes_max: args.output_bytes_max,
        },
    };
    let report = Executor::new(ExecutorPaths::usual()?)?.run(job).await?;
    show(context, &report)?;
    Ok(if report.success { Exit::Done } else { Exit::Error })
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
