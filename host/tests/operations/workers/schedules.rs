//! Schedules that are due in one second on three servers: how late each fires, none twice and none lost, also where the
//! server that leads is killed at that moment.
//!
//! The leader alone fires schedules, all that are due in one transaction, and runs what they start; the other servers
//! are there to take over. `LONGHAUL_SCHEDULES_DUE=10000` (default 200) is the full figure, and as many as there may
//! be. Asked for, each has a second to fire, which is for a build of the profile `release`; without it times are
//! printed alone. `LONGHAUL_SEED` repeats the moment of the kill.
//!
//! The database tells when a fire was durable: the time of the commit that stored its task.

use super::lab::{Cluster, LEASE, LOOK, PATIENCE, SERVERS};
use crate::common::{Random, number};
use crate::list;
use crate::postgres_server::PostgresServer;
use longhaul_core::store::{Batch, Key, Store as _, Table};
use longhaul_postgres::{Holder, LeaseLost, PostgresConfig, PostgresOptions, PostgresStore};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const DUE: usize = 200;

/// The longest time from the moment of a schedule to its durable fire.
const LATE_MS_MAX: f64 = 1_000.0;

/// The name of the first schedule, and of its agent. All others have a number more, and an agent each, too.
const FIRST: &str = "first";

/// Schedules that are copied in one transaction.
const TOGETHER: usize = 500;

/// Milliseconds before and after the moment in which the leader is killed.
const KILL_BEFORE_MS: u64 = 20;
const KILL_WITHIN_MS: u64 = 80;

/// Tasks of which every one is waited for. More would take minutes, and tell nothing of fires.
const TASKS_MAX: usize = 1_000;

/// Notes each task that is stored for the first time.
const NOTING: &str = "\
    create table public.fired (key bytea); \
    create function public.note_fire() returns trigger language plpgsql as \
    $$ begin insert into public.fired values (new.key); return null; end $$; \
    create trigger fired after insert on longhaul.kv for each row \
    when (new.table_no = 12 and substr(new.key, 1, 6) = '\\x6f70656e0000'::bytea) \
    execute function public.note_fire()";

#[test]
fn schedules_that_are_due_in_one_second_fire_then_and_each_of_them_once() {
    let count = number("LONGHAUL_SCHEDULES_DUE").unwrap_or(DUE);
    let database = PostgresServer::start(&["track_commit_timestamp=on"]);
    let (cluster, due_ms) = prepared(&database, count);
    let late = wait_for_fires(&database, &cluster, count, due_ms);
    println!("{count} schedules: the first fired {:.0} ms late, the last {:.0} ms", late[0], late[count - 1]);
    let is_asked_for = std::env::var_os("LONGHAUL_SCHEDULES_DUE").is_some();
    assert!(late[0] >= 0.0, "none fires early: {}", late[0]);
    assert!(!is_asked_for || late[count - 1] < LATE_MS_MAX, "the last fired {:.0} ms late", late[count - 1]);
    account(&database, &cluster, count);
}

