//! Untrusted code, run as a library call: what it prints, what it sees, and what stops it.
//!
//! Needs the interpreters of `cargo xtask plugins`.

mod alone;
mod cache;
mod command;
mod directories;
mod library;
mod limits;
mod network;
mod packages;
pub mod server;
mod streams;
mod typed;
mod wasi;

use crate::common::executor_cases::{self, Wanted};
use crate::common::{repository, test_cache};
use longhaul::exec::{
    Code, CompileLimits, ExecError, Executor, ExecutorPaths, GraphLanguage, Job, JobLimits, JobReport,
};
use longhaul_core::grant::{Access, DirectoryGrant};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Tests share it as a program of its own would: the interpreters are compiled and loaded once.
pub(super) static EXECUTOR: LazyLock<Executor> =
    LazyLock::new(|| Executor::new(places(CompileLimits::default())).expect("an executor"));

fn places(compile_limits: CompileLimits) -> ExecutorPaths {
    let cache = test_cache().join("compiled");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).expect("ours");
    let compiler = env!("CARGO_BIN_EXE_longhaul").into();
    ExecutorPaths {
        cache,
        runtimes: vec![repository().join("target/plugins")],
        compiler,
        compile_limits,
        data_directory: None,
    }
}

async fn run(job: Job) -> JobReport {
    EXECUTOR.run(job).await.unwrap_or_else(|error| panic!("{error}"))
}

fn python(source: &str) -> Job {
    Job::of(Code::Python(source.into()))
}

fn javascript(source: &str) -> Job {
    Job::of(Code::JavaScript(source.into()))
}

fn within(job: Job, change: impl FnOnce(&mut JobLimits)) -> Job {
    let mut job = job;
    change(&mut job.limits);
    job
}

fn quick(job: Job) -> Job {
    within(job, |limits| limits.timeout_ms = 400)
}

/// Runs a job and compares standard output, exit code and limit.
#[track_caller]
fn expect(report: &JobReport, stdout: &str, exit_code: Option<i32>, limit: Option<&str>) {
    let found = (report.stdout.as_str(), report.exit_code, report.limit.as_deref());
    assert_eq!(found, (stdout, exit_code, limit), "{report:#?}");
    assert_eq!(report.success, exit_code == Some(0), "{report:#?}");
    assert_eq!(report.error_message.is_none(), report.success, "{report:#?}");
    assert!(report.duration_seconds >= 0.0 && report.fuel_used > 0, "{report:#?}");
}

#[tokio::test]
async fn code_prints_and_ends() {
    for (job, stdout, code) in [
        (python("print(sum(range(10)))"), "45\n", 0),
        (python("import sys\nprint('a')\nsys.exit(3)"), "a\n", 3),
        (python("raise ValueError('x')"), "", 1),
        (python("if"), "", 1),
        (python("import nothing_of_the_kind"), "", 1),
        (python("print(CONTEXT)"), "{}\n", 0),
        (javascript("console.log([1, 2].map(x => x + 1).join())"), "2,3\n", 0),
        (javascript("throw new Error('x')"), "", 1),
        (javascript("let a ="), "", 1),
        (javascript("console.log(JSON.stringify(CONTEXT))"), "{}\n", 0),
    ] {
        expect(&run(job).await, stdout, Some(code), None);
    }
}

#[tokio::test]
async fn typescript_and_modules_beside_it_run() {
    let with = |job: Job, files: &[(&str, &str)]| {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Job { files, ..job }
    };
    let lib = ("lib/count.ts", "export type N = number;\nexport const double = (n: N): N => n * 2;");
    let source =
        "import { double, type N } from './lib/count.js';\nconst n: N = 2;\nconsole.log(double(n) satisfies N)";
    expect(&run(with(Job::of(Code::TypeScript(source.into())), &[lib])).await, "4\n", Some(0), None);
    let source = "import { double } from './lib/count'\nconsole.log(double(4))";
    expect(&run(with(javascript(source), &[lib])).await, "8\n", Some(0), None);
    expect(&run(javascript("let n: number = 1")).await, "", Some(1), None);
    expect(&run(with(python("import helper; print(helper.X)"), &[("helper.py", "X = 5")])).await, "5\n", Some(0), None);
    let long = "/".repeat(1_000_000);
    let refused = EXECUTOR.run(with(javascript("1"), &[("long.js", long.as_str())])).await;
    assert!(matches!(refused, Err(ExecError::SourceTooLong { bytes: 1_000_001 })), "{refused:?}");
}

