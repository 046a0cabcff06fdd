//! Reads of one table at one moment.
//!
//! `ReadOnlyTable::get` of redb 4 returns a guard of any lifetime, which does not keep the transaction alive: once the
//! table and the transaction are dropped, the writer may free the page under the guard, and redb panics over that in
//! debug builds. So this module returns copies, made before the table and its transaction are dropped, and no guards.

use crate::tables::Bytes;
use longhaul_core::store::Row;
use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase as _};
use std::ops::Bound;

/// A table as it is at one moment. It pins pages of the file, so it is kept no longer than one call.
pub(crate) struct Snapshot {
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    /// Fields are dropped in their order, so the transaction outlives all pages of the table.
    _transaction: ReadTransaction,
}

impl Snapshot {
    /// The table at this moment.
    pub(crate) fn of(db: &Database, table: Bytes) -> Result<Self, redb::Error> {
        let transaction = db.begin_read()?;
        let table = transaction.open_table(table)?;
        Ok(Self { table, _transaction: transaction })
    }

    /// A copy of the value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, redb::Error> {
        let stored = self.table.get(key)?;
        Ok(stored.map(|stored| stored.value().to_vec()))
    }

    /// True when there is a value of the key.
    pub(crate) fn has(&self, key: &[u8]) -> Result<bool, redb::Error> {
        let stored = self.table.get(key)?;
        Ok(stored.is_some())
    }

    /// Copies of the rows from `start` on, at most `limit`, up to the first one without the prefix.
    pub(crate) fn forward(&self, start: Bound<&[u8]>, prefix: &[u8], limit: usize) -> Result<Vec<Row>, redb::Error> {
        let mut found = Vec::new();
        for row in self.table.range::<&[u8]>((start, Bound::Unbounded))?.take(limit) {
            let (key, value) = row?;
            if !key.value().starts_with(prefix) {
                break;
            }
            found.push((key.value().to_vec(), value.value().to_vec()));
        }
        Ok(found)
    }

    /// Copies of the last rows between two keys, the last one first, at most `limit`.
    pub(crate) fn backward(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, redb::Error> {
        let mut found = Vec::new();
        for row in self.table.range::<&[u8]>((start, end))?.rev().take(limit) {
            let (key, value) = row?;
            found.push((key.value().to_vec(), value.value().to_vec()));
        }
        Ok(found)
    }
}
