//! Servers that are killed while the tasks of their schedules run: each task ends once, and no kill costs it a retry.
//!
//! `LONGHAUL_KILLS=50` kills so often (default 5), one kill each two seconds; the full figure is 50 kills in 100
//! seconds. Needs the interpreters of `cargo xtask plugins`.

use crate::common::lab::Lab;
use crate::common::web::Web;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// Tasks, and the agents that they are of.
const TASKS: usize = 36;
const AGENTS: usize = 12;

/// Time from one kill to the next.
const PERIOD: Duration = Duration::from_secs(2);

/// Time from the fires to the kill: enough for a task to begin, and too little for one to end.
const BEGIN: Duration = Duration::from_millis(900);

/// Longest time for the tasks once nothing is killed any more. The longest wait after interruptions is a minute.
const PATIENCE: Duration = Duration::from_secs(300);

/// Works for most of the time between two kills, and counts in its state.
const SLOW: &str = r#"
import json, time
time.sleep(1.2)
print(json.dumps({"state": {"n": CONTEXT.get("n", 0) + 1}}))
"#;

/// Works for ever as long as there are fewer than three lines, one for each time that it was executed.
const STUCK: &str = r#"
import time
with open("/work/executed.txt", "a") as file:
    file.write("once\n")
with open("/work/executed.txt") as file:
    times = len(file.readlines())
if times < 3:
    time.sleep(600)
print("time", times)
"#;

fn agent(lab: &Lab, name: &str, source: &str, options: &[&str]) {
    let file = format!("{name}.py");
    fs::write(lab.path(&file), source).expect("ours");
    lab.run(&[&["agent", "add", name, "--python", &file], options].concat()).expect(0);
}

fn tasks(web: &Web, query: &str) -> Vec<Value> {
    let page = web.get(&format!("/api/v1/tasks?limit=1000{query}")).expect(200).json();
    page["items"].as_array().expect("a list").clone()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Fires schedules until so many tasks were made in all.
fn fire(web: &Web, names: &[String], fired: &mut usize, until: usize) {
    while *fired < until {
        let path = format!("/api/v1/schedules/{}/run-now", names[*fired % AGENTS]);
        web.post(&path, &json!({})).expect(200);
        *fired += 1;
    }
}

fn sleep_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
}

