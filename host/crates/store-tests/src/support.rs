//! Rows, batches and callers that several rules use.

use crate::random::Random;
use longhaul_core::store::{Batch, Key, Row, Store, StoreError, Table};
use std::sync::Arc;

/// The number of callers at once: those that one sync of a disk served in measurements with as many runs.
pub(crate) const CALLERS: u64 = 64;

/// The length of the largest values and contents of the rules, in bytes.
pub(crate) const LARGE_BYTES: usize = 8 << 20;

/// The key of a numbered row of these helpers.
pub(crate) fn key(number: u64) -> Key {
    Key::of("k").number(number)
}

/// A batch that writes a numbered row.
pub(crate) fn put(number: u64, value: &str) -> Batch {
    Batch::new().put(Table::States, key(number), value)
}

/// A batch that writes a numbered row if there is none.
pub(crate) fn insert(number: u64, value: &str) -> Batch {
    Batch::new().insert(Table::States, key(number), value)
}

/// The value of a numbered row.
#[track_caller]
pub(crate) fn value(store: &dyn Store, number: u64) -> Option<String> {
    store.get(Table::States, &key(number)).unwrap().map(text)
}

/// Bytes as text.
#[track_caller]
pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// All rows of a table, in order.
#[track_caller]
pub(crate) fn all(store: &dyn Store, table: Table) -> Vec<Row> {
    store.scan(table, &Key::default(), None, usize::MAX).unwrap()
}

/// True of the error of a condition that does not hold.
pub(crate) fn is_conflict(verdict: &Result<(), StoreError>) -> bool {
    matches!(verdict, Err(StoreError::Conflict { .. }))
}

/// Commits each batch by a caller of its own, all at once; returns their verdicts in the order of the batches.
pub(crate) async fn commit_at_once(store: &Arc<dyn Store>, batches: Vec<Batch>) -> Vec<Result<(), StoreError>> {
    let commit = |batch| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.commit(batch).await })
    };
    let callers: Vec<_> = batches.into_iter().map(commit).collect();
    let mut verdicts = Vec::new();
    for caller in callers {
        verdicts.push(caller.await.unwrap());
    }
    verdicts
}

/// Polls a commit once, which may hand its batch over, and drops it as a cancelled caller does.
pub(crate) async fn give_up(commit: impl Future<Output = Result<(), StoreError>>) {
    tokio::select! {
        biased;
        done = commit => done.unwrap(),
        () = std::future::ready(()) => {}
    }
}

/// Bytes that do not compress.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    Random::new(seed).bytes(length)
}
