//! The two commands of the README, `first-run` and `test`, and `prices`.
//!
//! All do all the set-up they need through ordinary package clients, into the cache outside the tree,
//! and the first two say how long each stage took. None asks for an account or a key.

use crate::as_user;
use crate::browser;
use crate::guests::{self, PluginsArgs};
use anyhow::{Context, Result};
use longhaul_build::cache::Cache;
use longhaul_build::process;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Builds with an old compiler stay possible; a newer one is taken when it is installed already.
const NEXTEST: &str = "0.9.143";
/// Checks licences and bans.
const DENY: &str = "0.20.2";

/// Builds, fetches the small model, runs example 01 and shows what came of it.
pub(crate) fn first_run(root: &Path) -> Result<()> {
    let mut stages = Stages::default();
    stages.run("build", || {
        run("build longhaul", cargo(root).args(["build", "-p", "longhaul", "--features", "local-model"]))
    })?;
    stages.run("plugins", || guests::plugins(root, &PluginsArgs::shipped()))?;
    let longhaul = root.join("target/debug/longhaul");
    let fetched =
        stages.run("model", || run("fetch the model", Command::new(&longhaul).args(["models", "pull", "smollm2"])));
    let place = root.join("target/first-run");
    let project = fresh_project(root, &place)?;
    let mut go = Command::new(&longhaul);
    go.arg("--home").arg(place.join("home")).arg("--project").arg(&project).arg("run");
    if let Err(error) = fetched {
        println!("the model cannot be fetched ({error:#}); going on with a recording of it");
        go.arg("--recorded").arg(project.join("recording.jsonl"));
    }
    // A small model does not manage every function: features that fail are no failure of this command.
    stages.run("run", || {
        let status = go.status().context("start longhaul")?;
        match status.code() {
            Some(0 | 3) => Ok(()),
            _ => anyhow::bail!("longhaul ended with {status}"),
        }
    })?;
    println!("\nwhat it committed, in {}:", project.display());
    run("show the commits", git(&project).args(["log", "--stat", "--oneline", "main..longhaul/first-run"]))?;
    stages.print();
    Ok(())
}

