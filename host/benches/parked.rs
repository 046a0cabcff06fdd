//! Three servers of one database with many runs that wait for a person: what they cost the server that leads, and how
//! soon one of them is at work on a worker once it is answered.
//!
//! ```text
//! cargo xtask plugins --tests
//! cargo bench -p longhaul --bench parked
//! LONGHAUL_PARKED=100000 cargo bench -p longhaul --bench parked
//! ```
//!
//! It takes some five minutes, and those of 100,000 runs some minutes more. `LONGHAUL_PARKED` says how many runs wait
//! (default 2,000), and `LONGHAUL_ANSWERS` how many of them are answered (default 200), one after the other. These are
//! runs of their own; the rows of one of them are copied for all others. The programs are those of this build, the
//! servers have the shortest lease, and only workers have the label that the runs need.
//!
//! - memory: the resident memory of the leader with the runs that are answered alone, and with all. A run that waits
//!   has no actor and no instance, but its entry in the index of runs stays in memory, some 4 KB
//!   (`host/crates/service/src/run_table.rs`). Without that, lists, sums and metrics would have to be asked of the
//!   store: rows of sums that each commit keeps, and indexes by project, status and age;
//! - start: until the server listens, and until it tells how many runs there are, which reads each of them once;
//! - at work: from the request with an answer to the event of the worker that goes on with the run, by the clock of
//!   this machine. The leader's pause between two looks is not in it, and that of the worker is: up to 150 ms;
//! - completed: from the same request until a client that asks every 50 ms sees the end;
//! - commits: the bound below which 99 of 100 commits of the leader were meanwhile, those that claim a run among them.

#[path = "../tests/operations/workers/lab.rs"]
#[allow(dead_code, reason = "the bench uses its part")]
mod cluster;
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../crates/postgres/tests/support/server.rs"]
mod postgres_server;

use cluster::{Cluster, FAR, LEASE, RUNS_MAX, SERVERS};
use common::{built_plugins, number};
use longhaul_core::store::{Batch, Key, Row, Store as _, Table};
use longhaul_postgres::{Holder, LeaseLost, PostgresConfig, PostgresOptions, PostgresStore};
use postgres_server::PostgresServer;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PARKED: u64 = 2_000;
const ANSWERS: usize = 200;

/// Runs that are copied in one transaction.
const TOGETHER: usize = 250;

const CONFIG: &str = r#"
[project]
name = "parked"

[agents.one]
plugin = "caller"
tools = ["human"]
settings = { calls = [{ tool = "human", function = "ask", arguments = { question = "Go on?" } }], output = "done" }

[tools.human]
plugin = "builtin:ask-human"

[run]
labels_needed = ["{label}"]
"#;

fn main() {
    built_plugins::expect(&["tests/caller"]);
    let parked: u64 = number("LONGHAUL_PARKED").unwrap_or(PARKED);
    let answers: usize = number("LONGHAUL_ANSWERS").unwrap_or(ANSWERS).max(1);
    // Its commits reach the disk.
    let database = PostgresServer::start(&[]);
    let url = database.database();
    let mut cluster = Cluster::prepared(LEASE, |_| url.clone());
    cluster.lab.make_project("project", &CONFIG.replace("{label}", FAR), "# Nothing\n");
    begin_all(&mut cluster);
    let runs = ask(&cluster, answers);
    end_all(&mut cluster);

    let few = begin_all(&mut cluster);
    end_all(&mut cluster);
    let copies = parked.saturating_sub(runs.len() as u64);
    let since = Instant::now();
    multiply(&url, &runs[0], copies);
    println!("{copies} runs copied in {:.1?}", since.elapsed());
    let all = begin_all(&mut cluster);
    println!("   runs   listens after   tells them after   resident");
    for Began { runs, listens, tells, resident_kib } in [&few, &all] {
        println!("{runs:>7} {listens:>15.1?} {tells:>18.1?} {:>7.1} MB", mb(*resident_kib));
    }
    if let Some(more) = all.runs.checked_sub(few.runs).filter(|more| *more > 0) {
        println!("{:.1} KB a run", mb(all.resident_kib.saturating_sub(few.resident_kib)) * 1_000.0 / float(more));
    }

    let before = commits(&cluster);
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for run in &runs {
        let (at_work, completed) = answer(&cluster, run);
        begun.push(at_work);
        ended.push(completed);
    }
    println!("{} answers, one after the other", runs.len());
    for (what, mut took) in [("at work on a worker", begun), ("completed", ended)] {
        took.sort_unstable();
        println!("{what}: p50 {:.0?}, p99 {:.0?}", at(&took, 50), at(&took, 99));
    }
    println!("commits of the leader meanwhile: p99 at most {}", p99_bound(&before, &commits(&cluster)));
    let resident_kib = resident_kib(cluster.web(0).server.pid());
    println!("resident after that: {:.1} MB", mb(resident_kib));
}

/// A server that leads, once it has begun.
struct Began {
    runs: u64,
    listens: Duration,
    tells: Duration,
    resident_kib: u64,
}

