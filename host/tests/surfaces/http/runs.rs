//! Runs over HTTP: started, watched, listed, steered and answered.

use super::{lab, numbers};
use crate::common;
use crate::common::gated;
use crate::common::web::{Web, in_a_path};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_run_is_started_watched_and_looked_at_from_all_sides() {
    let lab = lab();
    let web = Web::start(&lab);
    let all = web.stream("/api/v1/events/stream", &[]);
    let run = web.run(&lab);
    let mut frames = web.stream(&format!("/api/v1/runs/{run}/events/stream"), &[]);
    let seen = frames.until(|frame| frame.event == "gone");
    let count = u64::try_from(numbers(&seen).len()).expect("few");
    assert_eq!(numbers(&seen), (1..=count).collect::<Vec<_>>(), "each event once, in order");
    assert!(seen.iter().any(|frame| frame.event == "token"), "what models say is heard");
    assert!(seen.iter().all(|frame| frame.data["run"] == run.as_str() && frame.data["version"] == 1), "{seen:#?}");
    assert_eq!(web.until_status(&run, "completed")["passing"], json!({ "done": 2, "of": 2 }));

    // From any number, by the header or the address, the header first.
    let rest = |path: &str, headers: &[&str]| {
        let path = format!("/api/v1/runs/{run}/events/stream?follow=false{path}");
        numbers(&web.stream(&path, headers).until(|frame| frame.event == "gone"))
    };
    for after in [0, 1, count / 2, count - 1, count, count + 7] {
        let expected: Vec<u64> = (after + 1..=count).collect();
        assert_eq!(rest(&format!("&after={after}"), &[]), expected);
        assert_eq!(rest("&after=1", &[&format!("Last-Event-ID: {after}")]), expected);
    }
    web.ask("GET", &format!("/api/v1/runs/{run}/events/stream"), &["Last-Event-ID: x"], "").expect(422);
    let page = web.get(&format!("/api/v1/runs/{run}/events?after=3&limit=2")).expect(200).json();
    assert_eq!(
        (&page["next_after"], &page["last"], &page["items"][0]["number"]),
        (&json!(5), &json!(count), &json!(4))
    );

    // A watcher of all runs is notified of this one.
    let mut all = all;
    let heard = all.until(|frame| frame.event == "event" && frame.data["type"] == "done");
    assert_eq!(heard[0].event, "hello");
    assert!(heard.iter().any(|frame| frame.event == "run" && frame.data["run"] == run.as_str()), "{heard:#?}");

    // Everything else that there is of it.
    let list = web.get("/api/v1/runs?status=completed,failed&project=kept&limit=1").expect(200).json();
    assert_eq!((&list["total"], &list["items"][0]["run"]), (&json!(1), &json!(run)));
    assert_eq!(web.get("/api/v1/runs?status=parked").json()["total"], 0);
    assert_eq!(web.get("/api/v1/runs?offset=5").json()["items"], json!([]));
    assert_eq!(web.get("/api/v1/projects").json()["items"][0]["run"], run.as_str());
    let features = web.get(&format!("/api/v1/runs/{run}/features")).expect(200).json();
    assert_eq!(features["items"][1]["depends_on"], json!(["one"]));
    let invocations = web.get(&format!("/api/v1/runs/{run}/journal")).expect(200).json();
    let invocation = format!("{run}/f-one/1/generate");
    assert!(
        invocations["items"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["invocation"] == invocation.as_str())),
        "{invocations:#}"
    );
    let entries =
        web.get(&format!("/api/v1/runs/{run}/journal/entries?invocation=f-one/1/generate&limit=2")).expect(200).json();
    assert_eq!(
        (entries["entries"].as_array().map(Vec::len), &entries["next_after"]),
        (Some(2), &entries["entries"][1]["number"])
    );
    assert!(entries["finished"]["fuel_used"].is_u64(), "{entries:#}");
    let replay =
        web.post(&format!("/api/v1/runs/{run}/replay"), &json!({ "invocation": invocation })).expect(200).json();
    assert_eq!(replay["invocations"][0]["same"], true, "{replay:#}");
    let log = web.get(&format!("/api/v1/runs/{run}/log")).expect(200).json();
    assert_eq!(log["commits"].as_array().map(Vec::len), Some(2), "{log:#}");
    for (format, kind) in [("md", "text/markdown"), ("html", "text/html"), ("json", "application/json")] {
        let report = web.get(&format!("/api/v1/runs/{run}/report?format={format}")).expect(200);
        assert!(report.header("content-type").is_some_and(|found| found.starts_with(kind)), "{format}");
        assert_eq!(report.header("content-disposition"), Some(&*format!("attachment; filename=\"{run}.{format}\"")));
        assert!(report.body.contains(&run), "{format}");
    }
    let costs = web.get("/api/v1/costs?project=kept").expect(200).json();
    assert_eq!(costs["items"][0]["run"], run.as_str());
    assert_eq!(costs["sum"], costs["items"][0]["usage"]);
    runs_are_found_and_summed_up(&web, &run, &costs);
    assert!(costs["sum"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{costs:#}");
    let trajectories = web.get(&format!("/api/v1/runs/{run}/trajectories?agent=code")).expect(200).json();
    assert_eq!(trajectories["total"], 2, "{trajectories:#}");
    let path = format!("/api/v1/runs/{run}/trajectory");
    let one = web.get(&format!("{path}?invocation={invocation}")).expect(200).json();
    assert!(one["conversations"][0].as_array().is_some_and(|said| !said.is_empty()), "{one:#}");
    let rated =
        web.post(&format!("{path}/annotate"), &json!({ "invocation": invocation, "rating": 4 })).expect(200).json();
    assert_eq!(rated["rating"], 4);
    web.post(&format!("{path}/annotate"), &json!({ "invocation": invocation, "rating": 6 })).expect(422);
    trajectories_are_found_by_their_annotation_and_exported(&web, &run);
    let decisions = web.get(&format!("/api/v1/runs/{run}/decisions?limit=5")).expect(200).json();
    let decision = decisions["items"][0]["id"].as_str().expect("the run decided something").to_owned();
    let judged = web
        .post(
            &format!("/api/v1/runs/{run}/decisions/{}/judge", in_a_path(&decision)),
            &json!({ "outcome": "success", "score": 7, "lesson": "do it again" }),
        )
        .expect(200)
        .json();
    assert_eq!((&judged["outcome"], &judged["score"]), (&json!("success"), &json!(1.0)));
    web.get(&format!("/api/v1/runs/{run}/memory?limit=5")).expect(200);
    web.ask("DELETE", &format!("/api/v1/runs/{run}/memory?key=none"), &[], "").expect(404);
    assert_eq!(web.get(&format!("/api/v1/runs/{run}/proposals")).expect(200).json()["total"], 0);
    web.post(&format!("/api/v1/runs/{run}/proposals/p-000000000000/accept"), &json!({})).expect(404);
    let metrics = web.get("/metrics").expect(200).body;
    let counted =
        |text: &str| text.lines().find(|line| line.starts_with("longhaul_runs_started_total ")).map(str::to_owned);
    assert!(counted(&metrics).is_some(), "{metrics}");
    assert_eq!(counted(&web.get("/metrics").expect(200).body), counted(&metrics), "each event counts once");
    let alerts = std::fs::read_to_string(common::repository().join("packaging/alerts.yml")).expect("it is there");
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let names = alerts.match_indices("longhaul_").map(|(at, _)| &alerts[at..]);
    for name in names.map(|rest| &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]) {
        // The lines of a histogram have other names than their family.
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(metrics.contains(&format!("# HELP {family} ")), "the alerts look at {name}: {metrics}");
    }
    let took = "longhaul_http_request_seconds_count{method=\"GET\",route=\"/api/v1/runs/{run}/log\"} 1";
    assert!(metrics.lines().any(|line| line == took), "no `{took}` in\n{metrics}");
    for told in
        ["longhaul_schedules 0", "longhaul_scheduler_working 1", "longhaul_store_bytes ", "longhaul_disk_bytes "]
    {
        assert!(metrics.lines().any(|line| line.starts_with(told)), "no `{told}` in\n{metrics}");
    }
    let plugins = web.get("/api/v1/plugins?limit=1000").expect(200).json();
    assert!(
        plugins["items"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["name"] == "files" && one["role"] == "tool")),
        "{plugins:#}"
    );
    let rechecked = web.post(&format!("/api/v1/runs/{run}/recheck"), &json!({})).expect(200).json();
    assert_eq!(rechecked["features"].as_array().map(Vec::len), Some(2), "{rechecked:#}");
    let base = log["commits"][1]["commit"].as_str().expect("a commit");
    let back = web.post(&format!("/api/v1/runs/{run}/revert"), &json!({ "to": base })).expect(200).json();
    assert_eq!(back["to"], base);
    // Another surface sees the same.
    assert_eq!(lab.json(&["status"])["features"].as_array().map(Vec::len), Some(2));
}

