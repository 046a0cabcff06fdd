//! Workers beside the owner of a store: what each of them writes, what becomes of one that is evicted or replaced, and
//! how two that write the same keys fare.

#[path = "support/peer.rs"]
mod peer;
#[path = "support/pgbouncer.rs"]
mod pgbouncer;
#[path = "support/pooler.rs"]
mod pooler;
#[path = "support/server.rs"]
mod server;
#[path = "support/stores.rs"]
mod stores;

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Seat, Seats as _, Store as _, StoreError, Table};
use longhaul_postgres::{FORMAT, LeaseLost, PostgresConfig, PostgresOptions, PostgresStore, Waiting, inspect};
use peer::{Peer, ROLE};
use pgbouncer::PgBouncer;
use rustix::process::Signal;
use server::{PostgresServer, wait};
use std::ops::ControlFlow;
use std::sync::Arc;
use stores::{Losses, SHORT_MS, batch, check, events_of, join, refusal, try_open};
use tokio::runtime::Runtime;

const URL: &str = "LONGHAUL_TEST_URL";
const SCHEMA: &str = "LONGHAUL_TEST_SCHEMA";

/// The callers of each of two seats, and how often each of them counts.
const CALLERS: usize = 4;
const TIMES: usize = 20;

/// Keys that all callers insert.
const KEYS: u64 = 40;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn names_nothing(_: &[u8]) -> Vec<Digest> {
    Vec::new()
}

/// Not a test but the child's main function: it does nothing unless a parent gave it a role.
#[test]
fn child() {
    if std::env::var(ROLE).is_ok_and(|role| role == "work") {
        work();
    }
}

/// Joins the store as `sleeper`, and commits until its seat is lost.
fn work() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let config = PostgresConfig { schema: variable(SCHEMA), lease_ms: SHORT_MS, ..PostgresConfig::at(&variable(URL)) };
    // The harness may have begun a line.
    println!();
    let options = PostgresOptions {
        holder: stores::holder("sleeper"),
        crash_hook: None,
        on_lost: Arc::new(|lost: &LeaseLost| println!("lost {lost}")),
    };
    let store = PostgresStore::join(&config, &|_| None, options, "sleeper", &mut |_waiting| ControlFlow::Break(()));
    let (store, runtime) = (store.unwrap(), runtime());
    let mut number = 0;
    let refused = loop {
        match runtime.block_on(store.commit(batch("sleeper", number))) {
            Ok(()) => println!("ack {number}"),
            Err(why) => break why,
        }
        number += 1;
    };
    println!("late {refused:?}");
    println!("late {:?}", runtime.block_on(store.commit(batch("sleeper", number))).unwrap_err());
}

#[track_caller]
fn seat_of(store: &PostgresStore, name: &str) -> Seat {
    let seats = store.seats().unwrap();
    seats.into_iter().find(|seat| seat.name == name).unwrap_or_else(|| panic!("no seat `{name}`"))
}

/// Has the lease of a worker run out, as that of one that sleeps.
fn end_lease(server: &PostgresServer, config: &PostgresConfig, name: &str) {
    let over = "set lease_until = clock_timestamp() - interval '1 second'";
    server.ask(&format!("update {}.worker {over} where name = '{name}'", config.schema));
}

#[track_caller]
fn assert_fenced(runtime: &Runtime, store: &PostgresStore, batch: Batch, words: &str) {
    let refused = runtime.block_on(store.commit(batch)).unwrap_err();
    assert!(matches!(&refused, StoreError::Fenced { detail, .. } if detail.contains(words)), "{refused:?}");
    assert!(!store.is_held());
}

