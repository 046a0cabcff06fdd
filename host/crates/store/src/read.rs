//! Reads of one table at one moment: its rows in the database, under the recent ones.
//!
//! `ReadOnlyTable::get` of redb 4 returns a guard of any lifetime, which does not keep the transaction alive: once the
//! table and the transaction are dropped, the writer may free the page under the guard, and redb panics over that in
//! debug builds. So this module returns copies, made before the table and its transaction are dropped, and no guards.

use crate::recent::{Change, Recent};
use crate::tables::{Bytes, Place};
use longhaul_core::store::Row;
use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase as _, StorageError};
use std::ops::Bound;

/// The database, and the rows that are not in it yet.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) db: &'a Database,
    pub(crate) recent: &'a Recent,
    pub(crate) place: Place,
}

impl Reader<'_> {
    /// A copy of the value of a key.
    pub(crate) fn get(self, key: &[u8]) -> Result<Option<Vec<u8>>, redb::Error> {
        let (found, snapshot) = {
            let layers = self.recent.read();
            match layers.find(self.place, key) {
                Some(found) => (found.map(<[u8]>::to_vec), None),
                None => (None, Some(self.snapshot()?)),
            }
        };
        snapshot.map_or(Ok(found), |snapshot| snapshot.get(key))
    }

    /// True when there is a value of the key.
    pub(crate) fn has(self, key: &[u8]) -> Result<bool, redb::Error> {
        let snapshot = {
            let layers = self.recent.read();
            match layers.find(self.place, key) {
                Some(found) => return Ok(found.is_some()),
                None => self.snapshot()?,
            }
        };
        snapshot.has(key)
    }

    /// Copies of the rows from `start` on, at most `limit`, up to the first one without the prefix.
    pub(crate) fn forward(self, start: Bound<&[u8]>, prefix: &[u8], limit: usize) -> Result<Vec<Row>, redb::Error> {
        let (changes, snapshot) = {
            let layers = self.recent.read();
            (layers.forward(self.place, start, prefix, limit), self.snapshot()?)
        };
        let rows = snapshot.table.range::<&[u8]>((start, Bound::Unbounded))?.map(copied);
        let rows = rows.take_while(|row| row.as_ref().map_or(true, |(key, _)| key.starts_with(prefix)));
        joined(changes, rows, limit, |one, other| one <= other)
    }

    /// Copies of the last rows between two keys, the last one first, at most `limit`.
    pub(crate) fn backward(
        self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, redb::Error> {
        let (changes, snapshot) = {
            let layers = self.recent.read();
            (layers.backward(self.place, start, end, limit), self.snapshot()?)
        };
        let rows = snapshot.table.range::<&[u8]>((start, end))?.rev().map(copied);
        joined(changes, rows, limit, |one, other| one >= other)
    }

    /// Taken while the layers are held: the database gets no rows of the upper one meanwhile.
    fn snapshot(self) -> Result<Snapshot, redb::Error> {
        Snapshot::of(self.db, self.place.definition())
    }
}

/// A table of the database at one moment. It pins pages of the file, so it is kept no longer than one call.
pub(crate) struct Snapshot {
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    /// Fields are dropped in their order, so the transaction outlives all pages of the table.
    _transaction: ReadTransaction,
}

impl Snapshot {
    fn of(db: &Database, table: Bytes) -> Result<Self, redb::Error> {
        let transaction = db.begin_read()?;
        let table = transaction.open_table(table)?;
        Ok(Self { table, _transaction: transaction })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, redb::Error> {
        let stored = self.table.get(key)?;
        Ok(stored.map(|stored| stored.value().to_vec()))
    }

    fn has(&self, key: &[u8]) -> Result<bool, redb::Error> {
        let stored = self.table.get(key)?;
        Ok(stored.is_some())
    }
}

type Guard<'a> = redb::AccessGuard<'a, &'static [u8]>;

fn copied<'a>(row: Result<(Guard<'a>, Guard<'a>), StorageError>) -> Result<Row, StorageError> {
    let (key, value) = row?;
    Ok((key.value().to_vec(), value.value().to_vec()))
}

/// Rows of the database with the changes to them, both sorted, at most `limit`.
fn joined(
    changes: Vec<Change>,
    rows: impl Iterator<Item = Result<Row, StorageError>>,
    limit: usize,
    in_order: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<Vec<Row>, redb::Error> {
    let (mut changes, mut rows) = (changes.into_iter().peekable(), rows.peekable());
    let mut found = Vec::new();
    while found.len() < limit {
        let is_changed = match (changes.peek(), rows.peek()) {
            (None, None) => break,
            (None, Some(_)) | (Some(_), Some(Err(_))) => false,
            (Some(_), None) => true,
            (Some((changed, _)), Some(Ok((stored, _)))) => in_order(changed, stored),
        };
        if !is_changed {
            found.extend(rows.next().transpose()?);
        } else if let Some((key, value)) = changes.next() {
            // The value in the database is an older one.
            rows.next_if(|row| row.as_ref().is_ok_and(|(stored, _)| *stored == key));
            found.extend(value.map(|value| (key, value)));
        }
    }
    Ok(found)
}
