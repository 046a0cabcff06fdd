//! Rules of readers beside writers.
//!
//! The promise: one call of [`Store::get`], [`Store::scan`], [`Store::last`] or [`Store::blob`] sees the store at one
//! moment, between two batches. A call that begins after another ended, in whatever thread, sees that moment or a later
//! one. So a reader that found a row of a batch finds the rest of it, in any table, with its next calls, unless a later
//! batch changed it. A batch is seen by every call that begins after its commit returned, and by none before it is
//! durable. Several calls together see several moments: pages of a scan are no snapshot. [`Store::read_all`] sees one
//! moment.

use crate::backend::Backend;
use crate::support::{commit_at_once, insert, key, value};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, ReadTotals, Row, Store, Table};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of threads that read.
const READERS: u64 = 3;

/// The number of rows that each generation overwrites.
const PARTS: usize = 8;

/// Generations and reads that there are at least.
const GENERATIONS: u64 = 100;
const READS: u64 = 300;

/// Generations after which readers are taken for stuck.
const GENERATIONS_MAX: u64 = 20_000;

/// A reader sees each batch whole, never an older state than before, and at once what was acknowledged.
pub async fn readers_see_each_batch_whole_and_never_go_back(backend: &dyn Backend) {
    let store = backend.open().await;
    store.commit(generation(0)).await.unwrap();
    let progress = Arc::new(Progress::default());
    let read = || {
        let (store, progress) = (Arc::clone(&store), Arc::clone(&progress));
        tokio::task::spawn_blocking(move || read_until_done(&*store, &progress))
    };
    let readers: Vec<_> = (0..READERS).map(|_| read()).collect();
    {
        let _done = Done(&progress.done);
        for number in 1..GENERATIONS_MAX {
            store.commit(generation(number)).await.unwrap();
            progress.acknowledged.store(number, Ordering::SeqCst);
            let enough = number >= GENERATIONS && progress.reads.load(Ordering::SeqCst) >= READS;
            if enough || progress.done.load(Ordering::SeqCst) {
                break;
            }
        }
    }
    for reader in readers {
        reader.await.unwrap();
    }
    assert!(progress.reads.load(Ordering::SeqCst) >= READS, "readers are stuck");
}

/// Every thread sees a batch when its commit returned.
pub async fn a_batch_is_seen_when_its_commit_returned(backend: &dyn Backend) {
    let store = backend.open().await;
    for round in 0..20 {
        let numbers = round * 8..round * 8 + 8;
        let verdicts = commit_at_once(&store, numbers.clone().map(|number| insert(number, "x")).collect()).await;
        assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
        let reader = Arc::clone(&store);
        let seen = tokio::task::spawn_blocking(move || {
            let rows = reader.scan(Table::States, &Key::of("k"), None, usize::MAX).unwrap();
            (rows.len() as u64, numbers.map(|number| value(&*reader, number)).all(|value| value.is_some()))
        });
        assert_eq!(seen.await.unwrap(), (round * 8 + 8, true), "round {round}");
    }
}

/// A reading of everything sees one moment while rows move from key to key.
pub async fn a_reading_of_everything_sees_one_moment(backend: &dyn Backend) {
    let store = backend.open().await;
    let moved = |number: u64| {
        let mut batch = insert(number + 1, "as long as before").put(Table::Events, Key::of("at"), number.to_be_bytes());
        batch.push(Op::Delete(Table::States, key(number)));
        batch
    };
    store.commit(moved(0)).await.unwrap();
    let expected = store.read_all().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        tokio::task::spawn_blocking(move || read_all_often(&*store, &done))
    };
    for number in 1..GENERATIONS_MAX {
        store.commit(moved(number)).await.unwrap();
        if done.load(Ordering::SeqCst) {
            break;
        }
    }
    for totals in reader.await.unwrap() {
        assert_eq!(totals, expected);
    }
}

/// The progress that readers and the writer tell each other.
#[derive(Default)]
struct Progress {
    /// The last generation whose commit returned.
    acknowledged: AtomicU64,
    /// The number of reads of all readers.
    reads: AtomicU64,
    done: AtomicBool,
}

/// Ends the others when it is dropped, also by a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A batch that overwrites the same rows with its number, moves one row, and adds an event that names new content.
fn generation(number: u64) -> Batch {
    let mut batch = Batch::new();
    for part in (0..).take(PARTS) {
        batch = batch.put(Table::States, Key::of("part").number(part), number.to_string());
    }
    if let Some(before) = number.checked_sub(1) {
        batch.push(Op::Delete(Table::Schedules, Key::of("moving").number(before)));
    }
    let digest = batch.blob(number.to_be_bytes().repeat(30));
    batch.insert(Table::Schedules, Key::of("moving").number(number), number.to_string()).insert(
        Table::Events,
        Key::of("event").number(number),
        digest.to_string(),
    )
}

fn read_until_done(store: &dyn Store, progress: &Progress) {
    let _done = Done(&progress.done);
    let mut seen = 0;
    while !progress.done.load(Ordering::SeqCst) {
        seen = read_once(store, seen.max(progress.acknowledged.load(Ordering::SeqCst)));
        progress.reads.fetch_add(1, Ordering::SeqCst);
    }
}

/// Reads a generation in all ways, of which each finds the one before or a newer one; returns the newest.
fn read_once(store: &dyn Store, seen: u64) -> u64 {
    let parts = Key::of("part");
    let scanned = whole(&store.scan(Table::States, &parts, None, usize::MAX).unwrap(), PARTS);
    assert!(scanned >= seen, "a scan went back from {seen} to {scanned}");
    let event = store.get(Table::Events, &Key::of("event").number(scanned)).unwrap().expect("the event of a batch");
    let digest = Digest::of(&scanned.to_be_bytes().repeat(30));
    assert_eq!(event, digest.to_string().into_bytes());
    assert!(store.blob(&digest).unwrap().is_some(), "content of {scanned}");
    let moving = whole(&store.scan(Table::Schedules, &Key::of("moving"), None, usize::MAX).unwrap(), 1);
    assert!(moving >= scanned, "a scan went back from {scanned} to {moving}");
    let last = whole(&store.last(Table::States, &parts, PARTS).unwrap(), PARTS);
    assert!(last >= moving, "the last rows went back from {moving} to {last}");
    let one = store.get(Table::States, &parts.number(3)).unwrap().expect("a part");
    let one = number_of(&one);
    assert!(one >= last, "a row went back from {last} to {one}");
    one
}

/// The one generation of rows, of which there must be `count`.
#[track_caller]
fn whole(rows: &[Row], count: usize) -> u64 {
    let numbers: BTreeSet<u64> = rows.iter().map(|(_, value)| number_of(value)).collect();
    assert_eq!((rows.len(), numbers.len()), (count, 1), "a batch was seen in part: {numbers:?}");
    numbers.into_iter().next().expect("a generation")
}

fn number_of(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

fn read_all_often(store: &dyn Store, done: &AtomicBool) -> Vec<ReadTotals> {
    let _done = Done(done);
    (0..30).map(|_| store.read_all().unwrap()).collect()
}