/// One of two trajectories is rated.
fn trajectories_are_found_by_their_annotation_and_exported(web: &Web, run: &str) {
    let base = format!("/api/v1/runs/{run}/trajectories");
    for (query, expected) in [
        ("annotated=true", 1),
        ("annotated=false&agent=code", 1),
        ("rating_min=4", 1),
        ("rating_min=5", 0),
        ("rating_max=3", 0),
    ] {
        assert_eq!(web.get(&format!("{base}?{query}")).expect(200).json()["total"], expected, "{query}");
    }
    web.get(&format!("{base}?rating_min=6")).expect(422);
    let exported = |query: &str| {
        let told = web.get(&format!("{base}/export?{query}")).expect(200);
        assert_eq!(told.header("content-type"), Some("application/x-ndjson"), "{query}");
        let lines = told.body.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.collect::<Vec<_>>()
    };
    let whole = exported("agent=code");
    assert_eq!(whole.len(), 2);
    assert!(whole[0]["conversations"][0].as_array().is_some_and(|said| !said.is_empty()), "{whole:#?}");
    assert_eq!(exported("agent=code&limit=1&offset=1"), whole[1..]);
    assert_eq!(exported("agent=code&offset=2").len(), 0);
    let rated = exported("format=unpaired");
    assert_eq!((rated.len(), &rated[0]["label"]), (1, &Value::Bool(true)), "{rated:#?}");
    assert_eq!(exported("format=preference").len(), 0);
    web.get(&format!("{base}/export?format=all")).expect(422);
}

