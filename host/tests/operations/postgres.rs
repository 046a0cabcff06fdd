//! State in PostgreSQL: two servers with data directories of their own on one real database, the move of state there
//! and back, and settings that must be refused.

use crate::common::fake::Kill;
use crate::common::lab::{self, Lab, Ran, Started};
use crate::common::web::{self, Web};
use crate::common::{ASKED_CONFIG, DOER_CONFIG, refused};
use crate::postgres_server::PostgresServer;
use crate::postgres_server::sql::Session;
use crate::{PATIENCE, TWO, list, passing};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Writes `server.toml` of a data directory. The lease is the shortest.
fn settle(home: &Path, url: &str) {
    fs::create_dir_all(home).expect("ours");
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).expect("ours");
    fs::write(home.join("server.toml"), format!("[store]\nurl = \"{url}\"\nlease_ms = 2000\n")).expect("ours");
}

/// Two data directories whose state is in one database: that of the laboratory, and another one.
pub fn two_homes(lab: &Lab, server: &PostgresServer) -> PathBuf {
    let (url, other) = (server.database(), lab.path("other"));
    settle(&lab.home(), &url);
    settle(&other, &url);
    other
}

fn serve_at(lab: &Lab, home: &Path) -> Started {
    lab.start_command(lab.command_at(home, &["serve", "--listen", "127.0.0.1:0"]))
}

/// The server once it has taken over, and its address.
fn taken_over(mut server: Started, token: &str) -> Web {
    server.wait_for("serving at http://");
    let printed = server.printed();
    let address = printed.split("serving at http://").nth(1).and_then(|rest| rest.split_whitespace().next());
    Web { address: address.expect("an address").to_owned(), server, token: token.to_owned() }
}

/// The value of a line of `/metrics`.
#[track_caller]
fn metric(web: &Web, name: &str) -> f64 {
    let text = web.get("/metrics").expect(200).body;
    let value: Option<f64> = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no `{name}` in\n{text}"))
}

