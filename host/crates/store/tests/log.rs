//! The rows of logs: read as those of the database, kept by a kill, gone from the logs when the store is closed.

#[path = "support/files.rs"]
mod files;

use files::copy_files;
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Store, StoreError, Table};
use longhaul_store::{RedbStore, STATE_FILE, StoreOptions};
use redb::{Database, ReadableDatabase as _, TableDefinition};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use tempfile::TempDir;

const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[track_caller]
fn open(dir: &Path) -> RedbStore {
    RedbStore::open(dir, StoreOptions::default()).unwrap()
}

fn refusal(dir: &Path) -> StoreError {
    RedbStore::open(dir, StoreOptions::default()).err().expect("the store should be refused")
}

fn key(number: u64) -> Key {
    Key::of("k").number(number)
}

fn put(number: u64, value: &str) -> Batch {
    Batch::new().put(Table::States, key(number), value)
}

fn insert(number: u64, value: &str) -> Batch {
    Batch::new().insert(Table::States, key(number), value)
}

fn value(store: &RedbStore, number: u64) -> Option<String> {
    let stored = store.get(Table::States, &key(number)).unwrap();
    stored.map(|value| String::from_utf8(value).unwrap())
}

/// A store whose last rows are in a log.
async fn logged(dir: &Path) -> RedbStore {
    let store = open(dir);
    for number in 0..20 {
        store.commit(put(number, "value")).await.unwrap();
    }
    assert!(dir.join("state.log.0").exists());
    store
}

fn format_of(dir: &Path) -> Vec<u8> {
    let db = Database::open(dir.join(STATE_FILE)).unwrap();
    let table = db.begin_read().unwrap().open_table(META).unwrap();
    let stored = table.get("format").unwrap().unwrap();
    stored.value().to_vec()
}

/// Random changes, read back in all ways and compared with a map, while rows move from the log into the database.
#[tokio::test]
async fn rows_are_read_alike_from_the_log_and_from_the_database() {
    let (dir, killed) = (home(), home());
    let killed = killed.path().join("killed");
    let options = || StoreOptions { log_bytes_max: Some(64 << 10), ..StoreOptions::default() };
    let mut store = RedbStore::open(dir.path(), options()).unwrap();
    let mut expected = BTreeMap::new();
    let mut random = 7_u64;
    for round in 0..600_u64 {
        let mut batch = Batch::new();
        for _ in 0..5 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (number, value) =
                ((random >> 40) % 150, format!("{round} ").repeat(8 * usize::try_from(random >> 60).unwrap()));
            if random >> 33 & 3 == 0 {
                batch.push(Op::Delete(Table::States, key(number)));
                expected.remove(key(number).as_bytes());
            } else {
                batch = batch.put(Table::States, key(number), value.as_bytes());
                expected.insert(key(number).as_bytes().to_vec(), value.into_bytes());
            }
        }
        store.commit(batch).await.unwrap();
        check_rows(&store, &expected, random);
        if round % 97 == 50 {
            copy_files(dir.path(), &killed);
            check_rows(&RedbStore::open(&killed, options()).unwrap(), &expected, random);
        }
        if round % 200 == 199 {
            drop(store);
            store = RedbStore::open(dir.path(), options()).unwrap();
        }
    }
}

