//! `longhaul gc`: expired runs and unreferenced content go, and nothing else does.

use crate::{judged_by, list, passing, until};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

#[test]
fn what_nobody_needs_goes_and_what_somebody_needs_stays() {
    let lab = passing();
    lab.run(&["run"]).expect(0);
    fs::write(
        lab.project().join("GOAL.md"),
        "# Goal\n\n## Feature: another\n- id: two\n- criterion: it is fine\n\nDo this.\n",
    )
    .expect("ours");
    lab.git(&["commit", "-qam", "another goal"]);
    lab.run(&["run"]).expect(0);
    let runs = lab.runs();
    assert_eq!(runs.len(), 2);
    let orphan = lab.home().join("trees/r-000000000000");
    fs::create_dir_all(&orphan).expect("ours");
    fs::write(orphan.join("file"), "content").expect("ours");
    std::thread::sleep(Duration::from_millis(20));

    let would = lab.json(&["gc", "--dry-run", "--runs-older-than", "0s"]);
    assert_eq!(would["runs"], json!([runs[0]]), "the newest of a project stays");
    assert_eq!([&would["trees"], &would["dry_run"]], [&json!(1), &json!(true)]);
    assert_eq!((lab.runs(), orphan.exists()), (runs.clone(), true), "nothing was removed");

    let did = lab.json(&["gc", "--runs-older-than", "0s"]);
    assert_eq!((&did["runs"], &did["rows"]), (&would["runs"], &would["rows"]));
    assert!(did["content"]["removed"].as_u64().is_some_and(|removed| removed > 0), "{did}");
    assert_eq!((lab.runs(), orphan.exists()), (vec![runs[1].clone()], false));
    assert_eq!(lab.json(&["status"])["status"], "completed");
    lab.run(&["replay"]).expect(0);
    lab.run(&["doctor", "--store"]).expect(0);
    let again = lab.json(&["gc", "--runs-older-than", "0s"]);
    assert_eq!([&again["runs"], &again["content"]["removed"]], [&json!([]), &json!(0)], "{again}");
}

#[test]
fn content_stays_while_a_run_is_worked_on() {
    let lab = judged_by(&["sleep", "900"]);
    let mut owner = lab.start(&["run"]);
    let is_there = |ps: &Value| list(ps, "children").iter().any(|child| child["name"] == "check fine");
    until(&lab, &mut owner, &["ps"], is_there);
    let kept = lab.json(&["gc"]);
    assert!(kept["content"].is_null(), "{kept}");
    assert!(kept["content_kept_for"].as_str().is_some_and(|why| why.contains("1 run is worked on")), "{kept}");
    owner.kill();
}
