//! A commit of a run with its changes, as clients of the API and of the command line meet it.

use super::lab;
use crate::common::refused;
use crate::common::web::{Web, in_a_path};
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_commit_of_a_run_is_shown_with_its_changes_and_nothing_else_is() {
    let lab = lab();
    let web = Web::start(&lab);
    let run = web.run(&lab);
    web.until_status(&run, "completed");
    let log = web.get(&format!("/api/v1/runs/{run}/log")).expect(200).json();
    let newest = log["commits"][0].clone();
    let name = newest["commit"].as_str().expect("a name").to_owned();
    let path = |commit: &str| format!("/api/v1/runs/{run}/commits/{}", in_a_path(commit));

    let shown = web.get(&path(&name)).expect(200).json();
    for field in ["commit", "at_ms", "subject", "feature", "outcome", "run"] {
        assert_eq!(shown[field], newest[field], "{field}");
    }
    assert_eq!(shown["parent"], log["commits"][1]["commit"]);
    assert!(shown["message"].as_str().is_some_and(|text| text.contains("Longhaul-Feature: two")), "{shown:#}");
    let files = shown["files"].as_array().expect("a list");
    let two: &Value = files.iter().find(|file| file["path"] == "two.txt").expect("its file");
    assert_eq!((&two["change"], &two["is_cut"], &two["is_binary"]), (&json!("added"), &json!(false), &json!(false)));
    assert!(two["patch"].as_str().is_some_and(|patch| patch.contains("+written two-1")), "{two:#}");
    assert_eq!((&shown["counts"]["files"], &shown["files_left_out"]), (&json!(files.len()), &json!(0)));
    assert_eq!(web.get(&path(&name[..8])).expect(200).json(), shown);
    assert_eq!(lab.json(&["log", &name, "--run", &run]), shown);
    let printed = lab.run(&["log", &name[..8], "--run", &run]).expect(0).stdout;
    assert!(printed.starts_with(&format!("commit {name}\n")) && printed.contains("+written two-1"), "{printed}");
    // The commit that the run began at is the first one of the repository.
    let base = web.get(&path(log["base"].as_str().expect("a name"))).expect(200).json();
    assert!(base["parent"].is_null() && base["files"].as_array().is_some_and(|files| !files.is_empty()), "{base:#}");

    // What is in the repository and not of the run is as if it were not there.
    lab.git(&["checkout", "-q", "-b", "private"]);
    fs::write(lab.project().join("secret.txt"), "secret\n").expect("ours");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "private"]);
    let private = lab.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let absent = "0123456789012345678901234567890123456789";
    for commit in [private.as_str(), absent] {
        let problem = web.get(&path(commit)).expect(404).json();
        let expected = format!("run {run} has no commit `{commit}`; `longhaul log --run {run}` lists its commits");
        assert_eq!(problem["detail"], expected);
    }
    for word in ["HEAD", "abc", "private", "--all", "private:secret.txt", &format!("{name}0")] {
        let problem = web.get(&path(word)).expect(422).json();
        assert!(problem["detail"].as_str().is_some_and(|text| text.contains("hexadecimal digits")), "{problem:#}");
    }
    refused(&lab.run(&["log", absent, "--run", &run]), &["has no commit", "longhaul log"]);
    lab.run(&["log", &name, "--reverted"]).expect(2);
}
