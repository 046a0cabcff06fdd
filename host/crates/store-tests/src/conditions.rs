//! Rules of conditions: when an insert or a swap holds, and what is left where one does not.

use crate::backend::Backend;
use crate::support::{all, insert, is_conflict, key, put, text, value};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Table};

/// Conditions see the earlier changes of their own batch.
pub async fn conditions_see_the_earlier_changes_of_their_own_batch(backend: &dyn Backend) {
    let store = backend.open().await;
    let swap = |old: &str, new: &str| Op::Swap(Table::States, key(0), Digest::of(old.as_bytes()), new.into());
    let delete = || Op::Delete(Table::States, key(0));
    let batch = |ops: &[Op]| Batch { ops: ops.to_vec() };
    let new = |value: &str| Op::Insert(Table::States, key(0), value.into());
    let cases = [
        (batch(&[swap("a", "b")]), false, None),
        (batch(&[new("a"), new("a")]), false, None),
        (batch(&[new("a"), swap("a", "b")]), true, Some("b")),
        (batch(&[swap("a", "c")]), false, Some("b")),
        (batch(&[swap("b", "c"), delete(), new("d")]), true, Some("d")),
        (batch(&[delete(), swap("d", "e")]), false, Some("d")),
        (batch(&[delete()]), true, None),
        (batch(&[delete()]), true, None),
    ];
    for (index, (batch, passes, left)) in cases.into_iter().enumerate() {
        let verdict = store.commit(batch).await;
        assert_eq!((verdict.is_ok(), is_conflict(&verdict)), (passes, !passes), "case {index}: {verdict:?}");
        assert_eq!(value(&*store, 0).as_deref(), left, "case {index}");
    }
}

/// A key that a batch changes several times has the value of its last change, and each condition sees the change
/// before.
pub async fn a_key_that_a_batch_changes_several_times_has_the_last_value(backend: &dyn Backend) {
    let store = backend.open().await;
    let put = |value: &str| Op::Put(Table::States, key(0), value.into());
    let new = |value: &str| Op::Insert(Table::States, key(0), value.into());
    let swap = |old: &str, new: &str| Op::Swap(Table::States, key(0), Digest::of(old.as_bytes()), new.into());
    let delete = || Op::Delete(Table::States, key(0));
    let elsewhere = || Op::Put(Table::Runs, key(0), b"of another table".to_vec());
    let cases = [
        (vec![put("a"), put("b"), put("c")], Some("c")),
        (vec![put("d"), delete()], None),
        (vec![delete(), put("e")], Some("e")),
        (vec![put("f"), elsewhere(), delete(), put("g"), swap("g", "h"), swap("h", "i")], Some("i")),
        (vec![delete(), new("j"), delete(), new("k"), put("l"), swap("l", "m")], Some("m")),
        (vec![swap("m", "m"), swap("m", "n"), delete(), delete()], None),
    ];
    for (index, (ops, left)) in cases.into_iter().enumerate() {
        store.commit(Batch { ops }).await.unwrap();
        assert_eq!(value(&*store, 0).as_deref(), left, "case {index}");
    }
    assert_eq!(store.get(Table::Runs, &key(0)).unwrap().map(text).as_deref(), Some("of another table"));
    let store = backend.reopen(store).await;
    assert_eq!(value(&*store, 0), None);
}

/// A conflict leaves nothing of its batch, wherever the condition stands in it: no row, no deletion and no content.
pub async fn a_conflict_leaves_nothing_of_its_batch(backend: &dyn Backend) {
    let store = backend.open().await;
    store.commit(put(0, "old").insert(Table::States, key(1), "there")).await.unwrap();
    let before = (all(&*store, Table::States), store.read_all().unwrap());
    let conditions = [
        Op::Insert(Table::States, key(1), b"new".to_vec()),
        Op::Swap(Table::States, key(1), Digest::of(b"other"), b"new".to_vec()),
        Op::Swap(Table::States, key(2), Digest::of(b""), b"new".to_vec()),
    ];
    for (condition, place) in conditions.iter().flat_map(|condition| (0..5).map(move |place| (condition, place))) {
        let mut batch = put(0, "lost").insert(Table::Runs, key(3), "lost");
        batch.push(Op::Delete(Table::States, key(0)));
        let digest = batch.blob(b"content that is lost".to_vec());
        batch.ops.insert(place, condition.clone());
        let verdict = store.commit(batch).await;
        assert!(is_conflict(&verdict), "{condition:?} at {place}: {verdict:?}");
        assert_eq!((all(&*store, Table::States), store.read_all().unwrap()), before, "{condition:?} at {place}");
        assert_eq!(store.get(Table::Runs, &key(3)).unwrap(), None);
        assert_eq!(store.blob(&digest).unwrap(), None);
    }
    let store = backend.reopen(store).await;
    assert_eq!((all(&*store, Table::States), store.read_all().unwrap()), before);
}

/// A conflict names the table and the key, as far as it is text.
pub async fn a_conflict_names_the_table_and_the_key(backend: &dyn Backend) {
    let store = backend.open().await;
    let batch = || Batch::new().insert(Table::Journal, Key::of("r-1/f1").number(0).and("began"), "x");
    store.commit(batch()).await.unwrap();
    let refused = store.commit(batch()).await.unwrap_err();
    assert_eq!(refused.to_string(), "`r-1/f1 began` in Journal was changed by another writer; read it again and retry");
}

/// A swap compares the whole value, and never holds for a row that there is not.
pub async fn a_swap_compares_the_whole_value(backend: &dyn Backend) {
    let store = backend.open().await;
    let long = "a long value, ".repeat(5_000);
    let swap = |number, old: &str, new: &str| Batch {
        ops: vec![Op::Swap(Table::States, key(number), Digest::of(old.as_bytes()), new.into())],
    };
    store.commit(insert(0, &long).insert(Table::States, key(1), "")).await.unwrap();
    for (number, old) in [(0, &long[1..]), (0, &long[..long.len() - 1]), (0, ""), (1, " "), (2, ""), (2, &long[..])] {
        let verdict = store.commit(swap(number, old, "new")).await;
        assert!(is_conflict(&verdict), "{number}, {} bytes: {verdict:?}", old.len());
    }
    for (number, old) in [(0, &long[..]), (1, "")] {
        store.commit(swap(number, old, "new")).await.unwrap();
        assert!(is_conflict(&store.commit(swap(number, old, "newer")).await));
        assert_eq!(value(&*store, number).as_deref(), Some("new"));
    }
}