#[track_caller]
fn check_rows(store: &RedbStore, expected: &BTreeMap<Vec<u8>, Vec<u8>>, random: u64) {
    let (prefix, limit) = (Key::of("k"), usize::try_from(random % 160).unwrap());
    let after = key(random >> 20 & 127);
    let rows = |rows: &mut dyn Iterator<Item = (&Vec<u8>, &Vec<u8>)>| -> Vec<_> {
        rows.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let found = store.scan(Table::States, &prefix, Some(after.as_bytes()), limit).unwrap();
    let later = (Bound::Excluded(after.as_bytes()), Bound::Unbounded);
    assert_eq!(found, rows(&mut expected.range::<[u8], _>(later)));
    assert_eq!(store.last(Table::States, &prefix, limit).unwrap(), rows(&mut expected.iter().rev()));
    assert_eq!(store.get(Table::States, &after).unwrap().as_ref(), expected.get(after.as_bytes()));
}

#[tokio::test]
async fn conditions_see_the_rows_of_the_log() {
    let dir = home();
    let store = logged(dir.path()).await;
    let swap =
        |old: &str| Batch { ops: vec![Op::Swap(Table::States, key(19), Digest::of(old.as_bytes()), "b".into())] };
    assert!(store.commit(insert(19, "new")).await.is_err());
    assert!(store.commit(swap("a")).await.is_err());
    store.commit(swap("value")).await.unwrap();
    store.commit(Batch { ops: vec![Op::Delete(Table::States, key(18))] }).await.unwrap();
    store.commit(insert(18, "again")).await.unwrap();
    // Read before the rows are in the database, and after.
    for _ in 0..2 {
        assert_eq!((value(&store, 19).as_deref(), value(&store, 18).as_deref()), (Some("b"), Some("again")));
        store.read_all().unwrap();
    }
}

#[tokio::test]
async fn a_store_that_is_closed_has_no_logs_and_the_format_of_earlier_versions() {
    let (dir, killed) = (home(), home());
    let store = logged(dir.path()).await;
    let killed = killed.path().join("killed");
    copy_files(dir.path(), &killed);
    assert_eq!(format_of(&killed), b"2");
    drop(store);
    assert!(!dir.path().join("state.log.0").exists());
    assert_eq!(format_of(dir.path()), b"1");
    assert_eq!(value(&open(dir.path()), 19).as_deref(), Some("value"));
}

#[tokio::test]
async fn a_database_without_its_log_is_damaged_and_one_with_the_log_of_another_too() {
    let (dir, other, killed) = (home(), home(), home());
    let (_store, _other) = (logged(dir.path()).await, logged(other.path()).await);
    let killed = killed.path().join("killed");
    copy_files(dir.path(), &killed);
    std::fs::remove_file(killed.join("state.log.0")).unwrap();
    assert!(refusal(&killed).to_string().contains("has its last batches"));
    std::fs::copy(other.path().join("state.log.0"), killed.join("state.log.0")).unwrap();
    assert!(matches!(refusal(&killed), StoreError::Damaged { .. }));
    std::fs::copy(dir.path().join("state.log.0"), killed.join("state.log.0")).unwrap();
    assert_eq!(value(&open(&killed), 19).as_deref(), Some("value"));
}

#[tokio::test]
async fn a_copy_has_the_rows_of_the_log_and_needs_none() {
    let (dir, copies) = (home(), home());
    let store = logged(dir.path()).await;
    assert_eq!(store.copy_to(&copies.path().join(STATE_FILE)).unwrap().rows, 20);
    assert_eq!(format_of(copies.path()), b"1");
    assert_eq!(value(&open(copies.path()), 19).as_deref(), Some("value"));
    store.commit(put(0, "goes on")).await.unwrap();
}

#[tokio::test]
async fn a_large_batch_goes_into_the_database_after_the_rows_of_the_log() {
    let (dir, killed) = (home(), home());
    let store = logged(dir.path()).await;
    let large = put(0, &"large ".repeat(100_000)).put(Table::States, key(19), "new");
    store.commit(large).await.unwrap();
    store.commit(put(1, "last")).await.unwrap();
    let killed = killed.path().join("killed");
    copy_files(dir.path(), &killed);
    for store in [store, open(&killed)] {
        assert_eq!(value(&store, 0).map(|value| value.len()), Some(600_000));
        let rest: Vec<_> = [1, 18, 19].map(|number| value(&store, number).unwrap()).into();
        assert_eq!(rest, ["last", "value", "new"]);
    }
}
