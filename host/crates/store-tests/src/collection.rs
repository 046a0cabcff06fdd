//! Rules of the collection of content: what is named stays, the rest goes, and no batch loses what it brings.

use crate::backend::Backend;
use crate::support::{all, give_up, key, noise, put, value};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, CollectedContent, Key, Op, Store, Table};
use std::sync::Arc;

/// The number of times that a collection runs beside commits.
const ROUNDS: u64 = 12;

/// The number of callers beside each of them.
const BESIDE: u64 = 8;

/// Content stays that a key, a value or content that stays names; the rest is removed, and a dry run only counts it.
pub async fn named_content_stays_and_the_rest_is_removed(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut batch = put(0, "row");
    let by_content = batch.blob(noise(1, 1_000));
    let by_value = batch.blob(format!("content that names {by_content}").into_bytes());
    let by_key = batch.blob(b"named by a key".to_vec());
    let unnamed = batch.blob(noise(2, 1_000));
    let by_unnamed = batch.blob(b"named by content that goes".to_vec());
    let naming_unnamed = batch.blob(format!("nobody names this, it names {by_unnamed}").into_bytes());
    let batch = batch
        .put(Table::Journal, Key::of("names"), format!("a value that names {by_value} and {}", Digest::of(b"absent")))
        .put(Table::Artifacts, Key::of("names").and(&by_key.to_string()), "");
    store.commit(batch).await.unwrap();
    let rows = store.read_all().unwrap().rows;
    let dry = store.collect(&named, true).await.unwrap();
    assert_eq!((dry.kept, dry.removed), (3, 3));
    assert!(dry.bytes > 1_000, "{} bytes", dry.bytes);
    assert_eq!(store.read_all().unwrap().rows, rows);
    assert_eq!(store.collect(&named, false).await.unwrap(), dry);
    let store = backend.reopen(store).await;
    for digest in [by_content, by_value, by_key] {
        assert!(store.blob(&digest).unwrap().is_some());
    }
    for digest in [unnamed, by_unnamed, naming_unnamed] {
        assert_eq!(store.blob(&digest).unwrap(), None);
    }
    assert_eq!(store.read_all().unwrap().rows, rows - 3);
    let again = store.collect(&named, false).await.unwrap();
    assert_eq!(again, CollectedContent { kept: 3, removed: 0, bytes: 0 });
    assert_eq!(value(&*store, 0).as_deref(), Some("row"));
}

/// Content that was removed can be stored again, and content whose name was deleted goes with the next collection.
pub async fn content_that_was_removed_can_be_stored_again(backend: &dyn Backend) {
    let store = backend.open().await;
    for round in 0..3 {
        let batch = naming(0, b"comes and goes");
        store.commit(batch).await.unwrap();
        assert_eq!(store.collect(&named, false).await.unwrap().kept, 1, "round {round}");
        assert!(store.blob(&Digest::of(b"comes and goes")).unwrap().is_some(), "round {round}");
        store.commit(Batch { ops: vec![Op::Delete(Table::States, key(0))] }).await.unwrap();
        assert_eq!(store.collect(&named, false).await.unwrap().removed, 1, "round {round}");
        assert_eq!(store.blob(&Digest::of(b"comes and goes")).unwrap(), None, "round {round}");
    }
}

/// Content stays that batches bring and name while a collection runs, also where it was there already and nobody named
/// it, and also where their callers gave up.
pub async fn content_of_batches_in_flight_stays(backend: &dyn Backend) {
    let store = backend.open().await;
    for round in 0..ROUNDS {
        // Long enough to be kept outside of a database.
        let contents: Vec<_> = (0..BESIDE).map(|caller| noise(round * BESIDE + caller, 5_000)).collect();
        let mut unnamed = Batch::new();
        for content in &contents[..contents.len() / 2] {
            unnamed.blob(content.clone());
        }
        store.commit(unnamed).await.unwrap();
        give_up(store.commit(naming(round * BESIDE, &contents[0]))).await;
        let commit = |(number, content): (u64, &Vec<u8>)| {
            let (store, batch) = (Arc::clone(&store), naming(number, content));
            tokio::spawn(async move { store.commit(batch).await })
        };
        let callers: Vec<_> = (round * BESIDE..).zip(&contents).skip(1).map(commit).collect();
        store.collect(&named, false).await.unwrap();
        for caller in callers {
            caller.await.unwrap().unwrap();
        }
        assert_all_named_is_there(&*store, round);
    }
    // The first callers gave up: their batches may be missing, and those of all others are there.
    let rows = all(&*store, Table::States).len() as u64;
    assert!((ROUNDS * (BESIDE - 1)..=ROUNDS * BESIDE).contains(&rows), "{rows} rows");
    let store = backend.reopen(store).await;
    assert_all_named_is_there(&*store, ROUNDS);
}

/// A batch that brings content and names it in a row.
fn naming(number: u64, content: &[u8]) -> Batch {
    let mut batch = Batch::new();
    let digest = batch.blob(content.to_vec());
    batch.put(Table::States, key(number), digest.to_string())
}

#[track_caller]
fn assert_all_named_is_there(store: &dyn Store, round: u64) {
    for (key, value) in all(store, Table::States) {
        for digest in named(&value) {
            assert!(store.blob(&digest).unwrap().is_some(), "round {round}: content of {key:?} is gone");
        }
    }
}

/// The digests in a text: words of 64 hexadecimal digits, between bytes that are none.
fn named(bytes: &[u8]) -> Vec<Digest> {
    let words = bytes.split(|byte| !byte.is_ascii_hexdigit());
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok()).collect()
}
