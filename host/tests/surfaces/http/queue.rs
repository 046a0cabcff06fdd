//! Runs that wait for their turn: who is next, what is told of it, what a kill leaves of the order, and what is kept of
//! runs when they have ended.

use crate::common::ASKED_CONFIG;
use crate::common::lab::Lab;
use crate::common::web::Web;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// A project for asks, of which one works at a time.
fn lab() -> Lab {
    let lab = Lab::empty();
    fs::create_dir_all(lab.project()).expect("ours");
    fs::write(lab.project().join("longhaul.toml"), ASKED_CONFIG.replace("{server}", &lab.fake.address)).expect("ours");
    fs::create_dir_all(lab.home()).expect("ours");
    fs::set_permissions(lab.home(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    fs::write(lab.home().join("resources.toml"), "runs_max = 1\n").expect("ours");
    lab
}

/// Asks something that takes an agent as many steps.
fn ask(web: &Web, lab: &Lab, steps: usize) -> String {
    let goal = format!("do it; {}put", "look; ".repeat(steps));
    let body = json!({ "directory": lab.project(), "goal": goal, "dispatch": { "agent": "one" } });
    web.post("/api/v1/asks", &body).expect(201).json()["run"].as_str().expect("a name").to_owned()
}

fn until_place(web: &Web, run: &str, place: &Value) -> Value {
    web.until(&format!("/api/v1/runs/{run}"), |run| run["queue_place"] == *place)
}

fn kinds(web: &Web, run: &str) -> Vec<String> {
    let events = web.get(&format!("/api/v1/runs/{run}/events")).expect(200).json();
    let events = events["items"].as_array().expect("a list").iter();
    events.map(|event| event["type"].as_str().expect("a kind").to_owned()).collect()
}

#[test]
fn runs_beyond_the_cap_wait_in_order_and_one_that_waits_can_be_given_up() {
    let lab = lab();
    lab.fake.model_takes(Duration::from_millis(500));
    let web = Web::start(&lab);
    let first = ask(&web, &lab, 20);
    web.until(&format!("/api/v1/runs/{first}"), |run| run["status"] == "working" && run["queue_place"].is_null());
    let second = ask(&web, &lab, 1);
    until_place(&web, &second, &json!(1));
    let third = ask(&web, &lab, 1);
    until_place(&web, &third, &json!(2));
    // Its actor tells why, a moment after it has a place.
    web.until(&format!("/api/v1/runs/{third}"), |run| {
        let reason = run["reason"].as_str().expect("a reason");
        reason.contains("number 2 in the queue") && reason.contains("runs_max in resources.toml")
    });
    let listed = lab.run(&["runs"]).expect(0).stdout;
    let is_told = |line: &str| line.starts_with(third.as_str()) && line.contains("queued 2");
    assert!(listed.lines().any(is_told), "{listed}");
    assert!(lab.run(&["status", &third]).expect(0).stdout.contains("queued 2"));
    assert!(web.get("/metrics").expect(200).body.contains("\nlonghaul_runs_queued 2\n"));
    assert!(kinds(&web, &third).iter().any(|kind| kind == "queued"), "{:?}", kinds(&web, &third));

    web.post(&format!("/api/v1/runs/{second}/abandon"), &json!({ "reason": "it takes too long" })).expect(200);
    web.until_status(&second, "abandoned");
    until_place(&web, &third, &json!(1));
    assert!(!kinds(&web, &second).iter().any(|kind| kind == "task_started"), "it never had its turn");
    // A paused run gives its place to the next one.
    web.post(&format!("/api/v1/runs/{first}/pause"), &json!({})).expect(200);
    web.until_status(&third, "completed");
    web.post(&format!("/api/v1/runs/{first}/resume"), &json!({})).expect(200);
    web.until_status(&first, "completed");
}

#[test]
fn after_a_kill_the_run_at_work_goes_on_and_the_others_wait_in_their_order() {
    let lab = lab();
    lab.fake.model_takes(Duration::from_millis(500));
    let mut web = Web::start(&lab);
    let runs = [ask(&web, &lab, 20), ask(&web, &lab, 2), ask(&web, &lab, 2)];
    for (run, place) in runs[1..].iter().zip([1, 2]) {
        until_place(&web, run, &json!(place));
    }
    web.server.kill();
    let web = web.again(&lab);
    for (run, place) in runs[1..].iter().zip([1, 2]) {
        until_place(&web, run, &json!(place));
    }
    for run in &runs {
        web.until_status(run, "completed");
    }
    let began = |run: &str| {
        let events = web.get(&format!("/api/v1/runs/{run}/events")).expect(200).json();
        let events = events["items"].as_array().expect("a list").clone();
        let first = events.iter().find(|event| event["type"] == "task_started").expect("it began");
        first["at_ms"].as_u64().expect("a time")
    };
    assert!(began(&runs[1]) <= began(&runs[2]), "the one that came first began first");
}

/// The number of entries that the server keeps for runs at work.
fn entries(web: &Web) -> u64 {
    let metrics = web.get("/metrics").expect(200).body;
    let told = metrics.lines().find_map(|line| line.strip_prefix("longhaul_run_entries "));
    told.and_then(|told| told.parse().ok()).unwrap_or_else(|| panic!("no figure in\n{metrics}"))
}

#[test]
fn nothing_is_kept_in_memory_of_runs_that_have_ended() {
    let lab = lab();
    let web = Web::start(&lab);
    let runs: Vec<String> = (0..4).map(|_| ask(&web, &lab, 2)).collect();
    // A follower of each, which the server lets go of with the run.
    for run in &runs {
        web.stream(&format!("/api/v1/runs/{run}/events/stream?follow=false"), &[]).until(|frame| frame.event == "gone");
        web.until_status(run, "completed");
    }
    let last = ask(&web, &lab, 20);
    assert!(entries(&web) > 0, "a run at work has its actor and its place");
    web.post(&format!("/api/v1/runs/{last}/abandon"), &json!({ "reason": "it was a test" })).expect(200);
    let since = std::time::Instant::now();
    while entries(&web) > 0 {
        assert!(since.elapsed() < Duration::from_secs(20), "{} entries are kept", entries(&web));
        std::thread::sleep(Duration::from_millis(50));
    }
}
