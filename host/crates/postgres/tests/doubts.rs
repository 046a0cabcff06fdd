//! A store that cannot be right: its writer or its tables are gone, an answer makes no sense, commits would
//! not last, and a removal goes on after its caller.

#[path = "support/server.rs"]
mod server;
#[path = "support/stores.rs"]
mod stores;

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Store as _, StoreError, Table};
use longhaul_postgres::{PostgresConfig, PostgresOptions, PostgresStore};
use server::{PostgresServer, wait};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stores::{Losses, batch, check};
use tokio::runtime::Runtime;

/// The timeout for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The settings of a new store whose callers do not wait for long.
fn hasty(server: &PostgresServer) -> PostgresConfig {
    PostgresConfig { connect_ms_max: 1_000, statement_ms_max: 1_000, ..stores::config(&server.url()) }
}

fn names_nothing(_: &[u8]) -> Vec<Digest> {
    Vec::new()
}

#[test]
fn content_that_a_removal_takes_whose_caller_is_gone_is_not_left_out_of_the_next_batch() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let (is_armed, gate, (reached, reaches)) =
        (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(())), channel::<()>());
    let hook = {
        let (is_armed, gate) = (Arc::clone(&is_armed), Arc::clone(&gate));
        move |point: &'static str| {
            if point == "store.before-commit" && is_armed.swap(false, Ordering::SeqCst) {
                reached.send(()).unwrap();
                drop(gate.lock());
            }
        }
    };
    let options = PostgresOptions { crash_hook: Some(Arc::new(hook)), ..Losses::default().options("a") };
    let store = Arc::new(PostgresStore::open(&stores::config(&server.url()), &|_| None, options).unwrap());
    // Long enough to be looked for before it is sent.
    let content = vec![7_u8; 64 << 10];
    let mut unnamed = Batch::new();
    let digest = unnamed.blob(content.clone());
    runtime.block_on(store.commit(unnamed)).unwrap();

    let held = gate.lock().unwrap();
    is_armed.store(true, Ordering::SeqCst);
    let collecting = Arc::clone(&store);
    let collect = runtime.spawn(async move { collecting.collect(&names_nothing, false).await });
    reaches.recv_timeout(PATIENCE).unwrap();
    collect.abort();
    assert!(runtime.block_on(collect).unwrap_err().is_cancelled());
    let mut naming = Batch::new();
    let named = naming.blob(content.clone());
    let naming = naming.put(Table::Runs, Key::of("r-1"), named.to_string());
    let committing = Arc::clone(&store);
    let mut commit = runtime.spawn(async move { committing.commit(naming).await });
    // Time enough for a look at the content, which is there until the removal goes on.
    let waits = runtime.block_on(async { tokio::time::timeout(Duration::from_millis(300), &mut commit).await });
    assert!(waits.is_err(), "{waits:?}");
    drop(held);
    runtime.block_on(commit).unwrap().unwrap();
    assert!(store.blob(&digest).unwrap() == Some(content), "the content of a row is gone");
}

#[test]
fn a_store_whose_writer_ended_by_a_defect_is_lost() {
    let (runtime, losses, server) = (runtime(), Losses::default(), PostgresServer::shared());
    let is_armed = Arc::new(AtomicBool::new(false));
    let hook = {
        let is_armed = Arc::clone(&is_armed);
        move |_: &'static str| assert!(!is_armed.load(Ordering::SeqCst), "expected by this test")
    };
    let options = PostgresOptions { crash_hook: Some(Arc::new(hook)), ..losses.options("a") };
    let store = PostgresStore::open(&stores::config(&server.url()), &|_| None, options).unwrap();
    runtime.block_on(store.commit(batch("a", 0))).unwrap();
    is_armed.store(true, Ordering::SeqCst);
    runtime.block_on(store.commit(batch("a", 1))).unwrap_err();
    wait("the loss is told", || !losses.told().is_empty());
    assert!(!store.is_held());
    let refused = runtime.block_on(store.commit(batch("a", 1))).unwrap_err();
    assert!(matches!(&refused, StoreError::Fenced { detail, .. } if detail.contains("defect")), "{refused:?}");
    assert_eq!(losses.told(), [refused.to_string()]);
}

#[test]
fn a_store_whose_owner_row_is_gone_is_lost() {
    let (runtime, losses, server) = (runtime(), Losses::default(), PostgresServer::shared());
    let config = stores::config(&server.url());
    let store = PostgresStore::open(&config, &|_| None, losses.options("a")).unwrap();
    runtime.block_on(store.commit(batch("a", 0))).unwrap();
    server.ask(&format!("delete from {}.owner", config.schema));
    let refused = runtime.block_on(store.commit(batch("a", 1))).unwrap_err();
    assert!(matches!(&refused, StoreError::Fenced { detail, .. } if detail.contains("is gone")), "{refused:?}");
    assert_eq!(losses.told(), [refused.to_string()]);
}

/// The statement is carried out, and its answer has another type than the one that was asked for.
#[test]
fn an_answer_that_makes_no_sense_is_an_unknown_outcome_and_no_failure() {
    let (runtime, losses, server) = (runtime(), Losses::default(), PostgresServer::shared());
    let config = hasty(&server);
    let store = PostgresStore::open(&config, &|_| None, losses.options("a")).unwrap();
    runtime.block_on(store.commit(batch("a", 0))).unwrap();
    server.ask(&format!("alter table {}.owner alter head type numeric", config.schema));
    let refused = runtime.block_on(store.commit(batch("a", 1))).unwrap_err();
    assert!(
        matches!(&refused, StoreError::Fenced { detail, .. } if detail.contains("the outcome of a commit is unknown")),
        "{refused:?}"
    );
    assert_eq!(losses.told(), [refused.to_string()]);
    assert_eq!(server.value(&format!("select head from {}.owner", config.schema)), "2", "carried out once");
}

#[test]
fn no_commit_is_taken_while_the_server_would_lose_what_it_acknowledges() {
    let (runtime, losses, server) = (runtime(), Losses::default(), PostgresServer::start(&[]));
    let set = |change: &str| {
        server.ask(&format!("alter system {change}"));
        server.ask("select pg_reload_conf()");
    };
    let store = PostgresStore::open(&hasty(&server), &|_| None, losses.options("a")).unwrap();
    set("set synchronous_commit = off");
    let mut kept = 0;
    // A server reads its settings again when it comes to it.
    let refused = loop {
        match runtime.block_on(store.commit(batch("a", kept))) {
            Ok(()) => kept += 1,
            Err(why) => break why,
        }
        assert!(kept < 100_000, "the server does not read its settings");
    };
    assert!(matches!(&refused, StoreError::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("synchronous_commit = off"), "{refused}");
    assert_eq!(check(&store, "a"), kept);
    set("reset synchronous_commit");
    wait("commits are taken again", || runtime.block_on(store.commit(batch("a", kept))).is_ok());
    assert_eq!(check(&store, "a"), kept + 1);
    assert_eq!(losses.told(), [""; 0]);
}