#[test]
fn a_worker_commits_beside_the_owner_and_each_counts_its_own_commits() {
    let (runtime, server, losses) = (runtime(), PostgresServer::shared(), Losses::default());
    let config = stores::config(&server.url());
    let owner = stores::open(&config, "owner");
    assert!(owner.seats().unwrap().is_empty());
    let (one, two) = (join(&config, "w-1", &losses), join(&config, "w-2", &losses));
    for number in 0..3 {
        runtime.block_on(owner.commit(batch("owner", number))).unwrap();
        runtime.block_on(one.commit(batch("one", number))).unwrap();
    }
    runtime.block_on(two.commit(batch("two", 0))).unwrap();
    runtime.block_on(owner.commit(batch("owner", 3))).unwrap();
    for store in [&owner, &one, &two] {
        assert_eq!((check(&**store, "owner"), check(&**store, "one"), check(&**store, "two")), (4, 3, 1));
    }
    assert_eq!([&owner, &one, &two].map(|store| store.commits().get()), [4, 3, 1]);
    let told: Vec<_> = one.seats().unwrap().into_iter().map(|seat| (seat.name, seat.epoch, seat.commits)).collect();
    assert_eq!(told, [("w-1".to_owned(), 1, 3), ("w-2".to_owned(), 1, 1)]);
    let seat = seat_of(&owner, "w-1");
    assert!(seat.holder.contains("on w-1 with /data/w-1") && seat.left_ms > 500_000, "{seat:?}");
    assert_eq!((one.epoch(), owner.epoch(), one.is_held()), (1, 1, true));
    drop(one);
    let seat = seat_of(&owner, "w-1");
    assert_eq!((seat.left_ms, seat.holder.as_str(), seat.commits), (0, "", 3));
    let one = join(&config, "w-1", &losses);
    assert_eq!((one.epoch(), one.commits().get(), one.is_untouched()), (2, 3, false));
    assert_eq!(losses.told(), [""; 0]);
}

#[test]
fn of_two_seats_that_write_a_key_at_once_one_wins_and_a_counter_loses_nothing() {
    let server = PostgresServer::shared();
    race(&stores::config(&server.url()));
}

/// PgBouncer refuses the settings of a session, and each commit brings its own transaction.
#[test]
fn behind_a_pooler_two_seats_write_the_same_keys_as_without_one() {
    let server = PostgresServer::shared();
    let port = pooler::start(server.port);
    let config = stores::config(&format!("postgres://longhaul@127.0.0.1:{port}/postgres"));
    assert!(inspect(&config, &|_| None).unwrap().is_pooled);
    race(&config);
}

/// The settings of a new store behind a PgBouncer.
fn behind(pooler: &PgBouncer) -> PostgresConfig {
    stores::config(&format!("postgres://longhaul@127.0.0.1:{}/postgres", pooler.port))
}

/// In transaction mode each commit may get another session. In session mode, and where the settings of a session are
/// ignored in the place of refused, the same way is taken.
#[test]
fn over_pgbouncer_two_seats_write_the_same_keys_in_session_and_in_transaction_mode() {
    let server = PostgresServer::shared();
    for settings in ["pool_mode = session", "pool_mode = transaction\nignore_startup_parameters = options"] {
        let pooler = PgBouncer::start(server.port, settings);
        let config = behind(&pooler);
        assert!(inspect(&config, &|_| None).unwrap().is_pooled, "{settings}");
        race(&config);
    }
}

/// It would take the claim and refuse every commit, so it is refused before there are tables.
#[test]
fn pgbouncer_in_statement_mode_is_refused_with_the_modes_that_work() {
    let server = PostgresServer::shared();
    for settings in ["pool_mode = statement", "pool_mode = statement\nignore_startup_parameters = options"] {
        let pooler = PgBouncer::start(server.port, settings);
        let config = behind(&pooler);
        let refused = refusal(try_open(&config, "owner"));
        let told = refused.to_string();
        assert!(matches!(refused, StoreError::Refused { .. }), "{refused:?}");
        let port = pooler.port.to_string();
        for words in ["statement mode", "pool_mode = transaction, or session", port.as_str()] {
            assert!(told.contains(words), "{told}");
        }
        let asked = inspect(&config, &|_| None).unwrap_err().to_string();
        assert_eq!(asked, told, "the doctor says the same");
        let made = format!("select count(*) from pg_namespace where nspname = '{}'", config.schema);
        assert_eq!(server.value(&made), "0");
    }
}

fn race(config: &PostgresConfig) {
    let (runtime, losses) = (runtime(), Losses::default());
    let seats = [stores::open(config, "owner"), join(config, "w-1", &losses)];
    let callers = || seats.iter().flat_map(|seat| (0..CALLERS).map(move |_| Arc::clone(seat)));
    let counting: Vec<_> = callers().map(|seat| runtime.spawn(async move { count_up(&seat).await })).collect();
    for number in 0..KEYS {
        let commit = |seat: Arc<PostgresStore>, batch: Batch| runtime.spawn(async move { seat.commit(batch).await });
        let insert = || Batch::new().insert(Table::Events, Key::of("raced").number(number), "v");
        let put = || Batch::new().put(Table::States, Key::of("put by all"), number.to_string());
        let inserting: Vec<_> = callers().map(|seat| commit(seat, insert())).collect();
        let putting: Vec<_> = callers().map(|seat| commit(seat, put())).collect();
        let inserted: Vec<_> = inserting.into_iter().map(|caller| runtime.block_on(caller).unwrap()).collect();
        assert_eq!(inserted.iter().filter(|done| done.is_ok()).count(), 1, "key {number}: {inserted:?}");
        let is_told = |done: &Result<(), StoreError>| matches!(done, Ok(()) | Err(StoreError::Conflict { .. }));
        assert!(inserted.iter().all(is_told), "key {number}: {inserted:?}");
        for caller in putting {
            runtime.block_on(caller).unwrap().unwrap();
        }
    }
    for caller in counting {
        runtime.block_on(caller).unwrap();
    }
    let all = (2 * CALLERS * TIMES).to_string();
    for seat in &seats {
        assert_eq!(seat.get(Table::States, &counter()).unwrap(), Some(all.clone().into_bytes()));
        let last = seat.get(Table::States, &Key::of("put by all")).unwrap();
        assert_eq!(last, Some((KEYS - 1).to_string().into_bytes()));
    }
    assert_eq!(losses.told(), [""; 0]);
}

