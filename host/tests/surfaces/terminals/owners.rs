//! The terminal that owns the data directory: others ask it, and one of them takes over when it dies or is done.

use super::{GOAL, POSTS, TOO_SLOW, features, kill_between_effects, lab, run_of, start_other, status_of, with_other};
use crate::common::DOER_CONFIG;
use crate::common::lab::{Lab, Started};
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

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
    assert_eq!(status["features"][2]["title"], "the fourth");
    assert_eq!(status_of(&lab, &other_run)["status"], "completed");
    // Effects from before the owner's death did not happen again.
    let texts: Vec<String> = lab.fake.posts().into_iter().map(|told| told.key).collect();
    let mut once = texts.clone();
    once.sort();
    once.dedup();
    assert_eq!(texts.len(), once.len());
    assert_eq!(lab.git(&["log", "--format=%s", "main..longhaul/kept"]).lines().count(), 3);
    assert!(!lab.home().join("socket").exists(), "the last owner tidied up");
}

/// The number of times that a command with these arguments opens the store, and with it the engine and the socket.
#[track_caller]
fn openings(lab: &Lab, args: &[&str], end: impl FnOnce(&mut Started), code: i32) -> usize {
    let log = lab.path("openings");
    let mut started = lab.start_with(args, &[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]);
    end(&mut started);
    started.wait().expect(code);
    let points = std::fs::read_to_string(&log).expect("it opened the store");
    std::fs::remove_file(&log).expect("ours");
    points.lines().filter(|point| point.starts_with("store.after-open:")).count()
}

/// A report opened the store, and started the engine, five times.
#[test]
fn a_command_opens_the_store_once_however_much_it_asks() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    let code = lab.path("a.js");
    std::fs::write(&code, "console.log('done')").expect("ours");
    let code = code.to_str().expect("plain");
    let check = |args: &[&str], code: i32| assert_eq!(openings(&lab, args, |_| {}, code), 1, "{args:?}");
    check(&["run", "--plan-only", "--trust"], 4);
    check(&["features", "edit", "two", "--title", "the last"], 0);
    check(&["resume", "--reread-goal", "--trust"], 0);
    check(&["report"], 0);
    check(&["diff"], 0);
    check(&["merge", "--dry-run"], 0);
    check(&["trajectories", "export"], 0);
    check(&["trust", "--trust"], 0);
    check(&["agent", "add", "small", "--js", code], 0);
    check(&["agent", "update", "small", "--description", "prints"], 0);
    check(&["schedule", "add", "daily", "--agent", "small", "--paused"], 0);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--trust"];
    let stop = |server: &mut Started| {
        server.wait_for("serving at");
        server.interrupt();
    };
    assert_eq!(openings(&lab, &serve, stop, 0), 1);
}

#[test]
fn a_command_goes_on_when_the_owner_dies_between_its_questions() {
    let lab = lab();
    lab.fake.model_takes(TOO_SLOW);
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    let mut command = lab.command(&["secrets", "set", "key", "--tool", "poster", "--host", "https://example.com"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("started");
    // It asks which project this is, and waits for the value.
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().expect("ours").is_none() && owner.kill());
    child.stdin.take().expect("piped").write_all(b"a-long-value\n").expect("taken");
    assert!(child.wait().expect("ended").success());
    let listed = lab.run(&["secrets", "list"]).expect(0).stdout;
    assert!(listed.contains("key") && listed.contains("tools.poster"), "{listed}");
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
fn a_terminal_that_is_done_cuts_off_nothing_that_another_one_has_on_its_way() {
    let reference = Lab::new(DOER_CONFIG, GOAL);
    reference.run(&["run"]).expect(0);
    let asked = reference.fake.asked().len();
    let lab = lab();
    with_other(&lab);
    let mut owner = lab.start(&["run"]);
    owner.wait_for("committed one");
    let other = start_other(&lab, &["run"]);
    let done = owner.wait().expect(0);
    assert!(done.stderr.contains("finishing what is on its way of run"), "{}", done.said());
    let ran = other.wait().expect(0);
    assert!(ran.stdout.contains("going on with run"), "it was handed over: {}", ran.said());
    assert_eq!((lab.fake.posts().len(), lab.fake.asked().len()), (2 * POSTS, 2 * asked));
    let used = &status_of(&lab, &run_of(&lab, "other"))["resource_usage"];
    assert_eq!(used["possibly_paid_twice"], 0, "{used}");
}

#[test]
fn a_terminal_that_is_done_stays_for_a_run_that_nobody_else_would_go_on_with() {
    let lab = lab();
    with_other(&lab);
    let mut owner = lab.start(&["run"]);
    owner.wait_for("committed one");
    let mut other = start_other(&lab, &["run"]);
    other.wait_for("work on one");
    assert!(other.kill());
    let run = run_of(&lab, "other");
    let done = owner.wait().expect(0);
    assert!(done.stderr.contains("this process stays") && done.stderr.contains(&run), "{}", done.said());
    assert_eq!(status_of(&lab, &run)["status"], "completed");
    assert_eq!(lab.fake.posts().len(), 2 * POSTS);
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
    // No client was attached to this one.
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