/// A command at another data directory, once the lease of a process that died has run out.
pub fn run_once_free(lab: &Lab, home: &Path, args: &[&str]) -> Ran {
    let since = Instant::now();
    loop {
        let ran = lab.run_at(home, args);
        if !ran.stderr.contains("is held by") {
            return ran;
        }
        assert!(since.elapsed() < PATIENCE, "{}", ran.said());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_standby_goes_on_with_agents_and_schedules_when_the_first_server_is_killed_and_repeats_no_effect() {
    let (lab, server) = (Lab::empty(), PostgresServer::shared());
    let other = two_homes(&lab, &server);
    let project = lab.project();
    fs::create_dir_all(&project).expect("ours");
    fs::write(project.join("longhaul.toml"), ASKED_CONFIG.replace("{server}", &lab.fake.address)).expect("ours");
    lab.run(&["agent", "add", "asker", "--ask", "do alpha; post; post"]).expect(0);
    lab.run(&["schedule", "add", "s", "--agent", "asker", "--paused"]).expect(0);
    let first = Web::start(&lab);
    let mut standby = serve_at(&lab, &other);
    standby.wait_for("standing by: the database postgres://longhaul@127.0.0.1");
    let holder = format!("is held by process {} on ", first.server.pid());
    assert!(standby.printed().contains(&holder), "{}", standby.printed());
    refused(&lab.run_at(&other, &["runs"]), &["stands by", &holder]);
    refused(&lab.run_at(&other, &["serve"]), &["another longhaul owns", "a server"]);
    let checked = lab.run_at(&other, &["doctor"]).stdout;
    assert!(checked.contains("database holder") && !checked.contains("store            BROKEN"), "{checked}");
    let epoch = metric(&first, "longhaul_store_epoch");
    lab.fake.kill_at(Kill { pid: first.server.pid(), kind: "model", number: 2, happens: true });
    let task = first.post("/api/v1/schedules/s/run-now", &json!({})).expect(200).json();
    let task = task["id"].as_str().expect("a name").to_owned();
    let second = taken_over(standby, &first.token);
    lab.fake.settle();
    assert!(first.server.wait().was_killed());
    let tasks = second.until("/api/v1/tasks", |tasks| list(tasks, "items")[0]["status"] == "completed");
    let [done] = list(&tasks, "items") else { panic!("one task: {tasks:#}") };
    assert_eq!((done["id"].as_str(), &done["retry_count"]), (Some(&*task), &json!(0)), "{tasks:#}");
    assert_eq!(lab.fake.posts().len(), 2, "each effect once");
    let keys: BTreeSet<String> = lab.fake.posts().into_iter().map(|told| told.key).collect();
    assert_eq!(keys.len(), 2, "each effect once");
    assert!(metric(&second, "longhaul_store_epoch") - epoch > 0.5, "it claimed the store after the first one");
    assert!(metric(&second, "longhaul_store_commits_total") > 0.5);
    assert!((0.0..=2.0).contains(&metric(&second, "longhaul_store_lease_remaining_seconds")));
    for (name, value) in [("held", 1), ("fenced_writes_total", 0), ("commits_failed_total", 0)] {
        let told = metric(&second, &format!("longhaul_store_{name}"));
        assert!((told - f64::from(value)).abs() < 0.5, "longhaul_store_{name} is {told}");
    }
    for name in ["lease_renewals_total", "lease_renewals_failed_total", "commits_waiting", "reconnects_total"] {
        metric(&second, &format!("longhaul_store_{name}"));
    }
    let mut again = serve_at(&lab, &lab.home());
    again.wait_for("standing by: ");
    again.interrupt();
    assert_eq!(again.wait().code(), None, "Ctrl-C ends a standby at once");
}

#[test]
fn a_server_that_slept_past_its_lease_ends_with_a_code_of_its_own_and_the_other_one_goes_on() {
    let (lab, server) = (Lab::empty(), PostgresServer::shared());
    let other = two_homes(&lab, &server);
    let first = Web::start(&lab);
    let mut standby = serve_at(&lab, &other);
    standby.wait_for("standing by: ");
    lab::stop(first.server.pid());
    let second = taken_over(standby, &first.token);
    lab::resume(first.server.pid());
    let ended = first.server.wait().expect(6);
    let told: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("longhaul: ")).collect();
    assert!(told.len() == 1 && told[0].contains("lost the store"), "{}", ended.said());
    second.get("/api/v1/runs").expect(200);
    assert_eq!(second.get("/health").expect(200).json()["status"], "ok");
}

/// As [`settle`], at an address that other servers reach: its host and port.
fn settle_with_address(home: &Path, url: &str) -> String {
    settle(home, url);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let store = fs::read_to_string(home.join("server.toml")).expect("ours");
    let settings = format!("[server]\nlisten = \"{free}\"\nurl = \"http://{free}\"\n{store}");
    fs::write(home.join("server.toml"), settings).expect("ours");
    free.to_string()
}

#[test]
fn every_server_answers_for_all_runs_and_a_standby_by_itself_once_the_one_that_worked_is_killed() {
    let (lab, server) = (Lab::new(DOER_CONFIG, TWO), PostgresServer::shared());
    let (url, other) = (server.database(), lab.path("other"));
    let (first_address, address) = (settle_with_address(&lab.home(), &url), settle_with_address(&other, &url));
    lab.fake.model_takes(Duration::from_millis(300));
    let token = web::token(&lab, "all", &["--scope", "admin"]);
    let mut first = lab.start_command(lab.command_at(&lab.home(), &["serve"]));
    first.wait_for("serving at http://");
    let mut standby = lab.start_command(lab.command_at(&other, &["serve"]));
    standby.wait_for(&format!(", at http://{first_address}; this server takes over"));
    let mut second = Web { address, server: standby, token };
    assert_eq!(second.raw("GET", "/health", &[], b"").json()["status"], "standby");
    second.raw("GET", "/ready", &[], b"").expect(503);
    let checked = lab.run_at(&other, &["doctor"]).stdout;
    assert!(checked.contains(&format!(", at http://{first_address}, works with it")), "{checked}");
    assert!(second.raw("GET", "/", &[], b"").expect(200).body.contains("<html"));
    second.raw("GET", "/api/v1/runs", &["Authorization: Bearer lh_wrong"], b"").expect(401);
    second.raw("GET", "/api/v1/runs", &[], b"").expect(401);

    let run = second.run(&lab);
    let (path, stream) = (format!("/api/v1/runs/{run}"), format!("/api/v1/runs/{run}/events/stream"));
    let mut events = second.stream(&stream, &[]);
    events.until(|frame| frame.id.is_some());
    let is_at_work = |feature: &Value| feature["status"] == "in_progress";
    second.until(&path, |run| run["features"].as_array().is_some_and(|all| all.iter().any(is_at_work)));
    second.post(&format!("{path}/steer"), &json!({ "text": "mind the gap" })).expect(200);
    second.post(&format!("{path}/pause"), &json!({})).expect(200);
    second.until_status(&run, "paused");
    assert_eq!(second.get("/api/v1/runs").expect(200).json()["total"], 1);

    assert!(first.kill());
    let mut last = None;
    while let Some(frame) = events.next() {
        last = frame.id.or(last);
    }
    let last = last.expect("events came after the first one");
    second.server.wait_for(&format!("serving at http://{}", second.address));
    assert_eq!(second.get("/health").expect(200).json()["status"], "ok");
    assert_eq!(second.get(&path).expect(200).json()["status"], "paused");
    let mut again = second.stream(&stream, &[&format!("Last-Event-ID: {}", last - 1)]);
    assert_eq!(again.until(|frame| frame.id.is_some()).pop().and_then(|frame| frame.id), Some(last));
}

/// The output of the command line for all runs, and for the newest one.
fn shown(lab: &Lab) -> [Value; 2] {
    [lab.json(&["runs"]), lab.json(&["status"])]
}

#[test]
fn state_moves_into_the_database_and_back_and_is_never_opened_beside_another_one() {
    let (lab, server) = (passing(), PostgresServer::shared());
    lab.run(&["run"]).expect(0);
    let before = shown(&lab);
    let (settings, state, migrate) =
        (lab.home().join("server.toml"), lab.home().join("state.redb"), ["store", "migrate"]);
    let to_postgres = [&migrate[..], &["--to", "postgres"]].concat();
    let to_redb = [&migrate[..], &["--to", "redb"]].concat();
    refused(&lab.run(&to_postgres), &["names no database", "[store] url"]);
    settle(&lab.home(), &server.database());
    refused(&lab.run(&["runs"]), &["is in state.redb there", "longhaul store migrate --to postgres"]);
    let killed = lab.start_with(&to_postgres, &[("LONGHAUL_CRASH_AT", "migrate.after-copy:1")]).wait();
    assert!(killed.was_killed(), "{}", killed.said());
    refused(&lab.run(&to_postgres), &["is unfinished", "DROP SCHEMA longhaul CASCADE"]);
    fs::remove_file(&settings).expect("ours");
    assert_eq!(shown(&lab), before, "the source is as it was");

    let url = server.database();
    settle(&lab.home(), &url);
    let moved = lab.json(&to_postgres);
    assert!(moved["copied"]["rows"].as_u64().is_some_and(|rows| rows > 10) && !state.exists(), "{moved:#}");
    assert!(lab.home().join("state.redb.moved").exists() && lab.home().join("state.postgres").exists());
    assert_eq!(shown(&lab), before);
    let checked = lab.run(&["doctor", "--store"]).stdout;
    assert!(checked.contains("all as they were written"), "{checked}");
    lab.run(&["audit", "verify"]).expect(0);
    fs::remove_file(&settings).expect("ours");
    refused(&lab.run(&["runs"]), &["is in the database", "has no [store]"]);
    settle(&lab.home(), &server.database());
    refused(&lab.run(&["runs"]), &["[store] of server.toml names", "correct [store]"]);
    settle(&lab.home(), &url);
    let backup = lab.path("kept.backup");
    let made = lab.json(&["backup", backup.to_str().expect("text")]);
    let signer = made["signer"].as_str().expect("signed");
    let restored = ["restore", backup.to_str().expect("text"), "--signer", signer];
    lab.run_at(&lab.path("restored"), &restored).expect(0);
    let kept = lab.run_at(&lab.path("restored"), &["--json", "runs"]).expect(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&kept).expect("JSON"), before[0]);

    let back = lab.json(&to_redb);
    assert_eq!((&back["runs_elsewhere"], state.exists()), (&json!(0), true), "{back:#}");
    fs::remove_file(&settings).expect("ours");
    assert_eq!(shown(&lab), before);
    let other = lab.path("other");
    settle(&other, &url);
    refused(&lab.run_at(&other, &["runs"]), &["was moved to", "longhaul store reopen"]);
    lab.run_at(&other, &["store", "reopen"]).expect(0);
    let again = lab.run_at(&other, &["--json", "runs"]).expect(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&again).expect("JSON"), before[0]);
}

