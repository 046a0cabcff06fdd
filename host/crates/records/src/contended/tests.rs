//! Several processes that change one row, as handles of one store: nothing but the store knows of both.

use super::*;
use futures_util::future::join_all;
use longhaul_core::store::Key;
use longhaul_testkit::{MemoryStore, ProcessStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn key() -> Key {
    Key::of("number")
}

fn number(row: Option<&[u8]>) -> u64 {
    row.map_or(0, |row| String::from_utf8_lossy(row).parse().unwrap())
}

/// The number of a row that so many processes raise by one.
async fn raised(processes: u64, write: fn(Option<&[u8]>, String) -> Batch) -> u64 {
    let store = Arc::new(MemoryStore::new());
    let raise = |_| {
        let process = ProcessStore::of(&store);
        async move {
            let raised = change(&process, || {
                let row = process.get(Table::States, &key())?;
                let next = number(row.as_deref()) + 1;
                Ok((write(row.as_deref(), next.to_string()), ()))
            });
            raised.await.unwrap();
        }
    };
    join_all((0..processes).map(raise)).await;
    number(store.get(Table::States, &key()).unwrap().as_deref())
}

#[tokio::test]
async fn of_changes_by_many_processes_none_is_lost_where_the_store_compares() {
    let compared = raised(24, |row, value| Batch::new().replace(Table::States, key(), row, value)).await;
    let blind = raised(24, |_, value| Batch::new().put(Table::States, key(), value)).await;
    assert_eq!((compared, blind), (24, 1), "without a condition, each change is made from the same row");
}

#[tokio::test(start_paused = true)]
async fn what_is_always_overtaken_ends_with_an_error_that_says_so() {
    let store = MemoryStore::new();
    store.commit(Batch::new().put(Table::States, key(), "1")).await.unwrap();
    let made = AtomicU32::new(0);
    let changed = change(&store, || {
        made.fetch_add(1, Ordering::Relaxed);
        Ok((Batch::new().insert(Table::States, key(), "2"), ()))
    });
    let refused = changed.await.unwrap_err();
    assert_eq!(made.load(Ordering::Relaxed), ATTEMPTS_MAX);
    let text = format!("{refused:#}");
    assert!(text.contains("faster 64 times") && text.contains("in States was changed by another writer"), "{text}");
}

#[tokio::test]
async fn a_conflict_in_another_table_is_an_error_at_once() {
    let conflict = |table| Fault::from(StoreError::conflict(table, b"k"));
    let mut attempts = ChangeAttempts::in_table(Table::Memory);
    assert!(attempts.again(conflict(Table::Memory)).await.is_ok());
    assert!(attempts.again(conflict(Table::Events)).await.is_err());
    assert!(attempts.again(Fault::msg("the disk is gone")).await.is_err());
}
