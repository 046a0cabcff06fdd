//! Rules of rows: their order, what finds them, and which keys and values a store takes.

use crate::backend::Backend;
use crate::model::Model;
use crate::random::Random;
use crate::support::{LARGE_BYTES, all, insert, is_conflict, key, noise, text, value};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Row, Store, Table};

/// The length of the longest keys that every store takes, in bytes. A row of an index of PostgreSQL ends at 2,704.
const KEY_BYTES: usize = 2_000;

/// Bytes of random keys: those with a meaning in a [`Key`], those at the ends, and some in between.
const ALPHABET: [u8; 6] = [0, 1, b'a', b'b', 0xfe, 0xff];

/// The tables of random rows.
const TABLES: [Table; 3] = [Table::Runs, Table::KeyValue, Table::Schedules];

/// The number of random batches for a seed.
const BATCHES: usize = 250;

/// A scan returns rows of its prefix alone, after its start, up to its limit.
pub async fn a_scan_keeps_to_its_prefix_its_start_and_its_limit(backend: &dyn Backend) {
    let store = backend.open().await;
    store.commit(owned_rows()).await.unwrap();
    let found = |owner: &str, after: Option<Key>, limit: usize| {
        let rows = store.scan(Table::Events, &Key::of(owner), after.as_ref().map(Key::as_bytes), limit).unwrap();
        values(rows)
    };
    let at = |owner: &str, number| Some(Key::of(owner).number(number));
    assert_eq!(found("a", None, 10), "a0 a1 a2 a3");
    assert_eq!(found("a", None, 3), "a0 a1 a2");
    assert_eq!(found("a", None, 0), "");
    assert_eq!(found("a", at("a", 1), 10), "a2 a3");
    assert_eq!(found("a", at("a", 1), 1), "a2");
    assert_eq!(found("a", at("a", 3), 10), "");
    assert_eq!(found("a", at("b", 0), 10), "");
    assert_eq!(found("b", at("a", 0), 10), "b0 b1 b2 b3");
    assert_eq!(found("c", None, 10), "");
    assert_eq!(store.scan(Table::Events, &Key::default(), None, 100).unwrap().len(), 12);
    assert_eq!(all(&*store, Table::States), []);
}

/// The last rows of a prefix come from the last one back, up to the limit.
pub async fn the_last_rows_of_a_prefix_come_from_the_last_one_back(backend: &dyn Backend) {
    let store = backend.open().await;
    store.commit(owned_rows()).await.unwrap();
    let last = |owner: &str, limit| values(store.last(Table::Events, &Key::of(owner), limit).unwrap());
    assert_eq!(last("a", usize::MAX), "a3 a2 a1 a0");
    assert_eq!(last("a", 2), "a3 a2");
    assert_eq!(last("a", 0), "");
    assert_eq!(last("ab", 1), "ab3");
    assert_eq!(last("c", 10), "");
    assert_eq!(values(store.last(Table::Events, &Key::default(), 5).unwrap()), "b3 b2 b1 b0 ab3");
}

/// Pages, each after the last key of the one before, make the whole, also where that key was deleted meanwhile.
pub async fn pages_make_the_whole_also_where_their_last_keys_are_deleted(backend: &dyn Backend) {
    let store = backend.open().await;
    let rows = (0..1_000).fold(Batch::new(), |batch, number| batch.put(Table::States, key(number), "x"));
    store.commit(rows).await.unwrap();
    let (mut found, mut after) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let page = store.scan(Table::States, &Key::of("k"), after.as_deref(), 64).unwrap();
        let Some((last, _)) = page.last() else {
            break;
        };
        let delete = Op::Delete(Table::States, Key::from_bytes(last.clone()));
        store.commit(Batch { ops: vec![delete] }).await.unwrap();
        after = Some(last.clone());
        found.extend(page.into_iter().map(|(key, _)| key));
    }
    let expected: Vec<_> = (0..1_000).map(|number| key(number).as_bytes().to_vec()).collect();
    assert!(found == expected, "{} keys, of which the first is {:?}", found.len(), found.first());
    assert_eq!(all(&*store, Table::States).len(), 1_000 - 16);
}

/// Random batches are refused or applied as a sorted map says, and every read finds the rows of that map.
pub async fn random_rows_are_read_as_a_sorted_map_has_them(backend: &dyn Backend) {
    for seed in [1, 2] {
        let mut random = Random::new(seed);
        let (mut store, mut model) = (backend.open().await, Model::default());
        for number in 0..BATCHES {
            let batch = random_batch(&mut random, &model);
            let verdict = store.commit(batch.clone()).await;
            let place = format!("seed {seed}, batch {number}");
            assert_eq!(verdict.is_ok(), model.apply(&batch), "{place}: {batch:?}: {verdict:?}");
            assert!(verdict.is_ok() || is_conflict(&verdict), "{place}: {verdict:?}");
            compare_once(&*store, &model, &mut random, &place);
            if number % 100 == 99 {
                store = backend.reopen(store).await;
                TABLES.iter().for_each(|table| compare_all(&*store, &model, *table));
            }
        }
        TABLES.iter().for_each(|table| compare_all(&*store, &model, *table));
    }
}

