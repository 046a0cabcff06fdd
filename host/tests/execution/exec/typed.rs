//! Typed results: of JavaScript and TypeScript as of Python, and a clear refusal where a language has none.

use super::wasi::program;
use super::{EXECUTOR, expect, javascript, python, run};
use crate::common::lab::Lab;
use longhaul::exec::{Code, ExecError, Job, JobOutput};
use serde_json::json;
use std::fs;

fn rich(job: Job) -> Job {
    Job { rich: true, ..job }
}

/// The outputs of JavaScript that ends well, as JSON.
async fn outputs(source: &str) -> serde_json::Value {
    let report = run(rich(javascript(source))).await;
    assert!(report.success, "{source}: {report:#?}");
    serde_json::to_value(report.outputs).expect("JSON")
}

#[tokio::test]
async fn javascript_returns_its_last_expression_and_what_display_is_given() {
    let source =
        "const rows = [{ n: 1, name: 'Zoë' }]\ndisplay(rows.length, null, new Map([[1, 2n]]))\nrows; // the end";
    let expected = json!([
        { "kind": "json", "value": 1 },
        { "kind": "json", "value": null },
        { "kind": "text", "text": "Map(1) { 1 => 2n }" },
        { "kind": "json", "value": [{ "n": 1, "name": "Zoë" }] },
    ]);
    assert_eq!(outputs(source).await, expected);
    for (source, value) in [
        ("1 + 1;;", json!(2)),
        ("await Promise.resolve('a')", json!("a")),
        ("const x = await Promise.resolve([1])\nx", json!([1])),
        ("async function f() { return { n: 1 } }\nf()", json!({ "n": 1 })),
        ("import { join } from 'path'\njoin('a', 'b')", json!("a/b")),
    ] {
        assert_eq!(outputs(source).await, json!([{ "kind": "json", "value": value }]), "{source}");
    }
    for source in
        ["", "let x = 1", "undefined", "console.log(1)", "for (const n of [1]) n", "await null; function f() {}"]
    {
        assert_eq!(outputs(source).await, json!([]), "{source}");
    }
    let typescript = run(rich(Job::of(Code::TypeScript("const n: number = 2\nn satisfies number".into())))).await;
    assert_eq!(typescript.outputs, [JobOutput::Json { value: json!(2) }]);
    assert!(run(javascript("1")).await.outputs.is_empty(), "only where they are asked for");
}

#[tokio::test]
async fn a_value_of_javascript_is_shown_in_the_form_that_says_most() {
    let shown = "({ [Symbol.for('Jupyter.display')]: () => (FORMS) })";
    for (source, output) in [
        (shown.replace("FORMS", "{ 'image/svg+xml': '<svg/>' }"), json!({ "kind": "svg", "text": "<svg/>" })),
        (
            shown.replace("FORMS", "{ 'image/png': 'iVBORw0KGgoAAAA=' }"),
            json!({ "kind": "png", "base64": "iVBORw0KGgoAAAA=" }),
        ),
        ("-0".to_owned(), json!({ "kind": "text", "text": "-0" })),
        ("[1, , 2]".to_owned(), json!({ "kind": "text", "text": "[ 1, <1 empty item>, 2 ]" })),
        ("({ a: undefined })".to_owned(), json!({ "kind": "text", "text": "{ a: undefined }" })),
        ("const a = []; a.push(a); a".to_owned(), json!({ "kind": "text", "text": "<ref *1> [ [Circular *1] ]" })),
        ("Object.prototype.toJSON = () => 1; ({ a: 2 })".to_owned(), json!({ "kind": "json", "value": { "a": 2 } })),
    ] {
        assert_eq!(outputs(&source).await, json!([output]), "{source}");
    }
}

#[tokio::test]
async fn outputs_of_javascript_are_bounded_and_outlive_an_error() {
    let report = run(rich(javascript("for (let n = 0; n < 150; n++) display(n)"))).await;
    assert!(report.outputs.len() == 100 && report.truncated, "{}", report.outputs.len());
    let shared = "let a = 'x'; for (let n = 0; n < 45; n++) a = [a, a]; display(a); 'after'";
    let report = run(rich(javascript(shared))).await;
    assert!(report.outputs == [JobOutput::Json { value: json!("after") }] && report.truncated, "{report:#?}");
    let report = run(rich(javascript("display('before'); null.x; 5"))).await;
    assert_eq!((report.outputs, report.exit_code), (vec![JobOutput::Json { value: json!("before") }], Some(1)));
    assert!(report.stderr.contains("<javascript>:1:"), "an error keeps its column: {}", report.stderr);
    let report = run(rich(javascript("async function f() { throw new Error('no') }\nf()"))).await;
    assert_eq!((report.outputs.len(), report.exit_code), (0, Some(1)));
    let report = run(rich(javascript("display(1); process.exit(3); 5"))).await;
    assert_eq!((report.outputs.len(), report.exit_code), (1, Some(3)));
}

#[tokio::test]
async fn python_with_modules_beside_it_returns_typed_results() {
    let files = [("helper.py".to_owned(), "X = [5]".to_owned())].into();
    let report = run(rich(Job { files, ..python("import helper\nhelper.X") })).await;
    expect(&report, "", Some(0), None);
    assert_eq!(report.outputs, [JobOutput::Json { value: json!([5]) }]);
}

#[tokio::test]
async fn a_program_has_no_typed_results_and_is_refused_before_it_starts() {
    let refused = EXECUTOR.run(rich(program(""))).await;
    assert!(matches!(refused, Err(ExecError::RichProgram)), "{refused:?}");
}

#[test]
fn the_command_prints_typed_results_of_javascript_and_refuses_those_of_a_program() {
    let lab = Lab::empty();
    let file = |name: &str, text: &[u8]| {
        let path = lab.path(name);
        fs::write(&path, text).expect("ours");
        path.to_str().expect("plain").to_owned()
    };
    let script = file("rows.js", b"console.log('printed')\n;[1, { a: null }]\n");
    assert_eq!(lab.run(&["exec", &script, "--rich"]).expect(0).stdout, "printed\n[1,{\"a\":null}]\n");
    assert_eq!(lab.run(&["exec", &script]).expect(0).stdout, "printed\n");
    let typed = file("rows.ts", b"const n: number = 2\nn + 1\n");
    let report = lab.json(&["exec", &typed, "--rich"]);
    assert_eq!(report["outputs"], json!([{ "kind": "json", "value": 3 }]), "{report:#}");

    let program = file("program.wasm", b"\0asm\x01\0\0\0");
    let ran = lab.run(&["exec", &program, "--rich"]).expect(125);
    assert_eq!((ran.stdout.as_str(), ran.error_lines()), ("", 1), "{}", ran.said());
    assert!(ran.stderr.contains("a WASI program has no typed results; leave out `--rich`"), "{}", ran.said());
    lab.run(&["exec", &program, "--rich", "--exit-code-of-longhaul"]).expect(1);
}
