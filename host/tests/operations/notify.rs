//! Notifications: a run that asks, parks, fails or completes, and a task of a schedule that has failed for good, are
//! reported once, on the configured channels, and not more often than their limit allows.
//!
//! Tasks need the interpreters of `cargo xtask plugins`.

use crate::common;
use crate::common::gated;
use crate::common::lab::{Lab, Started};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longest time for a scheduler to do what a test asks of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A project with one call that asks, and this `[notify]`, in which `{notifications}` is a file beside the project.
fn lab(calls: &Value, notify: &str) -> Lab {
    let lab = gated::lab(calls, &json!([]));
    let notify = notify.replace("{notifications}", &lab.path("notifications").display().to_string());
    change(&lab, |text| format!("{text}\n[notify]\n{notify}\n"));
    lab
}

/// Changes `longhaul.toml` and commits it.
fn change(lab: &Lab, change: impl FnOnce(String) -> String) {
    let path = lab.project().join("longhaul.toml");
    let text = std::fs::read_to_string(&path).expect("ours");
    std::fs::write(&path, change(text)).expect("ours");
    lab.git(&["commit", "-aqm", "configure"]);
}

const COMMAND: &str = "command = [\"sh\", \"-c\", \"cat >> '{notifications}'\"]";

/// The notifications that the command received.
fn notifications(lab: &Lab) -> Vec<Value> {
    let text = std::fs::read_to_string(lab.path("notifications")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn occasions(lab: &Lab) -> Vec<String> {
    notifications(lab).iter().map(|notification| notification["occasion"].as_str().expect("text").to_owned()).collect()
}

/// `look` is denied by the configuration, so no call but `post` can ask.
fn secret() -> Value {
    json!([gated::post("hunter2")])
}

#[test]
fn a_command_is_told_what_to_type_and_nothing_that_an_agent_wrote() {
    let lab = lab(&secret(), COMMAND);
    lab.run(&["run"]).expect(5);
    let id = gated::the_open(&lab);
    let told = notifications(&lab);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["occasion"], &told[0]["project"]), (&json!("asks"), &json!("kept")));
    assert_eq!(told[0]["command"], format!("longhaul approvals answer {id} ANSWER"));
    assert!(!told[0].to_string().contains("hunter2") && told[0].get("text").is_none(), "{told:?}");
    gated::answer(&lab, &id, "y").expect(0);
    lab.run(&["resume"]).expect(0);
    assert_eq!(occasions(&lab), ["asks", "completes"]);
    lab.run(&["status"]).expect(0);
    assert_eq!(notifications(&lab).len(), 2, "nothing is told twice");
}

#[test]
fn texts_are_told_where_the_operator_wants_them_and_occasions_as_they_were_chosen() {
    let lab = lab(&secret(), &format!("{COMMAND}\ntexts = true\non = [\"asks\"]"));
    lab.run(&["run"]).expect(5);
    gated::answer(&lab, &gated::the_open(&lab), "y").expect(0);
    lab.run(&["resume"]).expect(0);
    let told = notifications(&lab);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0]["text"].as_str().is_some_and(|text| text.contains("hunter2")), "{told:?}");
}

#[test]
fn a_run_that_ends_without_all_that_it_was_asked_for_has_failed() {
    let lab = lab(&json!([]), COMMAND);
    let goal = std::fs::read_to_string(lab.project().join("GOAL.md")).expect("ours");
    let goal = goal.replace("criterion: it is fine", "check: fine");
    std::fs::write(lab.project().join("GOAL.md"), goal).expect("ours");
    let never = "[checks]\nfine = { argv = [\"false\"] }";
    change(&lab, |text| text.replace("[evaluator]\nplugin = \"lenient\"", never));
    lab.run(&["run"]).expect(3);
    assert_eq!(occasions(&lab), ["fails"]);
}

#[test]
fn more_than_anybody_reads_is_not_sent_and_the_next_letter_says_so() {
    let lab = lab(&json!([gated::post("a"), gated::post("b")]), &format!("{COMMAND}\nper_hour_max = 1"));
    lab.run(&["run"]).expect(5);
    gated::answer(&lab, &gated::the_open(&lab), "n").expect(0);
    lab.run(&["resume"]).expect(5);
    assert_eq!(notifications(&lab).len(), 1);
    change(&lab, |text| text.replace("per_hour_max = 1", "per_hour_max = 9"));
    gated::answer(&lab, &gated::the_open(&lab), "n").expect(0);
    lab.run(&["resume"]).expect(0);
    let told = notifications(&lab);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!((&told[1]["occasion"], &told[1]["suppressed"]), (&json!("completes"), &json!(1)));
}

/// Heads and bodies of requests.
type Heard = Arc<Mutex<Vec<(String, String)>>>;

