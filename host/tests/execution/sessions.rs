//! Sessions of code: variables that outlive a job, in WebAssembly and natively.

use crate::common;
use crate::common::lab::Lab;
use crate::common::test_cache;
use longhaul::exec::{
    Code, CompileLimits, ExecError, Executor, ExecutorPaths, Job, JobLimits, JobOutput, JobReport, NativeRuntime,
    Runtime,
};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

fn executor(data_directory: Option<&Path>) -> Executor {
    let cache = test_cache().join("compiled");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).expect("ours");
    Executor::new(ExecutorPaths {
        cache,
        runtimes: vec![common::repository().join("target/plugins")],
        compiler: env!("CARGO_BIN_EXE_longhaul").into(),
        compile_limits: CompileLimits::default(),
        data_directory: data_directory.map(Path::to_owned),
    })
    .expect("an executor")
}

fn job(runtime: &Runtime, source: &str) -> Job {
    let limits = JobLimits { timeout_ms: 60_000, ..JobLimits::native() };
    Job { runtime: runtime.clone(), limits, ..Job::of(Code::Python(source.into())) }
}

/// Natively a session needs Python 3.11.
fn runtimes() -> Vec<Runtime> {
    let script = "import sys; sys.exit(sys.version_info < (3, 11))";
    let is_new = common::python::python().args(["-c", script]).status().is_ok_and(|status| status.success());
    let native = Runtime::Native(NativeRuntime::default());
    if is_new { vec![Runtime::Wasm, native] } else { vec![Runtime::Wasm] }
}

fn values(report: &JobReport) -> Vec<Value> {
    let value = |output: &JobOutput| match output {
        JobOutput::Json { value } => value.clone(),
        other => panic!("{other:?}"),
    };
    report.outputs.iter().map(value).collect()
}

#[tokio::test]
async fn variables_outlive_the_job_that_made_them() {
    for runtime in runtimes() {
        let place = tempfile::tempdir().expect("a directory");
        let executor = executor(Some(place.path()));
        let step = |source: &str| {
            let (executor, job) = (executor.clone(), job(&runtime, source));
            async move { executor.run_in_session("work", job).await.unwrap_or_else(|error| panic!("{error}")) }
        };
        let first = step(
            "import math\nitems = [1]\nclass Shape:\n    sides = 3\nshape = Shape()\n\
             def area(r):\n    return math.floor(r * len(items))\nprint('made')",
        )
        .await;
        assert_eq!((first.stdout.as_str(), first.exit_code), ("made\n", Some(0)), "{first:#?}");
        // Another process would do the same: nothing runs between steps.
        let second = step("items.append(2)\nshape.sides = 4\narea(2.5)").await;
        assert_eq!(values(&second), [json!(5)], "{second:#?}");
        let third = step("del items[0]\n[items, shape.sides, isinstance(shape, Shape)]").await;
        assert_eq!(values(&third), [json!([[2], 4, true])]);
        let session = third.session.expect("a session");
        assert_eq!((session.steps, session.unkept), (3, vec![]));
        assert_eq!(session.variables, ["Shape", "area", "items", "math", "shape"]);

        // An error keeps what was done before it; what no session keeps is told.
        let failed = step("items.append(9)\nraise ValueError('x')").await;
        assert_eq!((failed.exit_code, failed.success), (Some(1), false), "{failed:#?}");
        assert!(failed.stderr.contains("ValueError: x"), "{failed:#?}");
        let left = step("counter = (n for n in [1])\nimport sys\nsys.exit(3)").await;
        assert_eq!(left.exit_code, Some(3), "{left:#?}");
        let unkept = left.session.expect("a session").unkept;
        assert!(unkept.iter().any(|one| one.names == ["counter"] && one.reason.contains("generator")), "{unkept:?}");
        // What stops a step leaves the session as it was.
        let mut endless = job(&runtime, "items.append(10)\nwhile True: pass");
        endless.limits.timeout_ms = 2_000;
        let stopped = executor.run_in_session("work", endless).await.expect("run");
        assert_eq!(stopped.limit.as_deref(), Some("timeout_ms"), "{stopped:#?}");
        assert_eq!(values(&step("items").await), [json!([2, 9])]);
        assert_eq!(values(&step("del items\n'items' in globals()").await), [json!(false)]);
    }
}

