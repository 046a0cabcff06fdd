//! Agents and schedules, as their users have them: the program as a process, killed at each point of its loop, with
//! agents that fail, and with input that must be refused.
//!
//! `LONGHAUL_RUNS=1000` runs one agent so often (default 20). `LONGHAUL_CRASH_ALL=1` kills at each point that is
//! passed. Needs the interpreters of `cargo xtask plugins` and the guests of `cargo xtask plugins --tests`.

use crate::common::executor_cases::{self, Wanted};
use crate::common::fake::Kill;
use crate::common::lab::{Lab, Ran, Started};
use crate::common::{ASKED_CONFIG, refused};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// Longest time for a scheduler to do what a test asks of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Counts in its state, and leaves a line for each time that it was executed.
const COUNTING: &str = r#"
import json
with open("/work/executed.txt", "a") as file:
    file.write("once\n")
print("counted from", CONTEXT.get("n", 0))
print(json.dumps({"state": {"n": CONTEXT.get("n", 0) + 1}}))
"#;

/// Fails as long as there are fewer than so many lines.
const FAILING_FIRST: &str = r#"
import json, sys
with open("/work/executed.txt", "a") as file:
    file.write("once\n")
with open("/work/executed.txt") as file:
    times = len(file.readlines())
print("time", times)
if times <= CONTEXT["config"]["fails"]:
    sys.exit(3)
"#;

struct AgentLab {
    lab: Lab,
}

impl AgentLab {
    fn new() -> Self {
        let lab = Lab::empty();
        fs::create_dir_all(lab.path("work")).expect("ours");
        Self { lab }
    }

    fn agent(&self, name: &str, source: &str, options: &[&str]) {
        let file = format!("{name}.py");
        fs::write(self.lab.path(&file), source).expect("ours");
        self.lab.run(&[&["agent", "add", name, "--python", &file, "--dir", "work:/work"], options].concat()).expect(0);
    }

    fn executed(&self) -> usize {
        fs::read_to_string(self.lab.path("work/executed.txt")).unwrap_or_default().lines().count()
    }

    fn artifact(&self, name: &str) -> Value {
        self.lab.json(&["agent", "artifact", "show", name])["artifact"].clone()
    }

    fn tasks(&self, options: &[&str]) -> Vec<Value> {
        let answer = self.lab.json(&[&["schedule", "tasks"], options].concat());
        answer["items"].as_array().expect("a list").clone()
    }

    fn work(&self, environment: &[(&str, &str)]) -> Started {
        self.lab.start_with(&["schedule", "work"], environment)
    }

    /// A scheduler that has the data directory before another process asks for it.
    fn working(&self) -> Started {
        let mut worker = self.work(&[]);
        worker.wait_for("working");
        worker
    }

