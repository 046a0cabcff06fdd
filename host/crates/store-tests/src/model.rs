//! The expected content of a store, in the plainest form: a sorted map for each table, and searches that look at
//! every row.

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Row, Table};
use std::collections::BTreeMap;

/// The rows of a store.
#[derive(Default)]
pub(crate) struct Model(Tables);

type Tables = BTreeMap<Table, BTreeMap<Vec<u8>, Vec<u8>>>;

impl Model {
    /// Applies a batch, unless one of its conditions does not hold; tells whether it was applied.
    pub(crate) fn apply(&mut self, batch: &Batch) -> bool {
        let mut next = self.0.clone();
        let holds = batch.ops.iter().all(|op| change(&mut next, op));
        if holds {
            self.0 = next;
        }
        holds
    }

    pub(crate) fn get(&self, table: Table, key: &[u8]) -> Option<&Vec<u8>> {
        self.0.get(&table)?.get(key)
    }

    pub(crate) fn scan(&self, table: Table, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Vec<Row> {
        let is_after = |key: &[u8]| after.is_none_or(|after| key > after);
        self.rows(table, prefix).filter(|(key, _)| is_after(key)).take(limit).collect()
    }

    pub(crate) fn last(&self, table: Table, prefix: &[u8], limit: usize) -> Vec<Row> {
        let mut rows: Vec<Row> = self.rows(table, prefix).collect();
        rows.reverse();
        rows.truncate(limit);
        rows
    }

    fn rows(&self, table: Table, prefix: &[u8]) -> impl Iterator<Item = Row> {
        let rows = self.0.get(&table).into_iter().flatten();
        rows.filter(move |(key, _)| key.starts_with(prefix)).map(|(key, value)| (key.clone(), value.clone()))
    }
}

/// Applies a change; false when it has a condition that does not hold. Content is not part of the model.
fn change(tables: &mut Tables, op: &Op) -> bool {
    let bytes = |key: &Key| key.as_bytes().to_vec();
    match op {
        Op::Put(table, key, value) => {
            tables.entry(*table).or_default().insert(bytes(key), value.clone());
            true
        }
        Op::Insert(table, key, value) => tables.entry(*table).or_default().insert(bytes(key), value.clone()).is_none(),
        Op::Swap(table, key, old, value) => {
            let before = tables.entry(*table).or_default().insert(bytes(key), value.clone());
            before.is_some_and(|before| Digest::of(&before) == *old)
        }
        Op::Delete(table, key) => {
            tables.entry(*table).or_default().remove(key.as_bytes());
            true
        }
        Op::Blob(..) => true,
    }
}
