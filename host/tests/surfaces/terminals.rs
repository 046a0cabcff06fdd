//! Several terminals, one data directory: the first owns it, the others ask it, and when it dies one of
//! them takes its place.

use crate::common::lab::{Lab, Ran, Started, kill};
use crate::common::{DOER_CONFIG, Random, answers_printed, number, refused};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Posts of one run of it: two a feature, and one of each of two sub-agents of the second.
const POSTS: usize = 6;

const GOAL: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- check: has_two\n\nDo it, too.\n";

/// A model that leaves time to look.
const SLOW: Duration = Duration::from_millis(400);

/// A model for which no tested command waits.
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

/// Kills the process that works on two runs while both wait for their models, when no effect of theirs can be cut off.
fn kill_between_effects(lab: &Lab, owner: &mut Started) {
    while lab.fake.requests().get("model") < Some(&2) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // For the process that continues the run.
    lab.fake.model_takes(Duration::ZERO);
    assert!(owner.kill(), "the owner was at work");
}

fn status_of(lab: &Lab, run: &str) -> Value {
    lab.json(&["status", run])
}

fn run_of(lab: &Lab, project: &str) -> String {
    let answer = lab.json(&["runs"]);
    let runs = answer["items"].as_array().expect("a list");
    let found = runs.iter().find(|run| run["project"] == project).unwrap_or_else(|| panic!("{answer}"));
    found["run"].as_str().expect("a name").to_owned()
}

