//! Rules of content: it is stored once under its digest, and found whole or reported as damaged.

use crate::backend::Backend;
use crate::support::{CALLERS, LARGE_BYTES, all, commit_at_once, insert, key, noise, put, text, value};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, StoreError, Table};

/// Content is found by its digest, also after a reopening, and absent content is none.
pub async fn content_is_found_by_its_digest_and_absent_content_is_none(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut batch = insert(0, "row");
    let digest = batch.blob(b"content".to_vec());
    store.commit(batch).await.unwrap();
    let store = backend.reopen(store).await;
    assert_eq!(store.blob(&digest).unwrap().as_deref(), Some(&b"content"[..]));
    assert_eq!(store.blob(&Digest::of(b"other")).unwrap(), None);
    assert_eq!(store.blob(&Digest::from([0; 32])).unwrap(), None);
    // Content is not a row of a table.
    assert_eq!(Table::ALL.map(|table| all(&*store, table).len()).iter().sum::<usize>(), 1);
}

/// Content that comes again is stored once: in one batch, in later ones, and from many callers at once.
pub async fn content_that_comes_again_is_stored_once(backend: &dyn Backend) {
    let store = backend.open().await;
    let content = b"the same again ".repeat(1_000);
    let digest = Digest::of(&content);
    for _ in 0..3 {
        let mut batch = Batch::new();
        assert_eq!((batch.blob(content.clone()), batch.blob(content.clone())), (digest, digest));
        store.commit(batch).await.unwrap();
        assert_eq!(store.read_all().unwrap().rows, 1);
    }
    let shared = noise(1, 10_000);
    let batches = (0..CALLERS).map(|number| {
        let mut batch = insert(number, "x");
        batch.blob(shared.clone());
        batch
    });
    let verdicts = commit_at_once(&store, batches.collect()).await;
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    assert_eq!(store.read_all().unwrap().rows, CALLERS + 2);
    assert_eq!(store.blob(&digest).unwrap(), Some(content));
    assert_eq!(store.blob(&Digest::of(&shared)).unwrap(), Some(shared));
}

/// Content of any bytes and lengths is read as it was written, whether it compresses or not.
pub async fn content_of_any_bytes_is_read_as_it_was_written(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut contents =
        vec![(0..=u8::MAX).collect::<Vec<u8>>(), b"\\x00\\000'\"".to_vec(), vec![0xff; 127], vec![0; 1 << 20]];
    contents.extend([0, 1, 127, 128, 4_096, 65_537, 1 << 20].map(|length| noise(1, length)));
    let mut batch = Batch::new();
    for content in &contents[..4] {
        batch.blob(content.clone());
    }
    store.commit(batch).await.unwrap();
    for content in &contents[4..] {
        let mut batch = Batch::new();
        batch.blob(content.clone());
        store.commit(batch).await.unwrap();
    }
    let store = backend.reopen(store).await;
    for content in &contents {
        let found = store.blob(&Digest::of(content)).unwrap();
        assert!(found.as_ref() == Some(content), "content of {} bytes", content.len());
    }
    assert_eq!(store.read_all().unwrap().rows, contents.len() as u64);
}

/// Content of 8 MiB is stored with the rows of its batch, between batches of other callers.
pub async fn eight_mebibytes_are_content_like_any_other(backend: &dyn Backend) {
    let store = backend.open().await;
    let contents = [noise(1, LARGE_BYTES), vec![b'x'; LARGE_BYTES]];
    let mut batches: Vec<_> = (0..8).map(|number| put(number, "small")).collect();
    for (number, content) in (8..).zip(&contents) {
        let mut large = Batch::new();
        let digest = large.blob(content.clone());
        batches.push(large.put(Table::States, key(number), digest.to_string()));
    }
    let verdicts = commit_at_once(&store, batches).await;
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    let store = backend.reopen(store).await;
    assert_eq!(store.scan(Table::States, &Key::of("k"), None, usize::MAX).unwrap().len(), 10);
    for (number, content) in (8..).zip(&contents) {
        let digest = value(&*store, number).unwrap().parse().unwrap();
        assert!(store.blob(&digest).unwrap().as_ref() == Some(content), "content {number}");
    }
}

/// Stored content that no longer has its digest is damaged, in a read and in a reading of everything; the rest is not.
pub async fn content_that_was_changed_in_its_place_is_damaged_and_the_rest_is_not(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut batch = put(0, "fine");
    let digest = batch.blob(b"what was written".to_vec());
    let other = batch.blob(b"other content".to_vec());
    store.commit(batch).await.unwrap();
    store.read_all().unwrap();
    let Some(store) = backend.damage(store, &digest, b"what was changed").await else {
        return;
    };
    let is_told =
        |why: &StoreError| matches!(why, StoreError::Damaged { detail, .. } if detail.contains(&digest.short()));
    let damaged = store.blob(&digest).unwrap_err();
    assert!(is_told(&damaged), "{damaged}");
    let damaged = store.read_all().unwrap_err();
    assert!(is_told(&damaged), "{damaged}");
    assert_eq!(value(&*store, 0).as_deref(), Some("fine"));
    assert_eq!(store.blob(&other).unwrap().map(text).as_deref(), Some("other content"));
    let delete = Op::Delete(Table::States, key(0));
    store.commit(Batch { ops: vec![delete] }).await.unwrap();
}