#[tokio::test]
async fn what_is_handed_in_is_seen() {
    let with = |job: Job| Job { context: json!({ "name": "Zoë", "list": [1, 2] }), stdin: "line\n".into(), ..job };
    let report = run(with(python("print(CONTEXT['name'], sum(CONTEXT['list']), input())"))).await;
    expect(&report, "Zoë 3 line\n", Some(0), None);
    let report = run(with(javascript("console.log(CONTEXT.name, CONTEXT.list.length)"))).await;
    expect(&report, "Zoë 2\n", Some(0), None);
}

/// After each of what follows, whatever it did.
async fn stays_healthy() {
    expect(&run(python("print(1)")).await, "1\n", Some(0), None);
    expect(&run(javascript("console.log(1)")).await, "1\n", Some(0), None);
}

/// A folder with a file, a link out of it, and a file beside it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let inside = directory.path().join("inside");
    fs::create_dir(&inside).expect("ours");
    fs::write(inside.join("a.txt"), "kept").expect("ours");
    fs::write(directory.path().join("secret.txt"), "secret").expect("ours");
    symlink("../secret.txt", inside.join("out")).expect("ours");
    (directory, inside)
}

fn seeing(job: Job, host: &Path, access: Access) -> Job {
    Job { directories: vec![DirectoryGrant { guest: "/data".into(), host: host.to_owned(), access }], ..job }
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_before_it_starts() {
    let long = EXECUTOR.run(python(&"#".repeat(50 << 20))).await;
    assert!(matches!(long, Err(ExecError::SourceTooLong { .. })), "{long:?}");
    let list = EXECUTOR.run(Job { context: json!([1]), ..python("") }).await;
    assert!(matches!(list, Err(ExecError::ContextNotObject { .. })), "{list:?}");
}

#[tokio::test]
async fn an_instance_that_waited_serves_one_job_as_a_new_one_does() {
    let executor = Executor::new(places(CompileLimits::default())).expect("an executor");
    executor.keep_ready(GraphLanguage::Python, JobLimits::default(), 2).await.expect("two");
    let mut random = BTreeSet::new();
    for _ in 0..6 {
        let source =
            "import builtins, random\nassert not hasattr(builtins, 'left')\nbuiltins.left = 1\nprint(random.random())";
        let report = executor.run(python(source)).await.expect("it runs");
        assert!(report.success, "{report:#?}");
        random.insert(report.stdout);
    }
    assert_eq!(random.len(), 6, "fresh randomness each time: {random:?}");
    let source = "import linecache, sys
found = [sorted(globals()), CONTEXT, __name__, sys.argv, sys.path, len(sys.meta_path), linecache.getlines('<python>')]
print(found, sorted(sys.modules), sys.stdin.read(), sys.stdout.name)";
    executor.keep_ready(GraphLanguage::Python, JobLimits::default(), 1).await.expect("one");
    let sees = async || executor.run(python(source)).await.expect("it runs").stdout;
    let (ready, fresh) = (sees().await, run(python(source)).await.stdout);
    assert_eq!(ready, fresh);
    assert!(ready.contains("'__main__', ['<python>']"), "{ready}");
}

/// The cases about running code; those about agents as records are in `agents.rs`.
#[tokio::test]
async fn executor_cases_about_code() {
    let mut driven = 0;
    for case in executor_cases::executions() {
        let Wanted::Runs(source) = executor_cases::wanted(&case) else { continue };
        let timeout_ms = case["timeout_s"].as_u64().expect("seconds") * 1_000;
        check_case(&case, &run(within(python(&source), |limits| limits.timeout_ms = timeout_ms)).await);
        driven += 1;
    }
    assert!(driven > 0);
}

#[track_caller]
fn check_case(case: &Value, report: &JobReport) {
    let expected = &case["expected"];
    let message = report.error_message.clone().unwrap_or_default();
    for (name, value) in expected.as_object().expect("an object") {
        let holds = match name.as_str() {
            "success" => report.success == value.as_bool().expect("a bool"),
            "stdout_contains" => report.stdout.contains(value.as_str().expect("text")),
            "exit_code" => report.exit_code.map(i64::from) == value.as_i64(),
            "error_contains" | "error" => message.contains(value.as_str().expect("text")),
            "duration_min_s" => report.duration_seconds >= value.as_f64().expect("seconds"),
            "context" => serde_json::from_str::<Value>(&report.stdout).is_ok_and(|seen| seen == *value),
            // The work of another program, and the status of a record that is not kept here.
            "original" | "task_status" => true,
            other => panic!("{}: `{other}` is not known", case["id"]),
        };
        assert!(holds, "{}: {name}: {report:#?}", case["id"]);
    }
}
