//! Several servers of one database at work: which of them gets a run, orders that reach it there, and what is left of
//! runs whose server ends, is killed, sleeps or is cut off.
//!
//! | file | holds |
//! |---|---|
//! | `workers/lab.rs` | the servers, and a client of whichever answers |
//! | `workers/projects.rs` | their projects, and the account of what happened |
//! | `workers/network.rs` | the way to the database, which can be cut |
//! | `workers/faults.rs` | kills, pauses, partitions |
//! | `workers/handover.rs` | servers that end while others work |
//! | `workers/schedules.rs` | schedules that are due in one second |

mod faults;
mod handover;
mod lab;
mod network;
mod projects;
mod schedules;

use crate::list;
use crate::postgres_server::PostgresServer;
use lab::{Cluster, FAR, LEASE_UNDISTURBED, LOOK, PATIENCE, RUNS_MAX, SERVERS};
use projects::EFFECTS;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The time of a call that acts, of which a run makes several.
const CALL_TIME: Duration = Duration::from_millis(500);

#[test]
fn runs_go_to_the_servers_that_have_room_and_every_one_of_them_can_answer_for_them() {
    let database = PostgresServer::shared();
    let url = database.database();
    let cluster = Cluster::undisturbed(|_| url.clone());
    let reference = projects::undisturbed(&cluster, "errand-undisturbed");
    cluster.lab.fake.posts_take(CALL_TIME);
    let names: Vec<String> = (0..SERVERS * RUNS_MAX).map(|number| format!("errand-{number}")).collect();
    names.iter().for_each(|name| projects::make(&cluster, name));
    let runs: Vec<String> = names.iter().map(|name| cluster.run(name)).collect();
    // Each server streams the events of some runs, which others work on.
    let stream = |(number, run): (usize, &String)| {
        cluster.web(number % SERVERS).stream(&format!("/api/v1/runs/{run}/events/stream"), &[])
    };
    let mut streams: Vec<_> = runs.iter().enumerate().map(stream).collect();

    let (since, mut worked) = (Instant::now(), BTreeSet::new());
    while !runs.iter().all(|run| projects::is_completed(&cluster, run)) {
        for worker in cluster.workers() {
            let has = list(&worker, "runs").len();
            assert!(has <= RUNS_MAX, "{worker:#}");
            worked.extend(cluster.server_of(&worker).filter(|_| has > 0));
        }
        assert!(since.elapsed() < PATIENCE, "{}", cluster.printed());
        std::thread::sleep(LOOK);
    }
    assert_eq!(worked.len(), SERVERS, "each worked on some: {worked:?}");

    for (run, stream) in runs.iter().zip(&mut streams) {
        let last = projects::events(&cluster, run).last().and_then(|event| event["number"].as_u64());
        let told: Vec<u64> = stream.until(|frame| frame.id == last).iter().filter_map(|frame| frame.id).collect();
        assert_eq!(told, (1..=told.len() as u64).collect::<Vec<_>>(), "{run}: the stream has all, in order");
    }
    for (name, run) in names.iter().zip(&runs) {
        for at in 0..SERVERS {
            let said = cluster.ask_at(at, "GET", &format!("/api/v1/runs/{run}"), &Value::Null).expect("an answer");
            assert_eq!(said.expect(200).json()["status"], "completed");
        }
        projects::account(&cluster, name, run, &reference);
    }

    cluster.wait_until_idle();
    let told = cluster.lab.json(&["workers"]);
    let workers = list(&told, "items");
    assert_eq!(workers.len(), SERVERS, "{told:#}");
    assert_eq!(workers.iter().filter(|worker| worker["is_leader"] == true).count(), 1, "{told:#}");
    assert_eq!(workers.iter().filter(|worker| worker["labels"] == json!([FAR])).count(), SERVERS - 1, "{told:#}");
    for worker in workers {
        let is_named =
            ["name", "host"].iter().all(|field| worker[*field].as_str().is_some_and(|text| !text.is_empty()));
        assert!(is_named && worker["is_alive"] == true && worker["runs"] == json!([]), "{worker:#}");
    }
}

