//! Components that mean harm to the compiler, and the walls around its process.

use super::{PATIENCE, block_on, stays_healthy};
use crate::common::guests::lab::{Lab, engine_with, private_directory};
use crate::common::guests::{guest, with_module};
use longhaul_engine::{CompileLimits, Engine, EngineOptions, Jail, LoadError};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A plugin with a function of `statements` statements that depend on each other, which is slow to compile.
fn slow_to_compile(statements: usize) -> Vec<u8> {
    let mut body = String::new();
    for at in 0..statements {
        write!(
            body,
            "(local.set {} (i64.rotl (i64.xor (local.get {}) (i64.const {at})) (local.get {})))",
            at % 40,
            (at + 13) % 40,
            (at + 7) % 40
        )
        .expect("a string takes it");
    }
    let text =
        format!("(module (func (export \"f\") (result i64) (local {}) {body} (local.get 0)))", "i64 ".repeat(40));
    with_module(guest("healthy"), &text)
}

/// The error of compiling within `limits`, in a cache of its own, which is then empty.
#[track_caller]
fn not_compiled(bytes: &[u8], limits: CompileLimits) -> LoadError {
    let directory = private_directory();
    let engine = engine_with(directory.path().join("cache"), limits).unwrap_or_else(|error| panic!("{error}"));
    let error = block_on(async { engine.load("slow", bytes).await }).err().expect("it is stopped");
    let names =
        fs::read_dir(engine.cache_directory()).expect("readable").map(|entry| entry.expect("there").file_name());
    let left: Vec<_> = names.filter(|name| name != "key").collect();
    assert!(left.is_empty(), "an unfinished file was left: {left:?}");
    error
}

#[test]
fn a_compilation_past_its_time_on_a_processor_or_on_the_clock_is_killed() {
    for (limits, name, statements) in [
        (CompileLimits { cpu_ms_max: 1_000, ..CompileLimits::default() }, "cpu_ms_max", 300_000),
        (CompileLimits { wall_ms_max: 200, ..CompileLimits::default() }, "wall_ms_max", 60_000),
    ] {
        let error = not_compiled(&slow_to_compile(statements), limits);
        assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == name), "{error}");
    }
}

/// It waits for its component meanwhile: whatever that does to the compiler, it comes too late.
#[test]
#[cfg(target_os = "linux")]
fn the_compiler_has_given_up_its_powers_before_it_reads_a_byte() {
    let limits = serde_json::to_string(&CompileLimits::default()).expect("limits are JSON");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["compile-child", "--limits", &limits])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let field = |name: &str| {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // The limit of processor time, which it sets last.
    let has_limits = || {
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap_or_default();
        limits.lines().any(|line| line.starts_with("Max cpu time") && line.contains(" 180 "))
    };
    while !has_limits() {
        assert!(!field("Pid:").is_empty(), "it ended");
        std::thread::yield_now();
    }
    assert_eq!(field("Seccomp:"), ["2"]);
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    for rights in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(field(rights), ["0000000000000000"], "{rights}");
    }
    assert!(!field("Uid:").contains(&"0".to_owned()), "{:?}", field("Uid:"));
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("ours").code(), Some(3), "nothing is no component");
}

/// A model's file is a stranger's as a component is. The process has ended, and what it was is still to be read.
#[test]
#[cfg(all(target_os = "linux", feature = "local-model"))]
fn the_process_of_a_local_model_has_given_up_its_powers_before_it_reads_a_byte() {
    let directory = private_directory();
    let file = directory.path().join("model.gguf");
    fs::write(&file, "no model").expect("ours");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["model-child", "--context-tokens-max", "512", "--memory-bytes-max", "1073741824", "--file"])
        .arg(&file)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = std::io::read_to_string(child.stdout.take().expect("piped")).expect("text");
    assert!(said.contains("bad_model"), "{said}");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("nobody has waited for it");
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    assert_eq!(child.wait().expect("ours").code(), Some(1));
}

#[test]
fn a_compilation_past_its_memory_dies_and_says_so() {
    let limits = CompileLimits { memory_bytes_max: 64 << 20, ..CompileLimits::default() };
    let error = not_compiled(&slow_to_compile(60_000), limits);
    assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "memory_bytes_max"), "{error}");
}

