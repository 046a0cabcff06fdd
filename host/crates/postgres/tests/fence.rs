//! One owner at a time: what becomes of a process that sleeps, is killed or ends, and of the one that waits for it.
//!
//! The processes are real: this program starts itself, in the role `hold`.

#[path = "support/peer.rs"]
mod peer;
#[path = "support/server.rs"]
mod server;
#[path = "support/stores.rs"]
mod stores;

use longhaul_core::store::{Store as _, StoreError};
use longhaul_postgres::{LeaseLost, PostgresConfig, PostgresOptions, PostgresStore, Waiting};
use peer::{Peer, ROLE};
use rustix::process::Signal;
use server::sql::Session;
use server::{PostgresServer, wait};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use stores::{LONG_MS, Losses, SHORT_MS, batch, check, events_of};

const URL: &str = "LONGHAUL_TEST_URL";
const SCHEMA: &str = "LONGHAUL_TEST_SCHEMA";
/// The name of the child's machine, and of its rows.
const NAME: &str = "LONGHAUL_TEST_NAME";

/// The commits of a child after the one that was refused.
const LATE: u64 = 3;

/// Not a test but the child's main function: it does nothing unless a parent gave it a role.
#[test]
fn child() {
    if std::env::var(ROLE).is_ok_and(|role| role == "hold") {
        hold();
    }
}

/// Waits for the store, and commits until it is lost.
fn hold() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let config = PostgresConfig { schema: variable(SCHEMA), lease_ms: SHORT_MS, ..PostgresConfig::at(&variable(URL)) };
    let name = variable(NAME);
    // The harness may have begun a line.
    println!();
    let options = PostgresOptions {
        holder: stores::holder(&name),
        crash_hook: None,
        on_lost: Arc::new(|lost: &LeaseLost| println!("lost {lost}")),
    };
    let store = PostgresStore::wait_and_open(&config, &|_| None, options, &mut |waiting| {
        println!("waiting {waiting}");
        ControlFlow::Continue(())
    });
    let store = store.unwrap();
    println!("open");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut number = 0;
    let refused = loop {
        match runtime.block_on(store.commit(batch(&name, number))) {
            Ok(()) => println!("ack {number}"),
            Err(why) => break why,
        }
        number += 1;
    };
    println!("late {refused:?}");
    for number in number..number + LATE {
        println!("late {:?}", runtime.block_on(store.commit(batch(&name, number))).unwrap_err());
    }
}

/// Starts another process, which waits for the store and then writes rows of its name.
fn start(config: &PostgresConfig, name: &str) -> Peer {
    let settings = [(URL, config.url.clone()), (SCHEMA, config.schema.clone()), (NAME, name.to_owned())];
    Peer::start("hold", &settings)
}

/// A new store, and its server. Short leases, so that tests wait for their end.
fn store() -> (Arc<PostgresServer>, PostgresConfig) {
    let server = PostgresServer::shared();
    let config = PostgresConfig { lease_ms: SHORT_MS, ..stores::config(&server.url()) };
    (server, config)
}

/// The number of batches that a process was told of as durable: they come one after the other.
fn acknowledged(peer: &Peer) -> u64 {
    peer.seen("ack ").len() as u64
}

#[test]
fn a_process_that_slept_past_its_lease_writes_nothing_late_and_is_told_of_its_loss_once() {
    let (server, config) = store();
    let mut sleeper = start(&config, "sleeper");
    sleeper.line("ack 20");
    sleeper.signal(Signal::STOP);
    let mut next = start(&config, "next");
    let waiting = next.line("waiting ");
    assert!(waiting.contains(&format!("process {} on sleeper", sleeper.id())), "{waiting}");
    next.line("open");
    let written = events_of(&server, &config, "sleeper");
    next.line("ack 5");
    // The process was stopped in the middle of a commit, or between two.
    sleeper.signal(Signal::CONT);
    sleeper.end();
    next.line("ack ");
    assert_eq!(events_of(&server, &config, "sleeper"), written, "a late write is there");
    let lost = sleeper.seen("lost ");
    assert!(matches!(&lost[..], [lost] if lost.contains("on next")), "{lost:?}");
    let late = sleeper.seen("late ");
    assert_eq!(late.len() as u64, 1 + LATE);
    assert!(late.iter().all(|error| error.starts_with("Fenced")), "{late:?}");
    // A batch in flight when it was stopped may have come before.
    let told = acknowledged(&sleeper);
    assert!((told..=told + 1).contains(&written), "{told} batches were acknowledged, {written} are there");
    drop(next);
    assert_eq!(check(&reader(&config), "sleeper"), written);
}