/// A server that answers with these statuses, one after the other, and keeps what it heard.
fn server(statuses: &'static [&'static str]) -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("ours").to_string();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    std::thread::spawn(move || {
        for status in statuses {
            let (stream, _) = listener.accept().expect("a caller");
            let mut reader = BufReader::new(stream.try_clone().expect("ours"));
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                let lower = line.to_lowercase();
                if let Some(count) = lower.strip_prefix("content-length:") {
                    length = count.trim().parse().expect("a number");
                }
                if line.trim().is_empty() {
                    break;
                }
                head.push_str(&lower);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            keep.lock().expect("ours").push((head, String::from_utf8(body).expect("text")));
            let _ = write!(
                &stream,
                "HTTP/1.1 {status}\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
        }
    });
    (address, heard)
}

#[test]
fn a_webhook_that_fails_is_tried_again_under_the_same_key() {
    let (address, heard) = server(&["500 No", "302 Elsewhere", "204 Fine"]);
    let notify = format!("webhook = \"http://{address}/hook\"\nretry_wait_ms = 1\non = [\"asks\"]");
    let lab = lab(&secret(), &notify);
    lab.run(&["run"]).expect(5);
    // The process ends after an attempt; the next ones go on with it.
    for _ in 0..20 {
        if heard.lock().expect("ours").len() == 3 {
            break;
        }
        lab.run(&["resume"]).expect(5);
    }
    let heard = heard.lock().expect("ours").clone();
    assert_eq!(heard.len(), 3);
    let key = |head: &str| head.lines().find(|line| line.starts_with("idempotency-key:")).expect("a key").to_owned();
    assert!(
        heard.iter().all(|(head, _)| key(head) == key(&heard[0].0) && head.starts_with("post /hook ")),
        "{heard:?}"
    );
    let body: Value = serde_json::from_str(&heard[2].1).expect("JSON");
    assert_eq!(body["occasion"], "asks");
    assert!(!heard[2].1.contains("hunter2"));
}

#[test]
fn a_webhook_is_reached_without_the_proxies_of_the_environment() {
    let (address, heard) = server(&["204 Fine"]);
    let (proxy, asked) = server(&["204 Fine"]);
    let lab = lab(&secret(), &format!("webhook = \"http://{address}/hook\"\non = [\"asks\"]"));
    let proxy = format!("http://{proxy}");
    let environment = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].map(|name| (name, proxy.as_str()));
    lab.start_with(&["run"], &environment).wait().expect(5);
    assert_eq!(heard.lock().expect("ours").len(), 1);
    assert!(asked.lock().expect("ours").is_empty(), "the proxy got the letter");
}

#[test]
fn a_mailbox_gets_a_message_by_the_machines_own_mail_program() {
    let lab = lab(
        &secret(),
        "[notify.email]\nto = [\"ops@b.example\"]\nfrom = \"l@b.example\"\nsendmail = [\"{notifications}.sh\", \"-t\"]",
    );
    let program = lab.path("notifications.sh");
    let message = lab.path("message");
    std::fs::write(
        &program,
        format!("#!/bin/sh\necho \"$@\" > '{0}.args'\ncat > '{0}'\nenv > '{0}.env'\n", message.display()),
    )
    .expect("ours");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("ours");
    lab.start_with(&["run"], &[("SECRET_KEY", "hunter3")]).wait().expect(5);
    let text = std::fs::read_to_string(&message).expect("a message");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    for line in
        ["From: l@b.example", "To: ops@b.example", "Subject: longhaul: kept asks for an answer", "Message-ID: <n-"]
    {
        assert!(head.contains(line), "{line}: {text}");
    }
    assert!(body.contains("longhaul approvals answer a-") && !text.contains("hunter2"), "{text}");
    let read = |what: &str| std::fs::read_to_string(format!("{}.{what}", message.display())).expect("ours");
    assert_eq!(read("args").trim(), "-t");
    assert!(!read("env").contains("hunter3"), "the environment may hold keys");
}

#[test]
fn a_kill_around_a_letter_loses_none_and_repeats_it_under_its_id() {
    for (point, times) in [("notify.before-send:1", 1), ("notify.after-send:1", 2)] {
        let lab = lab(&secret(), &format!("{COMMAND}\nretry_wait_ms = 1\non = [\"asks\"]"));
        let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        assert!(killed.was_killed(), "{point}: {}", killed.said());
        lab.run(&["resume"]).expect(5);
        lab.run(&["resume"]).expect(5);
        let told = notifications(&lab);
        assert_eq!(told.len(), times, "{point}: {told:?}");
        assert!(told.iter().all(|notification| notification["id"] == told[0]["id"]), "{told:?}");
    }
}

#[test]
fn what_tells_nobody_is_refused_with_its_line() {
    let ran = lab(&json!([]), "per_hour_max = 3").run(&["run"]);
    common::refused(&ran, &["[notify] has no channel"]);
}

/// A data directory with this `[notify]`, and an agent in Python with a schedule that fires by hand alone.
fn scheduled(notify: &str, source: &str, retries_max: &str) -> Lab {
    let lab = Lab::empty();
    std::fs::create_dir_all(lab.home()).expect("ours");
    std::fs::set_permissions(lab.home(), std::fs::Permissions::from_mode(0o700)).expect("ours");
    let notify = notify.replace("{notifications}", &lab.path("notifications").display().to_string());
    std::fs::write(lab.home().join("server.toml"), format!("[notify]\n{notify}\n")).expect("ours");
    std::fs::write(lab.path("agent.py"), source).expect("ours");
    lab.run(&["agent", "add", "a", "--python", "agent.py", "--timeout-ms", "2000"]).expect(0);
    lab.run(&["schedule", "add", "s", "--agent", "a", "--paused", "--retries-max", retries_max]).expect(0);
    lab
}