/// Checks and tests everything, and ends with the summary of the tests.
pub(crate) fn test(root: &Path) -> Result<()> {
    let mut stages = Stages::default();
    let cache = Cache::open(guests::say)?;
    let nextest = stages.run("nextest", || tool(&cache, "cargo-nextest", NEXTEST))?;
    let deny = stages.run("deny", || tool(&cache, "cargo-deny", DENY))?;
    let browser = stages.run("browser", browser::directory)?;
    let go = stages.run("go", || Ok(longhaul_build::go(&cache)?))?;
    stages.run("format", || run("check the format", cargo(root).args(["fmt", "--all", "--check"])))?;
    stages.run("licences", || {
        // Advisories need a database from elsewhere; see CONTRIBUTING.md.
        run(
            "check licences and bans",
            with(cargo(root), &[&deny]).args(["deny", "--log-level", "error", "check", "licenses", "bans", "sources"]),
        )
    })?;
    stages.run("plugins", || guests::plugins(root, &PluginsArgs::all()))?;
    stages.run("clippy", || {
        run(
            "run clippy",
            cargo(root).args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
        )
    })?;
    stages.run("plugin tests", || {
        let manifest = root.join("plugins/Cargo.toml");
        run(
            "test the plugins' logic",
            with(cargo(root), &[&nextest])
                .args(["nextest", "run", "--no-tests", "pass", "--manifest-path"])
                .arg(manifest),
        )
    })?;
    stages.run("sdk tests", || sdk_tests(root, &cache, &nextest))?;
    // Before those of root, whose summary is the last word.
    let as_user = stages.run("tests as a user", || as_user::test(root, || with(cargo(root), &[&nextest]), &nextest));
    stages.run("tests", || {
        let tools: Vec<&Path> =
            [Some(&nextest), browser.as_ref(), go.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
        let mut tests = with(cargo(root), &tools);
        run("run the tests", tests.args(["nextest", "run", "--workspace", "--no-fail-fast"]))
    })?;
    stages.print();
    as_user
}

/// Writes the table of prices anew; what changed is for a person to read before it is committed.
pub(crate) fn prices(root: &Path) -> Result<()> {
    let script = root.join("xtask/src/prices.py");
    let table = root.join("host/crates/models/src/prices/table.tsv");
    run("make the table of prices, which needs Python 3 with pip", Command::new("python3").arg(script).arg(table))
}

/// The SDKs without a host, each in its own language, and the tool `python` without a component; C's examples are tested
/// as components.
fn sdk_tests(root: &Path, cache: &Cache, nextest: &Path) -> Result<()> {
    for (doing, folder) in [("test the Python SDK", "sdk/python"), ("test the tool `python`", "plugins/python")] {
        run(doing, Command::new("python3").current_dir(root.join(folder)).args(["-m", "unittest", "--quiet"]))?;
    }
    let mut node = longhaul_build::node(cache)?;
    run(
        "test the JavaScript SDK",
        node.current_dir(root.join("sdk/js")).args(["--test", "--test-reporter", "dot", "test/"]),
    )?;
    let manifest = root.join("sdk/rust/Cargo.toml");
    let mut rust = with(cargo(root), &[nextest]);
    rust.args(["nextest", "run", "--target-dir"]).arg(root.join("target/sdk")).arg("--manifest-path").arg(manifest);
    run("test the Rust SDK", &mut rust)
}

fn run(doing: &str, command: &mut Command) -> Result<()> {
    Ok(process::run(doing, command)?)
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Puts directories of tools first on the path, so that cargo finds its subcommands there.
fn with(mut command: Command, tools: &[&Path]) -> Command {
    let mut paths: Vec<PathBuf> = tools.iter().map(|directory| directory.to_path_buf()).collect();
    paths.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    command.env("PATH", std::env::join_paths(paths).unwrap_or_else(|_| OsString::from("/usr/bin")));
    command
}

/// The directory of a cargo subcommand: where it is installed, or one in the cache that it is built into.
fn tool(cache: &Cache, name: &str, version: &str) -> Result<PathBuf> {
    let installed = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .find(|directory| directory.join(name).is_file());
    if let Some(directory) = installed {
        return Ok(directory);
    }
    let folder = cache.folder(&format!("{name}-{version}"), |directory| {
        println!("building {name} {version}, once");
        let mut install = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // Their own speed does not matter, and a build without optimisation takes half the time.
        install
            .args(["install", "--debug", "--locked", "--quiet", "--version", version, "--root"])
            .arg(directory)
            .arg(name);
        // Their own target directory, or cargo would build them beside us with our settings.
        install.env("CARGO_TARGET_DIR", directory.join("build"));
        run(&format!("install {name}"), &mut install)?;
        std::fs::remove_dir_all(directory.join("build")).context("remove the build of a tool")
    })?;
    Ok(folder.join("bin"))
}

/// The example in a repository of its own, so that its commits are not among ours.
fn fresh_project(root: &Path, place: &Path) -> Result<PathBuf> {
    if place.exists() {
        std::fs::remove_dir_all(place).with_context(|| format!("remove `{}`", place.display()))?;
    }
    let project = place.join("project");
    std::fs::create_dir_all(&project)?;
    for name in ["GOAL.md", "longhaul.toml", "recording.jsonl"] {
        std::fs::copy(root.join("examples/01-first-run").join(name), project.join(name))
            .with_context(|| format!("copy `{name}`"))?;
    }
    run("make a repository", git(&project).args(["init", "--quiet", "--initial-branch", "main"]))?;
    run("add the goal", git(&project).args(["add", "--all"]))?;
    run("commit the goal", git(&project).args(["commit", "--quiet", "--message", "The goal"]))?;
    Ok(project)
}

fn git(directory: &Path) -> Command {
    let mut git = Command::new("git");
    // The git configuration of this machine, such as hooks, monitors and signing, must not influence the example.
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").env_remove("GIT_DIR");
    for (count, (key, value)) in [("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false")].iter().enumerate() {
        git.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
        git.env("GIT_CONFIG_COUNT", (count + 1).to_string());
    }
    // A fresh machine has no name configured, and this repository is ours.
    git.current_dir(directory).args(["-c", "user.name=first-run", "-c", "user.email=first-run@localhost"]);
    git
}

/// Names of stages with their seconds.
#[derive(Default)]
pub(crate) struct Stages(Vec<(&'static str, u64)>);

impl Stages {
    pub(crate) fn run<T>(&mut self, name: &'static str, stage: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let done = stage();
        self.0.push((name, start.elapsed().as_secs()));
        if done.is_err() {
            self.print();
        }
        done
    }

    /// Prints to standard error: the last words on standard output are the tests' own.
    pub(crate) fn print(&self) {
        let parts: Vec<String> = self.0.iter().map(|(name, seconds)| format!("{name} {seconds} s")).collect();
        eprintln!("stages: {}", parts.join(", "));
    }
}
