//! `longhaul crashtest` on the first feature of the smallest example: kills of real processes in copies of the project,
//! of which nothing is left, and which leave the project alone.

use crate::common::lab::Lab;
use crate::common::repository;
use serde_json::{Value, json};
use std::fs;

/// A file of the example.
fn example(name: &str) -> String {
    let path = repository().join("examples/01-first-run").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The example with its first feature alone, which passes in its first round.
fn lab() -> Lab {
    let goal = example("GOAL.md");
    let second = goal.match_indices("## Feature: ").nth(1).expect("several features").0;
    let lab = Lab::empty();
    fs::create_dir_all(lab.project()).expect("ours");
    fs::write(lab.project().join("recording.jsonl"), example("recording.jsonl")).expect("ours");
    lab.make_project("project", &example("longhaul.toml"), &goal[..second]);
    lab
}

#[test]
fn a_project_survives_kills_and_is_left_as_it_was() {
    let lab = lab();
    let (temporary, page) = (lab.path("temporary"), lab.path("crashes.html"));
    fs::create_dir(&temporary).expect("ours");
    // At the last one an invocation has no journal yet.
    let points = "git.after-ref-move,tool.after-call,invocation.start";
    let args = ["--json", "crashtest", "--random", "0", "--points", points, "--html", page.to_str().expect("text")];
    let ran = lab.start_with(&args, &[("TMPDIR", temporary.to_str().expect("text"))]).wait().expect(0);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.said()));
    assert_eq!(report["holds"], true, "{report}");
    let trials = report["trials"].as_array().expect("a list");
    assert!(trials.len() >= 2 && trials.iter().all(|trial| trial["killed"] == true), "{report}");
    let effects = &report["effects"];
    assert_eq!((&effects["commits"], &effects["model_requests"]), (&json!(1), &json!(1)), "{report}");
    assert!(report["reached"]["store.after-commit"].as_u64().is_some_and(|count| count > 3), "{report}");
    assert!(ran.stderr.contains("git.after-ref-move:1: survived"), "{}", ran.stderr);
    let html = fs::read_to_string(&page).expect("it was written");
    assert!(html.contains("<p class=\"passing\">survived: "), "{html}");
    // Neither the checkout nor the data directory has a trace of it, and no copy is left.
    assert_eq!(lab.git(&["status", "--porcelain", "--ignored"]), "");
    assert_eq!(lab.git(&["for-each-ref", "refs/heads/longhaul"]), "");
    assert_eq!(lab.runs(), Vec::<String>::new());
    assert_eq!(fs::read_dir(&temporary).expect("ours").count(), 0);
}

#[test]
fn a_project_that_cannot_be_tested_is_told_what_it_lacks() {
    let lab = lab();
    let refused = |args: &[&str], said: &str| {
        let ran = lab.run(&[&["crashtest"], args].concat()).expect(1);
        assert!(ran.stderr.contains(said) && ran.error_lines() == 1, "{args:?}: {}", ran.said());
    };
    fs::write(lab.project().join("notes.txt"), "").expect("ours");
    refused(&[], "has changes that are not committed: `notes.txt`; commit them");
    fs::remove_file(lab.project().join("notes.txt")).expect("ours");
    refused(&["--recorded", "other.jsonl"], "make one with `longhaul run --record recording.jsonl`");
    refused(&["--recorded", "GOAL.md"], "its first line is not");
    refused(&["nowhere"], "there is no directory `nowhere`");
    fs::remove_dir_all(lab.project().join(".git")).expect("ours");
    refused(&[], "is not in a git repository; run `longhaul init` in it");
}