const FAILS: &str = "import sys\nprint('hunter2', file=sys.stderr)\nsys.exit(1)";

fn scheduler(lab: &Lab) -> Started {
    let mut worker = lab.start(&["schedule", "work"]);
    worker.wait_for("working");
    worker
}

#[track_caller]
fn wait_until(worker: &mut Started, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(worker.is_running() && since.elapsed() < PATIENCE, "{}", worker.printed());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Has a scheduler work until so many notifications were sent, and end then.
#[track_caller]
fn told_by_a_scheduler(lab: &Lab, times: usize) -> Vec<Value> {
    let mut worker = scheduler(lab);
    wait_until(&mut worker, || notifications(lab).len() >= times);
    worker.interrupt();
    worker.wait().expect(0);
    notifications(lab)
}

fn failed(lab: &Lab) -> usize {
    lab.json(&["schedule", "tasks", "--status", "failed"])["items"].as_array().expect("a list").len()
}

#[test]
fn a_task_that_failed_for_good_is_told_in_the_data_directory_with_the_limit_and_what_to_type() {
    let command = "command = [\"sh\", \"-c\", \"pwd > '{notifications}.at'; cat >> '{notifications}'\"]";
    let lab = scheduled(command, "print('hunter2')\nwhile True: pass", "1");
    lab.run(&["schedule", "run-now", "s"]).expect(0);
    let told = told_by_a_scheduler(&lab, 1);
    assert_eq!(told.len(), 1, "{told:?}");
    let tasks = lab.json(&["schedule", "tasks"])["items"].clone();
    let id = tasks[0]["id"].as_str().expect("a name");
    for (field, value) in [
        ("occasion", json!("fails")),
        ("task", json!(id)),
        ("agent", json!("a")),
        ("schedule", json!("s")),
        ("attempts", json!(2)),
        ("limit", json!("timeout_ms")),
        ("command", json!(format!("longhaul schedule tasks --task {id}"))),
    ] {
        assert_eq!(told[0][field], value, "{field}: {told:?}");
    }
    assert!(told[0].get("text").is_none() && told[0].get("run").is_none(), "{told:?}");
    let at = std::fs::read_to_string(lab.path("notifications.at")).expect("it ran");
    assert_eq!(std::path::Path::new(at.trim()), lab.home().canonicalize().expect("ours"));
    let words = lab.run(&["schedule", "tasks", "--task", id]).expect(0);
    assert!(words.stdout.contains(id), "{}", words.said());
    lab.run(&["agent", "execute", "a"]);
    assert_eq!(told_by_a_scheduler(&lab, 1).len(), 1, "nothing is told twice, and nothing of what was run by hand");
}

#[test]
fn more_tasks_than_anybody_reads_of_are_not_told() {
    let lab = scheduled(&format!("{COMMAND}\nper_hour_max = 1"), FAILS, "0");
    let mut worker = scheduler(&lab);
    for count in 1..=2 {
        lab.run(&["schedule", "run-now", "s"]).expect(0);
        wait_until(&mut worker, || failed(&lab) == count && !notifications(&lab).is_empty());
    }
    worker.interrupt();
    worker.wait().expect(0);
    assert_eq!(notifications(&lab).len(), 1);
}

#[test]
fn a_kill_around_the_letter_of_a_task_loses_none_and_repeats_it_under_its_id() {
    for (point, times) in [("agents.before-end:1", 1), ("notify.before-send:1", 1), ("notify.after-send:1", 2)] {
        let lab = scheduled(&format!("{COMMAND}\nretry_wait_ms = 1"), FAILS, "0");
        lab.run(&["schedule", "run-now", "s"]).expect(0);
        let killed = lab.start_with(&["schedule", "work"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        assert!(killed.was_killed(), "{point}: {}", killed.said());
        let told = told_by_a_scheduler(&lab, times);
        assert_eq!(told.len(), times, "{point}: {told:?}");
        assert!(told.iter().all(|notification| notification["id"] == told[0]["id"]), "{told:?}");
        assert_eq!(failed(&lab), 1, "{point}");
    }
}

#[test]
fn a_data_directory_that_tells_nobody_has_no_server_and_its_tasks_end_all_the_same() {
    let lab = scheduled("per_hour_max = 3", FAILS, "0");
    let ran = lab.run(&["serve", "--listen", "127.0.0.1:0"]);
    common::refused(&ran, &["server.toml", "[notify] has no channel"]);
    let mut worker = scheduler(&lab);
    for count in 1..=2 {
        lab.run(&["schedule", "run-now", "s"]).expect(0);
        wait_until(&mut worker, || failed(&lab) == count);
    }
    worker.interrupt();
    let ran = worker.wait().expect(0);
    assert_eq!(ran.said().matches("has no channel").count(), 1, "said once: {}", ran.said());
}