fn counter() -> Key {
    Key::of("counted by all")
}

/// Counts on from what is there, until it did so some times.
async fn count_up(store: &PostgresStore) {
    let mut counted = 0;
    while counted < TIMES {
        let op = match store.get(Table::States, &counter()).unwrap() {
            None => Op::Insert(Table::States, counter(), b"1".to_vec()),
            Some(value) => {
                let next = String::from_utf8(value.clone()).unwrap().parse::<u64>().unwrap() + 1;
                Op::Swap(Table::States, counter(), Digest::of(&value), next.to_string().into_bytes())
            }
        };
        match store.commit(Batch { ops: vec![op] }).await {
            Ok(()) => counted += 1,
            Err(StoreError::Conflict { .. }) => {}
            Err(why) => panic!("{why}"),
        }
    }
}

#[test]
fn a_worker_that_slept_past_its_lease_and_was_evicted_writes_nothing_late() {
    let server = PostgresServer::shared();
    let config = PostgresConfig { lease_ms: SHORT_MS, ..stores::config(&server.url()) };
    let (runtime, owner) = (runtime(), stores::open(&config, "owner"));
    let mut sleeper = Peer::start("work", &[(URL, config.url.clone()), (SCHEMA, config.schema.clone())]);
    sleeper.line("ack 20");
    let seat = seat_of(&owner, "sleeper");
    assert!(!runtime.block_on(owner.evict(&seat)).unwrap(), "its lease runs");
    sleeper.signal(Signal::STOP);
    wait("its lease ends", || seat_of(&owner, "sleeper").left_ms == 0);
    let seat = seat_of(&owner, "sleeper");
    assert!(runtime.block_on(owner.evict(&seat)).unwrap());
    let written = events_of(&server, &config, "sleeper");
    runtime.block_on(owner.commit(batch("owner", 0))).unwrap();
    // It was stopped in the middle of a commit, or between two.
    sleeper.signal(Signal::CONT);
    sleeper.end();
    assert_eq!(events_of(&server, &config, "sleeper"), written, "a late write is there");
    let lost = sleeper.seen("lost ");
    assert!(matches!(&lost[..], [lost] if lost.contains("its claim is no longer there")), "{lost:?}");
    let late = sleeper.seen("late ");
    assert!(late.len() == 2 && late.iter().all(|error| error.starts_with("Fenced")), "{late:?}");
    let told = sleeper.seen("ack ").len() as u64;
    assert!((told..=told + 1).contains(&written), "{told} batches were acknowledged, {written} are there");
    assert_eq!((check(&*owner, "sleeper"), check(&*owner, "owner")), (written, 1));
}

/// Long leases, so that nothing is renewed but what a commit renews.
#[test]
fn only_the_claim_that_was_seen_to_run_out_is_evicted() {
    let (runtime, server, losses) = (runtime(), PostgresServer::shared(), Losses::default());
    let config = stores::config(&server.url());
    let owner = stores::open(&config, "owner");
    let evict = |seat: &Seat| runtime.block_on(owner.evict(seat)).unwrap();
    let worker = join(&config, "w-1", &losses);
    runtime.block_on(worker.commit(batch("worker", 0))).unwrap();
    end_lease(&server, &config, "w-1");
    let over = seat_of(&owner, "w-1");
    assert_eq!(over.left_ms, 0);
    runtime.block_on(worker.commit(batch("worker", 1))).unwrap();
    assert!(!evict(&over), "it renewed its lease");
    let again = join(&config, "w-1", &Losses::default());
    end_lease(&server, &config, "w-1");
    assert!(!evict(&over), "it joined anew");
    assert!(!evict(&Seat { name: "w-2".to_owned(), ..over }), "there is none");
    let seat = seat_of(&owner, "w-1");
    assert!(evict(&seat));
    assert!(evict(&seat), "an answer that was lost is told again");
    assert_fenced(&runtime, &again, batch("worker", 2), "its claim is no longer there");
    let third = join(&config, "w-1", &Losses::default());
    assert_eq!((seat_of(&owner, "w-1").epoch, third.epoch()), (seat.epoch + 2, seat.epoch + 2));
    assert!(!evict(&seat), "it joined after that");
    runtime.block_on(third.commit(batch("worker", 2))).unwrap();
    drop(third);
    assert!(evict(&seat_of(&owner, "w-1")), "a seat that was given back has no lease");
    assert_eq!(check(&*owner, "worker"), 3);
}