#[test]
fn a_run_that_needs_a_label_waits_and_says_so_until_a_server_with_it_joins() {
    let database = PostgresServer::shared();
    let url = database.database();
    let mut cluster = Cluster::prepared(LEASE_UNDISTURBED, |_| url.clone());
    cluster.settle(2, &["gpu"]);
    cluster.begin(0);
    cluster.begin(1);
    cluster.wait_until_joined();
    projects::make_for(&cluster, "errand", "gpu");
    let run = cluster.run("errand");
    let waits = |told: &Value| list(told, "runs_waiting").iter().any(|waiting| waiting == run.as_str());
    cluster.until("/api/v1/workers", waits);
    let says = |status: &Value| status["reason"].as_str().is_some_and(|reason| reason.contains("the labels gpu"));
    cluster.until(&format!("/api/v1/runs/{run}"), says);
    assert_eq!((projects::posted(&cluster, "errand"), cluster.holder(&run)), (0, None), "nobody works on it");
    cluster.lab.fake.posts_take(CALL_TIME);
    cluster.begin(2);
    assert_eq!(cluster.wait_for_holder(&run), 2);
    cluster.lab.fake.posts_take(Duration::ZERO);
    assert_eq!(projects::finish(&cluster, &run), 0);
    assert!(!waits(&cluster.get("/api/v1/workers")));
}

#[test]
fn orders_at_any_server_reach_the_one_that_works_on_the_run() {
    let database = PostgresServer::shared();
    let url = database.database();
    let cluster = Cluster::undisturbed(|_| url.clone());
    let (run, holder) = at_work(&cluster, "steered");
    let path = format!("/api/v1/runs/{run}");
    let others = [1, 2].map(|next| (holder + next) % SERVERS);
    cluster.order_at(others[0], &format!("{path}/steer"), &json!({ "text": "mind the gap" }));
    let heard = |page: &Value| {
        let is_it =
            |event: &Value| event["type"] == "steering" && event["payload"].to_string().contains("mind the gap");
        list(page, "items").iter().any(is_it)
    };
    cluster.until(&format!("{path}/events?limit=1000"), heard);
    cluster.order_at(others[1], &format!("{path}/pause"), &json!({}));
    cluster.until_status(&run, "paused");
    cluster.lab.fake.posts_take(Duration::ZERO);
    cluster.order_at(others[0], &format!("{path}/resume"), &json!({}));
    cluster.until(&path, |status| status["status"] != "paused");
    assert_eq!(projects::finish(&cluster, &run), 0, "a call on its way is waited for before a pause");

    let (run, holder) = at_work(&cluster, "cancelled");
    let path = format!("/api/v1/runs/{run}");
    cluster.order_at((holder + 1) % SERVERS, &format!("{path}/tasks/one/cancel"), &json!({}));
    cluster.until(&path, |status| list(status, "features")[0]["status"] != "in_progress");
    cluster.order_at((holder + 2) % SERVERS, &format!("{path}/abandon"), &json!({ "reason": "it was a test" }));
    cluster.until_status(&run, "abandoned");
    cluster.lab.fake.posts_take(Duration::ZERO);
    is_approved(&cluster);
}

/// A run on a far server asks before it makes a call, and is answered at one server after the other.
fn is_approved(cluster: &Cluster) {
    projects::make_asking_for(cluster, "asked", FAR);
    let run = cluster.run("asked");
    // The last answer is for all further calls, too.
    for (at, answer) in ["y", "y", "a"].into_iter().enumerate() {
        let open = cluster.until(&format!("/api/v1/approvals?open=true&run={run}"), |all| all["total"] == 1);
        let id = list(&open, "items")[0]["id"].as_str().expect("an id").to_owned();
        assert_eq!(projects::posted(cluster, "asked"), at, "nothing is done unasked");
        cluster.order_at(at, &format!("/api/v1/approvals/{id}/answer"), &json!({ "text": answer }));
        cluster.until(&format!("/api/v1/approvals/{id}"), |one| one["status"] != "open");
    }
    assert_eq!(projects::finish(cluster, &run), 0);
    assert_eq!(projects::posted(cluster, "asked"), EFFECTS, "each once");
}

/// Begins a run on a far server, and waits until it has made its first call. Returns the run and its server.
fn at_work(cluster: &Cluster, name: &str) -> (String, usize) {
    cluster.lab.fake.posts_take(CALL_TIME);
    projects::make_for(cluster, name, FAR);
    let run = cluster.run(name);
    let holder = projects::wait_for_call(cluster, name, &run);
    (run, holder)
}
