//! Several terminals, one data directory: the first owns it, the others ask it, and when it dies one of
//! them takes its place.

mod common;

use common::DOER_CONFIG;
use common::lab::{Lab, Started};
use serde_json::Value;
use std::time::Duration;

/// Posts of one run of it: two a feature, and one of each of two sub-agents of the second.
const POSTS: usize = 6;

const GOAL: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- check: has_two\n\nDo it, too.\n";

/// A model that leaves time to look.
const SLOW: Duration = Duration::from_millis(400);

/// A model that nobody who is tested waits for.
const TOO_SLOW: Duration = Duration::from_secs(60);

fn lab() -> Lab {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    lab.fake.model_takes(SLOW);
    lab
}

/// A second project beside the first.
fn with_other(lab: &Lab) {
    lab.make_project("other", &DOER_CONFIG.replace("\"kept\"", "\"other\""), GOAL);
}

fn start_other(lab: &Lab, args: &[&str]) -> Started {
    let mut command = lab.command(args);
    command.current_dir(lab.path("other"));
    lab.start_command(command)
}

/// Kills who works on two runs while both wait for their models, when no effect of theirs can be cut off.
fn kill_between_effects(lab: &Lab, owner: &mut Started) {
    while lab.fake.requests().get("model") < Some(&2) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // For whoever goes on.
    lab.fake.model_takes(Duration::ZERO);
    assert!(owner.kill(), "the owner was at work");
}

fn status_of(lab: &Lab, run: &str) -> Value {
    lab.json(&["status", run])
}

fn run_of(lab: &Lab, project: &str) -> String {
    let answer = lab.json(&["runs"]);
    let runs = answer["runs"].as_array().expect("a list");
    let found = runs.iter().find(|run| run["project"] == project).unwrap_or_else(|| panic!("{answer}"));
    found["run"].as_str().expect("a name").to_owned()
}

/// Each feature with its status.
fn features(status: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let features = status["features"].as_array().expect("a list");
    features.iter().map(|feature| (text(&feature["spec"]["id"]), text(&feature["status"]))).collect()
}

#[test]
fn other_terminals_see_and_change_a_run_and_one_of_them_takes_over_when_its_owner_dies() {
    let lab = lab();
    lab.fake.model_takes(TOO_SLOW);
    with_other(&lab);
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    let run = run_of(&lab, "kept");

    assert!(lab.run(&["status"]).expect(0).stdout.contains("working"), "not `broken off`: somebody works on it");
    assert!(lab.run(&["runs"]).expect(0).stdout.contains(&run));
    assert!(lab.run(&["journal"]).expect(0).stdout.contains("f-one/1/generate"));
    assert!(lab.run(&["journal", "-i", "f-one/1/generate"]).expect(0).stdout.contains("not finished"));
    assert!(lab.run(&["features"]).expect(0).stdout.contains("in progress  one"));
    let add = ["features", "add", "four", "--instruction", "Do it.", "--check", "wrote_four"];
    lab.run(&add).expect(0);
    lab.run(&["features", "add", "five", "--instruction", "Do it.", "--check", "wrote_four"]).expect(0);
    lab.run(&["features", "edit", "four", "--title", "the fourth"]).expect(0);
    lab.run(&["features", "drop", "five"]).expect(0);
    let refused = lab.run(&["features", "drop", "nine"]).expect(1);
    assert!(refused.stderr.contains("nine"), "{}", refused.said());

    let mut other = start_other(&lab, &["run"]);
    other.wait_for("on branch longhaul/other");
    let other_run = run_of(&lab, "other");
    let mut attached = lab.start(&["attach"]);
    attached.wait_for("work on one");

    kill_between_effects(&lab, &mut owner);
    let ran = attached.wait().expect(0);
    assert!(ran.stdout.contains("completed"), "{}", ran.said());
    let ran = other.wait().expect(0);
    assert!(ran.stdout.contains("completed"), "{}", ran.said());

    let status = status_of(&lab, &run);
    let expected = [("one", "passing"), ("two", "passing"), ("four", "passing"), ("five", "dropped")];
    assert_eq!(features(&status), expected.map(|(id, status)| (id.to_owned(), status.to_owned())));
    assert_eq!(status["features"][2]["spec"]["title"], "the fourth");
    assert_eq!(status_of(&lab, &other_run)["status"], "completed");
    // What was done before the owner died was not done again.
    let texts: Vec<String> = lab.fake.posts().into_iter().map(|told| told.key).collect();
    let mut once = texts.clone();
    once.sort();
    once.dedup();
    assert_eq!(texts.len(), once.len());
    assert_eq!(lab.git(&["log", "--format=%s", "main..longhaul/kept"]).lines().count(), 3);
    assert!(!lab.home().join("socket").exists(), "the last owner tidied up");
}

#[test]
fn ctrl_c_pauses_and_says_how_to_go_on() {
    let lab = lab();
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    owner.interrupt();
    let ran = owner.wait().expect(4);
    let run = run_of(&lab, "kept");
    assert!(ran.stdout.contains(&format!("longhaul resume {run}")), "{}", ran.said());
    assert_eq!(status_of(&lab, &run)["status"], "paused");
    lab.fake.model_takes(Duration::ZERO);
    lab.run(&["resume"]).expect(0);
    assert_eq!(status_of(&lab, &run)["status"], "completed");
}