/// An engine whose compiler is a line for the shell.
fn engine_of(cache: &Path, line: &str, limits: CompileLimits) -> Engine {
    let jail = Jail { program: "/bin/sh".into(), arguments: vec!["-c".into(), line.into()], limits };
    let options = EngineOptions { on_demand: true, ..EngineOptions::default() };
    Engine::new(cache.to_owned(), jail, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Faults of the host used to be reported as faults of the plugin, and every death as one by lack of memory.
#[test]
fn the_end_of_the_compiler_tells_a_fault_of_the_plugin_from_one_of_the_host() {
    let told = |line: &str| {
        let directory = private_directory();
        let line = format!("ulimit -c 0; {line}");
        let engine = engine_of(&directory.path().join("cache"), &line, CompileLimits::default());
        match block_on(async { engine.load("plugin", &guest("healthy")).await }).err().expect("nothing is compiled") {
            LoadError::Limit { hit, .. } => hit.name,
            LoadError::Compile { reason, .. } => format!("plugin: {reason}"),
            LoadError::TooDeep { .. } => "too deep".to_owned(),
            LoadError::Died { .. } => "died".to_owned(),
            LoadError::Host { reason, .. } if reason.contains("cannot be used") => "host: no code".to_owned(),
            LoadError::Host { reason, .. } => format!("host: {reason}"),
            other => other.to_string(),
        }
    };
    for (line, expected) in [
        ("echo why >&2; exit 3", "plugin: why"),
        ("echo why >&2; exit 4", "host: why"),
        ("exit 0", "host: no code"),
        ("kill -XCPU $$", "cpu_ms_max"),
        ("kill -XFSZ $$", "code_bytes_max"),
        ("exit 5", "memory_bytes_max"),
        ("exit 6", "code_bytes_max"),
        ("echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$", "memory_bytes_max"),
        ("echo \"thread 'main' has overflowed its stack\" >&2; kill -ABRT $$", "too deep"),
        ("kill -SEGV $$", "died"),
        ("kill -KILL $$", "died"),
        ("echo \"thread 'main' panicked\" >&2; exit 101", "died"),
    ] {
        assert_eq!(told(line), expected, "{line}");
    }
}

#[test]
fn compiled_code_is_no_longer_than_it_may_be() {
    let limits = CompileLimits { code_bytes_max: 4_096, ..CompileLimits::default() };
    let error = not_compiled(&guest("healthy"), limits);
    assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "code_bytes_max"), "{error}");
}

/// Code that has taken the compiler over does not ask how much it may write.
#[test]
#[cfg(target_os = "linux")]
fn the_compiler_can_fill_no_disk() {
    let limits = CompileLimits { code_bytes_max: 12_345_678, ..CompileLimits::default() };
    let limits = serde_json::to_string(&limits).expect("limits are JSON");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["compile-child", "--limits", &limits])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let held = || {
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap_or_default();
        let line = limits.lines().find(|line| line.starts_with("Max file size")).map(str::to_owned);
        line.map(|line| line.split_whitespace().skip(3).take(2).all(|max| max == "12345678"))
    };
    while !held().expect("it waits for a component") {
        std::thread::yield_now();
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("ours").code(), Some(3), "nothing is no component");
}

/// One that was left running held the pipe of the compiler's words, and was waited for as long as a compiler may take.
#[test]
#[cfg(target_os = "linux")]
fn nothing_that_the_compiler_starts_outlives_it() {
    let directory = private_directory();
    let started = directory.path().join("started");
    let background = format!("sleep 1000 & echo $! >'{}'", started.display());
    for (line, wall_ms_max, ends) in [("exit 3", 1_800_000, "cannot be compiled"), ("sleep 1000", 3_000, "wall_ms_max")]
    {
        let limits = CompileLimits { wall_ms_max, ..CompileLimits::default() };
        let engine = engine_of(&directory.path().join("cache"), &format!("{background}; {line}"), limits);
        let load = async { tokio::time::timeout(PATIENCE, engine.load("plugin", &guest("healthy"))).await };
        let error = block_on(load).expect("it ends").err().expect("nothing is compiled").to_string();
        assert!(error.contains(ends), "{line}: {error}");
        let pid = fs::read_to_string(&started).expect("written before the end");
        // Without a process that collects orphans its id stays.
        let lives = || {
            let status = fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
        };
        while lives() {
            std::thread::yield_now();
        }
        fs::remove_file(&started).expect("ours");
    }
}

/// It has another process group than the host, so a signal that ends the host at a terminal does not reach it.
#[test]
#[cfg(target_os = "linux")]
fn the_compiler_ends_with_its_host() {
    let limits = serde_json::to_string(&CompileLimits::default()).expect("limits are JSON");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["compile-child", "--limits", &limits])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    // A component that never arrives, and no reader of its error.
    let _stdin = child.stdin.take();
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("ours").code(), Some(4));
}

#[test]
fn a_function_that_is_nested_very_deep_is_compiled_or_refused() {
    let depth = 50_000;
    let text = format!("(module (func {} {}))", "block ".repeat(depth), "end ".repeat(depth));
    block_on(async {
        let lab = Lab::new();
        let healthy = lab.load("healthy", &guest("healthy")).await;
        let deep = with_module(guest("healthy"), &text);
        if let Ok(plugin) = lab.engine().load("deep", &deep).await {
            stays_healthy(&lab, &plugin).await;
        }
        stays_healthy(&lab, &healthy).await;
    });
}
