//! Compares a whole check of a program that does nothing, in the full sandbox, with a bare start of it, in the same
//! run: `cargo bench -p longhaul-worktree --bench check`. It copies a tree of 500 files, or updates the copy of the
//! previous check. A machine that gives less than the full sandbox measures nothing.

#[path = "../tests/it/repo.rs"]
mod repo;

use longhaul_sandbox::{Level, SandboxHost};
use longhaul_worktree::{NativeCheck, pins, run_native};
use repo::Repo;
use std::time::{Duration, Instant};

const FILES: usize = 500;

const CHECKS: usize = 50;

fn main() {
    if let [_, spec] = &std::env::args().collect::<Vec<_>>()[..]
        && spec.starts_with('{')
    {
        std::process::exit(longhaul_sandbox::sandbox_child(spec));
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let repo = repository();
    let host = host(&repo);
    let (project, tree) = (repo.project(), repo.checkout());
    let head = project.head().expect("a commit");
    let check = NativeCheck::of_argv(vec!["/bin/true".to_owned()]);
    let pins = pins(&project, &head, "bench", &check).expect("it is pinned");
    let mut bare = Vec::new();
    let mut whole = Vec::new();
    for _ in 0..CHECKS {
        bare.push(timed(|| {
            let ended = std::process::Command::new("/bin/true").status().expect("it runs");
            assert!(ended.success());
        }));
        whole.push(timed(|| {
            let run = run_native(&host, &project, &tree, &head, "bench", &check, &pins);
            let done = runtime.block_on(run).expect("it runs");
            assert_eq!((done.sandbox, done.report.passed), (Level::Full, true), "{}", done.report.stderr);
        }));
    }
    let first = whole[0];
    let (bare, whole) = (median(bare), median(whole));
    let times = whole.as_secs_f64() / bare.as_secs_f64();
    println!("bare {bare:?}, a check of {FILES} files {whole:?}, {times:.1} times; the first {first:?}");
}

fn repository() -> Repo {
    let text = "a line of a source file\n".repeat(100);
    let paths: Vec<String> = (0..FILES).map(|at| format!("src/{}/{at}.txt", at % 20)).collect();
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), text.as_str())).collect();
    Repo::with(&files)
}

fn host(repo: &Repo) -> SandboxHost {
    let scratch = repo.dir.path().join("scratch");
    std::fs::create_dir(&scratch).expect("ours");
    SandboxHost {
        program: std::env::current_exe().expect("this program"),
        prefix_args: Vec::new(),
        scratch,
        cache: None,
        hidden: Vec::new(),
        checkout: Some(repo.root()),
        redact: None,
        level_min: Level::Full,
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
