//! The archive of runs: lists leave an archived run out, nothing else does, and a resume takes it out again.

use super::lab;
use crate::common::web::{Web, token};
use crate::common::{gated, refused};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// The names of the listed runs.
fn listed(web: &Web, query: &str) -> Vec<String> {
    let page = web.get(&format!("/api/v1/runs{query}")).expect(200).json();
    let items = page["items"].as_array().expect("a list");
    assert_eq!(page["total"], items.len(), "{page:#}");
    items.iter().map(|run| run["run"].as_str().expect("a name").to_owned()).collect()
}

fn order(web: &Web, run: &str, what: &str) -> Value {
    web.post(&format!("/api/v1/runs/{run}/{what}"), &json!({})).expect(200).json()
}

#[test]
fn an_archived_run_is_left_out_of_lists_and_keeps_all_else() {
    let lab = lab();
    let web = Web::start(&lab);
    let run = web.run(&lab);
    web.until(&format!("/api/v1/runs/{run}"), |run| run["status"] == "completed" && run["active"] == false);
    let costs = |web: &Web| {
        let costs = web.get("/api/v1/costs").expect(200).json();
        [costs["sum"].clone(), costs["total"].clone()]
    };
    let before = costs(&web);
    assert!(web.get(&format!("/api/v1/runs/{run}")).expect(200).json()["archived_ms"].is_null());

    assert_eq!(order(&web, &run, "archive"), json!({ "run": run }));
    let since = web.get(&format!("/api/v1/runs/{run}")).expect(200).json()["archived_ms"].clone();
    assert!(since.as_u64().is_some_and(|since| since > 0), "{since}");
    order(&web, &run, "archive");
    let again = web.get(&format!("/api/v1/runs/{run}")).expect(200).json()["archived_ms"].clone();
    assert_eq!(again, since, "a second order changes nothing");
    assert_eq!((listed(&web, ""), listed(&web, "?archived=false")), (Vec::new(), Vec::new()));
    assert_eq!(listed(&web, "?archived=true&status=completed"), std::slice::from_ref(&run));
    web.get("/api/v1/runs?archived=some").expect(422);
    assert_eq!((costs(&web), &before[1]), (before.clone(), &json!(1)), "it counts as before");
    let projects = web.get("/api/v1/projects").expect(200).json();
    assert_eq!((&projects["items"][0]["run"], &projects["items"][0]["runs"]), (&json!(run), &json!(1)));
    let printed = lab.run(&["runs"]).expect(0).stdout;
    assert!(printed.contains("every run is archived") && printed.contains("longhaul runs --archived"), "{printed}");
    assert!(lab.run(&["runs", "--archived"]).expect(0).stdout.starts_with(&run));
    assert_eq!(lab.json(&["runs", "--archived"])["items"][0]["archived_ms"], since);
    let status = lab.run(&["status", &run]).expect(0).stdout;
    assert!(status.contains(&format!("longhaul runs unarchive {run}")), "{status}");

    // The mark outlives the server.
    let web = web.again(&lab);
    assert_eq!(listed(&web, "?archived=true"), std::slice::from_ref(&run));
    assert_eq!(order(&web, &run, "unarchive"), json!({ "run": run }));
    order(&web, &run, "unarchive");
    assert_eq!((listed(&web, ""), listed(&web, "?archived=true")), (vec![run.clone()], Vec::new()));

    let reads = token(&lab, "reads", &["--scope", "read"]);
    let header = format!("Authorization: Bearer {reads}");
    web.raw("POST", &format!("/api/v1/runs/{run}/archive"), &[&header], b"").expect(403);
    web.post("/api/v1/runs/r-000000000000/archive", &json!({})).expect(404);
}

#[test]
fn several_runs_are_archived_at_once_and_a_refusal_of_one_stops_no_other() {
    let lab = lab();
    lab.run(&["run"]).expect(0);
    let run = lab.runs().pop().expect("a run");
    let ran = lab.run(&["runs", "archive", "r-000000000000", &run]);
    refused(&ran, &["there is no run `r-000000000000`"]);
    assert_eq!(ran.stdout, format!("run {run}: archived\n"));
    let ran = lab.run(&["runs", "unarchive", &run]).expect(0);
    assert_eq!(ran.stdout, format!("run {run}: taken back from the archive\n"));
}

#[test]
fn an_archived_run_expires_as_any_other() {
    let lab = gated::lab(&json!([]), &json!([]));
    lab.run(&["run"]).expect(0);
    let goal = "# Goal\n\n## Feature: another\n- id: two\n- criterion: it is fine\n\nDo this.\n";
    fs::write(lab.project().join("GOAL.md"), goal).expect("ours");
    lab.git(&["commit", "-qam", "another goal"]);
    lab.run(&["run"]).expect(0);
    let runs = lab.runs();
    let [first, second] = runs.as_slice() else { panic!("two runs: {runs:?}") };
    lab.run(&["runs", "archive", first, second]).expect(0);
    std::thread::sleep(Duration::from_millis(20));
    let would = lab.json(&["gc", "--dry-run", "--runs-older-than", "0s"]);
    assert_eq!(would["runs"], json!([first]), "the newest run of a project stays, archived or not: {would}");
    lab.json(&["gc", "--runs-older-than", "0s"]);
    let left = lab.json(&["runs", "--archived"]);
    assert_eq!((&left["total"], &left["items"][0]["run"]), (&json!(1), &json!(second)));
}

#[test]
fn what_works_or_waits_is_not_archived_and_what_is_resumed_comes_out() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    let web = Web::start(&lab);
    let run = web.run(&lab);
    web.until("/api/v1/approvals?open=true", |all| all["total"] == 1);
    web.until_status(&run, "parked");
    let problem = web.post(&format!("/api/v1/runs/{run}/archive"), &json!({})).expect(409).json();
    let detail = problem["detail"].as_str().expect("a text");
    assert!(detail.contains("waits") && detail.contains(&format!("`longhaul pause {run}`")), "{detail}");
    order(&web, &run, "pause");
    web.until_status(&run, "paused");
    order(&web, &run, "archive");
    assert_eq!(listed(&web, "?archived=true"), std::slice::from_ref(&run));
    order(&web, &run, "resume");
    web.until("/api/v1/runs", |runs| runs["items"][0]["run"] == run.as_str());
    assert_eq!(listed(&web, "?archived=true"), Vec::<String>::new());
}