#[tokio::test]
async fn a_step_has_a_context_an_input_and_nothing_of_the_host() {
    for runtime in runtimes() {
        let place = tempfile::tempdir().expect("a directory");
        let executor = executor(Some(place.path()));
        let file = place.path().join("of-the-host");
        std::fs::write(&file, "").expect("ours");
        let source = "name = CONTEXT['name']\nline = input()\nimport os\n[name, line, os.path.exists(CONTEXT['file'])]";
        let context = json!({ "name": "Zoë", "file": file });
        let step = Job { context, stdin: "in\n".into(), ..job(&runtime, source) };
        let report = executor.run_in_session("work", step).await.expect("run");
        assert_eq!(values(&report), [json!(["Zoë", "in", false])], "{report:#?}");
        let report = executor.run_in_session("work", job(&runtime, "CONTEXT")).await.expect("run");
        assert_eq!(values(&report), [json!({})], "the context is that of the step");
        assert_eq!(report.session.expect("a session").variables, ["line", "name", "os"]);
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_used_is_refused_before_its_step() {
    let place = tempfile::tempdir().expect("a directory");
    let executor = executor(Some(place.path()));
    let wasm = |source: &str| job(&Runtime::Wasm, source);
    executor.run_in_session("work", wasm("x = 1")).await.expect("run");
    let native = job(&Runtime::Native(NativeRuntime::default()), "x");
    let refused = executor.run_in_session("work", native).await.expect_err("another interpreter");
    assert!(matches!(refused, ExecError::SessionRuntime { .. }), "{refused}");
    let javascript = Job::of(Code::JavaScript("1".into()));
    let refused = executor.run_in_session("work", javascript).await.expect_err("another language");
    assert!(matches!(refused, ExecError::SessionOfPython), "{refused}");
    let files = [("helper.py".to_owned(), "x = 1".to_owned())].into();
    let refused = executor.run_in_session("work", Job { files, ..wasm("1") }).await.expect_err("modules");
    assert!(matches!(refused, ExecError::SessionFiles), "{refused}");
    let refused = executor.run_in_session("../work", wasm("1")).await.expect_err("no name");
    assert!(matches!(refused, ExecError::SessionName { .. }), "{refused}");
    let refused = self::executor(None).run_in_session("work", wasm("1")).await.expect_err("no place");
    assert!(matches!(refused, ExecError::NoSessions), "{refused}");
}

/// A step can answer whatever it likes, to the harm of its own session alone.
#[tokio::test]
async fn an_answer_that_a_step_makes_up_is_refused_whole() {
    let place = tempfile::tempdir().expect("a directory");
    let executor = executor(Some(place.path()));
    let runtime = Runtime::Native(NativeRuntime::default());
    if !runtimes().contains(&runtime) {
        return;
    }
    executor.run_in_session("work", job(&runtime, "x = 1")).await.expect("run");
    for answer in ["nonsense", r#"{"exit_code": 0, "groups": [{"names": ["../x"], "blob": "AA"}]}"#] {
        let source = format!("import os\nopen('../tmp/job/answer', 'w').write({answer:?})\nos._exit(0)");
        let report = executor.run_in_session("work", job(&runtime, &source)).await.expect("run");
        assert!(!report.success && report.error_message.is_some(), "{report:#?}");
        assert_eq!(report.session.expect("a session").steps, 1, "it is as it was");
    }
    let report = executor.run_in_session("work", job(&runtime, "x")).await.expect("run");
    assert_eq!(values(&report), [json!(1)]);
}

#[test]
fn the_command_keeps_lists_and_ends_sessions() {
    let lab = Lab::empty();
    let step = |source: &str| {
        let file = lab.path("step.py");
        fs::write(&file, source).expect("ours");
        lab.run(&["exec", file.to_str().expect("plain"), "--session", "work"])
    };
    assert!(lab.run(&["exec", "--sessions"]).expect(0).stdout.contains("no sessions"));
    step("total = 1").expect(0);
    assert_eq!(step("total += 1\ntotal").expect(0).stdout, "2\n");
    let told = step("kept_open = iter({}.items())").expect(0).stderr;
    assert!(told.contains("the session does not keep `kept_open`"), "{told}");
    assert!(lab.run(&["exec", "--sessions"]).expect(0).stdout.starts_with("work  wasm, 3 steps, 1 variable, "));
    let listed = lab.json(&["exec", "--sessions"]);
    assert_eq!((&listed["total"], &listed["items"][0]["variables"]), (&json!(1), &json!(["total"])), "{listed:#}");
    lab.run(&["exec", "--end-session", "work"]).expect(0);
    common::refused(&lab.run(&["exec", "--end-session", "work"]), &["there is no session `work`"]);
    lab.run(&["exec"]).expect(2);
    lab.run(&["exec", "--sessions", "--session", "work"]).expect(2);
}
