//! The trees of a run at former times, for forks: a row for each effect that changed a tree, if `[run] tree_history` of
//! `longhaul.toml` asks for it.
//!
//! | row | holds |
//! |---|---|
//! | run, `tree-past`, number of the tree, time | the tree from that time on, as `carried.rs` has it; null if nobody knows it |
//!
//! A row is stored in the transaction of the effect that left the tree so, at the time of the look at the tree, which
//! is before that of the effect's answer. It is deleted with its run. This module neither reads a tree nor makes one.

use super::carried::{CarriedTree, past_trees_key, tree_of};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Store, Table};

/// A tree, or none if nobody knows it, and the time from which on it was so, in milliseconds since 1970-01-01 UTC.
pub type TimedTree = (u64, Option<CarriedTree>);

/// Stores a tree as of this time; none: it cannot be known.
pub fn put_tree_past(
    batch: Batch,
    run: &RunId,
    number: u32,
    at_ms: u64,
    tree: Option<&CarriedTree>,
) -> fault::Result<Batch> {
    Ok(batch.put(Table::States, prefix(run, number).number(at_ms), serde_json::to_vec(&tree)?))
}

/// The newest tree that is kept under a number; none if none was ever kept.
pub fn newest_tree(store: &dyn Store, run: &RunId, number: u32) -> fault::Result<Option<TimedTree>> {
    let row = store.last(Table::States, &prefix(run, number), 1)?.pop();
    row.map(|row| read(run, number, row)).transpose()
}

/// A tree of a run as it was at this time, in milliseconds since 1970-01-01 UTC: that of an answer has the effect that
/// was answered, and none whose answer came later. None: it was not kept, or could not be.
pub fn tree_at(store: &dyn Store, run: &RunId, number: u32, at_ms: u64) -> fault::Result<Option<CarriedTree>> {
    let is_early = |found: &TimedTree| found.0 <= at_ms;
    let Some(mut found) = next(store, run, number, 0)?.filter(is_early) else { return Ok(None) };
    // A store reads forward only, so the place is halved until it is found.
    let mut last = at_ms;
    while found.0 < last {
        let middle = last - (last - found.0) / 2;
        match next(store, run, number, middle)?.filter(is_early) {
            Some(later) => found = later,
            None => last = middle - 1,
        }
    }
    Ok(found.1)
}

/// The first row at or after a time.
fn next(store: &dyn Store, run: &RunId, number: u32, at_ms: u64) -> fault::Result<Option<TimedTree>> {
    let prefix = prefix(run, number);
    let after = at_ms.checked_sub(1).map(|before| prefix.clone().number(before));
    let row = store.scan(Table::States, &prefix, after.as_ref().map(Key::as_bytes), 1)?.pop();
    row.map(|row| read(run, number, row)).transpose()
}

fn read(run: &RunId, number: u32, (key, row): (Vec<u8>, Vec<u8>)) -> fault::Result<TimedTree> {
    let time = key.strip_prefix(prefix(run, number).as_bytes()).and_then(|rest| <[u8; 8]>::try_from(rest).ok());
    let time = time.or_internal(|| format!("the history of a tree of run {run} is damaged"))?;
    let tree = if row == b"null" { None } else { Some(tree_of(run, &row)?) };
    Ok((u64::from_be_bytes(time), tree))
}

fn prefix(run: &RunId, number: u32) -> Key {
    past_trees_key(run).number(number.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;

    fn tree(text: &str) -> CarriedTree {
        CarriedTree::new("0".repeat(40), Digest::of(text.as_bytes()), 1, 7)
    }

    #[tokio::test]
    async fn a_tree_is_found_as_it_was_at_any_time() {
        let (store, run) = (longhaul_testkit::MemoryStore::new(), RunId::from_text("r-1"));
        assert_eq!(newest_tree(&store, &run, 0).unwrap(), None);
        assert_eq!(tree_at(&store, &run, 0, u64::MAX).unwrap(), None);
        let mut batch = Batch::new();
        let kept = [(10, Some(tree("a"))), (11, Some(tree("b"))), (500, None), (70_000, Some(tree("c")))];
        for (at_ms, tree) in &kept {
            batch = put_tree_past(batch, &run, 0, *at_ms, tree.as_ref()).unwrap();
        }
        batch = put_tree_past(batch, &run, 1, 9, Some(&tree("of another tree"))).unwrap();
        batch = put_tree_past(batch, &RunId::from_text("r-12"), 0, 9, Some(&tree("of another run"))).unwrap();
        store.commit(batch).await.unwrap();
        let at = |at_ms| tree_at(&store, &run, 0, at_ms).unwrap();
        let expected = [
            (0, None),
            (9, None),
            (10, Some(tree("a"))),
            (11, Some(tree("b"))),
            (499, Some(tree("b"))),
            (500, None),
            (69_999, None),
            (70_000, Some(tree("c"))),
            (u64::MAX, Some(tree("c"))),
        ];
        for (at_ms, tree) in expected {
            assert_eq!(at(at_ms), tree, "{at_ms}");
        }
        assert_eq!(newest_tree(&store, &run, 0).unwrap(), Some((70_000, Some(tree("c")))));
    }

    #[tokio::test]
    async fn a_damaged_row_is_an_error_and_no_tree() {
        let (store, run) = (longhaul_testkit::MemoryStore::new(), RunId::from_text("r-1"));
        for (key, row) in [(prefix(&run, 0).number(5), "{}"), (prefix(&run, 0).number(5).and("x"), "null")] {
            store.commit(Batch::new().put(Table::States, key, row)).await.unwrap();
            assert!(tree_at(&store, &run, 0, 7).is_err() && newest_tree(&store, &run, 0).is_err());
        }
    }
}
