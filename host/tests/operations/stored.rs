//! Data directories, backups and checkpoints that the first 0.1 wrote are opened, or refused by a sentence, and never
//! misread. `tests/stored/v0.1/README.md` says what is in them.

use crate::common::lab::Lab;
use crate::common::{refused, repository};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

/// The run that completed.
const DONE: &str = "r-29cbbd4ccd79";
/// The run whose process was killed.
const CUT: &str = "r-b547e086ab11";

fn stored(name: &str) -> PathBuf {
    repository().join("tests/stored/v0.1").join(name)
}

/// A laboratory with the stored data directory and its checkouts.
fn lab() -> Lab {
    let lab = Lab::empty();
    let mut tar = Command::new("tar");
    let unpacked =
        tar.arg("-xzf").arg(stored("home.tar.gz")).arg("-C").arg(lab.path("")).status().expect("tar is there");
    assert!(unpacked.success(), "{unpacked}");
    fs::set_permissions(lab.home(), Permissions::from_mode(0o700)).expect("ours");
    lab
}

/// Checks that the output of a command of the present program contains these texts.
#[track_caller]
fn shows(lab: &Lab, args: &[&str], texts: &[&str]) {
    let ran = lab.run(args).expect(0);
    for text in texts {
        assert!(ran.stdout.contains(text), "{args:?} does not say `{text}`: {}", ran.said());
    }
}

#[test]
fn a_data_directory_of_the_first_version_is_read_whole() {
    let lab = lab();
    shows(&lab, &["runs"], &["completed   2/2  project", "broken off  0/2  cut"]);
    shows(&lab, &["status", DONE], &["completed, 2 of 2 features pass", "one: judged to pass"]);
    shows(&lab, &["features", DONE, "list"], &["passing", "it is fine, too"]);
    shows(&lab, &["report", DONE], &["| one: the first | passing | 1 |", "an evaluator that read the work"]);
    shows(&lab, &["journal", DONE], &[&format!("{DONE}/f-one/1/generate"), &format!("{DONE}/f-two/1/judge")]);
    let work = format!("{DONE}/f-one/1/generate");
    shows(&lab, &["journal", DONE, "--invocation", &work], &["files.write", "note.txt"]);
    refused(&lab.run(&["journal", DONE, "--at", "event:1"]), &["has no kept history"]);
    shows(&lab, &["decisions", DONE, "list"], &["build 2 features"]);
    shows(&lab, &["audit", "log"], &["run began", "token made: name ci", "secret set: name key"]);
    shows(&lab, &["agent", "show", "counter"], &["Counts its runs", "python, 70 bytes"]);
    shows(&lab, &["agent", "artifact", "show", "counter"], &["version 2", "\"count\": 2"]);
    shows(&lab, &["agent", "artifact", "show", "counter", "--version", "1"], &["\"count\": 1"]);
    shows(&lab, &["schedule", "list"], &["hourly", "counter", "every 60 min"]);
    shows(&lab, &["graph", "show", "answer"], &["x = 2", "y = x * 21"]);
    shows(&lab, &["token", "list"], &["ci", "read"]);
    shows(&lab, &["secrets", "list"], &["key  every project"]);
}

#[test]
fn a_plugin_of_a_draft_of_the_contract_is_refused_and_its_run_stays_as_it_was() {
    let lab = lab();
    let ran = lab.run(&["replay", DONE]).expect(1);
    let refusal = "it imports what longhaul:plugin 0.1.0 does not give to the role `planner`; build it again \
                   with `longhaul plugin build`, and begin a new run in place of one that began with it";
    assert!(ran.stderr.contains(refusal), "{}", ran.said());
    let ran = lab.run(&["resume", CUT]).expect(1);
    assert_eq!(ran.error_lines(), 1, "{}", ran.said());
    shows(&lab, &["runs"], &["completed   2/2  project", "broken off  0/2  cut"]);
}

#[test]
fn a_backup_of_the_first_version_is_restored() {
    let lab = Lab::empty();
    let file = stored("backup.tar.zst");
    let file = file.to_str().expect("a path of ours");
    let ran = lab.run(&["restore", file]).expect(1);
    let signer = signer(&ran.stderr);
    lab.run(&["restore", file, "--signer", &signer]).expect(0);
    shows(&lab, &["runs"], &["completed   2/2  project", "broken off  0/2  cut"]);
    shows(&lab, &["agent", "artifact", "show", "counter"], &["version 2", "\"count\": 2"]);
}

/// A checkpoint is a run in a place of its own, so its project is made here first.
#[test]
fn a_checkpoint_of_the_first_version_is_taken_or_refused_in_a_sentence() {
    let lab = lab();
    let file = lab.path("checkpoint.json");
    fs::copy(stored("checkpoint.json"), &file).expect("ours");
    let file = file.to_str().expect("a path of ours");
    let ran = lab.import(file);
    assert_eq!(ran.code(), Some(1), "{}", ran.said());
    assert!(ran.stderr.contains(&format!("run {CUT} is here already")), "{}", ran.said());
    assert_eq!(ran.error_lines(), 1, "{}", ran.said());
}

/// The key that a refusal of an unknown signer names.
fn signer(refusal: &str) -> String {
    let (_, key) = refusal.trim().rsplit_once("--signer ").unwrap_or_else(|| panic!("no key: {refusal}"));
    key.to_owned()
}