#[test]
fn a_pause_waits_for_an_effect_that_has_left_and_sends_no_other() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    lab.fake.posts_take(Duration::from_millis(700));
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    while lab.fake.posts().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    owner.interrupt();
    owner.wait().expect(4);
    assert_eq!((lab.fake.posts().len(), lab.fake.puts().len()), (1, 0));
    lab.fake.posts_take(Duration::ZERO);
    // Nobody has to be asked: its answer is known.
    lab.run(&["resume"]).expect(0);
    assert_eq!(lab.fake.posts().len(), POSTS);
}

#[test]
fn a_terminal_that_is_done_leaves_another_ones_run_whole() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    with_other(&lab);
    lab.fake.posts_take(Duration::from_millis(150));
    let mut owner = lab.start(&["run"]);
    owner.wait_for("committed one");
    let other = start_other(&lab, &["run"]);
    owner.wait().expect(0);
    other.wait().expect(0);
    assert_eq!(lab.fake.posts().len(), 2 * POSTS);
}

#[test]
fn ctrl_c_in_a_terminal_that_only_watches_stops_the_watching() {
    let lab = lab();
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    let mut attached = lab.start(&["attach"]);
    attached.wait_for("work on one");
    attached.interrupt();
    attached.wait().expect(0);
    assert!(owner.is_running());
    let ran = owner.wait().expect(0);
    assert!(!ran.stdout.contains("paused"), "{}", ran.said());
}

#[test]
fn ctrl_c_in_a_terminal_whose_run_another_one_owns_pauses_that_run_alone() {
    let lab = lab();
    with_other(&lab);
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    let mut other = start_other(&lab, &["run"]);
    other.wait_for("work on one");
    other.interrupt();
    other.wait().expect(4);
    owner.wait().expect(0);
    assert_eq!(status_of(&lab, &run_of(&lab, "other"))["status"], "paused");
}

#[test]
fn a_run_can_be_paused_and_abandoned_from_another_terminal() {
    let lab = lab();
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    lab.run(&["pause"]).expect(0);
    owner.wait().expect(4);
    lab.run(&["abandon", "--reason", "enough"]).expect(0);
    let status = lab.newest().expect("a run");
    assert_eq!(
        (status["status"].as_str(), status["why"].as_str().map(|why| why.contains("enough"))),
        (Some("abandoned"), Some(true))
    );
    // The next one starts when a person says so.
    lab.fake.model_takes(Duration::ZERO);
    assert!(lab.run(&["run"]).expect(1).stderr.contains("longhaul run --again"));
    lab.run(&["run", "--again"]).expect(0);
}

#[test]
fn two_that_start_at_once_both_work() {
    for _ in 0..3 {
        let lab = Lab::new(DOER_CONFIG, GOAL);
        with_other(&lab);
        let (one, other) = (lab.start(&["run"]), start_other(&lab, &["run"]));
        one.wait().expect(0);
        other.wait().expect(0);
        for project in ["kept", "other"] {
            assert_eq!(status_of(&lab, &run_of(&lab, project))["status"], "completed");
        }
    }
}

#[test]
fn of_two_runs_of_one_project_the_second_is_refused() {
    let lab = lab();
    let (one, other) = (lab.start(&["run"]), lab.start(&["run"]));
    let (one, other) = (one.wait(), other.wait());
    let (worked, refused) = if one.code() == Some(0) { (one, other) } else { (other, one) };
    worked.expect(0);
    assert!(refused.expect(1).stderr.contains("is not finished"));
    assert_eq!(lab.runs().len(), 1);
}

#[test]
fn a_terminal_that_started_a_run_goes_on_with_it_when_its_owner_dies() {
    let lab = lab();
    lab.fake.model_takes(TOO_SLOW);
    with_other(&lab);
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    let mut other = start_other(&lab, &["run"]);
    other.wait_for("work on one");
    kill_between_effects(&lab, &mut owner);
    other.wait().expect(0);
    // Nobody was attached to this one.
    assert!(lab.run(&["status"]).expect(0).stdout.contains("broken off"));
    lab.run(&["resume"]).expect(0);
}

#[test]
fn a_program_that_is_replaced_while_it_runs_goes_on() {
    let lab = lab();
    with_other(&lab);
    let program = lab.path("longhaul");
    std::fs::copy(env!("CARGO_BIN_EXE_longhaul"), &program).expect("there is room");
    let inner = lab.command(&["run"]);
    let mut command = std::process::Command::new(&program);
    command.args(inner.get_args()).current_dir(lab.project());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut started = lab.start_command(command);
    started.wait_for("work on one");
    // As an update does: another file under the same name.
    std::fs::remove_file(&program).expect("ours");
    std::fs::copy(env!("CARGO_BIN_EXE_longhaul"), &program).expect("there is room");
    // A run that comes afterwards starts its checks anew.
    let other = start_other(&lab, &["run"]);
    started.wait().expect(0);
    other.wait().expect(0);
}
