//! Projects whose runs a kill cut off. The states of a project from its first file to its end are in `tests/scenarios`.

use crate::common::lab::Lab;
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// Longest time for a server to do what a test asks of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Name, status, and features of each project, the latest first.
fn projects(lab: &Lab) -> Vec<(String, String, (u64, u64))> {
    let answer = lab.json(&["projects"]);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let number = |value: &Value| value.as_u64().expect("a number");
    let of = |one: &Value| {
        (text(&one["project"]), text(&one["status"]), (number(&one["passing"]["done"]), number(&one["passing"]["of"])))
    };
    answer["items"].as_array().expect("a list").iter().map(of).collect()
}

fn kept(status: &str, passing: (u64, u64)) -> Vec<(String, String, (u64, u64))> {
    vec![("kept".to_owned(), status.to_owned(), passing)]
}

/// A project of three features that pass without any effect, so that no kill leads to a question.
fn plain() -> Lab {
    let config = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\nsettings = { calls = [] }\n\
                  [evaluator]\nplugin = \"lenient\"\n[run.limits]\niterations_max = 1\n";
    let feature = |id: &str| format!("## Feature: {id}\n- id: {id}\n- criterion: it is fine\n\nDo it.\n\n");
    Lab::new(config, &format!("# Three\n\n{}", ["one", "two", "three"].map(feature).concat()))
}

/// Has a server go on with the run that a kill left, until it rests; answers its status then.
#[track_caller]
fn taken_up(lab: &Lab) -> String {
    let mut server = lab.start(&["serve", "--no-token", "--listen", "127.0.0.1:0"]);
    server.wait_for("serving at");
    let since = Instant::now();
    let status = loop {
        let status = lab.json(&["status"])["status"].as_str().expect("a word").to_owned();
        if !["new", "planning", "working"].contains(&status.as_str()) {
            break status;
        }
        assert!(server.is_running() && since.elapsed() < PATIENCE, "{status}: {}", server.printed());
        std::thread::sleep(Duration::from_millis(50));
    };
    server.interrupt();
    server.wait().expect(0);
    status
}

/// The last commits to the store of a run that was not killed.
fn last_commits(args: &[&str], count: usize) -> Vec<String> {
    let lab = plain();
    let log = lab.path("points");
    lab.start_with(args, &[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]).wait().expect(4);
    let points = fs::read_to_string(&log).expect("points were reached");
    let commits: Vec<&str> = points.lines().filter(|point| point.starts_with("store.after-commit:")).collect();
    commits.iter().rev().take(count).map(|point| (*point).to_owned()).collect()
}

/// A server takes up what it finds, without a word of how far that was to go.
#[test]
fn a_run_that_a_kill_cut_off_goes_as_far_as_it_was_asked_to() {
    for (args, passing, points) in [
        (&["run", "--sessions", "1"][..], 1, &["invocation.start:1", "invocation.start:2", "work.end:3"][..]),
        (&["run", "--plan-only"][..], 0, &["invocation.start:1", "invocation.end:1"][..]),
    ] {
        // Between the step that gets so far and the pause there is a commit, too.
        let commits = last_commits(args, 5);
        for point in points.iter().copied().chain(commits.iter().map(String::as_str)) {
            let lab = plain();
            let ran = lab.start_with(args, &[("LONGHAUL_CRASH_AT", point)]).wait();
            assert!(ran.was_killed() || point.starts_with("store."), "{point}: {}", ran.said());
            assert_eq!(taken_up(&lab), "paused", "{args:?} {point}");
            assert_eq!(projects(&lab), kept("paused", (passing, 3)), "{args:?} {point}");
        }
    }
}

#[test]
fn what_is_left_of_the_sessions_that_were_asked_for_is_worked_after_each_kill() {
    let lab = plain();
    // In the first session, and again in it, and in the second.
    let (run, resume) = (&["run", "--sessions", "2"][..], &["resume"][..]);
    for (args, point) in [(run, "work.end:3"), (resume, "work.end:1"), (resume, "work.end:5")] {
        let ran = lab.start_with(args, &[("LONGHAUL_CRASH_AT", point)]).wait();
        assert!(ran.was_killed(), "{point}: {}", ran.said());
    }
    lab.run(&["resume"]).expect(4);
    assert_eq!(projects(&lab), kept("paused", (2, 3)));
    // It was not cut off any more, so it is told anew how far to go.
    lab.run(&["resume"]).expect(0);
    assert_eq!(projects(&lab), kept("completed", (3, 3)));
}