/// The one run of the server is found by each filter of the list, and its costs are those of each group.
#[track_caller]
fn runs_are_found_and_summed_up(web: &Web, run: &str, costs: &Value) {
    assert_eq!(costs["items"][0]["budget_microdollars"], Value::Null, "the run has no cap on money");
    let named = |group: &str| (costs[group][0]["name"].clone(), costs[group][0]["usage"].clone());
    assert_eq!(named("by_project"), (json!("kept"), costs["sum"].clone()));
    let agents = costs["by_agent"].as_array().expect("a list");
    assert!(agents.iter().any(|sum| sum["name"] == "agents.code"), "{costs:#}");
    let tokens = |sum: &Value| sum["input_tokens"].as_u64().expect("a number");
    let of_agents: u64 = agents.iter().map(|sum| tokens(&sum["usage"])).sum();
    assert_eq!(of_agents, tokens(&costs["sum"]), "each reply is of one agent: {costs:#}");
    assert_eq!(costs["by_day"].as_array().map(Vec::len), Some(1), "{costs:#}");
    let listed = web.get("/api/v1/runs").expect(200).json()["items"][0].clone();
    assert_eq!((&listed["agents"], &listed["usage"]), (&json!(["code"]), &costs["sum"]), "{listed:#}");
    let created_ms = listed["created_ms"].as_u64().expect("a time");
    let title = listed["title"].as_str().expect("a title");
    assert_eq!(title, "Three", "the first line of the goal that tells something");
    let past = created_ms + 1;
    for (query, found) in [
        ("search=THREE".to_owned(), 1),
        (format!("search={}", &run[2..]), 1),
        ("search=nothing+like+it".to_owned(), 0),
        ("agent=code".to_owned(), 1),
        ("agent=other".to_owned(), 0),
        (format!("after_ms={created_ms}"), 1),
        (format!("after_ms={past}"), 0),
        (format!("before_ms={past}"), 1),
        (format!("before_ms={created_ms}"), 0),
    ] {
        assert_eq!(web.get(&format!("/api/v1/runs?{query}")).expect(200).json()["total"], found, "{query}");
    }
}

