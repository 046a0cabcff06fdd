//! Limits of checks: what ends at them, and what their reports say.

use super::dependencies::has_node;
use super::{run, shell};
use crate::repo::Repo;
use expect_test::expect;
use longhaul_sandbox::Level;
use longhaul_worktree::NativeCheck;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_check_at_its_deadline_is_killed_with_all_it_started() {
    let repo = Repo::with(&[]);
    let mark = repo.dir.path().join("scratch/alive");
    // Others may run this test at the same time.
    let own = std::process::id();
    let mut check = shell(&format!("(sleep 30.{own}; echo late) & setsid sleep 31.{own} & echo begun; sleep 32.{own}"));
    check.wall_ms_max = 700;
    let started = Instant::now();
    let done = run(&repo, &check).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert!(!mark.exists());
    expect![["limit `wall_ms_max` reached: 700 of 700; raise it in [checks.test], or make the check use less\n"]]
        .assert_eq(&done.report.stderr);
    assert_eq!((done.report.passed, done.report.exit_code, done.report.stdout.as_str()), (false, -1, "begun\n"));
    let left = std::process::Command::new("pgrep").args(["-f", &format!("sleep 3[012].{own}")]).output().unwrap();
    if done.sandbox != Level::None {
        assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    }
}

#[tokio::test]
async fn what_a_check_leaves_running_neither_delays_nor_outlives_it() {
    let repo = Repo::with(&[]);
    let started = Instant::now();
    let done = run(&repo, &shell("sleep 60 & echo done")).await.unwrap();
    assert!(done.report.passed && done.report.stdout == "done\n", "{done:?}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

/// The host is killed in the middle of a check: its children end too.
#[test]
fn a_check_ends_with_the_host() {
    if std::env::var_os("LONGHAUL_TEST_HOST").is_some() {
        let repo = Repo::with(&[]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _ = runtime.block_on(run(&repo, &shell("setsid sleep 47; sleep 47")));
        return;
    }
    let mut host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["native::limits::a_check_ends_with_the_host", "--exact"])
        .env("LONGHAUL_TEST_HOST", "1")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let running =
        || !std::process::Command::new("pgrep").args(["-x", "-f", "sleep 47"]).output().unwrap().stdout.is_empty();
    let wait_for = |wanted: bool| {
        let started = Instant::now();
        while running() != wanted && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        running()
    };
    assert!(wait_for(true), "the check did not start");
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(!wait_for(false), "the check outlived its host");
}

#[tokio::test]
async fn limits_are_named_where_the_kernel_names_them() {
    let repo = Repo::with(&[]);
    let mut memory = NativeCheck::of_argv(["python3", "-c", "x = bytearray(1 << 30)"].map(str::to_owned).to_vec());
    memory.memory_bytes_max = 256 << 20;
    let done = run(&repo, &memory).await.unwrap();
    assert!(!done.report.passed && done.report.stderr.contains("MemoryError"), "{done:?}");
    let mut disk = shell("exec dd if=/dev/zero of=big bs=1M count=64 2>/dev/null");
    disk.disk_bytes_max = 16 << 20;
    let done = run(&repo, &disk).await.unwrap();
    assert_eq!(done.report.exit_code, -1, "{done:?}");
    let mut cpu = shell("while :; do :; done");
    cpu.wall_ms_max = 1_000;
    assert_eq!(run(&repo, &cpu).await.unwrap().report.exit_code, -1);
}

#[tokio::test]
async fn what_a_program_reserves_is_not_what_it_may_write_to() {
    let repo = Repo::with(&[]);
    let code = "import mmap\n\
                def take(bytes, more=0):\n    return mmap.mmap(\n        -1, bytes, flags=mmap.MAP_PRIVATE | \
                mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | more)\n\
                held = [take(8 << 30) for _ in range(8)]\nprint('reserved', flush=True)\n\
                for bytes, more in [(1 << 40, 0), (1 << 30, mmap.PROT_WRITE)]:\n    try: held.append(take(bytes, more))\n    \
                except OSError as error: print(error.errno)\n";
    let mut python = NativeCheck::of_argv(["python3", "-c", code].map(str::to_owned).to_vec());
    python.memory_bytes_max = 256 << 20;
    let done = run(&repo, &python).await.unwrap();
    assert_eq!(done.report.stdout, "reserved\n12\n12\n", "{done:?}");
    if !has_node() {
        eprintln!("skipped: there is no node");
        return;
    }
    // With the defaults of a check.
    let usual =
        "new WebAssembly.Memory({ initial: 1 }); fetch('http://127.0.0.1:9').catch(() => console.log('fetched'))";
    for (script, passed) in [(usual, true), ("new ArrayBuffer(3 * 2 ** 30)", false)] {
        let done = run(&repo, &NativeCheck::of_argv(["node", "-e", script].map(str::to_owned).to_vec())).await.unwrap();
        assert_eq!((done.report.passed, done.report.stdout.contains("fetched")), (passed, passed), "{done:?}");
    }
}

#[tokio::test]
async fn output_is_cut_in_the_middle_and_made_text() {
    let repo = Repo::with(&[]);
    let mut long = shell("printf 'first\\377'; head -c 3000000 /dev/zero | tr '\\0' x; printf last; printf 'e' >&2");
    long.output_bytes_max = 40;
    let done = run(&repo, &long).await.unwrap();
    assert!(done.report.passed && done.report.truncated, "{done:?}");
    assert_eq!(
        done.report.stdout,
        format!("first\u{fffd}{}\n[2999970 bytes left out]\n{}last", "x".repeat(14), "x".repeat(16))
    );
    assert_eq!(done.report.stderr, "e");
}