/// Each feature with its status.
fn features(status: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let features = status["features"].as_array().expect("a list");
    features.iter().map(|feature| (text(&feature["id"]), text(&feature["status"]))).collect()
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

#[test]
fn a_command_in_one_project_leaves_the_runs_of_others_alone() {
    let lab = lab();
    lab.fake.model_takes(TOO_SLOW);
    with_other(&lab);
    let mut other = start_other(&lab, &["run"]);
    other.wait_for("work on one");
    let run = run_of(&lab, "other");
    let before = status_of(&lab, &run);
    // None of them names a run, and none of them stands in the project whose run the owner of the data directory has.
    let changes: [&[&str]; 9] = [
        &["pause"],
        &["features", "drop", "one"],
        &["features", "add", "x", "--instruction", "Do it."],
        &["abandon"],
        &["answer", "--skip"],
        &["steer", ":one", "the other way"],
        &["cancel", ":one"],
        &["revert", "--to", "HEAD"],
        &["resume", "--retry-failing"],
    ];
    for change in changes {
        refused(&lab.run(change), &["no run of `", "/project`", "start one with `longhaul run`"]);
        let outside = |args: &[&str]| {
            let mut command = lab.command(&[change, args].concat());
            command.current_dir(lab.home());
            lab.start_command(command).wait()
        };
        refused(&outside(&["--project", "../project"]), &["no run of `", "/project`"]);
        // Where no project is, what could be meant is listed, and nothing is chosen.
        refused(&outside(&[]), &["is no project; name the run that you mean: ", &format!("{run} of `"), "/other`"]);
        refused(&lab.run(&[change, &["--project", "no-such"]].concat()), &[&run]);
    }
    for nothing in ["", "r", "r-"] {
        refused(&lab.run(&["pause", nothing]), &["names no run", "longhaul runs"]);
    }
    assert_eq!(status_of(&lab, &run)["status"], before["status"]);
    assert_eq!(features(&status_of(&lab, &run)), features(&before));

    // With a run of its own it acts on that one, wherever it is typed.
    let mut own = lab.start(&["run"]);
    own.wait_for("work on one");
    let mut pause = lab.command(&["--project", "../project", "pause"]);
    pause.current_dir(lab.path("other"));
    let paused = lab.start_command(pause).wait().expect(0);
    assert!(paused.stdout.contains(&run_of(&lab, "kept")), "{}", paused.said());
    own.wait().expect(4);
    assert_eq!(status_of(&lab, &run_of(&lab, "kept"))["status"], "paused");
    assert_eq!(status_of(&lab, &run)["status"], before["status"]);
}

/// How often a command with these arguments opens the store, and with it the engine and the socket.
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

/// One of the two projects, and what was done to it.
struct Side {
    directory: &'static str,
    name: &'static str,
    /// The client that started or resumed its run, and follows it.
    follower: Option<Started>,
    /// Features that were added to its newest run.
    added: u64,
}

/// Random commands in two projects, from everywhere, while servers come and go. Each names what it did to which run, and
/// that is a run of its own project. `LONGHAUL_SECONDS` says for how long.
#[test]
fn two_projects_and_a_server_over_one_data_directory_act_each_on_their_own() {
    let seconds: u64 = number("LONGHAUL_SECONDS").unwrap_or(8);
    let seed: u64 = number("LONGHAUL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("LONGHAUL_SEED={seed} LONGHAUL_SECONDS={seconds}");
    let lab = Lab::new(DOER_CONFIG, GOAL);
    with_other(&lab);
    let mut random = Random::new(seed, 0);
    let mut sides = [("project", "kept"), ("other", "other")].map(|(directory, name)| Side {
        directory,
        name,
        follower: None,
        added: 0,
    });
    let mut server: Option<Started> = None;
    let (mut commands, mut done, mut handed_over) = (0_u64, 0_u64, 0_u64);
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(seconds) {
        lab.fake.model_takes(Duration::from_millis(random.below(150)));
        lab.fake.posts_take(Duration::from_millis(random.below(100)));
        if random.below(12) == 0 {
            server = match server.take() {
                None => Some(lab.start(&["serve", "--no-token", "--listen", "127.0.0.1:0"])),
                Some(mut running) => {
                    // Before that no handler may receive a Ctrl-C.
                    while running.is_running() && !running.printed().contains("serving at") {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    match random.below(3) {
                        0 => kill(running.pid()),
                        _ => running.interrupt(),
                    }
                    let ended = running.wait();
                    assert!(!ended.said().contains("panicked"), "{}", ended.said());
                    None
                }
            };
        }
        let at = usize::try_from(random.below(2)).expect("small");
        let [one, two] = &mut sides;
        let (own, others) = if at == 0 { (one, two) } else { (two, one) };
        commands += 1;
        let before = ids_added(&lab, others);
        let ran = own.act(&lab, &mut random);
        handed_over += own.reap();
        if let Some(ran) = ran {
            let code = ran.code();
            assert!(matches!(code, Some(0 | 1 | 3 | 4 | 5)), "LONGHAUL_SEED={seed}: {:?} {}", ran.status, ran.said());
            if code == Some(0) {
                done += 1;
                let named = ran.stdout.split_whitespace().find(|word| word.starts_with("r-")).unwrap_or_default();
                let project = project_of(&lab, named.trim_end_matches(':'));
                assert_eq!(project.as_deref(), Some(own.name), "LONGHAUL_SEED={seed}: {}", ran.said());
            }
        }
        assert_eq!(ids_added(&lab, others), before, "LONGHAUL_SEED={seed}: a command in {} reached", own.name);
    }
    if let Some(mut running) = server {
        running.kill();
        running.wait();
    }
    for side in &mut sides {
        if let Some(mut follower) = side.follower.take() {
            follower.kill();
            follower.wait();
        }
    }
    lab.fake.settle();
    for run in lab.runs() {
        let status = status_of(&lab, &run);
        let own = if status["project"] == "kept" { "kept" } else { "other" };
        let foreign =
            features(&status).into_iter().map(|(id, _)| id).find(|id| id.contains('-') && !id.starts_with(own));
        assert_eq!(foreign, None, "LONGHAUL_SEED={seed}: {status:#}");
    }
    // Nothing was sent twice, by any owner of the data directory.
    let keys: Vec<String> = lab.fake.posts().into_iter().map(|told| told.key).collect();
    let once: BTreeSet<&String> = keys.iter().collect();
    println!(
        "{commands} commands, {done} of them done, {} runs, {} posts, {handed_over} followers ended",
        lab.runs().len(),
        keys.len()
    );
    assert_eq!(keys.len(), once.len(), "LONGHAUL_SEED={seed}: sent twice");
    assert!(done > 0, "something was done");
}

/// The features of all runs of a project that were added or dropped by hand.
fn ids_added(lab: &Lab, side: &Side) -> Vec<(String, bool)> {
    let answer = lab.json(&["runs"]);
    let runs = answer["items"].as_array().expect("a list").iter().filter(|run| run["project"] == side.name);
    let of_run = |run: &Value| features(&status_of(lab, run["run"].as_str().expect("a name")));
    let by_hand = |(id, status): (String, String)| {
        let is_dropped = status == "dropped";
        (id.contains('-') || is_dropped).then_some((id, is_dropped))
    };
    runs.flat_map(of_run).filter_map(by_hand).collect()
}

fn project_of(lab: &Lab, run: &str) -> Option<String> {
    let answer = lab.json(&["runs"]);
    let runs = answer["items"].as_array().expect("a list");
    runs.iter().find(|one| one["run"] == run).and_then(|one| one["project"].as_str()).map(str::to_owned)
}

impl Side {
    /// Has something done in the project: from its directory, or from elsewhere with a relative path to it. None where
    /// it goes on beside.
    fn act(&mut self, lab: &Lab, random: &mut Random) -> Option<Ran> {
        let args: Vec<String> = match random.below(12) {
            0..=3 if self.follower.is_none() => {
                self.follower = Some(self.start(lab, random, &["run"]));
                return None;
            }
            4 | 5 if self.follower.is_none() => {
                self.follower = Some(self.start(lab, random, &["resume"]));
                return None;
            }
            6 => vec!["pause".to_owned()],
            7 | 8 => {
                self.added += 1;
                let id = format!("{}-{}", self.name, self.added);
                ["features", "add", &id, "--instruction", "Do it.", "--criterion", "It is."].map(str::to_owned).to_vec()
            }
            9 if self.added > 0 => {
                let id = format!("{}-{}", self.name, 1 + random.below(self.added));
                ["features", "drop", &id].map(str::to_owned).to_vec()
            }
            10 if random.below(4) == 0 => vec!["abandon".to_owned()],
            10 => {
                if let Some(follower) = &self.follower {
                    follower.interrupt();
                }
                return None;
            }
            _ => {
                // A person who finds it waiting types the printed command.
                let said = self.start(lab, random, &["status"]).wait();
                for answer in answers_printed(lab, &said.stdout) {
                    answer.run(lab);
                }
                return (said.code() == Some(0)).then_some(said);
            }
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Some(self.start(lab, random, &args).wait())
    }

    fn start(&self, lab: &Lab, random: &mut Random, args: &[&str]) -> Started {
        let beside = ["project", "other"][usize::try_from(random.below(2)).expect("small")];
        let project = format!("../{}", self.directory);
        let mut command = match random.below(2) {
            0 => lab.command(args),
            _ => lab.command(&[&["--project", &project], args].concat()),
        };
        let is_elsewhere = command.get_args().any(|arg| arg == "--project");
        command.current_dir(lab.path(if is_elsewhere { beside } else { self.directory }));
        lab.start_command(command)
    }

    /// Takes note of a follower that has ended: it said nothing of a run of another project as if it was its own.
    fn reap(&mut self) -> u64 {
        if self.follower.as_mut().is_none_or(Started::is_running) {
            return 0;
        }
        let ran = self.follower.take().expect("there is one").wait();
        let begins = |line: &&str| line.starts_with("run r-") && line.contains(", on branch ");
        if let Some(line) = ran.stdout.lines().find(begins) {
            assert!(line.contains(&format!(" of {},", self.name)), "{}", ran.said());
        }
        assert!(!ran.said().contains("panicked"), "{}", ran.said());
        1
    }
}

/// A call of the socket that another user may try.
const CALL: &str = r#"{"operation":{"name":"runs","request":{}}}"#;

/// Sends two lines to the socket and reads what comes back.
fn said_to(socket: &Path, token: &str) -> String {
    said_to_call(socket, token, CALL)
}

fn said_to_call(socket: &Path, token: &str, call: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("somebody serves");
    // One that refuses us may have closed the connection by now.
    let _ = write!(stream, "{token}\n{call}\n");
    let mut answer = Vec::new();
    // Unread data at the end counts as a broken connection.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Opens what keeps other users out, so that the check of the user is all there is.
fn open_for_all(lab: &Lab) {
    let modes = [(lab.path("."), 0o711), (lab.home(), 0o711), (lab.home().join("socket"), 0o666)];
    for (path, mode) in modes {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    }
}

/// A program that acts as another user, which only root can start.
fn as_nobody(script: &str, path: &Path, token: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", script]);
    // The other user cannot start programs in the home of root, which may be in PATH.
    command.arg(path).args([token, CALL]).env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

/// A user who can reach the socket can answer approvals and make tokens.
#[test]
fn the_socket_answers_its_own_user_with_the_token_of_the_data_directory_and_nobody_else() {
    let lab = Lab::empty();
    let mut owner = lab.start(&["serve", "--listen", "127.0.0.1:0"]);
    owner.wait_for("serving at");
    let (socket, token) = (lab.home().join("socket"), lab.home().join("socket-token"));
    assert_eq!(token.metadata().expect("made").permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(token).expect("ours");
    assert!(said_to(&socket, &token).contains("\"answer\""), "{}", said_to(&socket, &token));
    // Calls of clients from before errors had codes, and from before operations had names: each client reads one line,
    // whose error is a text.
    for call in [r#"{"ask":{"ask":"runs"}}"#, r#"{"request":{"ask":"runs"}}"#] {
        let earlier = said_to_call(&socket, &token, call);
        assert!(earlier.starts_with("{\"reply\":{\"error\":\"the call is not understood"), "{earlier}");
        assert!(earlier.contains("client and owner may be of different versions"), "{earlier}");
    }
    // And those of a later one, which has another operation, or another request for it.
    for call in [r#"{"operation":{"name":"none","request":{}}}"#, r#"{"operation":{"name":"run_status","request":{}}}"#]
    {
        let later = said_to_call(&socket, &token, call);
        assert!(later.starts_with("{\"reply\":{\"error\":\""), "{later}");
        assert!(later.contains("client and owner may be of different versions: end the owner"), "{later}");
    }
    for wrong in ["", CALL, &token[1..], &format!("{token}0"), &"0".repeat(64)] {
        let answer = said_to(&socket, wrong);
        assert!(answer.contains("without the token of the data directory") && !answer.contains("runs\""), "{answer}");
    }
    let environment = std::fs::read(format!("/proc/{}/environ", owner.pid())).expect("ours");
    assert!(!environment.windows(token.len()).any(|part| part == token.as_bytes()));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    open_for_all(&lab);
    let script = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
        try: s.sendall(f'{sys.argv[2]}\\n{sys.argv[3]}\\n'.encode())\nexcept OSError: pass\n\
        print(s.makefile().readline())";
    let said = as_nobody(script, &socket, &token).output().expect("setpriv is there");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("answers the user 0 alone, and you are 65534"), "{said}");
}

/// A client used to send its request, and its answers to approvals, to any process that had bound the socket.
#[test]
fn a_client_says_nothing_to_a_socket_that_another_user_serves() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let lab = Lab::empty();
    lab.run(&["runs"]).expect(0);
    let lock = std::fs::OpenOptions::new().write(true).open(lab.home().join("lock")).expect("ours");
    lock.try_lock().expect("nobody has it");
    // The kernel reports the user who listens on a socket, so the user is changed before that.
    let script = "import os, socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\nos.setuid(65534)\n\
        s.listen()\nprint('listens', flush=True)\nc = s.accept()[0]\nprint('heard', c.recv(100), flush=True)";
    let mut thief = Command::new("python3");
    thief.args(["-c", script]).arg(lab.home().join("socket")).stdout(Stdio::piped());
    let mut thief = thief.spawn().expect("python3 is there");
    let mut heard = BufReader::new(thief.stdout.take().expect("piped"));
    let mut line = String::new();
    heard.read_line(&mut line).expect("it listens");
    refused(&lab.run(&["runs"]), &["the user 65534 serves", "speaks to its own user 0 alone"]);
    line.clear();
    heard.read_line(&mut line).expect("text");
    thief.wait().expect("ours");
    assert_eq!(line, "heard b''\n");
}

/// The socket of a data directory with a long path had a name in a directory that every user can write.
#[test]
fn the_socket_of_a_long_path_lies_in_the_data_directory_too() {
    let lab = Lab::empty();
    let home = lab.path(&"long".repeat(40));
    let mut owner = lab.start_command(lab.command_at(&home, &["serve", "--listen", "127.0.0.1:0"]));
    owner.wait_for("serving at");
    assert_eq!(home.join("socket").metadata().expect("bound").permissions().mode() & 0o777, 0o600);
    lab.run_at(&home, &["token", "add", "a", "--scope", "read"]).expect(0);
    let elsewhere =
        [lab.path("."), std::env::temp_dir()].into_iter().flat_map(|place| std::fs::read_dir(place).expect("there"));
    let elsewhere: Vec<_> = elsewhere.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    let is_socket = |name: &&std::ffi::OsString| name.to_string_lossy().ends_with(".socket");
    assert_eq!(elsewhere.iter().find(is_socket), None);
    // It was the owner who answered, and not a second one.
    assert!(owner.is_running());
}