#[test]
fn a_process_that_slept_while_nobody_waited_goes_on_where_it_was() {
    let (server, config) = store();
    let mut sleeper = start(&config, "sleeper");
    sleeper.line("ack 5");
    sleeper.signal(Signal::STOP);
    wait("its lease ends", || is_over(&server, &config));
    // One may be in flight.
    let written = events_of(&server, &config, "sleeper") + 1;
    sleeper.signal(Signal::CONT);
    wait("it goes on", || events_of(&server, &config, "sleeper") > written && !is_over(&server, &config));
    sleeper.signal(Signal::KILL);
    sleeper.end();
    assert!(sleeper.seen("lost ").is_empty() && acknowledged(&sleeper) >= written, "{:?}", sleeper.seen("late "));
}

#[test]
fn a_standby_takes_over_from_a_process_that_was_killed_and_finds_all_it_acknowledged() {
    let (_server, config) = store();
    let mut killed = start(&config, "killed");
    killed.line("ack 10");
    let mut standby = start(&config, "standby");
    standby.line("waiting ");
    killed.signal(Signal::KILL);
    standby.line("open");
    killed.end();
    let told = acknowledged(&killed);
    drop(standby);
    let there = check(&reader(&config), "killed");
    assert!((told..=told + 1).contains(&there), "{told} batches were acknowledged, {there} are there");
}

