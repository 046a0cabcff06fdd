//! The command `first-run` of the README: example 01 with a small model, killed in the middle and resumed.
//!
//! It needs no account and no key. The run ends itself with SIGKILL right after the branch of its second commit has
//! moved and before the journal knows of it, as in example 02. Then it is resumed, and the commits, the journals and
//! the replay are compared with those at the kill. Finished work that was repeated is an error; features that the small
//! model does not manage are none.

use crate::commands::{cargo, run, stdout_of};
use crate::guests::{self, PluginsArgs};
use crate::timing::Stages;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The moment of the kill. The example `examples/02-survive-a-kill` says why it is a bad one.
const KILL_AT: &str = "git.after-ref-move:2";

/// The number of SIGKILL.
const SIGKILL: i32 = 9;

/// The commits of the run, which the small project has beyond its `main`.
const COMMITS: &str = "main..longhaul/first-run";

/// Builds, fetches the small model, runs example 01 with a kill in the middle, and shows what came of it.
pub(crate) fn first_run(root: &Path) -> Result<()> {
    let mut stages = Stages::new(root);
    stages.run("build beside plugins", || build(root))?;
    let program = root.join("target/debug/longhaul");
    let fetched =
        stages.run("model", || run("fetch the model", Command::new(&program).args(["models", "pull", "smollm2"])));
    let place = root.join("target/first-run");
    let project = fresh_project(root, &place)?;
    let example = Example { program, home: place.join("home"), project };
    let mut start = example.longhaul("run");
    if let Err(error) = fetched {
        println!("the model cannot be fetched ({error:#}); going on with a recording of it");
        start.arg("--recorded").arg(example.project.join("recording.jsonl"));
    }
    let is_killed = stages.run("run", || killed(&mut start))?;
    if is_killed {
        let survived = stages.run("resume", || resume(&example))?;
        println!("\n{survived}");
    } else {
        println!("\nnothing was killed: fewer than two features passed, and the kill waits for the second commit");
    }
    println!("\ncommits of the run, in {}:", example.project.display());
    run("show the commits", git(&example.project).args(["log", "--stat", "--oneline", COMMITS]))?;
    stages.print();
    Ok(())
}

