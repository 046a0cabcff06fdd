//! A project from its first file to its end: made, run for a while, paused, given up, begun anew, completed, and
//! open again when something that passed no longer does.

use crate::common::lab::Lab;
use crate::common::{DOER_CONFIG, refused};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// How long a server may take for what a test has it do.
const PATIENCE: Duration = Duration::from_secs(120);

const GOAL: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- check: has_two\n\nDo it, too.\n";

fn lab() -> Lab {
    Lab::new(DOER_CONFIG, GOAL)
}

/// Name, status, and features of each project, the latest first.
fn projects(lab: &Lab) -> Vec<(String, String, (u64, u64))> {
    let answer = lab.json(&["projects"]);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let number = |value: &Value| value.as_u64().expect("a number");
    let of = |one: &Value| {
        (text(&one["project"]), text(&one["status"]), (number(&one["passing"][0]), number(&one["passing"][1])))
    };
    answer["projects"].as_array().expect("a list").iter().map(of).collect()
}

fn kept(status: &str, passing: (u64, u64)) -> Vec<(String, String, (u64, u64))> {
    vec![("kept".to_owned(), status.to_owned(), passing)]
}

/// Every event of the newest run.
fn events(lab: &Lab) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What the events say of the project.
fn life(lab: &Lab) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |event: &Value| match event["type"].as_str() {
        Some("project_created") => Some("created".to_owned()),
        Some("project_status") => Some(format!("{} to {}", text(&event["from"]), text(&event["to"]))),
        _ => None,
    };
    events(lab).iter().filter_map(of).collect()
}

#[test]
fn a_project_is_made_where_there_is_nothing_and_where_there_are_files() {
    let lab = Lab::empty();
    assert!(lab.run(&["projects"]).expect(0).stdout.contains("no projects yet"));
    let ran = lab.run(&["new", "shop"]).expect(0);
    assert!(ran.stdout.contains("commit both"), "{}", ran.said());
    assert_eq!(lab.git_in(&lab.path("shop"), &["log", "--format=%s"]), "Begin\n");
    // Files without a repository: it is made, and what is in it is left to its owner.
    fs::create_dir(lab.path("old")).expect("ours");
    fs::write(lab.path("old/main.py"), "print(1)\n").expect("ours");
    let ran = lab.run(&["--project", "old", "init", "--name", "older"]).expect(0);
    assert!(ran.stdout.contains("made a git repository") && ran.stdout.contains("commit everything"), "{}", ran.said());
    let status = lab.git_in(&lab.path("old"), &["status", "--porcelain", "--branch"]);
    assert!(status.contains("No commits yet on main") && status.contains("?? main.py"), "{status}");
    let listed = projects(&lab);
    let names: Vec<&str> = listed.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["older", "shop"], "the latest first");
    assert!(listed.iter().all(|(_, status, passing)| status == "initializing" && *passing == (0, 0)));

    let other = lab.path("elsewhere/shop");
    let other = other.to_str().expect("plain");
    refused(&lab.run(&["new", other]), &["there is a project `shop`", "--name"]);
    assert!(!lab.path("elsewhere").exists(), "a refusal makes nothing");
    lab.run(&["new", other, "--name", "shop2"]).expect(0);
    // A name whose project is gone is free.
    fs::remove_dir_all(lab.path("shop")).expect("ours");
    lab.run(&["new", lab.path("again/shop").to_str().expect("plain")]).expect(0);
}

