//! The corpus of journals: what runs of each release left is replayed by the present program.
//!
//! `tests/journals/README.md` says how the journals of a release are recorded, which this file does as well.

use crate::common::built_plugins;
use crate::common::lab::Lab;
use crate::common::repository;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that has the journals of the present release recorded first.
const RECORD: &str = "LONGHAUL_RECORD_JOURNALS";

/// Agents that put, post and look; posts ask first, so that a run of one waits in the middle.
const CONFIG: &str = r#"
[project]
name = "asked"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[planner]
plugin = "initializer"
models = ["fake"]
settings = { output_tokens_max = 100 }

[agents.one]
plugin = "react"
models = ["fake"]
tools = ["poster"]
settings = { tries_max = 1, output_tokens_max = 100 }

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }
confirm_effects = true
approval = { when_heard = "allow", functions = { post = "ask" } }
"#;

/// What is asked: an agent, a planner with several agents, and an agent that waits for an approval.
const ASKS: [&[&str]; 3] = [
    &["ask", "--agent", "one", "do alpha; put; look"],
    &[
        "ask",
        "--plan",
        r#"PLAN {"tasks": [{"id": "a", "instruction": "do a; look"}, {"id": "b", "instruction": "do b"}]}"#,
    ],
    &["ask", "--agent", "one", "do gamma; post; look"],
];

/// The plugins of the asks, with the names of their files. Every run pins an interpreter of checks, which has thirty
/// megabytes; nothing here has a check, so a small plugin stands in its place.
const PLUGINS: [(&str, &str); 4] =
    [("initializer", "initializer"), ("react", "react"), ("tests/poster", "poster"), ("rubric-evaluator", "python")];

/// The archive of a data directory below the folder of a release.
const ARCHIVE: &str = "home.tar.gz";

fn corpus() -> PathBuf {
    repository().join("tests/journals")
}

/// Records the journals of this release.
fn record() {
    let lab = Lab::empty();
    fs::create_dir_all(lab.project()).expect("ours");
    fs::write(lab.project().join("longhaul.toml"), CONFIG.replace("{server}", &lab.fake.address)).expect("ours");
    let plugins = lab.path("plugins");
    fs::create_dir(&plugins).expect("ours");
    for (built, name) in PLUGINS {
        fs::copy(built_plugins::file(built), plugins.join(format!("{name}.wasm"))).expect("it is built");
    }
    for ask in ASKS {
        let mut command = lab.command(ask);
        command.env("LONGHAUL_PLUGINS", &plugins);
        lab.start_command(command).wait();
    }
    let status = |run: &String| lab.json(&["status", run])["status"].as_str().unwrap_or_default().to_owned();
    let ended: Vec<String> = lab.runs().iter().map(status).collect();
    assert_eq!(ended, ["completed", "completed", "parked"], "the runs are not those that are to be recorded");
    let folder = corpus().join(env!("CARGO_PKG_VERSION"));
    fs::create_dir_all(&folder).expect("ours");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(folder.join(ARCHIVE)).arg("-C").arg(lab.path(""));
    tar.args(["--exclude=*.sock", "--exclude=home/lock", "home", "project"]);
    assert!(tar.status().expect("tar is there").success());
}

/// The releases that have journals.
fn releases() -> Vec<PathBuf> {
    let entries =
        corpus().read_dir().expect("the folder is in the repository").map(|entry| entry.expect("read").path());
    let mut releases: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    releases.sort();
    releases
}

/// The rehearsal of all runs of a release on the present program.
fn rehearsed(release: &Path) -> Value {
    let lab = Lab::empty();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(release.join(ARCHIVE)).arg("-C").arg(lab.path(""));
    assert!(tar.status().expect("tar is there").success(), "{}", release.display());
    fs::set_permissions(lab.home(), Permissions::from_mode(0o700)).expect("ours");
    let runs = lab.runs();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let ran = lab.run(&[&["--json", "rehearse"], &runs[..]].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.said()))
}

#[test]
fn the_journals_of_every_release_reach_their_ends_on_the_present_program() {
    if std::env::var_os(RECORD).is_some() {
        record();
    }
    let releases = releases();
    assert!(!releases.is_empty(), "no journals are there; record them with {RECORD}=1, see tests/journals/README.md");
    for release in releases {
        let report = rehearsed(&release);
        let runs = report["runs"].as_array().expect("a list");
        assert!(!runs.is_empty(), "{} has no runs", release.display());
        for run in runs {
            assert_eq!(run["verdict"], "reaches_end", "{}: {run:#}", release.display());
            assert!(run["entries"].as_u64().is_some_and(|entries| entries > 0), "{}: {run:#}", release.display());
        }
    }
}
