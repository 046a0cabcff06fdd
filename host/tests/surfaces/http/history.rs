//! Lists, costs and metrics over a long history, while agents work. `LONGHAUL_RUNS=10000` asks for so many runs and 20
//! agents, and holds each request to its time, which a build of the profile `release` keeps; without it there are a few
//! runs, and times are printed alone.

use crate::common::ASKED_CONFIG;
use crate::common::lab::Lab;
use crate::common::web::Web;
use longhaul_core::store::{Batch, Key, Row, Store as _, Table};
use longhaul_store::{RedbStore, StoreOptions};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest time of 99 of 100 requests.
const P99_MAX: Duration = Duration::from_millis(50);

/// Runs that are made in one transaction.
const TOGETHER: u64 = 250;

/// Requests of each path.
const REQUESTS: usize = 200;

struct History {
    runs: u64,
    agents: u32,
    is_long: bool,
}

impl History {
    fn wanted() -> Self {
        let runs = std::env::var("LONGHAUL_RUNS").ok().and_then(|runs| runs.parse().ok());
        runs.map_or(Self { runs: 200, agents: 2, is_long: false }, |runs| Self { runs, agents: 20, is_long: true })
    }
}

#[test]
fn lists_costs_and_metrics_answer_soon_however_long_the_history_is() {
    let history = History::wanted();
    let lab = Lab::empty();
    fs::create_dir_all(lab.project()).expect("ours");
    fs::write(lab.project().join("longhaul.toml"), ASKED_CONFIG.replace("{server}", &lab.fake.address)).expect("ours");
    fs::create_dir_all(lab.home()).expect("ours");
    fs::set_permissions(lab.home(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    let rates = "[server]\nrequests_per_second = 100000\nrequests_burst = 100000\n";
    fs::write(lab.home().join("server.toml"), rates).expect("ours");
    fs::write(lab.home().join("resources.toml"), format!("runs_max = {}\n", history.agents)).expect("ours");
    let mut web = Web::start(&lab);
    let first = ask(&web, &lab, 2);
    web.until_status(&first, "completed");
    let before = web.get("/api/v1/costs").expect(200).json();
    web.server.interrupt();
    while web.server.is_running() {
        std::thread::sleep(Duration::from_millis(20));
    }
    multiply(&lab, &first, history.runs);

    let web = web.again(&lab);
    lab.fake.model_takes(Duration::from_millis(200));
    let costs = web.get("/api/v1/costs?limit=1").expect(200).json();
    assert_eq!(costs["total"], history.runs, "each run is there: {costs:#}");
    let tokens = |costs: &Value| costs["sum"]["input_tokens"].as_u64().expect("a number");
    assert_eq!(tokens(&costs), tokens(&before) * history.runs, "and costs what it cost");
    for by in ["by_project", "by_model", "by_agent", "by_day"] {
        let parts = costs[by].as_array().expect("a list").iter();
        let sum: u64 = parts.map(|part| part["usage"]["input_tokens"].as_u64().expect("a number")).sum();
        assert_eq!(sum, tokens(&costs), "{by}: {costs:#}");
    }
    let metrics = web.get("/metrics").expect(200).body;
    let ended = format!("longhaul_runs_ended_total{{status=\"completed\"}} {}", history.runs);
    assert!(metrics.lines().any(|line| line == ended), "no `{ended}` in\n{metrics}");

    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..history.agents {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let run = ask(&web, &lab, 20);
                    web.stream(&format!("/api/v1/runs/{run}/events/stream?follow=false"), &[])
                        .until(|frame| frame.event == "gone");
                }
            });
        }
        let working = u64::from(history.agents);
        web.until("/api/v1/runs?active=true&limit=1", |runs| runs["total"].as_u64() >= Some(working));
        for path in ["/api/v1/costs", "/metrics", "/api/v1/runs?limit=20", "/api/v1/projects"] {
            let p99 = p99(&web, path);
            println!("{} runs, {} agents: p99 of {path} is {p99:?}", history.runs, history.agents);
            assert!(!history.is_long || p99 < P99_MAX, "{path} took {p99:?}");
        }
        ends.store(true, Ordering::Relaxed);
    });
    web.until("/api/v1/runs?active=true&limit=1", |runs| runs["total"] == 0);
    let kept = told(&web);
    assert_eq!(told(&web.again(&lab)), kept, "a process that reads every run anew tells the same");
}

/// The costs, and the numbers of runs in metrics.
fn told(web: &Web) -> (Value, Vec<String>) {
    let metrics = web.get("/metrics").expect(200).body;
    let runs = metrics.lines().filter(|line| line.starts_with("longhaul_runs"));
    (web.get("/api/v1/costs").expect(200).json(), runs.map(str::to_owned).collect())
}

/// Asks something that takes an agent as many steps.
fn ask(web: &Web, lab: &Lab, steps: usize) -> String {
    let goal = format!("do it; {}put", "look; ".repeat(steps));
    let body = json!({ "directory": lab.project(), "goal": goal, "dispatch": { "agent": "one" } });
    web.post("/api/v1/asks", &body).expect(201).json()["run"].as_str().expect("a name").to_owned()
}

/// Copies the rows of a run until there are so many runs.
fn multiply(lab: &Lab, run: &str, runs: u64) {
    let store = RedbStore::open(&lab.home(), StoreOptions::default()).expect("nobody has it");
    let mut rows: Vec<(Table, Row)> = Vec::new();
    for (table, prefix) in [
        (Table::Runs, Key::of(run)),
        (Table::States, Key::of(run)),
        (Table::States, Key::of("sums").and(run)),
        (Table::Events, Key::of(run)),
    ] {
        let found = store.scan(table, &prefix, None, 100_000).expect("read");
        assert!(!found.is_empty(), "{table:?} has nothing of {run}");
        rows.extend(found.into_iter().map(|row| (table, row)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let numbers: Vec<u64> = (1..runs).collect();
    for part in numbers.chunks(usize::try_from(TOGETHER).expect("small")) {
        let mut batch = Batch::new();
        for number in part {
            let name = format!("r-{number:012x}");
            for (table, (key, value)) in &rows {
                let key = Key::from_bytes(renamed(key, run, &name));
                batch = batch.put(*table, key, renamed(value, run, &name));
            }
        }
        runtime.block_on(store.commit(batch)).expect("stored");
    }
}

/// The bytes with one name of a run in place of another one of the same length.
fn renamed(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len(), "{from} {to}");
    let (mut renamed, mut at) = (bytes.to_vec(), 0);
    while at + from.len() <= renamed.len() {
        if renamed[at..].starts_with(from.as_bytes()) {
            renamed[at..at + from.len()].copy_from_slice(to.as_bytes());
            at += from.len();
        } else {
            at += 1;
        }
    }
    renamed
}

fn p99(web: &Web, path: &str) -> Duration {
    let mut took: Vec<Duration> = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let since = Instant::now();
        web.get(path).expect(200);
        took.push(since.elapsed());
    }
    took.sort();
    took[REQUESTS * 99 / 100 - 1]
}