/// Its lease would last ten minutes.
#[test]
fn a_standby_takes_over_at_once_from_a_process_that_ends_in_order() {
    let server = PostgresServer::shared();
    let config = stores::config(&server.url());
    assert_eq!(config.lease_ms, LONG_MS);
    let first = stores::open(&config, "first");
    let (told, waits) = channel();
    let settings = config.clone();
    let standby = std::thread::spawn(move || {
        PostgresStore::wait_and_open(&settings, &|_| None, Losses::default().options("second"), &mut |waiting| {
            // The test looks at the first one only.
            let _ = told.send(waiting.to_string());
            ControlFlow::Continue(())
        })
    });
    let waiting = waits.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(waiting.contains(&format!("process {} on first with /data/first", std::process::id())), "{waiting}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(first.commit(batch("first", 0))).unwrap();
    drop(first);
    let second = standby.join().unwrap().unwrap();
    assert_eq!(check(&second, "first"), 1);
    runtime.block_on(second.commit(batch("first", 1))).unwrap();
}

#[test]
fn a_second_process_is_refused_and_may_give_up_waiting() {
    let server = PostgresServer::shared();
    let config = stores::config(&server.url());
    let first = stores::open(&config, "first");
    let refused = stores::refusal(stores::try_open(&config, "second"));
    assert!(matches!(&refused, StoreError::Held { path } if *path == config.address()), "{refused}");
    let mut waits = Vec::new();
    let given_up =
        PostgresStore::wait_and_open(&config, &|_| None, Losses::default().options("second"), &mut |waiting| {
            waits.push(waiting.to_string());
            ControlFlow::Break(())
        });
    assert!(matches!(stores::refusal(given_up), StoreError::Held { .. }));
    assert!(matches!(&waits[..], [holder] if holder.contains("on first")), "{waits:?}");
    drop(first);
    stores::open(&config, "second");
}

/// As while a dump is restored: tables that are made meanwhile would be in its way, or taken for the state.
#[test]
fn who_waits_makes_no_tables_in_the_place_of_those_that_were_there() {
    let server = PostgresServer::shared();
    let config = stores::config(&server.url());
    let _first = stores::open(&config, "first");
    let mut waits = Vec::new();
    let given_up =
        PostgresStore::wait_and_open(&config, &|_| None, Losses::default().options("second"), &mut |waiting| {
            waits.push(waiting.to_string());
            if waits.len() > 1 {
                return ControlFlow::Break(());
            }
            server.ask(&format!("drop schema {} cascade", config.schema));
            ControlFlow::Continue(())
        });
    assert!(matches!(stores::refusal(given_up), StoreError::Unreachable { .. }));
    assert!(waits.last().is_some_and(|waiting| waiting.contains("its tables are gone")), "{waits:?}");
    let made = format!("select count(*) from pg_namespace where nspname = '{}'", config.schema);
    assert_eq!(server.value(&made), "0");
}

/// The first one also makes the tables.
#[test]
fn of_several_that_open_a_new_store_at_once_one_gets_it() {
    let server = PostgresServer::shared();
    let config = stores::config(&server.url());
    let opened: Vec<_> = std::thread::scope(|scope| {
        let openers: Vec<_> = (0..6).map(|_| scope.spawn(|| stores::try_open(&config, "one"))).collect();
        openers.into_iter().map(|opener| opener.join().unwrap()).collect()
    });
    let (stores, refusals): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
    assert_eq!(stores.len(), 1);
    for refused in refusals {
        assert!(matches!(stores::refusal(refused), StoreError::Held { .. }));
    }
}

/// Long leases, so that nothing is renewed but what a commit renews.
#[test]
fn a_store_counts_its_commits_what_came_after_its_lease_and_connections_that_broke() {
    let server = PostgresServer::shared();
    let url = server.database();
    let (config, database) = (stores::config(&url), url.rsplit('/').next().unwrap());
    drop(stores::open(&config, "before"));
    let store = stores::open(&config, "a");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let commit = |number| runtime.block_on(store.commit(batch("a", number)));
    let metrics = || store.metrics().expect("a store on a server");
    (0..3).for_each(|number| commit(number).unwrap());
    let conflict = commit(0).unwrap_err();
    assert!(matches!(conflict, StoreError::Conflict { .. }), "{conflict}");
    let told = metrics();
    assert_eq!((told.epoch, told.commits.count(), told.commits_failed, told.commits_waiting), (2, 3, 0, 0));
    assert_eq!((told.fenced_writes, told.reconnects, told.lease_renewals), (0, 0, 0));
    assert!(told.commits.total_micros > 0);

    let mut session = Session::open(server.port, "longhaul", database).unwrap_or_else(|error| panic!("{error}"));
    let over = "set lease_until = clock_timestamp() - interval '1 second'";
    session.ask(&format!("update {}.owner {over}", config.schema)).unwrap_or_else(|error| panic!("{error}"));
    commit(3).unwrap();
    let told = metrics();
    assert_eq!((told.commits.count(), told.fenced_writes, told.lease_renewals, told.reconnects), (4, 1, 1, 0));

    server.ask(&format!(
        "select pg_terminate_backend(pid, 60000) from pg_stat_activity \
         where datname = '{database}' and application_name = 'longhaul'"
    ));
    commit(4).unwrap();
    let told = metrics();
    assert_eq!((told.commits.count(), told.fenced_writes, told.reconnects), (5, 1, 1));
}

#[test]
fn renewals_of_a_lease_are_counted_and_so_are_those_that_fail() {
    let (server, config) = store();
    let store = stores::open(&config, "a");
    let metrics = || store.metrics().expect("a store on a server");
    wait("the lease is renewed", || metrics().lease_renewals > 0 && metrics().lease_left_ms > 0);
    assert!(metrics().lease_left_ms <= SHORT_MS);
    let rename = |from: &str, to: &str| server.ask(&format!("alter table {}.{from} rename to {to}", config.schema));
    rename("owner", "away");
    wait("a renewal fails", || metrics().lease_renewals_failed > 0);
    let renewed = metrics().lease_renewals;
    rename("away", "owner");
    wait("the lease is renewed again", || metrics().lease_renewals > renewed);
}

/// A store whose process was killed.
#[track_caller]
fn reader(config: &PostgresConfig) -> PostgresStore {
    let options = Losses::default().options("reader");
    PostgresStore::wait_and_open(config, &|_| None, options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn is_over(server: &PostgresServer, config: &PostgresConfig) -> bool {
    server.value(&format!("select lease_until < clock_timestamp() from {}.owner", config.schema)) == "t"
}

/// The address of the holder of a store, as one that waits is told.
#[track_caller]
fn told_url(config: &PostgresConfig) -> Option<String> {
    let mut told = None;
    let waited = PostgresStore::wait_and_open(config, &|_| None, Losses::default().options("waits"), &mut |waiting| {
        if let Waiting::Holder { url, .. } = waiting {
            told.clone_from(url);
        }
        ControlFlow::Break(())
    });
    assert!(matches!(stores::refusal(waited), StoreError::Held { .. }));
    told
}

#[test]
fn who_waits_is_told_the_address_of_the_holder_for_which_older_tables_get_a_column() {
    let (server, config) = store();
    let first = stores::open(&config, "a");
    assert_eq!(told_url(&config).as_deref(), Some("http://a.example:7717"));
    let older = format!("alter table {0}.owner drop column url; update {0}.meta set format = 1", config.schema);
    server.ask(&older);
    assert_eq!(told_url(&config), None);
    drop(first);
    let _second = stores::open(&config, "b");
    assert_eq!(told_url(&config).as_deref(), Some("http://b.example:7717"));
}
