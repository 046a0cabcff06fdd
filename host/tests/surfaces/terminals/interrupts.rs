//! Ctrl-C, and orders of other terminals that pause or end a run.

use super::{GOAL, POSTS, TOO_SLOW, lab, run_of, start_other, status_of, with_other};
use crate::common::DOER_CONFIG;
use crate::common::lab::Lab;
use std::time::Duration;

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
    // No question is needed: its answer is known.
    lab.run(&["resume"]).expect(0);
    assert_eq!(lab.fake.posts().len(), POSTS);
}

#[test]
fn ctrl_c_ends_the_staying_and_says_how_to_go_on() {
    let lab = lab();
    with_other(&lab);
    let mut owner = lab.start(&["run"]);
    owner.wait_for("committed one");
    let mut other = start_other(&lab, &["run"]);
    other.wait_for("work on one");
    assert!(other.kill());
    // Long enough for the run to be still at work when the other one is over.
    lab.fake.posts_take(Duration::from_secs(1));
    owner.wait_for("this process stays");
    owner.interrupt();
    let done = owner.wait().expect(0);
    let run = run_of(&lab, "other");
    assert!(done.stderr.contains(&format!("go on with: longhaul resume {run}")), "{}", done.said());
    lab.fake.posts_take(Duration::ZERO);
    lab.run(&["resume", &run]).expect(0);
    assert_eq!(lab.fake.posts().len(), 2 * POSTS);
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    lab.fake.posts_take(TOO_SLOW);
    let mut owner = lab.start(&["run"]);
    while lab.fake.posts().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    owner.interrupt();
    owner.wait_for("Ctrl-C again ends at once");
    owner.interrupt();
    let ended = owner.wait().expect(130);
    let run = run_of(&lab, "kept");
    assert!(ended.stderr.contains(&format!("longhaul resume {run}")), "{}", ended.said());
    // The post that was cut off is asked about, and not sent again.
    lab.fake.posts_take(Duration::ZERO);
    lab.run(&["resume", &run]).expect(5);
    assert_eq!(lab.fake.posts().len(), 1);
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
        (status["status"].as_str(), status["reason"].as_str().map(|why| why.contains("enough"))),
        (Some("abandoned"), Some(true))
    );
    // The next one starts when a person says so.
    lab.fake.model_takes(Duration::ZERO);
    assert!(lab.run(&["run"]).expect(1).stderr.contains("longhaul run --again"));
    lab.run(&["run", "--again"]).expect(0);
}
