//! Resources of children, guests and runs are listed and limited, and work waits for capacity.

use crate::common::lab::Lab;
use crate::common::terminal::Terminal;
use crate::common::{self, DOER_CONFIG};
use crate::{TWO, judged_by, list, passing, set_resources, until};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

#[test]
fn a_check_that_takes_too_much_memory_is_ended_and_everybody_is_told_why() {
    let greedy = "import time\nheld = b'x' * (300 << 20)\ntime.sleep(900)";
    let lab = judged_by(&["python3", "-c", greedy]);
    set_resources(&lab, "[program]\nmax_memory_mb = 200.0\n");
    let mut owner = lab.start(&["run"]);
    let seen = until(&lab, &mut owner, &["ps"], |ps| !list(ps, "ended").is_empty());
    let ended = &list(&seen, "ended")[0];
    assert_eq!([&ended["kind"], &ended["name"]], [&json!("program"), &json!("check fine")], "{ended}");
    assert!(ended["reason"].as_str().is_some_and(|why| why.contains("max_memory_mb")), "{ended}");
    let ran = owner.wait().expect(3);
    assert!(ran.stdout.contains("max_memory_mb"), "{}", ran.said());
}

#[test]
fn a_child_is_listed_with_what_it_uses_and_ended_by_its_number() {
    let lab = judged_by(&["sleep", "900"]);
    let mut owner = lab.start(&["run"]);
    let is_there = |ps: &Value| list(ps, "children").iter().any(|child| child["name"] == "check fine");
    let seen = until(&lab, &mut owner, &["ps"], is_there);
    let child = list(&seen, "children").iter().find(|child| child["name"] == "check fine").expect("seen");
    assert!(child["usage"]["memory_mb"].as_f64().is_some_and(|mb| mb > 0.0), "{child}");
    assert!(child["limits"]["max_processes"].as_u64().is_some(), "{child}");
    assert!(seen["system"]["memory_total_mb"].as_f64().is_some_and(|mb| mb > 0.0), "{seen}");
    assert_eq!(list(&seen, "runs").len(), 1, "{seen}");
    let words = lab.run(&["ps"]).expect(0).stdout;
    assert!(words.contains("program `check fine`") && words.contains("machine "), "{words}");
    assert!(words.contains(&format!("longhaul  process {},", owner.pid())), "{words}");
    let once = lab.run(&["top", "--once"]).expect(0).stdout;
    assert!(once.contains("program `check fine`"), "{once}");

    common::refused(&lab.run(&["ps", "--end", "1"]), &["was not started by this longhaul"]);
    common::refused(&lab.run(&["ps", "--end", "4194304"]), &["is not there any more"]);
    lab.run(&["ps", "--end", &child["pid"].to_string()]).expect(0);
    // A check is run more than once: before the work, too.
    while owner.is_running() {
        let now = lab.json(&["ps"]);
        for child in list(&now, "children").iter().filter(|child| child["name"] == "check fine") {
            lab.run(&["ps", "--end", &child["pid"].to_string()]);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    owner.wait().expect(3);
}

#[test]
fn top_draws_again_and_again_until_q() {
    let lab = passing();
    let mut terminal = Terminal::start(&lab, &["top", "--every", "1"], &[]);
    terminal.wait_for("machine ", 2);
    terminal.types("q");
    let (status, screen) = terminal.wait();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(screen.contains("q ends"), "{screen}");
}

#[test]
fn an_instance_is_listed_with_its_memory_and_fuel_while_it_works() {
    let lab = Lab::new(DOER_CONFIG, TWO);
    lab.fake.model_takes(Duration::from_millis(400));
    let mut owner = lab.start(&["run"]);
    let works = |guest: &Value| guest["plugin"] == "agents.code" && guest["fuel"].as_u64() > Some(0);
    let seen = until(&lab, &mut owner, &["ps"], |ps| list(ps, "instances").iter().any(works));
    let guest = list(&seen, "instances").iter().find(|guest| works(guest)).expect("seen");
    let number = |field: &str| guest[field].as_f64().unwrap_or(-1.0);
    assert!(number("memory_mb") > 0.0 && number("memory_mb") <= number("memory_max_mb"), "{guest}");
    assert!(number("fuel") <= number("fuel_max"), "{guest}");
    let run = &list(&seen, "runs")[0];
    assert!(run["guests"].as_u64() >= Some(1) && run["project"] == "kept", "{run}");
    owner.wait().expect(0);
}

#[test]
fn history_is_kept_while_somebody_owns_the_data_directory() {
    let lab = judged_by(&["sleep", "900"]);
    let mut owner = lab.start(&["run"]);
    let samples = until(&lab, &mut owner, &["ps", "--history", "1"], |samples| {
        samples.as_array().is_some_and(|samples| !samples.is_empty())
    });
    let sample = &samples[0];
    assert!(sample["at_ms"].as_u64().is_some_and(|at| at > 0), "{sample}");
    assert!(sample["host"]["memory_mb"].as_f64().is_some_and(|mb| mb > 0.0), "{sample}");
    owner.kill();
}

#[test]
fn a_server_that_works_alone_says_how_to_have_another_one() {
    let lab = Lab::empty();
    let said = lab.run(&["workers"]).expect(0).stdout;
    assert!(said.contains("no other server works on runs") && said.contains("[worker]"), "{said}");
    let list = lab.json(&["workers"]);
    assert!(list["items"].as_array().is_some_and(|all| all.iter().all(|one| one["is_leader"] == true)), "{list}");
    assert_eq!(list["runs_waiting"], json!([]), "{list}");
}

#[test]
fn a_run_for_which_there_is_no_room_waits_says_so_and_begins_when_there_is() {
    let lab = passing();
    set_resources(&lab, "[reserve]\nmemory_mb = 1000000000.0\n");
    let mut owner = lab.start(&["run"]);
    owner.wait_for("waits for room on this machine");
    let status = lab.json(&["status"]);
    let why = status["reason"].as_str().unwrap_or_default();
    assert!(why.contains("waits for room") && why.contains("1000000000"), "{status}");
    let ps = lab.json(&["ps"]);
    assert!(list(&ps, "runs")[0]["waiting_for"].as_str().is_some_and(|why| why.contains("MB")), "{ps}");
    set_resources(&lab, "[reserve]\nmemory_mb = 1.0\n");
    owner.wait().expect(0);
    assert!(!lab.json(&["status"])["reason"].as_str().unwrap_or_default().contains("waits for room"));
}

#[test]
fn a_run_that_waits_for_room_can_be_paused_and_goes_on_later() {
    let lab = passing();
    set_resources(&lab, "[reserve]\nmemory_mb = 1000000000.0\n");
    let mut owner = lab.start(&["run"]);
    owner.wait_for("waits for room on this machine");
    owner.interrupt();
    owner.wait().expect(4);
    set_resources(&lab, "");
    lab.run(&["resume"]).expect(0);
}

#[test]
fn a_task_of_an_agent_waits_for_room_and_runs_when_there_is_some() {
    let lab = Lab::empty();
    fs::write(lab.path("a.js"), "console.log('done')").expect("ours");
    set_resources(&lab, "[reserve]\nmemory_mb = 1000000000.0\n");
    lab.run(&["agent", "add", "small", "--js", "a.js"]).expect(0);
    lab.run(&["schedule", "add", "s", "--agent", "small", "--paused"]).expect(0);
    lab.run(&["schedule", "run-now", "s"]).expect(0);
    let mut owner = lab.start(&["schedule", "work"]);
    let waits = |task: &Value| task["waiting_for"].as_str().is_some_and(|why| why.contains("room on this machine"));
    until(&lab, &mut owner, &["ps"], |ps| list(ps, "tasks").iter().any(waits));
    set_resources(&lab, "[reserve]\nmemory_mb = 1.0\n");
    until(&lab, &mut owner, &["schedule", "tasks"], |tasks| tasks["items"][0]["status"] == "completed");
    owner.interrupt();
}
