//! Rules of what lasts: over a reopening, over a crash, in a copy, and in the totals of a reading.

use crate::backend::{Backend, CrashMoment};
use crate::support::{all, key, put, value};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, ReadTotals, Store, StoreError, Table};

/// The number of commits beside which the process ends. From the ninth on, redb commits to its log.
const CRASHES: u64 = 10;

/// Rows, deletions and content that were committed are there each time the store is opened again.
pub async fn what_was_committed_is_there_when_opened_again(backend: &dyn Backend) {
    let mut store = backend.open().await;
    for round in 0..3 {
        assert_eq!(value(&*store, 0), (round > 0).then(|| format!("round {}", round - 1)));
        let mut batch = put(0, &format!("round {round}")).insert(Table::Events, key(round), "event");
        batch.push(Op::Delete(Table::Events, key(round.saturating_sub(1))));
        batch.blob(round.to_string().repeat(1_000).into_bytes());
        for table in Table::ALL {
            batch = batch.put(table, Key::of("all").number(round), format!("{table:?}"));
        }
        store.commit(batch).await.unwrap();
        let totals = store.read_all().unwrap();
        store = backend.reopen(store).await;
        assert_eq!(store.read_all().unwrap(), totals);
        check_tables(&*store, round);
    }
}

/// A reading of everything counts each row with the bytes of its key and its value, and each content.
pub async fn a_reading_counts_each_row_and_each_content(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(store.read_all().unwrap(), ReadTotals::default());
    let mut batch = Batch::new();
    let mut expected = ReadTotals::default();
    for table in Table::ALL {
        batch = batch.put(table, key(7), "12345").put(table, Key::default(), "");
        expected.count(key(7).as_bytes().len() + 5);
        expected.count(0);
    }
    store.commit(batch).await.unwrap();
    assert_eq!(store.read_all().unwrap(), expected);
    let mut batch = Batch { ops: vec![Op::Delete(Table::Runs, Key::default())] };
    batch.blob(b"content".to_vec());
    store.commit(batch).await.unwrap();
    let with_content = store.read_all().unwrap();
    assert_eq!(with_content.rows, expected.rows);
    assert!(with_content.bytes > expected.bytes, "{with_content:?}");
}

/// A process that ends beside a commit loses nothing of earlier ones; of this one it keeps all, or before its commit
/// nothing, and the next process goes on.
pub async fn a_crash_beside_any_commit_keeps_it_whole_or_not_at_all(backend: &dyn Backend) {
    for number in 1..=CRASHES {
        for (moment, kept) in [(CrashMoment::BeforeCommit, number - 1), (CrashMoment::AfterCommit, number)] {
            let place = format!("{moment:?} {number}");
            let Some(store) = backend.crash((0..number).map(crash_batch).collect(), moment).await else {
                return;
            };
            check_crashed(&*store, kept, &place);
            if kept > 0 {
                let again = store.commit(crash_batch(kept - 1)).await;
                assert!(matches!(again, Err(StoreError::Conflict { .. })), "{place}: {again:?}");
            }
            store.commit(crash_batch(kept)).await.unwrap();
            let store = backend.reopen(store).await;
            check_crashed(&*store, kept + 1, &place);
        }
    }
}

/// A copy has what was committed before it, can be written by itself, and leaves the store as it is. A store that
/// cannot be copied says so.
pub async fn a_copy_has_what_was_committed_before_it(backend: &dyn Backend) {
    let store = backend.open().await;
    for number in 0..20 {
        store.commit(crash_batch(number)).await.unwrap();
    }
    let Some(copy) = backend.open_copy(&*store).await else {
        let folder = tempfile::tempdir().unwrap();
        let refused = store.copy_to(&folder.path().join("copy")).unwrap_err();
        assert!(matches!(refused, StoreError::Failed { .. }), "{refused}");
        return;
    };
    assert_eq!(copy.read_all().unwrap(), store.read_all().unwrap());
    check_crashed(&*copy, 20, "the copy");
    store.commit(crash_batch(20)).await.unwrap();
    check_crashed(&*copy, 20, "the copy");
    copy.commit(put(0, "of the copy")).await.unwrap();
    assert_eq!(value(&*store, 0), None);
    check_crashed(&*store, 21, "the store");
}

#[track_caller]
fn check_tables(store: &dyn Store, round: u64) {
    for table in Table::ALL {
        let rows = store.scan(table, &Key::of("all"), None, usize::MAX).unwrap();
        let (keys, values): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let expected: Vec<_> = (0..=round).map(|round| Key::of("all").number(round).as_bytes().to_vec()).collect();
        assert_eq!(keys, expected);
        assert!(values.iter().all(|value| *value == format!("{table:?}").into_bytes()));
    }
    let events = store.scan(Table::Events, &Key::of("k"), None, usize::MAX).unwrap();
    // Each round deletes the event of the round before, and the first one its own.
    assert_eq!(events.len(), usize::from(round > 0));
    for round in 0..=round {
        let content = round.to_string().repeat(1_000).into_bytes();
        assert_eq!(store.blob(&Digest::of(&content)).unwrap(), Some(content));
    }
}

/// A batch that adds rows and content, and overwrites a row.
fn crash_batch(number: u64) -> Batch {
    let mut batch = Batch::new();
    let digest = batch.blob(crash_content(number));
    batch
        .insert(Table::Events, Key::of("batch").number(number), digest.to_string())
        .put(Table::Artifacts, Key::of("batch").number(number), crash_content(number))
        .put(Table::Progress, Key::of("newest"), number.to_string())
}

/// Content of different lengths, of which some compress.
fn crash_content(number: u64) -> Vec<u8> {
    let length = usize::try_from(number % 7).unwrap() * 300 + 8;
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

/// The first `kept` batches are there in whole, and nothing of the next one.
#[track_caller]
fn check_crashed(store: &dyn Store, kept: u64, place: &str) {
    let events = all(store, Table::Events);
    assert_eq!(events.len() as u64, kept, "{place}");
    for (number, (event, digest)) in (0..).zip(events) {
        let key = Key::of("batch").number(number);
        assert_eq!(event, key.as_bytes(), "{place}");
        let content = crash_content(number);
        assert_eq!(digest, Digest::of(&content).to_string().into_bytes(), "{place}: event {number}");
        assert_eq!(store.get(Table::Artifacts, &key).unwrap().as_ref(), Some(&content), "{place}: row {number}");
        assert_eq!(store.blob(&Digest::of(&content)).unwrap(), Some(content), "{place}: content {number}");
    }
    assert_eq!(all(store, Table::Artifacts).len() as u64, kept, "{place}");
    let newest = store.get(Table::Progress, &Key::of("newest")).unwrap();
    assert_eq!(newest, kept.checked_sub(1).map(|number| number.to_string().into_bytes()), "{place}");
    assert_eq!(store.blob(&Digest::of(&crash_content(kept))).unwrap(), None, "{place}");
    store.read_all().unwrap();
}
