//! The HTTP API as its clients meet it: admission, refusals, streams, and what a server does at its start and its end.

mod admission;
mod agents;
mod archive;
mod code;
mod commits;
mod fuzz;
mod graphs;
mod history;
mod load;
mod project_caps;
mod queue;
mod refusals;
mod restarts;
mod runs;

use crate::common;
use crate::common::lab::Lab;
use crate::common::web::{Frame, Web};
use crate::common::{DOER_CONFIG, THREE_FEATURES, answer_if_asked};
use std::time::{Duration, Instant};

/// Two features that pass.
fn goal() -> &'static str {
    &THREE_FEATURES[..THREE_FEATURES.find("## Feature: the one without").expect("there")]
}

fn lab() -> Lab {
    Lab::new(DOER_CONFIG, goal())
}

fn numbers(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

fn terminate(web: &Web) {
    let pid = i32::try_from(web.server.pid()).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("ours");
}

#[test]
fn the_page_is_served_as_it_is_and_may_run_nothing_but_itself() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let page = web.raw("GET", "/", &[], b"").expect(200);
    for header in [
        "content-type: text/html; charset=utf-8",
        "default-src 'none'; script-src 'self'; style-src 'self'",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "nosniff",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    assert!(!page.head.contains("unsafe"), "{}", page.head);
    let tag = page.header("etag").expect("a tag").to_owned();
    let known = web.raw("GET", "/", &[&format!("If-None-Match: {tag}")], b"");
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    assert_eq!(web.raw("HEAD", "/", &[], b"").status, 200);
    web.raw("POST", "/", &[], b"").expect(405);
}

#[test]
fn a_person_at_the_terminal_and_one_at_the_page_see_the_same_run() {
    let lab = lab();
    let web = Web::start(&lab);
    lab.run(&["run"]).expect(0);
    let run = lab.runs().pop().expect("a run");
    assert_eq!(web.get(&format!("/api/v1/runs/{run}")).json()["status"], "completed");
    assert!(answer_if_asked(&lab).is_some());
    // The next server on another port finds the data directory taken, and says so.
    let owner = web.server.pid().to_string();
    for address in ["127.0.0.1:0", web.address.as_str()] {
        let asked = Instant::now();
        let second = lab.start(&["serve", "--listen", address]).wait();
        common::refused(&second, &["another longhaul owns", "a server, process ", &owner, "`kill ", "--home"]);
        assert!(asked.elapsed() < Duration::from_secs(15), "a server does not go away by itself: {second:?}");
    }
}
