//! Native checks: their copies, their sandboxes, and their reports at a limit.

mod cargo;
mod cheats;
mod copies;
mod dependencies;
mod go;
mod limits;
mod sandbox;
mod settings;

use crate::repo::Repo;
use longhaul_sandbox::{Level, SandboxHost};
use longhaul_worktree::{NativeCheck, NativeError, NativeReport, PinnedFiles, Tree, pins, run_native};
use std::path::PathBuf;
use std::time::Duration;

/// The example of `sandbox` that stands in for the `longhaul` command.
fn child() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/sandbox_child")
}

fn host(repo: &Repo) -> SandboxHost {
    let scratch = repo.dir.path().join("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    let hidden = vec![repo.dir.path().join("hidden")];
    let (program, checkout, cache) = (child(), Some(repo.root()), Some(shared_cache()));
    SandboxHost { program, prefix_args: vec![], scratch, cache, hidden, checkout, level_min: Level::None, redact: None }
}

/// The cache of all tests of a user, so that one of them compiles Go's standard library.
fn shared_cache() -> PathBuf {
    let name = format!("checks-{}", rustix::process::geteuid().as_raw());
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn shell(script: &str) -> NativeCheck {
    NativeCheck::of_argv(["sh", "-c", script].map(str::to_owned).to_vec())
}

async fn run_with(repo: &Repo, check: &NativeCheck, pins: &PinnedFiles) -> Result<NativeReport, NativeError> {
    let report = run_on(repo, &repo.checkout(), check, pins).await;
    // The tree no longer exists, and neither does its copy.
    wait_for(|| scratch(repo).is_empty()).await;
    report
}

async fn run_on(
    repo: &Repo,
    tree: &Tree,
    check: &NativeCheck,
    pins: &PinnedFiles,
) -> Result<NativeReport, NativeError> {
    let project = repo.project();
    run_native(&host(repo), &project, tree, &project.head().unwrap(), "test", check, pins).await
}

/// The directories of checks.
fn scratch(repo: &Repo) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repo.dir.path().join("scratch")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Cleaning continues in the background.
async fn wait_for(is_done: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if is_done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the copy was not tidied");
}

async fn run(repo: &Repo, check: &NativeCheck) -> Result<NativeReport, NativeError> {
    let project = repo.project();
    let pins = pins(&project, &project.head().unwrap(), "test", check).unwrap();
    run_with(repo, check, &pins).await
}

/// The refusal of a check before it runs.
fn run_with_invalid(repo: &Repo, check: &NativeCheck) -> String {
    let project = repo.project();
    pins(&project, &project.head().unwrap(), "test", check).unwrap_err().to_string()
}