#[test]
fn a_project_tells_each_change_of_its_status() {
    let lab = lab();
    let paused = lab.run(&["run", "--sessions", "1"]).expect(4);
    assert!(paused.stdout.contains("paused, as was asked, after 1 session"), "{}", paused.said());
    assert_eq!(projects(&lab), kept("paused", (1, 2)));
    assert_eq!(life(&lab), ["created", "initializing to active", "active to paused"]);
    refused(&lab.run(&["run"]), &["project `kept` is paused", "longhaul resume"]);
    lab.run(&["resume", "--sessions", "1"]).expect(0);
    assert_eq!(projects(&lab), kept("completed", (2, 2)));
    let told = ["created", "initializing to active", "active to paused", "paused to active", "active to completed"];
    assert_eq!(life(&lab), told);
    // A new run of the same project.
    lab.run(&["run"]).expect(0);
    assert_eq!(life(&lab), ["completed to initializing", "initializing to active", "active to completed"]);
    assert_eq!(lab.json(&["projects"])["projects"][0]["runs"], 2);
    let numbers: Vec<u64> = events(&lab).iter().filter_map(|event| event["number"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "numbered like all others");
}

#[test]
fn a_number_of_sessions_is_worked_and_no_more() {
    let lab = lab();
    lab.run(&["run", "--sessions", "1"]).expect(4);
    let work = || events(&lab).iter().filter(|event| event["type"] == "invocation_started").count();
    assert_eq!(work(), 3, "a plan, a round and its verdict");
    lab.run(&["resume", "--sessions", "5"]).expect(0);
    lab.run(&["run", "--sessions", "0"]).expect(2);
    lab.run(&["run", "--sessions", "1", "--plan-only"]).expect(2);
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

/// The last commits to the store of a run that nobody killed.
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

#[test]
fn what_was_given_up_stays_so_until_it_is_begun_anew() {
    let lab = lab();
    lab.run(&["run", "--plan-only"]).expect(4);
    lab.run(&["abandon", "--reason", "too dear"]).expect(0);
    assert_eq!(projects(&lab), kept("abandoned", (0, 2)));
    assert_eq!(lab.newest().expect("a run")["project_status"], "abandoned");
    refused(&lab.run(&["resume"]), &["abandoned"]);
    refused(&lab.run(&["run"]), &["was given up", "longhaul run --again"]);
    assert_eq!(projects(&lab), kept("abandoned", (0, 2)), "nothing was run");
    lab.run(&["run", "--again"]).expect(0);
    assert_eq!(projects(&lab), kept("completed", (2, 2)));
    assert_eq!(life(&lab)[0], "abandoned to initializing");
}

/// Puts a commit on the branch, as a person would in a checkout of their own.
fn commit_by_hand(lab: &Lab, path: &str, text: &str) {
    let mine = lab.path("mine");
    lab.git(&["worktree", "add", "-q", mine.to_str().expect("plain"), "longhaul/kept"]);
    fs::write(mine.join(path), text).expect("ours");
    lab.git_in(&mine, &["add", "-A"]);
    lab.git_in(&mine, &["commit", "-q", "-m", "by hand"]);
    lab.git(&["worktree", "remove", mine.to_str().expect("plain")]);
}

#[test]
fn a_completed_project_is_open_again_when_a_feature_regresses() {
    let lab = lab();
    lab.run(&["run"]).expect(0);
    let ran = lab.run(&["features", "recheck"]).expect(0);
    assert!(
        ran.stdout.contains("passes  one: wrote_one") && ran.stdout.contains("passes  two: has_two"),
        "{}",
        ran.said()
    );
    assert_eq!(projects(&lab), kept("completed", (2, 2)));

    commit_by_hand(&lab, "one.txt", "nothing of the kind\n");
    commit_by_hand(&lab, "mine.txt", "of a person\n");
    let ran = lab.run(&["features", "recheck"]).expect(3);
    assert!(ran.stdout.contains("fails   one: wrote_one") && ran.stdout.contains("passes  two"), "{}", ran.said());
    assert_eq!(projects(&lab), kept("active", (1, 2)));
    assert_eq!(life(&lab).last().map(String::as_str), Some("completed to active"));
    let status = lab.newest().expect("a run");
    assert_eq!(status["features"][0]["status"], "failing");
    assert!(
        status["features"][0]["why"].as_str().is_some_and(|why| why.contains("`wrote_one` failed since")),
        "{status}"
    );
    refused(&lab.run(&["features", "recheck", "one"]), &["`one` does not pass"]);
    refused(&lab.run(&["features", "recheck", "nine"]), &["no feature `nine`"]);
    let trees: Vec<_> = fs::read_dir(lab.home().join("trees")).expect("there").filter_map(Result::ok).collect();
    assert_eq!(trees.len(), 2, "of the copy nothing is left beside the tree and what it was brought to: {trees:?}");

    // The run takes up what the person did, and mends what broke.
    lab.run(&["resume"]).expect(0);
    assert_eq!(projects(&lab), kept("completed", (2, 2)));
    assert!(lab.git(&["show", "longhaul/kept:one.txt"]).contains("written one-1"));
    assert_eq!(lab.git(&["show", "longhaul/kept:mine.txt"]), "of a person\n");
}

#[test]
fn a_commit_and_a_file_by_hand_are_kept_by_a_run_that_goes_on() {
    let lab = lab();
    lab.run(&["run", "--sessions", "1"]).expect(4);
    let run = lab.runs().remove(0);
    let loose = lab.home().join("trees").join(run).join("loose.txt");
    fs::write(&loose, "in no commit").expect("ours");
    commit_by_hand(&lab, "mine.txt", "of a person\n");
    lab.run(&["resume"]).expect(0);
    assert_eq!(lab.git(&["show", "longhaul/kept:mine.txt"]), "of a person\n");
    assert_eq!(lab.git(&["show", "longhaul/kept:loose.txt"]), "in no commit", "with the feature that came next");
}