/// A session in the database of an address.
fn session(server: &PostgresServer, url: &str) -> Session {
    let name = url.rsplit('/').next().expect("a name");
    Session::open(server.port, "longhaul", name).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_move_that_is_cut_off_anywhere_leaves_nothing_that_is_opened_empty_or_beside_another() {
    let (lab, server) = (passing(), PostgresServer::shared());
    lab.run(&["run"]).expect(0);
    let (before, settings) = (shown(&lab), lab.home().join("server.toml"));
    let (to_postgres, to_redb) = (["store", "migrate", "--to", "postgres"], ["store", "migrate", "--to", "redb"]);
    let cut_off = |args: &[&str], point: &str| {
        let ran = lab.start_with(args, &[("LONGHAUL_CRASH_AT", point)]).wait();
        assert!(ran.was_killed(), "{}", ran.said());
    };
    settle(&lab.home(), &server.database());
    cut_off(&to_postgres, "migrate.after-set-aside:1");
    refused(&lab.run(&["runs"]), &["was cut off", "state.redb.moved", "rename it"]);
    fs::remove_file(&settings).expect("ours");
    refused(&lab.run(&["runs"]), &["was cut off", "state.redb.moved", "rename it"]);
    fs::rename(lab.home().join("state.redb.moved"), lab.home().join("state.redb")).expect("ours");
    assert_eq!(shown(&lab), before);

    let url = server.database();
    settle(&lab.home(), &url);
    lab.run(&to_postgres).expect(0);
    cut_off(&to_redb, "migrate.after-mark:1");
    let other = lab.path("other");
    settle(&other, &url);
    refused(&run_once_free(&lab, &other, &["runs"]), &["was moved to", "longhaul store reopen"]);
    refused(&lab.run(&["runs"]), &["was moved to", "longhaul store reopen"]);
    lab.run(&["store", "reopen"]).expect(0);
    assert_eq!(shown(&lab), before);
    refused(&lab.run(&to_redb), &["is left of a copy that is unfinished"]);
    fs::remove_dir_all(lab.home().join("state.unfinished")).expect("ours");
    cut_off(&to_redb, "migrate.after-set-in-place:1");
    refused(&run_once_free(&lab, &other, &["runs"]), &["was moved to", "longhaul store reopen"]);
    refused(&lab.run(&["runs"]), &["is in state.redb there", "or remove [store]"]);
    fs::remove_file(&settings).expect("ours");
    refused(&lab.run(&["runs"]), &["remembers the database", "state.postgres"]);
    fs::remove_file(lab.home().join("state.postgres")).expect("ours");
    assert_eq!(shown(&lab), before);
}

#[test]
fn a_database_that_lost_the_state_that_a_directory_remembers_is_not_begun_anew() {
    let (lab, server) = (Lab::empty(), PostgresServer::shared());
    let url = server.database();
    settle(&lab.home(), &url);
    lab.run(&["runs"]).expect(0);
    lab.run(&["runs"]).expect(0);
    session(&server, &url).ask("drop schema longhaul cascade").expect("dropped");
    for _ in 0..2 {
        refused(&lab.run(&["runs"]), &["has no state in schema `longhaul`", "state.postgres"]);
    }
    fs::remove_file(lab.home().join("state.postgres")).expect("ours");
    lab.run(&["runs"]).expect(0);
}

/// As if the server had been promoted since: the store knows it under another timeline.
#[test]
fn a_run_of_which_a_failover_may_have_lost_commits_waits_for_a_person() {
    let (lab, server) = (Lab::new(DOER_CONFIG, TWO), PostgresServer::shared());
    let url = server.database();
    settle(&lab.home(), &url);
    let owner = lab.start(&["run"]);
    lab.fake.kill_at(Kill { pid: owner.pid(), kind: "model", number: 1, happens: true });
    assert!(owner.wait().was_killed());
    lab.fake.settle();
    let other_timeline =
        "update longhaul.kv set value = '9' where table_no = 2 and key = 'timeline'::bytea || '\\x0000'::bytea";
    session(&server, &url).ask(other_timeline).expect("changed");
    let check_waits = || {
        let status = lab.run(&["status"]).expect(0).stdout;
        assert!(status.contains("timeline 9 to 1") && status.contains("longhaul resume r-"), "{status}");
    };
    check_waits();
    let mut served = serve_at(&lab, &lab.home());
    served.wait_for("serving at http://");
    served.interrupt();
    served.wait().expect(0);
    check_waits();
    lab.run(&["resume"]).expect(0);
    let runs = lab.json(&["runs"]);
    assert_eq!(list(&runs, "items")[0]["status"], "completed", "{runs:#}");
}

#[test]
fn a_run_waits_for_a_person_after_its_database_was_restored() {
    let (lab, server) = (Lab::new(DOER_CONFIG, TWO), PostgresServer::shared());
    let url = server.database();
    let name = url.rsplit('/').next().expect("a name");
    settle(&lab.home(), &url);
    let owner = lab.start(&["run"]);
    lab.fake.kill_at(Kill { pid: owner.pid(), kind: "model", number: 1, happens: true });
    assert!(owner.wait().was_killed());
    lab.fake.settle();
    server.ask(&format!("create database {name}_kept template {name} strategy file_copy"));
    lab.run(&["token", "add", "later", "--scope", "read"]).expect(0);
    let status = lab.run(&["status"]).expect(0).stdout;
    assert!(!status.contains("restore"), "{status}");
    server.ask(&format!("drop database {name} with (force)"));
    server.ask(&format!("alter database {name}_kept rename to {name}"));
    for _ in 0..2 {
        let status = lab.run(&["status"]).expect(0).stdout;
        assert!(status.contains("as after a restore") && status.contains("longhaul resume r-"), "{status}");
    }
    lab.run(&["resume"]).expect(0);
    let runs = lab.json(&["runs"]);
    assert_eq!(list(&runs, "items")[0]["status"], "completed", "{runs:#}");
}

#[test]
fn a_database_that_cannot_be_used_is_one_line_with_what_to_do() {
    let (lab, server) = (Lab::empty(), PostgresServer::shared());
    let database = server.database();
    let name = database.rsplit('/').next().expect("a name").to_owned();
    server.ask("drop role if exists weak; create role weak login");
    let check = |settings: &str, words: &[&str]| {
        settle(&lab.home(), &database);
        fs::write(lab.home().join("server.toml"), format!("[store]\n{settings}\n")).expect("ours");
        refused(&lab.run(&["runs"]), words);
    };
    let url = |url: &str| format!("url = \"{url}\"");
    check(&url("postgres://longhaul@127.0.0.1:1/db"), &["cannot be reached"]);
    check(&url("postgres://longhaul:hunter2@127.0.0.1/db"), &["[store] url holds a password", "password_env"]);
    check(&url("mysql://127.0.0.1/db"), &["no address of a PostgreSQL server"]);
    check(&url(&server.url_of("longhaul", "nowhere")), &["nowhere", "CREATE DATABASE"]);
    check(&url(&server.url_of("weak", &name)), &["refuses the store", "grant the user the right"]);
    check(&format!("{}\npassword_env = \"LH_NO_SUCH\"", url(&database)), &["`LH_NO_SUCH`, which is not set"]);
    check(&format!("{}\nlease_ms = 1", url(&database)), &["lease_ms = 1 is out of range"]);
    check("urls = \"x\"", &["server.toml", "did you mean `url`?"]);
}