/// Builds the program, and beside it the plugins: each has a target directory of its own, and the last crates of the
/// program, which wait for each other, leave a processor idle.
fn build(root: &Path) -> Result<()> {
    std::thread::scope(|scope| {
        let plugins = scope.spawn(|| guests::plugins(root, &PluginsArgs::shipped()));
        run("build longhaul", cargo(root).args(["build", "-p", "longhaul", "--features", "local-model"]))?;
        plugins.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Starts the run. False if it ended before the moment of the kill.
fn killed(start: &mut Command) -> Result<bool> {
    start.env("LONGHAUL_CRASH_AT", KILL_AT);
    let status = start.status().context("start longhaul")?;
    match (status.signal(), status.code()) {
        (Some(SIGKILL), _) => Ok(true),
        // Code 3: features that fail.
        (_, Some(0 | 3)) => Ok(false),
        _ => bail!("longhaul ended with {status}"),
    }
}

/// Resumes the killed run, and compares what is there with what the kill left.
fn resume(example: &Example) -> Result<String> {
    let left = example.look()?;
    println!(
        "\nkilled with SIGKILL: {} commits on the branch, {} invocations finished, {} requests to the model\n$ longhaul resume",
        left.commits.len(),
        left.finished.len(),
        left.requests
    );
    let status = example.longhaul("resume").status().context("resume the run")?;
    ensure!(matches!(status.code(), Some(0 | 3)), "the resumed run ended with {status}");
    let now = example.look()?;
    let replay = String::from_utf8(stdout_of(&mut example.longhaul("replay"))?).context("read the replay")?;
    compare(&left, &now, &replay)
}

/// The work that a run has done.
#[derive(Debug)]
struct Work {
    /// The effect of each commit on the branch: a commit that was made twice has the same twice.
    commits: Vec<String>,
    /// Begin and end of each invocation that has ended. An invocation that is executed again has other ones.
    finished: BTreeMap<String, (u64, u64)>,
    /// Requests to the model.
    requests: u64,
    /// Requests that a kill cut off, so that they were sent a second time.
    requests_repeated: u64,
}

/// Describes what a resume did, or fails if it repeated finished work.
fn compare(left: &Work, now: &Work, replay: &str) -> Result<String> {
    let different: BTreeSet<&String> = now.commits.iter().collect();
    let twice = now.commits.len() - different.len();
    let lost = left.commits.iter().filter(|commit| !now.commits.contains(commit)).count();
    let again = left.finished.iter().filter(|(name, times)| now.finished.get(*name) != Some(*times)).count();
    let replayed = replay.lines().count();
    let alike = replay.lines().filter(|line| line.ends_with(": same result, calls and fuel")).count();
    let told = format!(
        "after the kill and the resume:\n  \
         commits: {}, of them {} before the kill; lost: {lost}, made twice: {twice}\n  \
         invocations: {}, of them {} finished before the kill; executed again: {again}\n  \
         requests to the model: {}, of them {} before the kill; sent twice: {}\n  \
         replay from the journal: {alike} of {replayed} invocations have the same result, calls and fuel",
        now.commits.len(),
        left.commits.len(),
        now.finished.len(),
        left.finished.len(),
        now.requests,
        left.requests,
        now.requests_repeated,
    );
    let is_whole = (lost, twice, again, now.requests_repeated) == (0, 0, 0, 0) && alike == replayed && alike > 0;
    ensure!(is_whole, "finished work was lost or repeated; {told}");
    Ok(told)
}

/// The example with its data directory.
struct Example {
    program: PathBuf,
    home: PathBuf,
    project: PathBuf,
}

impl Example {
    fn longhaul(&self, command: &str) -> Command {
        let mut longhaul = Command::new(&self.program);
        longhaul.arg("--home").arg(&self.home).arg("--project").arg(&self.project).arg(command);
        longhaul
    }

    fn look(&self) -> Result<Work> {
        let format = "--format=%(trailers:key=Longhaul-Effect,valueonly,separator=)";
        let log = stdout_of(git(&self.project).args(["log", format, COMMITS]))?;
        let log = String::from_utf8(log).context("read the commits")?;
        let journal = self.json("journal")?;
        let items = journal["items"].as_array().context("`journal --json` has no `items`")?;
        let finished = items.iter().filter_map(|item| {
            let times = (item["from_ms"].as_u64()?, item["until_ms"].as_u64()?);
            Some((item["invocation"].as_str()?.to_owned(), times))
        });
        let status = self.json("status")?;
        let total = &status["ledger"]["total"];
        let count = |name: &str| total[name].as_u64().with_context(|| format!("`status --json` has no `{name}`"));
        Ok(Work {
            commits: log.lines().map(str::to_owned).collect(),
            finished: finished.collect(),
            requests: count("model_calls")?,
            requests_repeated: count("possibly_paid_twice")?,
        })
    }

    fn json(&self, command: &str) -> Result<Value> {
        let told = stdout_of(self.longhaul(command).arg("--json"))?;
        serde_json::from_slice(&told).with_context(|| format!("read the answer of `longhaul {command} --json`"))
    }
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

#[cfg(test)]
mod tests {
    use super::{Work, compare};

    const REPLAY: &str = "r-1/plan: 0 calls, 9 fuel: same result, calls and fuel\n";

    fn work(commits: &[&str], times: (u64, u64), requests_repeated: u64) -> Work {
        let finished = [("r-1/plan".to_owned(), times)].into();
        Work {
            commits: commits.iter().map(|&commit| commit.into()).collect(),
            finished,
            requests: 1,
            requests_repeated,
        }
    }

    #[test]
    fn a_resume_that_repeats_nothing_is_described() {
        let told = compare(&work(&["a"], (1, 2), 0), &work(&["b", "a"], (1, 2), 0), REPLAY).unwrap();
        assert!(told.contains("commits: 2, of them 1 before the kill; lost: 0, made twice: 0"), "{told}");
        assert!(told.contains("executed again: 0") && told.contains("replay from the journal: 1 of 1"), "{told}");
    }

    #[test]
    fn work_that_was_lost_or_repeated_is_an_error() {
        let left = work(&["a"], (1, 2), 0);
        let diverged = "r-1/plan: another result\n";
        for (now, replay, why) in [
            (work(&["a", "a"], (1, 2), 0), REPLAY, "made twice: 1"),
            (work(&["b"], (1, 2), 0), REPLAY, "lost: 1"),
            (work(&["a"], (3, 4), 0), REPLAY, "executed again: 1"),
            (work(&["a"], (1, 2), 1), REPLAY, "sent twice: 1"),
            (work(&["a"], (1, 2), 0), diverged, "0 of 1 invocations"),
            (work(&["a"], (1, 2), 0), "", "0 of 0 invocations"),
        ] {
            let told = compare(&left, &now, replay).unwrap_err().to_string();
            assert!(told.starts_with("finished work was lost or repeated") && told.contains(why), "{told}");
        }
    }
}