/// Starts all servers. The first one leads.
fn begin_all(cluster: &mut Cluster) -> Began {
    let since = Instant::now();
    cluster.begin(0);
    let listens = since.elapsed();
    let runs = cluster.get("/api/v1/runs?limit=1")["total"].as_u64().expect("a number");
    let tells = since.elapsed();
    for server in 1..SERVERS {
        cluster.begin(server);
    }
    cluster.wait_until_joined();
    Began { runs, listens, tells, resident_kib: resident_kib(cluster.web(0).server.pid()) }
}

/// Ends all servers in order, the one that leads last: nobody has to take over.
fn end_all(cluster: &mut Cluster) {
    cluster.wait_until_idle();
    for server in (0..SERVERS).rev() {
        cluster.terminate(server).expect(0);
    }
}

/// Begins so many runs, each of which waits for a person then.
fn ask(cluster: &Cluster, count: usize) -> Vec<String> {
    let body = json!({ "directory": cluster.lab.project(), "goal": "wait", "dispatch": { "agent": "one" } });
    let mut runs: Vec<String> = Vec::new();
    while runs.len() < count {
        let from = runs.len();
        // As many as workers have places.
        for _ in 0..((SERVERS - 1) * RUNS_MAX).min(count - from) {
            let made = cluster.web(0).post("/api/v1/asks", &body).expect(201).json();
            runs.push(made["run"].as_str().expect("a name").to_owned());
        }
        for run in &runs[from..] {
            cluster.until_status(run, "parked");
        }
    }
    runs
}

/// Answers a run. Returns the times until a worker went on with it, and until it was seen to be completed.
fn answer(cluster: &Cluster, run: &str) -> (Duration, Duration) {
    let (since, at) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970"));
    cluster.order_at(0, &format!("/api/v1/runs/{run}/answer"), &json!({ "text": "yes" }));
    cluster.until_status(run, "completed");
    let completed = since.elapsed();
    let events = cluster.get(&format!("/api/v1/runs/{run}/events?limit=1000"));
    let resumed = list(&events, "items").iter().rev().find(|event| event["type"] == "resumed");
    let resumed = resumed.and_then(|event| event["at_ms"].as_u64()).unwrap_or_else(|| panic!("{events:#}"));
    (Duration::from_millis(resumed).saturating_sub(at), completed)
}

fn list<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer[name].as_array().map_or_else(|| panic!("no `{name}`: {answer:#}"), Vec::as_slice)
}

/// Copies all rows of a run under as many other names. No server has the database.
fn multiply(url: &str, run: &str, copies: u64) {
    let holder = Holder { host: "bench".to_owned(), pid: std::process::id(), directory: "/bench".into(), url: None };
    let on_lost = |lost: &LeaseLost| eprintln!("{lost}");
    let options = PostgresOptions { holder, crash_hook: None, on_lost: Arc::new(on_lost) };
    let store = PostgresStore::open(&PostgresConfig::at(url), &|_| None, options).unwrap_or_else(|why| panic!("{why}"));
    let rows = rows_of(&store, run);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let numbers: Vec<u64> = (1..=copies).collect();
    for part in numbers.chunks(TOGETHER) {
        let mut batch = Batch::new();
        for number in part {
            let name = format!("r-{number:012x}");
            for (table, (key, value)) in &rows {
                batch = batch.put(*table, Key::from_bytes(renamed(key, run, &name)), renamed(value, run, &name));
            }
        }
        runtime.block_on(store.commit(batch)).expect("stored");
    }
}

/// The rows whose keys name a run, and none that would have a copy do something by itself.
fn rows_of(store: &PostgresStore, run: &str) -> Vec<(Table, Row)> {
    let letters = Key::of("letters");
    let mut rows = Vec::new();
    for table in Table::ALL {
        let found = store.scan(table, &Key::default(), None, usize::MAX).expect("readable");
        let is_of_run = |(key, _): &Row| {
            let names_it = key.windows(run.len()).any(|part| part == run.as_bytes());
            names_it && !(table == Table::States && key.starts_with(letters.as_bytes()))
        };
        rows.extend(found.into_iter().filter(is_of_run).map(|row| (table, row)));
    }
    assert!(rows.iter().any(|(table, _)| *table == Table::Runs), "{run} is there");
    println!("a run that waits has {} rows", rows.len());
    rows
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

/// The resident memory of a process.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The histogram of the commits of the leader: the bounds with the commits up to each.
fn commits(cluster: &Cluster) -> Vec<(String, u64)> {
    let text = cluster.web(0).get("/metrics").expect(200).body;
    let buckets = text.lines().filter_map(|line| line.strip_prefix("longhaul_store_commit_seconds_bucket{le=\""));
    let bucket = |line: &str| {
        let (bound, count) = line.split_once("\"} ").expect("a bucket");
        (bound.to_owned(), count.parse().expect("a number"))
    };
    buckets.map(bucket).collect()
}

/// The bound below which 99 of 100 commits between two looks were.
fn p99_bound(before: &[(String, u64)], after: &[(String, u64)]) -> String {
    let between: Vec<(&str, u64)> =
        after.iter().zip(before).map(|((bound, now), (_, then))| (bound.as_str(), now - then)).collect();
    let all = between.last().map_or(0, |(_, count)| *count);
    let found = between.iter().find(|(_, count)| count * 100 >= all * 99).map(|(bound, _)| *bound);
    format!("{} s, of {all} commits", found.unwrap_or("no bound"))
}

fn at(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

fn mb(kib: u64) -> f64 {
    float(kib) * 1_024.0 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}
