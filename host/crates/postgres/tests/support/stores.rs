//! Stores of tests, and batches that show when one of them is lost, torn or written twice.

#![allow(dead_code, reason = "each test uses its part")]

use crate::server::PostgresServer;
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Store, StoreError, Table};
use longhaul_postgres::{ContentConfig, Holder, LeaseLost, PostgresConfig, PostgresOptions, PostgresStore};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A lease that ends soon, for tests that wait for its end.
pub const SHORT_MS: u64 = 2_000;

/// A lease that no test outlives.
pub const LONG_MS: u64 = 600_000;

/// The settings of a new store on a server, with a lease that no test outlives.
pub fn config(url: &str) -> PostgresConfig {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let schema = format!("store_{}", MADE.fetch_add(1, Ordering::SeqCst));
    PostgresConfig { schema, lease_ms: LONG_MS, ..PostgresConfig::at(url) }
}

/// Settings that have all content which may be outside of the database in a directory.
pub fn content_in(folder: &Path) -> ContentConfig {
    ContentConfig { bytes_min: 4_096, ..ContentConfig::at(&format!("file://{}", folder.display())) }
}

/// The report of a store about its loss.
#[derive(Clone, Default)]
pub struct Losses(Arc<Mutex<Vec<String>>>);

impl Losses {
    pub fn told(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Options of a store that tells its loss here.
    pub fn options(&self, host: &str) -> PostgresOptions {
        let losses = Arc::clone(&self.0);
        let on_lost = move |lost: &LeaseLost| {
            losses.lock().unwrap_or_else(PoisonError::into_inner).push(lost.to_string());
        };
        PostgresOptions { holder: holder(host), crash_hook: None, on_lost: Arc::new(on_lost) }
    }
}

/// This process, on a machine of that name.
pub fn holder(host: &str) -> Holder {
    let url = Some(format!("http://{host}.example:7717"));
    Holder { host: host.to_owned(), pid: std::process::id(), directory: format!("/data/{host}").into(), url }
}

/// Opens a store that must open, and whose loss nobody expects.
#[track_caller]
pub fn open(config: &PostgresConfig, host: &str) -> Arc<PostgresStore> {
    Arc::new(try_open(config, host).unwrap_or_else(|error| panic!("{error}")))
}

/// Opens a store whose loss nobody expects.
pub fn try_open(config: &PostgresConfig, host: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(config, &|_| None, Losses::default().options(host))
}

/// Joins a store that is there, on the seat of the worker of that name, which is also its machine's.
#[track_caller]
pub fn join(config: &PostgresConfig, name: &str, losses: &Losses) -> Arc<PostgresStore> {
    let joined =
        PostgresStore::join(config, &|_| None, losses.options(name), name, &mut |_waiting| ControlFlow::Break(()));
    Arc::new(joined.unwrap_or_else(|error| panic!("{error}")))
}

/// The error of an attempt to open a store. It is one line.
#[track_caller]
pub fn refusal(opened: Result<PostgresStore, StoreError>) -> StoreError {
    let refused = opened.err().expect("the store should be refused");
    assert!(!refused.to_string().contains('\n'), "{refused}");
    refused
}

/// Batch `number` of a caller: an event that names its content, and the count of the caller, which only the batch
/// before it can have left. A batch that is written a second time conflicts.
pub fn batch(caller: &str, number: u64) -> Batch {
    let mut batch = Batch::new();
    let digest = batch.blob(content(caller, number));
    batch.push(Op::Insert(Table::Events, event(caller).number(number), digest.to_string().into_bytes()));
    let (key, count) = (Key::of("count").and(caller), number.to_string().into_bytes());
    batch.push(match number.checked_sub(1) {
        None => Op::Insert(Table::States, key, count),
        Some(before) => Op::Swap(Table::States, key, Digest::of(before.to_string().as_bytes()), count),
    });
    batch
}

/// Checks that the first batches of a caller are there in whole, and nothing of another; returns how many.
#[track_caller]
pub fn check(store: &dyn Store, caller: &str) -> u64 {
    let events = store.scan(Table::Events, &event(caller), None, usize::MAX).expect("readable");
    for (number, (key, digest)) in (0..).zip(&events) {
        assert_eq!(key, event(caller).number(number).as_bytes(), "an event of {caller} is missing");
        let content = content(caller, number);
        assert_eq!(*digest, Digest::of(&content).to_string().into_bytes());
        assert_eq!(store.blob(&Digest::of(&content)).expect("readable"), Some(content), "{caller} {number}");
    }
    let count = store.get(Table::States, &Key::of("count").and(caller)).expect("readable");
    let there = events.len() as u64;
    assert_eq!(count, there.checked_sub(1).map(|last| last.to_string().into_bytes()), "the count of {caller}");
    there
}

/// The number of events of a caller, as the database has them.
#[track_caller]
pub fn events_of(server: &PostgresServer, config: &PostgresConfig, caller: &str) -> u64 {
    let start = event(caller);
    let (length, start) = (start.as_bytes().len(), hex(start.as_bytes()));
    let rows = format!("{}.kv where table_no = 3 and substr(key, 1, {length}) = {start}", config.schema);
    server.value(&format!("select count(*) from {rows}")).parse().expect("a number")
}

/// Bytes as SQL.
pub fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("'\\x{digits}'::bytea")
}

fn event(caller: &str) -> Key {
    Key::of("event").and(caller)
}

/// Content of one caller alone, of different lengths, of which some compress.
fn content(caller: &str, number: u64) -> Vec<u8> {
    let length = usize::try_from(number % 7).expect("small") * 300 + 40;
    format!("{caller} {number} ").into_bytes().into_iter().cycle().take(length).collect()
}