#[test]
fn kills_of_the_server_while_tasks_run_lose_none_and_cost_no_retry() {
    let kills: u32 = std::env::var("LONGHAUL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5);
    let lab = Lab::empty();
    let names: Vec<String> = (0..AGENTS).map(|number| format!("agent-{number:02}")).collect();
    for name in &names {
        agent(&lab, name, SLOW, &[]);
        lab.run(&["schedule", "add", name, "--agent", name, "--paused", "--retries-max", "0"]).expect(0);
    }
    let mut web = Web::start(&lab);
    let (mut fired, mut met, since) = (0, 0, Instant::now());
    for kill in 1..=kills {
        // A server that was slow to start is given the time for a task to begin, too.
        let at = (since + PERIOD * kill).max(Instant::now() + BEGIN);
        sleep_until(at - BEGIN);
        // The fires are spread over the kills, so that tasks run at each of them.
        fire(&web, &names, &mut fired, (TASKS * kill as usize).div_ceil(kills as usize));
        sleep_until(at);
        met += u32::from(!tasks(&web, "&status=running").is_empty());
        assert!(web.server.kill(), "it ended by itself: {}", web.server.printed());
        web = web.again(&lab);
    }
    println!("{kills} kills in {:?}; tasks ran at {met} of them", since.elapsed());
    assert!(kills == 0 || met * 2 > kills, "tasks ran at {met} of {kills} kills");
    fire(&web, &names, &mut fired, TASKS);
    let since = Instant::now();
    while !(tasks(&web, "&status=pending").is_empty() && tasks(&web, "&status=running").is_empty()) {
        assert!(since.elapsed() < PATIENCE, "{:#?}", tasks(&web, ""));
        std::thread::sleep(Duration::from_millis(200));
    }
    account(&web, &names, kills);
}

/// Each fire is one task that completed once, whatever was killed.
fn account(web: &Web, names: &[String], kills: u32) {
    let all = tasks(web, "");
    assert_eq!(all.len(), TASKS);
    let mut interrupted = 0;
    for task in &all {
        let attempts = task["attempts"].as_array().expect("a list");
        let (last, before) = attempts.split_last().expect("an attempt");
        assert_eq!((&task["status"], &task["retry_count"]), (&json!("completed"), &json!(0)), "{task:#}");
        assert_eq!((&last["success"], &last["interrupted"]), (&json!(true), &json!(false)), "{task:#}");
        assert!(before.iter().all(|attempt| attempt["interrupted"] == true), "{task:#}");
        interrupted += before.len();
    }
    println!("{interrupted} attempts were interrupted");
    assert!(kills == 0 || interrupted > 0);
    for name in names {
        let artifact = web.get(&format!("/api/v1/agents/{name}/artifact")).expect(200).json();
        let each = TASKS / AGENTS;
        assert_eq!(count(&artifact["artifact"]["state"]["n"]), each as u64, "{artifact:#}");
        let counted = (count(&artifact["version"]), count(&artifact["artifact"]["run_count"]));
        assert_eq!((counted, &artifact["conflict_count"]), ((each as u64, each as u64), &json!(0)), "{artifact:#}");
        let counts = web.get(&format!("/api/v1/schedules/{name}")).expect(200).json()["counts"].clone();
        assert_eq!((count(&counts["completed"]), count(&counts["failed"])), (each as u64, 0), "{counts:#}");
        assert_eq!(counts["retries"], 0, "{counts:#}");
    }
}

#[test]
fn a_task_that_is_cut_off_too_often_fails_with_the_reason_and_a_person_retries_it() {
    let lab = Lab::empty();
    fs::create_dir_all(lab.path("work")).expect("ours");
    agent(&lab, "stuck", STUCK, &["--dir", "work:/work"]);
    // Without a wait that the test would have to sit out.
    fs::write(lab.home().join("server.toml"), "[scheduler]\ninterruption_backoff_ms_first = 10\n").expect("ours");
    let options = ["--paused", "--retries-max", "0", "--interruptions-max", "1"];
    lab.run(&[&["schedule", "add", "s", "--agent", "stuck"][..], &options].concat()).expect(0);
    let mut web = Web::start(&lab);
    let id = web.post("/api/v1/schedules/s/run-now", &json!({})).expect(200).json()["id"].clone();
    let path = format!("/api/tasks/{}", id.as_str().expect("a name"));
    let executed = || fs::read_to_string(lab.path("work/executed.txt")).unwrap_or_default().lines().count();
    for times in 1..=2 {
        let since = Instant::now();
        while executed() < times {
            assert!(since.elapsed() < PATIENCE, "not executed {times} times: {:#}", web.get(&path).json());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(web.server.kill(), "it ended by itself: {}", web.server.printed());
        web = web.again(&lab);
    }
    let task = web.get(&path).expect(200).json();
    let reason = "the host ended while it ran, 2 times in a row, and `interruptions_max` is 1";
    assert_eq!((&task["status"], &task["failure_reason"]), (&json!("failed"), &json!("interruptions_exceeded")));
    assert!(task["failure"].as_str().is_some_and(|failure| failure.starts_with(reason)), "{task:#}");
    assert_eq!((&task["interruption_count"], &task["max_interruptions"]), (&json!(2), &json!(1)), "{task:#}");
    let printed = lab.run(&["schedule", "tasks"]).expect(0).stdout;
    assert!(printed.contains(reason), "{printed}");
    let retried = web.post(&format!("{path}/retry"), &json!({})).expect(200).json();
    assert!(retried["message"].as_str().is_some_and(|message| message.contains("by hand")), "{retried:#}");
    let task = web.until(&path, |task| task["status"] == "completed");
    assert_eq!(task["attempts"].as_array().map(Vec::len), Some(3), "{task:#}");
    assert_eq!(task["attempts"][2]["result"]["stdout"], "time 3\n", "{task:#}");
}