/// Keys of any bytes sort by their bytes: empty ones, long ones, those with 0 and with 255 at any place.
pub async fn keys_of_any_bytes_sort_by_their_bytes(backend: &dyn Backend) {
    let store = backend.open().await;
    let keys = odd_keys();
    // The second half first, so that the order of writing is not the order of the keys.
    for part in [&keys[keys.len() / 2..], &keys[..keys.len() / 2]] {
        let batch = part.iter().fold(Batch::new(), |batch, key| {
            let value = Digest::of(key).to_string();
            batch.put(Table::KeyValue, Key::from_bytes(key.clone()), value)
        });
        store.commit(batch).await.unwrap();
    }
    let row = |key: &Vec<u8>| (key.clone(), Digest::of(key).to_string().into_bytes());
    let rows: Vec<Row> = keys.iter().map(row).collect();
    assert!(all(&*store, Table::KeyValue) == rows, "the rows are not those written, or not in order");
    let backward: Vec<Row> = rows.iter().rev().cloned().collect();
    assert!(store.last(Table::KeyValue, &Key::default(), usize::MAX).unwrap() == backward);
    for (at, (bytes, value)) in rows.iter().enumerate() {
        let key = Key::from_bytes(bytes.clone());
        assert_eq!(store.get(Table::KeyValue, &key).unwrap().as_ref(), Some(value), "key {at}");
        let later = store.scan(Table::KeyValue, &Key::default(), Some(bytes), usize::MAX).unwrap();
        assert!(later == rows[at + 1..], "after key {at}");
        let with_prefix: Vec<_> = rows.iter().filter(|(other, _)| other.starts_with(bytes)).cloned().collect();
        assert!(store.scan(Table::KeyValue, &key, None, usize::MAX).unwrap() == with_prefix, "prefix {at}");
        let last = store.last(Table::KeyValue, &key, 1).unwrap();
        assert!(last.first() == with_prefix.last() && last.len() == 1, "the last row with prefix {at}");
    }
}

/// An empty value is a value, and an empty key a key: both are found, conflict, and are deleted.
pub async fn an_empty_value_and_an_empty_key_make_a_row(backend: &dyn Backend) {
    let store = backend.open().await;
    let batch = || Batch::new().insert(Table::States, Key::default(), "");
    assert_eq!(store.get(Table::States, &Key::default()).unwrap(), None);
    store.commit(batch()).await.unwrap();
    assert_eq!(store.get(Table::States, &Key::default()).unwrap(), Some(Vec::new()));
    assert_eq!(all(&*store, Table::States), [(Vec::new(), Vec::new())]);
    assert_eq!(store.scan(Table::States, &Key::default(), Some(&[]), 10).unwrap(), []);
    assert!(store.commit(batch()).await.is_err());
    let swap = Op::Swap(Table::States, Key::default(), Digest::of(b""), b"filled".to_vec());
    store.commit(Batch { ops: vec![swap] }).await.unwrap();
    assert_eq!(store.get(Table::States, &Key::default()).unwrap().as_deref(), Some(&b"filled"[..]));
    store.commit(Batch { ops: vec![Op::Delete(Table::States, Key::default())] }).await.unwrap();
    assert_eq!(all(&*store, Table::States), []);
}

