//! Programs for WASI, and the limits of compiling them.

use super::{EXECUTOR, expect, places, quick, run};
use longhaul::exec::{Code, CompileLimits, ExecError, Executor, Job};

/// Prints through preview 1 and exits with 3, or loops.
pub(super) fn program(body: &str) -> Job {
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 16) "hello\n")
            (func (export "_start")
                (i32.store (i32.const 0) (i32.const 16)) (i32.store (i32.const 4) (i32.const 6))
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
                {body}))"#
    );
    Job::of(Code::Wasm(wat::parse_str(text).expect("valid")))
}

#[tokio::test]
async fn a_program_for_wasi_runs() {
    expect(&run(program("")).await, "hello\n", Some(0), None);
    for code in [0, 1, 3, 255] {
        expect(&run(program(&format!("(call $exit (i32.const {code}))"))).await, "hello\n", Some(code), None);
    }
    expect(&run(quick(program("(loop $l (br $l))"))).await, "hello\n", None, Some("timeout_ms"));
    let trapped = run(program("unreachable")).await;
    assert_eq!((trapped.exit_code, trapped.stdout.as_str()), (None, "hello\n"));
    for bytes in [b"\0asm".to_vec(), b"no wasm".to_vec(), wat::parse_str("(module)").expect("valid")] {
        let refused = EXECUTOR.run(Job::of(Code::Wasm(bytes))).await;
        assert!(matches!(refused, Err(ExecError::Load(_))), "{refused:?}");
    }
}

/// A program with a function of `statements` statements that depend on each other, which is slow to compile.
fn slow_to_compile(statements: usize) -> Job {
    let one = |at: usize| {
        let (to, left, right) = (at % 40, (at + 13) % 40, (at + 7) % 40);
        format!("(local.set {to} (i64.rotl (i64.xor (local.get {left}) (i64.const {at})) (local.get {right})))")
    };
    let body: String = (0..statements).map(one).collect();
    let slow = format!("(func (export \"slow\") (local {}) {body})", "i64 ".repeat(40));
    let text = format!("(module (memory (export \"memory\") 1) (func (export \"_start\")) {slow})");
    Job::of(Code::Wasm(wat::parse_str(text).expect("valid")))
}

#[tokio::test]
async fn a_program_that_takes_too_much_to_compile_is_refused() {
    let executor = Executor::new(places(CompileLimits { cpu_ms_max: 1_000, ..CompileLimits::default() }));
    let executor = executor.expect("an executor");
    let refused = executor.run(slow_to_compile(300_000)).await;
    assert!(matches!(&refused, Err(ExecError::CompileLimit { hit, .. }) if hit.name == "cpu_ms_max"), "{refused:?}");
    let report = executor.run(program("")).await.unwrap_or_else(|error| panic!("{error}"));
    expect(&report, "hello\n", Some(0), None);
}