#[test]
fn a_worker_that_joins_anew_takes_its_seat_over_at_once_and_fences_the_process_before() {
    let (runtime, server, losses) = (runtime(), PostgresServer::shared(), Losses::default());
    let config = stores::config(&server.url());
    let _owner = stores::open(&config, "owner");
    let former = join(&config, "w-1", &losses);
    runtime.block_on(former.commit(batch("worker", 0))).unwrap();
    let next = join(&config, "w-1", &Losses::default());
    runtime.block_on(next.commit(batch("worker", 1))).unwrap();
    assert_fenced(&runtime, &former, batch("worker", 2), "on w-1 with /data/w-1 took it over");
    assert_eq!(losses.told().len(), 1);
    drop(former);
    runtime.block_on(next.commit(batch("worker", 2))).unwrap();
    assert_eq!((next.epoch(), check(&*next, "worker")), (2, 3));
}

#[test]
fn who_joins_makes_and_changes_no_tables_but_waits_for_the_owner() {
    let server = PostgresServer::shared();
    let config = stores::config(&server.url());
    let join_once = || {
        let mut told = Vec::new();
        let waiting = &mut |waiting: &Waiting| {
            told.push(waiting.to_string());
            ControlFlow::Break(())
        };
        let joined = PostgresStore::join(&config, &|_| None, Losses::default().options("w-1"), "w-1", waiting);
        (joined, told.concat())
    };
    let (joined, told) = join_once();
    assert!(matches!(stores::refusal(joined), StoreError::Unreachable { .. }));
    assert!(told.contains("no server has made its tables yet"), "{told}");
    let made = format!("select count(*) from pg_namespace where nspname = '{}'", config.schema);
    assert_eq!(server.value(&made), "0");
    drop(stores::open(&config, "owner"));
    server.ask(&format!("drop table {0}.worker; update {0}.meta set format = 2", config.schema));
    let (joined, told) = join_once();
    assert!(matches!(stores::refusal(joined), StoreError::Unreachable { .. }));
    assert!(told.contains("no server has updated its tables to this version yet"), "{told}");
    let _owner = stores::open(&config, "owner");
    assert!(join_once().0.is_ok());
    server.ask(&format!("update {}.meta set format = format + 1", config.schema));
    let (newer, told) = join_once();
    assert!(matches!(stores::refusal(newer), StoreError::Format { expected: FORMAT, .. }) && told.is_empty(), "{told}");
}

#[test]
fn a_worker_removes_no_content_and_a_name_that_is_none_is_refused() {
    let (runtime, server, losses) = (runtime(), PostgresServer::shared(), Losses::default());
    let config = stores::config(&server.url());
    let owner = stores::open(&config, "owner");
    let worker = join(&config, "w-1", &losses);
    let mut unnamed = Batch::new();
    unnamed.blob(b"named by nothing".to_vec());
    runtime.block_on(worker.commit(unnamed)).unwrap();
    assert_eq!(runtime.block_on(worker.collect(&names_nothing, true)).unwrap().removed, 1);
    let refused = runtime.block_on(worker.collect(&names_nothing, false)).unwrap_err();
    assert!(refused.to_string().contains("collect it at the server that owns the store"), "{refused}");
    assert_eq!(runtime.block_on(owner.collect(&names_nothing, false)).unwrap().removed, 1);
    let options = Losses::default().options("w-1");
    let named = PostgresStore::join(&config, &|_| None, options, "w'1", &mut |_waiting| ControlFlow::Break(()));
    let refused = stores::refusal(named);
    assert!(matches!(&refused, StoreError::Refused { detail, .. } if detail.contains("`w\\'1`")), "{refused:?}");
}