/// The same key in each table is a row of its own.
pub async fn tables_keep_their_rows_apart(backend: &dyn Backend) {
    let store = backend.open().await;
    let batch = Table::ALL.iter().fold(Batch::new(), |batch, table| batch.insert(*table, key(0), format!("{table:?}")));
    store.commit(batch).await.unwrap();
    store.commit(Batch { ops: vec![Op::Delete(Table::Runs, key(0))] }).await.unwrap();
    for table in Table::ALL {
        let expected = (table != Table::Runs).then(|| format!("{table:?}"));
        assert_eq!(store.get(table, &key(0)).unwrap().map(text), expected);
        let rows = all(&*store, table).into_iter().map(|(_, value)| text(value));
        assert_eq!(rows.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
    }
}

/// Values of any bytes and lengths are read as they were written.
pub async fn values_of_any_bytes_are_read_as_they_were_written(backend: &dyn Backend) {
    let store = backend.open().await;
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let values = [every_byte, vec![0], vec![0; 300], b"\\x00\\000'\"".to_vec(), vec![0xff; 5_000], noise(1, 100_000)];
    for (number, value) in (0..).zip(&values) {
        store.commit(Batch::new().put(Table::Artifacts, key(number), value.clone())).await.unwrap();
    }
    for (number, value) in (0..).zip(&values) {
        let found = store.get(Table::Artifacts, &key(number)).unwrap();
        assert!(found.as_ref() == Some(value), "value {number} of {} bytes", value.len());
    }
    let rows = all(&*store, Table::Artifacts).into_iter().map(|(_, value)| value);
    assert!(rows.eq(values));
}

/// A value of 8 MiB is written, found, compared and replaced as any other, beside small rows of its batch.
pub async fn eight_mebibytes_are_a_value_like_any_other(backend: &dyn Backend) {
    let store = backend.open().await;
    let (one, other) = (noise(1, LARGE_BYTES), noise(2, LARGE_BYTES));
    store.commit(insert(1, "before")).await.unwrap();
    store.commit(insert(0, "small").insert(Table::States, key(2), one.clone())).await.unwrap();
    store.commit(insert(3, "after")).await.unwrap();
    let large = |store: &dyn Store| store.get(Table::States, &key(2)).unwrap();
    assert!(large(&*store).as_ref() == Some(&one));
    let swap = |old: &[u8]| Batch { ops: vec![Op::Swap(Table::States, key(2), Digest::of(old), other.clone())] };
    assert!(store.commit(swap(&one[1..])).await.is_err());
    assert!(store.commit(insert(4, "lost").insert(Table::States, key(2), "x")).await.is_err());
    store.commit(swap(&one)).await.unwrap();
    let store = backend.reopen(store).await;
    let rows = all(&*store, Table::States);
    assert_eq!(rows.iter().map(|(_, value)| value.len()).collect::<Vec<_>>(), [5, 6, LARGE_BYTES, 5]);
    assert!(rows[2].1 == other);
    assert_eq!(value(&*store, 4), None);
}

/// Four rows of each of three owners, of which one has a name that begins as another's.
fn owned_rows() -> Batch {
    let mut batch = Batch::new();
    for owner in ["a", "ab", "b"] {
        for number in 0..4 {
            batch = batch.put(Table::Events, Key::of(owner).number(number), format!("{owner}{number}"));
        }
    }
    batch
}

fn values(rows: Vec<Row>) -> String {
    rows.into_iter().map(|(_, value)| text(value)).collect::<Vec<_>>().join(" ")
}

/// Different keys, sorted.
fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys = vec![Vec::new(), b"longer".repeat(40), [0; 255].to_vec(), [0xff; 256].to_vec()];
    for first in ALPHABET {
        keys.push(vec![first]);
        keys.extend(ALPHABET.map(|second| vec![first, second]));
        keys.extend(ALPHABET.map(|third| vec![first, b'a', third]));
        keys.push([&[first][..], &noise(first.into(), KEY_BYTES - 1)].concat());
    }
    keys.push(Key::of("text\0with 0").number(u64::MAX).as_bytes().to_vec());
    keys.sort();
    keys.dedup();
    keys
}

fn random_batch(random: &mut Random, model: &Model) -> Batch {
    let ops = (0..=random.below(4)).map(|_| {
        let (table, key) = (random.one_of(&TABLES), random_key(random, 3));
        let (length, place) = (random.below(40), Key::from_bytes(key.clone()));
        let new = random.bytes(length);
        match random.below(9) {
            0..=3 => Op::Put(table, place, new),
            4 => Op::Insert(table, place, new),
            // The digest is wrong for a row that does not exist.
            5 | 6 => Op::Swap(table, place, Digest::of(model.get(table, &key).map_or(&[][..], Vec::as_slice)), new),
            _ => Op::Delete(table, place),
        }
    });
    Batch { ops: ops.collect() }
}

fn random_key(random: &mut Random, length_max: usize) -> Vec<u8> {
    (0..random.below(length_max + 1)).map(|_| random.one_of(&ALPHABET)).collect()
}

/// Compares one random scan from both ends, and one row.
#[track_caller]
fn compare_once(store: &dyn Store, model: &Model, random: &mut Random, place: &str) {
    let (table, prefix) = (random.one_of(&TABLES), random_key(random, 2));
    let after = (random.below(3) > 0).then(|| random_key(random, 4));
    let limit = random.one_of(&[0, 1, 2, 5, 100, usize::MAX]);
    let found = store.scan(table, &Key::from_bytes(prefix.clone()), after.as_deref(), limit).unwrap();
    let expected = model.scan(table, &prefix, after.as_deref(), limit);
    assert_eq!(found, expected, "{place}: scan of {table:?} from {prefix:?} after {after:?} to {limit}");
    let last = store.last(table, &Key::from_bytes(prefix.clone()), limit).unwrap();
    assert_eq!(last, model.last(table, &prefix, limit), "{place}: last {limit} of {table:?} from {prefix:?}");
    let key = random_key(random, 3);
    let found = store.get(table, &Key::from_bytes(key.clone())).unwrap();
    assert_eq!(found.as_ref(), model.get(table, &key), "{place}: {key:?} of {table:?}");
}

#[track_caller]
fn compare_all(store: &dyn Store, model: &Model, table: Table) {
    assert_eq!(all(store, table), model.scan(table, &[], None, usize::MAX));
}