#[test]
fn schedules_that_are_due_while_the_leader_is_killed_fire_once_here_or_at_the_next_one() {
    let seed = number("LONGHAUL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("LONGHAUL_SEED={seed}");
    let database = PostgresServer::start(&["track_commit_timestamp=on"]);
    let (mut cluster, due_ms) = prepared(&database, DUE);
    let leader = cluster.leader().expect("it runs");
    let kill_ms = due_ms - KILL_BEFORE_MS + Random::new(seed, 1).below(KILL_WITHIN_MS);
    std::thread::sleep(Duration::from_millis(kill_ms.saturating_sub(now_ms())));
    cluster.kill(leader);
    let late = wait_for_fires(&database, &cluster, DUE, due_ms);
    println!("the leader was killed at {kill_ms}, due was {due_ms}: the last fired {:.0} ms late", late[DUE - 1]);
    account(&database, &cluster, DUE);
}

/// Servers with so many schedules, all due at one moment that comes soon, which is returned in milliseconds.
fn prepared(database: &PostgresServer, count: usize) -> (Cluster, u64) {
    let url = database.url();
    let mut cluster = Cluster::prepared(LEASE, |_| url.clone());
    let since = Instant::now();
    cluster.begin(0);
    cluster.wait_until_joined();
    let start = since.elapsed();
    let agent = json!({ "name": FIRST, "code": { "kind": "python", "source": "print(1)" } });
    let schedule =
        json!({ "name": FIRST, "agent": FIRST, "trigger": { "type": "interval", "interval_seconds": 86_400 } });
    cluster.web(0).post("/api/v1/agents", &agent).expect(201);
    cluster.web(0).post("/api/v1/schedules", &schedule).expect(201);
    cluster.terminate(0).expect(0);
    database.ask(NOTING);
    // All servers must be there before.
    let copying = Duration::from_millis(u64::try_from(count).expect("few") * 2);
    let due_ms = now_ms() + millis(Duration::from_secs(5) + start * 6 + copying);
    copy(&url, count, due_ms);
    for at in 0..SERVERS {
        cluster.begin(at);
    }
    cluster.wait_until_joined();
    assert!(now_ms() + KILL_BEFORE_MS < due_ms, "the servers took too long to start: {start:?} for the first");
    (cluster, due_ms)
}

/// Copies the first schedule and its agent until there are so many, and has all of them due at one moment. No server
/// has the database.
fn copy(url: &str, count: usize, due_ms: u64) {
    let holder = Holder { host: "test".to_owned(), pid: std::process::id(), directory: "/test".into(), url: None };
    let on_lost = |lost: &LeaseLost| println!("{lost}");
    let options = PostgresOptions { holder, crash_hook: None, on_lost: Arc::new(on_lost) };
    let store = PostgresStore::open(&PostgresConfig::at(url), &|_| None, options).unwrap_or_else(|why| panic!("{why}"));
    let read = |table, kind: &str| -> Value {
        let bytes = store.get(table, &Key::of(kind).and(FIRST)).expect("readable").expect("it is there");
        serde_json::from_slice(&bytes).expect("JSON")
    };
    let (mut agent, mut entry) = (read(Table::Agents, "agent"), read(Table::Schedules, "schedule"));
    entry["next_ms"] = json!(due_ms);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let numbers: Vec<usize> = (0..count).collect();
    for part in numbers.chunks(TOGETHER) {
        let mut batch = Batch::new();
        for number in part {
            let name = if *number == 0 { FIRST.to_owned() } else { format!("{FIRST}-{number}") };
            agent["name"] = json!(name);
            (entry["schedule"]["name"], entry["schedule"]["agent"]) = (json!(name), json!(name));
            batch = batch.put(Table::Agents, Key::of("agent").and(&name), agent.to_string());
            batch = batch.put(Table::Schedules, Key::of("schedule").and(&name), entry.to_string());
        }
        runtime.block_on(store.commit(batch)).expect("stored");
    }
}

/// Waits until so many fires are durable. Returns how late each was, in milliseconds, the earliest first.
fn wait_for_fires(database: &PostgresServer, cluster: &Cluster, count: usize, due_ms: u64) -> Vec<f64> {
    let since = Instant::now();
    loop {
        let fired: usize = database.value("select count(*) from public.fired").parse().expect("a number");
        if fired >= count {
            break;
        }
        assert!(since.elapsed() < PATIENCE, "{fired} of {count} fired\n{}", cluster.printed());
        std::thread::sleep(LOOK);
    }
    let rows = database.ask(&format!(
        "select extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000 - {due_ms} from public.fired order by 1"
    ));
    rows.concat().iter().map(|late| late.parse().expect("a number")).collect()
}

/// Checks that each schedule fired once, and that what it started ends well, where that does not take too long.
fn account(database: &PostgresServer, cluster: &Cluster, count: usize) {
    let fired = || database.ask("select count(*), count(distinct key) from public.fired").concat();
    let expected = [count.to_string(), count.to_string()];
    assert_eq!(fired(), expected, "each fired once");
    if count > TASKS_MAX {
        return;
    }
    let total = |told: &Value| told["total"] == count;
    cluster.until("/api/v1/tasks?status=completed&limit=1", total);
    let told = cluster.get("/api/v1/tasks?limit=1000");
    let tasks = list(&told, "items");
    let schedules: BTreeSet<&str> = tasks.iter().filter_map(|task| task["schedule"].as_str()).collect();
    assert_eq!((tasks.len(), schedules.len()), (count, count), "a task of each schedule, and no other");
    assert_eq!(fired(), expected, "and none fired again");
}

fn now_ms() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("far below 2^64")
}
