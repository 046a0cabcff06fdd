//! Servers that end while others work: in order, and as the one that leads.

use super::lab::{Cluster, FAR, LOOK, PATIENCE, SERVERS};
use super::projects::{self, EFFECTS};
use crate::postgres_server::PostgresServer;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The time of a call that acts, of which a run makes several.
const CALL_TIME: Duration = Duration::from_millis(2_000);

#[test]
fn a_server_that_is_told_to_end_hands_its_runs_over_and_nothing_is_repeated() {
    let database = PostgresServer::shared();
    let url = database.database();
    let mut cluster = Cluster::start(|_| url.clone());
    let reference = projects::undisturbed(&cluster, "errand-undisturbed");
    let before = cluster.lab.fake.requests();
    cluster.lab.fake.posts_take(CALL_TIME);
    projects::make_for(&cluster, "errand", FAR);
    let run = cluster.run("errand");
    let first = projects::wait_for_call(&cluster, "errand", &run);
    let ended = cluster.terminate(first).expect(0);
    let posted = projects::posted(&cluster, "errand");
    assert!(posted < EFFECTS, "it ended before its run did: {posted} of {EFFECTS}\n{}", ended.said());
    cluster.lab.fake.posts_take(Duration::ZERO);
    assert_eq!(projects::finish(&cluster, &run), 0, "calls on their way are waited for, so nobody is asked");
    projects::account(&cluster, "errand", &run, &reference);
    let after = cluster.lab.fake.requests();
    let effects = u32::try_from(EFFECTS).expect("few");
    for kind in ["post", "put", "look"] {
        assert_eq!(after[kind] - before[kind], effects, "{kind}: no call is made twice");
    }
}

#[test]
fn another_server_leads_when_the_first_one_is_killed_and_runs_on_third_servers_go_on_as_they_are() {
    let database = PostgresServer::shared();
    let url = database.database();
    let mut cluster = Cluster::start(|_| url.clone());
    let reference = projects::undisturbed(&cluster, "errand-undisturbed");
    cluster.lab.fake.posts_take(CALL_TIME);
    let names = ["errand-a", "errand-b", "errand-c"];
    names.iter().for_each(|name| projects::make(&cluster, name));
    let runs = names.map(|name| cluster.run(name));
    let mut holders = Vec::new();
    for (name, run) in names.iter().zip(&runs) {
        holders.push(projects::wait_for_call(&cluster, name, run));
    }
    assert_eq!(holders.iter().collect::<BTreeSet<_>>().len(), SERVERS, "each has one: {holders:?}");
    let resumed = runs.each_ref().map(|run| projects::count(&cluster, run, "resumed"));
    let leader = cluster.leader().expect("it runs");
    cluster.kill(leader);
    let since = Instant::now();
    while cluster.leader().is_none() {
        assert!(since.elapsed() < PATIENCE, "nobody leads: {}", cluster.printed());
        std::thread::sleep(LOOK);
    }
    let (lost, others): (Vec<usize>, Vec<usize>) = (0..names.len()).partition(|at| holders[*at] == leader);
    for at in &others {
        assert_eq!(cluster.holder(&runs[*at]), Some(holders[*at]), "{}: it is where it was", names[*at]);
    }
    cluster.lab.fake.posts_take(Duration::ZERO);
    for at in others {
        assert_eq!(projects::finish(&cluster, &runs[at]), 0, "{}: nobody is asked", names[at]);
        assert_eq!(projects::count(&cluster, &runs[at], "resumed"), resumed[at], "{}: it never stopped", names[at]);
    }
    for at in lost {
        projects::finish(&cluster, &runs[at]);
        assert!(projects::count(&cluster, &runs[at], "resumed") > resumed[at], "{}: it was taken over", names[at]);
    }
    for (name, run) in names.iter().zip(&runs) {
        projects::account(&cluster, name, run, &reference);
    }
}