    /// Waits until the tasks are as they should be.
    #[track_caller]
    fn wait_until(&self, what: &str, mut holds: impl FnMut(&[Value]) -> bool) -> Vec<Value> {
        let since = Instant::now();
        loop {
            let tasks = self.tasks(&[]);
            if holds(&tasks) {
                return tasks;
            }
            assert!(since.elapsed() < PATIENCE, "not {what}: {tasks:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Has a scheduler work until nothing is open.
    #[track_caller]
    fn work_off(&self) -> Vec<Value> {
        let worker = self.working();
        let tasks = self.wait_until("all over", |tasks| tasks.iter().all(is_over));
        worker.interrupt();
        worker.wait().expect(0);
        tasks
    }

    fn execute(&self, name: &str) -> (Ran, Value) {
        let ran = self.lab.run(&["--json", "agent", "execute", name]);
        let result = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.said()));
        (ran, result)
    }
}

fn is_over(task: &Value) -> bool {
    task["ended_ms"].is_number()
}

fn statuses(tasks: &[Value]) -> BTreeMap<String, String> {
    let text = |task: &Value, field: &str| task[field].as_str().unwrap_or_default().to_owned();
    tasks.iter().map(|task| (text(task, "agent"), text(task, "status"))).collect()
}

#[test]
fn every_case_of_executors_holds() {
    // `longhaul-agents` has the cases of artifacts, `longhaul-schedule` those of retries; limits are measured
    // elsewhere.
    for case in executor_cases::executions() {
        execute_case(&case);
    }
}

fn execute_case(case: &Value) {
    let id = case["id"].as_str().expect("an id");
    let wanted = executor_cases::wanted(case);
    let bench = AgentLab::new();
    let timeout = (case["timeout_s"].as_u64().expect("seconds") * 1_000).to_string();
    let limits = ["--timeout-ms", timeout.as_str()];
    match &wanted {
        Wanted::Runs(source) => bench.agent("case", source, &limits),
        Wanted::Inactive => {
            bench.agent("case", "", &limits);
            bench.lab.run(&["agent", "deactivate", "case"]).expect(0);
        }
        Wanted::Unknown => {}
    }
    let (ran, result) = bench.execute("case");
    let (expected, error) = (&case["expected"], result["error_message"].as_str().unwrap_or_default());
    for (field, value) in expected.as_object().expect("an object") {
        let text = || value.as_str().expect("text");
        let holds = match field.as_str() {
            "success" => result["success"] == *value && (ran.code() == Some(0)) == (*value == json!(true)),
            "stdout_contains" => result["stdout"].as_str().is_some_and(|stdout| stdout.contains(text())),
            "exit_code" => result["exit_code"] == *value,
            "error" | "error_contains" => error.contains(text()),
            "duration_min_s" => result["duration_seconds"].as_f64() >= value.as_f64(),
            "task_status" => bench.tasks(&[])[0]["status"] == *value,
            "context" => result["stdout"].as_str() == Some("{}\n"),
            "original" => true,
            other => panic!("{id}: `{other}` is not known"),
        };
        assert!(holds, "{id}: {field}: {result:#}");
    }
    if matches!(&wanted, Wanted::Runs(source) if source.contains("while True")) {
        let said = (&result["exit_code"], &result["stdout"], error);
        assert_eq!(
            said,
            (&json!(-1), &json!("before\n"), format!("Timeout after {} seconds", case["timeout_s"]).as_str())
        );
    }
    assert_eq!(bench.tasks(&[]).len(), 1, "{id}: each execution is a task");
}

#[test]
fn one_agent_runs_again_and_again_and_what_it_hands_on_stays_as_large_as_it_was() {
    let runs: u64 = std::env::var("LONGHAUL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(20);
    let bench = AgentLab::new();
    bench.agent("counter", COUNTING, &[]);
    let worker = bench.working();
    let mut sizes = Vec::new();
    for run in 1..=runs {
        let (ran, result) = bench.execute("counter");
        assert_eq!(ran.code(), Some(0), "{result:#}");
        if run == 1 || run % 10 == 0 {
            sizes.push(bench.artifact("counter").to_string().len());
        }
    }
    let artifact = bench.artifact("counter");
    assert_eq!((&artifact["run_count"], &artifact["state"]["n"]), (&json!(runs), &json!(runs)), "{artifact:#}");
    assert!(sizes.iter().all(|size| *size < sizes[0] + 100), "{sizes:?}");
    let history = bench.lab.json(&["agent", "artifact", "history", "counter"]);
    assert_eq!(history["items"].as_array().map(Vec::len), Some(usize::try_from(runs.min(20)).unwrap_or(20)));
    assert_eq!(bench.lab.json(&["agent", "tasks", "counter", "--limit", "1"])["total_count"], json!(runs));
    // The owner says of all of it what a command says that has the data directory to itself.
    bench.lab.run(&["schedule", "add", "s", "--agent", "counter", "--cron", "0 0 1 1 *"]).expect(0);
    let task = bench.tasks(&["--limit", "1"])[0]["id"].as_str().expect("a name").to_owned();
    let questions: [&[&str]; 6] = [
        &["agent", "show", "counter"],
        &["agent", "list"],
        &["schedule", "show", "s"],
        &["schedule", "list"],
        &["schedule", "tasks", "--limit", "1"],
        &["agent", "artifact", "history", "counter"],
    ];
    let whole = bench.lab.json(&["schedule", "tasks", "--task", &task]);
    assert_eq!(whole["attempts"][0]["result"]["success"], true, "{whole:#}");
    let over_socket = questions.map(|question| bench.lab.json(question));
    worker.interrupt();
    worker.wait().expect(0);
    assert_eq!(questions.map(|question| bench.lab.json(question)), over_socket);
    println!("{runs} runs; bytes of what is handed on: {sizes:?}");
}

#[test]
fn a_kill_at_any_point_of_the_loop_neither_loses_a_run_nor_counts_it_twice() {
    let setup = || {
        let bench = AgentLab::new();
        bench.agent("counter", COUNTING, &[]);
        bench.lab.run(&["schedule", "add", "s", "--agent", "counter", "--paused"]).expect(0);
        bench.lab.run(&["schedule", "run-now", "s"]).expect(0);
        bench
    };
    let points = {
        let bench = setup();
        let log = bench.lab.path("points");
        let mut worker = bench.work(&[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]);
        worker.wait_for("working");
        bench.wait_until("all over", |tasks| tasks.iter().all(is_over));
        worker.interrupt();
        worker.wait().expect(0);
        let points = fs::read_to_string(&log).expect("points were reached");
        points.lines().filter(|point| !point.starts_with("compile.")).map(str::to_owned).collect::<Vec<_>>()
    };
    let chosen = choose(&points);
    for expected in ["agents.before-run:1", "agents.ran:1", "agents.before-end:1", "agents.ended:1"] {
        assert!(chosen.contains(expected), "{chosen:?}");
    }
    let mut kills = 0;
    for point in &chosen {
        let bench = setup();
        let mut worker = bench.work(&[("LONGHAUL_CRASH_AT", point)]);
        let since = Instant::now();
        // A point that is passed at the end is reached by ending it.
        while worker.is_running() && since.elapsed() < Duration::from_secs(20) {
            if since.elapsed() > Duration::from_secs(3) {
                worker.interrupt();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        kills += u32::from(worker.wait().was_killed());
        let tasks = bench.work_off();
        assert_eq!(statuses(&tasks), BTreeMap::from([("counter".to_owned(), "completed".to_owned())]), "{point}");
        let artifact = bench.artifact("counter");
        let counted = (&artifact["run_count"], &artifact["state"]["n"], &artifact["version"]);
        assert_eq!(counted, (&json!(1), &json!(1), &json!(1)), "{point}: {artifact:#}");
        let id = tasks[0]["id"].as_str().expect("a name");
        let whole = bench.lab.json(&["schedule", "tasks", "--task", id]);
        let attempts = whole["attempts"].as_array().expect("a list");
        assert!(bench.executed() <= attempts.len() && attempts.len() <= 2, "{point}: {whole:#}");
        if let [first, _] = &attempts[..] {
            assert_eq!(first["error"], "the host ended while it ran", "{point}: {whole:#}");
        }
        let counts = &bench.lab.json(&["schedule", "show", "s"])["counts"];
        assert_eq!((&counts["tasks"], &counts["completed"]), (&json!(1), &json!(1)), "{point}: {counts}");
    }
    println!("killed at {kills} of {} points", chosen.len());
    assert!(kills >= 4, "{kills} of {chosen:?}");
}

/// The first and the last time of each point, or all.
fn choose(points: &[String]) -> BTreeSet<String> {
    if std::env::var_os("LONGHAUL_CRASH_ALL").is_some() {
        return points.iter().cloned().collect();
    }
    let name = |point: &str| point.rsplit_once(':').map_or(String::new(), |(name, _)| name.to_owned());
    let last: BTreeMap<String, String> = points.iter().map(|point| (name(point), point.clone())).collect();
    last.into_iter().flat_map(|(name, last)| [format!("{name}:1"), last]).collect()
}

#[test]
fn a_task_that_failed_is_tried_again_behind_a_kill() {
    let bench = AgentLab::new();
    bench.agent("late", FAILING_FIRST, &["--config", r#"{"fails": 1}"#]);
    bench.lab.run(&["schedule", "add", "s", "--agent", "late", "--paused"]).expect(0);
    bench.lab.run(&["schedule", "run-now", "s"]).expect(0);
    let mut worker = bench.working();
    let tasks = bench.wait_until("waiting for its retry", |tasks| tasks[0]["attempts"][0]["success"].is_boolean());
    assert_eq!(tasks[0]["status"], "pending", "{tasks:#?}");
    assert!(worker.kill());
    worker.wait();
    let tasks = bench.work_off();
    assert_eq!((&tasks[0]["status"], &tasks[0]["retry_count"]), (&json!("completed"), &json!(1)), "{tasks:#?}");
    assert_eq!(bench.executed(), 2);
    let id = tasks[0]["id"].as_str().expect("a name");
    let whole = bench.lab.json(&["schedule", "tasks", "--task", id]);
    assert_eq!(whole["attempts"][0]["result"]["exit_code"], 3, "{whole:#}");
    assert_eq!(whole["attempts"][1]["result"]["stdout"], "time 2\n", "{whole:#}");
    assert_eq!(bench.artifact("late")["run_count"], 1);
}

#[test]
fn a_task_that_fails_each_time_has_four_attempts_and_can_be_seen() {
    let bench = AgentLab::new();
    bench.agent("never", "import sys\nprint('x')\nsys.exit(1)", &[]);
    bench.lab.run(&["schedule", "add", "s", "--agent", "never", "--paused", "--retries-max", "1"]).expect(0);
    bench.lab.run(&["schedule", "run-now", "s"]).expect(0);
    let tasks = bench.work_off();
    assert_eq!((&tasks[0]["status"], &tasks[0]["retry_count"]), (&json!("failed"), &json!(1)), "{tasks:#?}");
    let id = tasks[0]["id"].as_str().expect("a name");
    assert_eq!(tasks[0]["failure_reason"], "retries_exceeded", "{tasks:#?}");
    assert_eq!(tasks[0]["failure"], "it ended with exit code 1", "{tasks:#?}");
    assert_eq!(bench.tasks(&["--status", "failed"]).len(), 1);
    assert_eq!(bench.tasks(&["--status", "completed"]).len(), 0);
    let artifact = bench.artifact("never");
    assert_eq!(
        (&artifact["run_count"], &artifact["state"]["recent_errors"][0]["error"]),
        (&json!(1), &json!("it ended with exit code 1"))
    );
    // A person may always retry, however often it failed.
    for attempts in [3, 4] {
        bench.lab.run(&["schedule", "retry", id]).expect(0);
        let tasks = bench.work_off();
        assert_eq!(tasks[0]["attempts"].as_array().map(Vec::len), Some(attempts), "{tasks:#?}");
        assert_eq!(tasks[0]["status"], "failed", "{tasks:#?}");
    }
}

#[test]
fn agents_run_after_each_other_as_their_ends_say() {
    let bench = AgentLab::new();
    bench.agent("first", COUNTING, &[]);
    bench.agent("then", "print(1)", &[]);
    bench.agent("otherwise", "print(1)", &[]);
    bench.agent("broken", "raise ValueError('x')", &[]);
    bench.agent("rescue", "print(1)", &[]);
    for args in [
        &["s", "--agent", "first", "--cron", "0 0 1 1 *", "--timezone", "Europe/Berlin"][..],
        &["1", "--agent", "then", "--after", "first"],
        &["2", "--agent", "otherwise", "--after", "first", "--when", "failure"],
        &["3", "--agent", "broken", "--after", "then", "--when", "always", "--retries-max", "0"],
        &["4", "--agent", "rescue", "--after", "broken", "--when", "failure"],
    ] {
        bench.lab.run(&[&["schedule", "add"], args].concat()).expect(0);
    }
    bench.lab.run(&["schedule", "run-now", "s"]).expect(0);
    let worker = bench.working();
    let tasks = bench.wait_until("four over", |tasks| tasks.len() == 4 && tasks.iter().all(is_over));
    worker.interrupt();
    worker.wait().expect(0);
    let expected = [("first", "completed"), ("then", "completed"), ("broken", "failed"), ("rescue", "completed")];
    let expected: BTreeMap<String, String> =
        expected.map(|(agent, status)| (agent.to_owned(), status.to_owned())).into();
    assert_eq!(statuses(&tasks), expected);
    let circle = bench.lab.run(&["schedule", "add", "5", "--agent", "first", "--after", "rescue"]);
    refused(&circle, &["rescue -> first -> then -> broken", "take one `after` away"]);
    let shown = bench.lab.json(&["schedule", "show", "s", "--fires", "3"]);
    assert_eq!(shown["next_ms"].as_array().map(Vec::len), Some(3), "{shown}");
}

#[test]
fn an_ask_that_a_kill_cut_off_is_gone_on_with_and_not_asked_twice() {
    let bench = AgentLab::new();
    let project = bench.lab.project();
    fs::create_dir_all(&project).expect("ours");
    fs::write(project.join("longhaul.toml"), ASKED_CONFIG.replace("{server}", &bench.lab.fake.address)).expect("ours");
    bench.lab.run(&["agent", "add", "asker", "--ask", "do alpha; put; put"]).expect(0);
    bench.lab.run(&["schedule", "add", "s", "--agent", "asker", "--paused"]).expect(0);
    bench.lab.run(&["schedule", "run-now", "s"]).expect(0);
    let worker = bench.work(&[]);
    bench.lab.fake.kill_at(Kill { pid: worker.pid(), kind: "model", number: 2, happens: true });
    assert!(worker.wait().was_killed());
    bench.lab.fake.settle();
    let tasks = bench.work_off();
    assert_eq!(tasks[0]["status"], "completed", "{tasks:#?}");
    let id = tasks[0]["id"].as_str().expect("a name");
    let whole = bench.lab.json(&["schedule", "tasks", "--task", id]);
    assert_eq!(whole["attempts"].as_array().map(Vec::len), Some(1), "{whole:#}");
    let runs = bench.lab.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(whole["attempts"][0]["run"], json!(runs[0]), "{whole:#}");
    assert!(
        whole["attempts"][0]["result"]["stdout"].as_str().is_some_and(|text| text.starts_with("alpha ")),
        "{whole:#}"
    );
    let artifact = bench.artifact("asker");
    assert_eq!(artifact["run_count"], 1, "{artifact:#}");
    // The next one is told what this one left, and is a run of its own.
    let (ran, result) = bench.execute("asker");
    assert_eq!(ran.code(), Some(0), "{result:#}");
    assert_eq!(bench.lab.runs().len(), 2);
    let asked = bench.lab.fake.last_request().to_string();
    assert!(asked.contains("previous_output"), "{asked}");
}

#[test]
fn a_program_and_javascript_are_agents_too_and_their_code_is_kept() {
    let bench = AgentLab::new();
    let lab = &bench.lab;
    fs::write(lab.path("a.js"), "console.log(JSON.stringify({state: {n: (CONTEXT.n || 0) + 2}}))").expect("ours");
    lab.run(&["agent", "add", "js", "--js", "a.js", "--description", "two at a time"]).expect(0);
    for _ in 0..2 {
        assert_eq!(bench.execute("js").1["success"], json!(true));
    }
    assert_eq!(bench.artifact("js")["state"]["n"], 4);
    let hello = "(module (import \"wasi_snapshot_preview1\" \"fd_write\" (func $w (param i32 i32 i32 i32) (result i32))) \
        (memory (export \"memory\") 1) (data (i32.const 16) \"hello\\n\") (func (export \"_start\") \
        (i32.store (i32.const 0) (i32.const 16)) (i32.store (i32.const 4) (i32.const 6)) \
        (drop (call $w (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))";
    fs::write(lab.path("a.wasm"), wat::parse_str(hello).expect("a module")).expect("ours");
    lab.run(&["agent", "add", "wasm", "--wasm", "a.wasm"]).expect(0);
    fs::remove_file(lab.path("a.wasm")).expect("ours");
    assert_eq!(bench.execute("wasm").1["stdout"], "hello\n");
    let listed = lab.json(&["agent", "list"]);
    assert_eq!((&listed["total"], &listed["items"][0]["description"]), (&json!(2), &json!("two at a time")));
    let shown = lab.run(&["agent", "show", "js"]).expect(0).stdout;
    assert!(shown.contains("version 2, after 2 runs"), "{shown}");
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let bench = AgentLab::new();
    let lab = &bench.lab;
    bench.agent("a", "print(1)", &[]);
    let long = "x".repeat(65);
    let big = json!({"n": "x".repeat(1 << 20)}).to_string();
    fs::write(lab.path("big.json"), &big).expect("ours");
    fs::write(lab.path("bad.py"), b"print('\xff')").expect("ours");
    for (args, words) in [
        (&["agent", "add", "a", "--python", "a.py"][..], &["there is an agent `a` already", "agent update a"][..]),
        (&["agent", "add", "b", "--python", "bad.py"], &["not UTF-8"]),
        (&["agent", "add", "b", "--python", "/dev/zero"], &["is not a file"]),
        (&["agent", "add", "b", "--python", "nowhere.py"], &["nowhere.py"]),
        (&["agent", "add", "b"], &["there is no code"]),
        (&["agent", "add", "b", "--python", "a.py", "--timeout-ms", "0"], &["`timeout_ms` is 0"]),
        (&["agent", "add", "b", "--python", "a.py", "--config", "{"], &["--config is not JSON"]),
        (&["agent", "add", "b", "--ask", " "], &["the goal is empty"]),
        (&["agent", "update", "a"], &["nothing is to be changed"]),
        (&["agent", "update", "a", "--description", "x", "--version", "9"], &["has version 1"]),
        (&["agent", "update", "b", "--description", "x"], &["there is no agent `b`", "agent list"]),
        (&["agent", "artifact", "set", "a", "--state", "{"], &["--state is not JSON"]),
        (&["agent", "artifact", "set", "a", "--file", "big.json"], &["`state` has", "1048576"]),
        (&["agent", "artifact", "set", "a", "--state", "1", "--version", "3"], &["has version 0"]),
        (&["agent", "artifact", "show", "a", "--version", "3"], &["there is no version 3"]),
        (&["agent", "execute", "a", "--input", "{"], &["--input is not JSON"]),
        (&["agent", "remove", "b"], &["there is no agent `b`"]),
        (&["schedule", "add", "s", "--agent", "b"], &["there is no agent `b`", "longhaul agent add b"]),
        (&["schedule", "add", "s", "--agent", "a", "--cron", "60 * * * *"], &["invalid cron expression"]),
        (&["schedule", "add", "s", "--agent", "a", "--cron", "@daily", "--timezone", "Mars/X"], &["no time zone"]),
        (&["schedule", "add", "s", "--agent", "a", "--every", "0s"], &["an interval is 1 second"]),
        (&["schedule", "add", "s", "--agent", "a", "--retries-max", "101"], &["`retries_max` is 101"]),
        (&["schedule", "add", "s", "--agent", "a", "--queue-max", "0"], &["`queue_max` is 0", "1 to 10000"]),
        (&["schedule", "add", "s", "--agent", "a", "--backoff-ms-first", "0"], &["`backoff_ms_first` is 0"]),
        (&["schedule", "add", "s", "--agent", "a", "--backoff-factor", "11"], &["`backoff_factor` is 11"]),
        (&["schedule", "add", "s", "--agent", "a", "--interruptions-max", "101"], &["`interruptions_max` is 101"]),
        (&["schedule", "add", "by-hand", "--agent", "a"], &["choose another name"]),
        (&["schedule", "show", "s"], &["there is no schedule `s`", "schedule list"]),
        (&["schedule", "run-now", "s"], &["there is no schedule `s`"]),
        (&["schedule", "retry", "t-0"], &["there is no task `t-0`", "schedule tasks"]),
        (&["schedule", "tasks", "--task", "\u{1b}[2J"], &["there is no task `\\u001b[2J`"]),
        (&["schedule", "status", "--at-once", "0"], &["say 1 to 1000"]),
    ] {
        refused(&lab.run(args), words);
    }
    for args in [
        &["agent", "add", "../x", "--python", "a.py"][..],
        &["agent", "add", &long, "--python", "a.py"],
        &["agent", "add", "b", "--python", "a.py", "--run"],
        &["schedule", "add", "s", "--agent", "a", "--cron", "@daily", "--every", "1m"],
        &["schedule", "add", "s", "--agent", "a", "--every", "soon"],
        &["schedule", "tasks", "--status", "lost"],
    ] {
        assert_eq!(lab.run(args).code(), Some(2), "{args:?}");
    }
    assert_eq!(lab.json(&["agent", "list"])["total"], 1);
    assert_eq!(lab.json(&["schedule", "list"])["total"], 0);
}

#[test]
fn a_schedule_is_seen_switched_off_and_on_and_removed() {
    let bench = AgentLab::new();
    let lab = &bench.lab;
    bench.agent("a", "print(1)", &[]);
    let added = lab.run(&["schedule", "add", "s", "--agent", "a", "--every", "10m"]).expect(0);
    assert!(added.stdout.contains("schedule s: is there; next 20"), "{}", added.said());
    assert!(added.stderr.contains("no scheduler works now"), "{}", added.said());
    refused(&lab.run(&["schedule", "add", "s", "--agent", "a"]), &["already", "--replace"]);
    lab.run(&["schedule", "add", "s", "--agent", "a", "--replace"]).expect(0);
    assert_eq!(lab.json(&["schedule", "show", "s"])["when"], "every 60 min");
    refused(&lab.run(&["agent", "remove", "a"]), &["is run by: s", "schedule remove"]);
    assert_eq!(lab.json(&["schedule", "pause", "s"])["next_ms"], json!([]));
    assert_eq!(lab.json(&["schedule", "resume", "s"])["next_ms"].as_array().map(Vec::len), Some(5));
    lab.run(&["schedule", "run-now", "s"]).expect(0);
    // Its queue holds one task, and tells the fire that it refuses.
    let options = ["--every", "60m", "--queue-max", "1", "--backoff-ms-first", "700000", "--replace"];
    lab.run(&[&["schedule", "add", "s", "--agent", "a"][..], &options].concat()).expect(0);
    let limit = "1 of at most 1 tasks of the schedule wait (`queue_max`)";
    refused(&lab.run(&["schedule", "run-now", "s"]), &["the queue is full", limit]);
    let shown = lab.json(&["schedule", "show", "s"]);
    assert_eq!(
        (&shown["last_skipped"]["reason"], &shown["last_skipped"]["detail"]),
        (&json!("queue_full"), &json!(limit))
    );
    assert_eq!((&shown["backoff_ms_first"], &shown["backoff_ms_max"]), (&json!(700_000), &json!(700_000)));
    for args in [&["schedule", "list"][..], &["schedule", "show", "s"], &["schedule", "skipped", "s"]] {
        let printed = lab.run(args).expect(0).stdout;
        assert!(printed.contains(&format!("queue_full ({limit})")), "{args:?}: {printed}");
    }
    let status = lab.run(&["schedule", "status"]).expect(0).stdout;
    assert!(status.contains("1 of at most 10000 wait"), "{status}");
    lab.run(&["schedule", "remove", "s"]).expect(0);
    let tasks = bench.tasks(&[]);
    assert_eq!((&tasks[0]["status"], &tasks[0]["attempts"]), (&json!("failed"), &json!([])), "{tasks:#?}");
    assert_eq!(lab.json(&["schedule", "skipped", "s"])["items"][0]["reason"], "withdrawn");
    lab.run(&["agent", "remove", "a"]).expect(0);
    // A scheduler that is told for how long ends by itself, and is the only one.
    lab.run(&["schedule", "work", "--for", "1s"]).expect(0);
    let first = bench.working();
    refused(&lab.run(&["schedule", "work"]), &["another longhaul owns"]);
    first.interrupt();
    first.wait().expect(0);
}
