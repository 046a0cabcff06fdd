//! Ends of a server, asked for or by a kill, and the next server that goes on with its runs.

use super::{goal, lab, numbers, terminate};
use crate::common;
use crate::common::DOER_CONFIG;
use crate::common::lab::Lab;
use crate::common::web::Web;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_server_that_is_told_to_end_leaves_its_runs_and_the_next_one_goes_on_with_them() {
    let lab = lab();
    lab.fake.model_takes(Duration::from_millis(400));
    let web = Web::start(&lab);
    let run = web.run(&lab);
    let mut frames = web.stream(&format!("/api/v1/runs/{run}/events/stream"), &[]);
    let before = frames.until(|frame| frame.data["type"] == "task_started");
    terminate(&web);
    let mut seen = before;
    while let Some(frame) = frames.next() {
        seen.push(frame);
    }
    let last = numbers(&seen).pop().expect("some");
    let Web { server, token, .. } = web;
    let ended = server.wait().expect(0);
    assert!(ended.stdout.contains("stopped"), "{}", ended.said());

    lab.fake.model_takes(Duration::ZERO);
    let web = Web::with(&lab, &[], &[], token);
    let rest = web.stream(&format!("/api/v1/runs/{run}/events/stream"), &[&format!("Last-Event-ID: {last}")]);
    let mut rest = rest;
    let later = rest.until(|frame| frame.data["type"] == "done");
    let all: Vec<u64> = numbers(&seen).into_iter().chain(numbers(&later)).collect();
    assert_eq!(all, (1..=u64::try_from(all.len()).expect("few")).collect::<Vec<_>>(), "nothing twice, nothing missing");
    web.until_status(&run, "completed");
    assert_eq!(lab.fake.posts().len(), 6, "each post once: {:?}", lab.fake.posts());
}

#[test]
fn no_task_is_lost_or_done_twice_however_often_the_server_is_killed() {
    let kills: u32 = std::env::var("LONGHAUL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5);
    let lab = lab();
    lab.make_project("other", &DOER_CONFIG.replace("\"kept\"", "\"other\""), goal());
    lab.fake.model_takes(Duration::from_millis(50));
    let mut web = Web::start(&lab);
    let mut last: Vec<(String, u64)> = Vec::new();
    for kill in 0..kills {
        // New work whenever the old is done.
        for project in ["project", "other"] {
            let made = web.post("/api/v1/runs", &json!({ "directory": lab.path(project) }));
            assert!(matches!(made.status, 201 | 409), "{made:?}");
            if made.status == 201 {
                last.push((made.json()["run"].as_str().expect("a name").to_owned(), 0));
            }
        }
        for (run, after) in &mut last {
            let path = format!("/api/v1/runs/{run}/events/stream?follow=false");
            let mut frames = web.stream(&path, &[&format!("Last-Event-ID: {after}")]);
            for _ in 0..(3 + kill % 7) {
                let Some(frame) = frames.next() else { break };
                if let Some(number) = frame.id {
                    assert_eq!(number, *after + 1, "{run} goes on where it was");
                    *after = number;
                }
                if frame.event == "gone" {
                    break;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(37 * u64::from(kill % 9 + 1)));
        web.server.kill();
        web = web.again(&lab);
    }
    lab.fake.model_takes(Duration::ZERO);
    for (run, _) in &last {
        let path = format!("/api/v1/runs/{run}");
        loop {
            let ended = web.until(&path, |run| {
                ["completed", "incomplete", "failed", "parked"].iter().any(|end| run["status"] == *end)
            });
            if ended["status"] != "parked" {
                assert_eq!(ended["status"], "completed", "{ended:#}");
                break;
            }
            // A kill between an effect and its note leaves one question, as it must.
            answer(&lab, &web, &ended);
        }
    }
    let mut posts: Vec<String> =
        lab.fake.posts().into_iter().map(|told| format!("{} {}", told.key, told.text)).collect();
    let count = posts.len();
    posts.sort();
    posts.dedup();
    assert_eq!(posts.len(), count, "no effect twice under one key");
    // A run is at work for a moment beyond its last status.
    web.until("/api/v1/runs?active=true", |active| active["total"] == 0);
}

/// Answers like a person who looked if the effect happened.
fn answer(lab: &Lab, web: &Web, run: &Value) {
    let question = run["question"].as_str().unwrap_or_else(|| panic!("it waits for something else: {run:#}"));
    let text =
        question.split_once("poster.post {\"text\":\"").and_then(|(_, rest)| rest.split_once('"')).expect("a post").0;
    let answer = common::fake::answer_to("post", text).to_string();
    let happened = lab.fake.posts().iter().any(|told| told.text == text);
    let resolution = if happened { json!({ "happened": answer }) } else { json!("did_not_happen") };
    let feature = text.split('-').next();
    let path = format!("/api/v1/runs/{}/answer", run["run"].as_str().expect("a name"));
    web.post(&path, &json!({ "feature": feature, "resolution": resolution })).expect(200);
}
