//! Limits that stop code: time, fuel, memory, output and depth, and the health of the executor afterwards.

use super::{EXECUTOR, expect, javascript, python, quick, run, stays_healthy, within};
use longhaul::exec::{ExecError, Job};
use serde_json::json;

#[tokio::test]
async fn a_deep_recursion_of_javascript_is_an_error_that_can_be_caught() {
    for down in [
        "const down = () => down() + 1",
        "function down() { [1].map(down) }",
        "class A { constructor() { new A() } }; const down = () => new A()",
    ] {
        let source = format!("{down}\ntry {{ down() }} catch (error) {{ console.log(error instanceof RangeError) }}");
        expect(&run(javascript(&source)).await, "true\n", Some(0), None);
    }
    let report = run(javascript("const down = (n) => down(n + 1) + 1; down(0)")).await;
    expect(&report, "", Some(1), None);
    assert!(report.stderr.contains("RangeError: Maximum call stack size exceeded"), "{report:#?}");
    stays_healthy().await;
}

#[tokio::test]
async fn what_was_printed_before_a_limit_is_kept() {
    let endless = "print('before', flush=True)\n";
    // The second is one call into C, at which no interpreter could look in between.
    for rest in ["while True: pass", "sum(range(10**15))"] {
        let report = run(quick(python(&format!("{endless}{rest}")))).await;
        expect(&report, "before\n", None, Some("timeout_ms"));
        assert!(report.error_message.is_some_and(|text| text.contains("Timeout")));
    }
    let report = run(quick(javascript("console.log('before'); for (;;) {}"))).await;
    expect(&report, "before\n", None, Some("timeout_ms"));
    let report =
        run(within(python(&format!("{endless}while True: pass")), |limits| limits.fuel_max = 100_000_000)).await;
    expect(&report, "before\n", None, Some("fuel_max"));
}

#[tokio::test]
async fn memory_is_bounded() {
    let report = run(python("x = bytearray(512 << 20)")).await;
    assert!(report.error_message.as_deref().is_some_and(|text| text.contains("memory limit")), "{report:#?}");
    assert!(report.stderr.contains("MemoryError"), "{report:#?}");
    for source in [
        "x = bytearray(512 << 20)",
        "x = []\nwhile True: x.append(bytes(10**9))",
        "x = [bytearray(64 << 20) for _ in range(160)]",
        "x = 'x'\nwhile True: x += x",
    ] {
        let report = run(python(source)).await;
        expect(&report, "", Some(1), Some("memory_bytes_max"));
        assert!(report.memory_bytes_peak <= 256 << 20, "{report:#?}");
    }
    // More than 32 bits can say: there is nothing to ask the host for.
    for source in ["x = bytearray(10 << 30)", "x = 'x' * (10 << 30)"] {
        expect(&run(python(source)).await, "", Some(1), None);
    }
    let report = run(javascript("const a = []; for (;;) a.push(new Uint8Array(64 << 20))")).await;
    assert_eq!(report.limit.as_deref(), Some("memory_bytes_max"), "{report:#?}");
    assert!(!report.success && report.memory_bytes_peak <= 256 << 20, "{report:#?}");
    stays_healthy().await;
}

#[tokio::test]
async fn output_is_bounded() {
    for job in [python("while True: print('x' * 1000)"), javascript("for (;;) console.log('x'.repeat(1000))")] {
        let report = run(within(quick(job), |limits| limits.output_bytes_max = 10_000)).await;
        assert_eq!((report.stdout.len(), report.truncated), (10_000, true));
        assert_eq!(report.limit.as_deref(), Some("timeout_ms"));
    }
    stays_healthy().await;
}

#[tokio::test]
async fn depth_is_bounded() {
    let deep = "import sys\nsys.setrecursionlimit(10**7)\ndef f(n): return f(n + 1)\nf(0)";
    let report = run(within(python(deep), |limits| limits.timeout_ms = 60_000)).await;
    assert!(!report.success && report.error_message.is_some(), "{report:#?}");
    let report = run(python("def f(n): return f(n + 1)\nf(0)")).await;
    expect(&report, "", Some(1), None);
    assert!(report.stderr.contains("RecursionError"), "{report:#?}");
    let report = run(javascript("const f = (n) => f(n + 1) + 1; f(0)")).await;
    assert!(!report.success && report.error_message.is_some(), "{report:#?}");
    stays_healthy().await;
}

#[tokio::test]
async fn json_that_nests_very_deep_is_an_exception() {
    for levels in [10, 499, 500] {
        let source =
            format!("import json\njson.loads('[' * {levels} + ']' * {levels})\njson.loads('\"' + '[' * 9000 + '\"')");
        expect(&run(python(&source)).await, "", Some(0), None);
    }
    for levels in [501, 2_000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let source = format!("import json\njson.loads('{open}' * {levels} + '1' + '{close}' * {levels})");
            let report = run(python(&source)).await;
            expect(&report, "", Some(1), None);
            assert!(report.stderr.contains("RecursionError"), "{report:#?}");
        }
    }
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    // The object that is the context is a level of its own.
    let with = |levels: usize| Job { context: json!({ "deep": nested(levels) }), ..python("print(len(CONTEXT))") };
    expect(&run(with(126)).await, "1\n", Some(0), None);
    for levels in [127, 1_000] {
        let refused = EXECUTOR.run(with(levels)).await;
        assert!(matches!(refused, Err(ExecError::ContextTooDeep)), "{refused:?}");
    }
    stays_healthy().await;
}