#[test]
fn a_feature_is_added_edited_and_dropped_and_a_run_steered_paused_resumed_and_given_up() {
    let lab = lab();
    lab.fake.model_takes(Duration::from_millis(300));
    let web = Web::start(&lab);
    let run = web.run(&lab);
    let path = format!("/api/v1/runs/{run}");
    web.until(&path, |run| {
        run["features"].as_array().is_some_and(|all| all.iter().any(|one| one["status"] == "in_progress"))
    });
    web.post(&format!("{path}/steer"), &json!({ "text": "mind the gap" })).expect(200);
    web.post(&format!("{path}/pause"), &json!({})).expect(200);
    web.until_status(&run, "paused");
    let four = json!({ "id": "four", "title": "The fourth", "instruction": "Do it.", "criteria": [{ "id": "c", "text": "it is there", "check": "wrote_four" }], "checks": [{ "name": "wrote_four", "language": "native", "body": "wrote_four" }] });
    // The run is paused, and may be about to be let go of.
    let since = std::time::Instant::now();
    while web.post(&format!("{path}/features"), &four).status == 409 {
        assert!(since.elapsed() < Duration::from_secs(20), "{}", web.server.printed());
    }
    let mut edited = four.clone();
    edited["title"] = json!("The fourth, edited");
    let put = |path: &str, body: &Value| web.ask("PUT", path, &["Content-Type: application/json"], &body.to_string());
    put(&format!("{path}/features/four"), &edited).expect(200);
    assert_eq!(put(&format!("{path}/features/five"), &edited).expect(422).json()["field"], "id");
    for priority in [0, 11] {
        let mut wrong = edited.clone();
        wrong["priority"] = json!(priority);
        assert_eq!(put(&format!("{path}/features/four"), &wrong).expect(422).json()["field"], "priority");
    }
    edited["id"] = json!("five");
    put(&format!("{path}/features/five"), &edited).expect(404);
    let listed = web.get(&format!("{path}/features")).json();
    assert_eq!(listed["items"][2]["title"], "The fourth, edited", "{listed:#}");
    web.ask("DELETE", &format!("{path}/features/four"), &[], "").expect(200);
    web.post("/api/v1/runs", &json!({ "project": "kept" })).expect(409);
    // A paused run stays so over a restart, since a person wanted it.
    let web = web.again(&lab);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(web.get(&path).json()["status"], "paused");
    lab.fake.model_takes(Duration::ZERO);
    web.post(&format!("{path}/resume"), &json!({})).expect(200);
    web.until_status(&run, "completed");
    web.post(&format!("{path}/abandon"), &json!({ "reason": "it was a test" })).expect(409);
}

#[test]
fn an_approval_is_answered_and_the_run_goes_on_by_itself() {
    let lab = gated::lab(&json!([gated::post("a"), gated::post("b")]), &json!([]));
    let web = Web::start(&lab);
    let run = web.run(&lab);
    let open = "/api/v1/approvals?open=true";
    let first = web.until(open, |all| all["total"] == 1)["items"][0].clone();
    assert_eq!((&first["tool"], &first["status"], &first["run"]), (&json!("poster"), &json!("open"), &json!(run)));
    let path = format!("/api/v1/approvals/{}", first["id"].as_str().expect("an id"));
    web.post(&format!("{path}/answer"), &json!({ "text": " " })).expect(422);
    let answered = web.post(&format!("{path}/answer"), &json!({ "text": "a" })).expect(200).json();
    let rule = answered["rule"]["id"].as_str().expect("a rule").to_owned();
    web.post(&format!("{path}/answer"), &json!({ "text": "n" })).expect(409);
    // The server resumes it without a command, and the rule lets the second call pass.
    web.until_status(&run, "completed");
    assert_eq!(gated::posted(&lab), ["a", "b"]);
    assert_eq!(web.get("/api/v1/rules").json()["items"][0]["id"], rule.as_str());
    web.ask("DELETE", &format!("/api/v1/runs/{run}/rules/{rule}"), &[], "").expect(200);
    web.ask("DELETE", &format!("/api/v1/runs/{run}/rules/{rule}"), &[], "").expect(404);
    assert_ne!(web.get(&path).json()["status"], "open");
}
