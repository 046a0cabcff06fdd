//! A group of batches in one transaction of redb: each is checked by itself, all are committed once.
//!
//! A batch whose conditions do not hold is left out as a whole before any of its changes is made, so
//! that it costs the others nothing.

use crate::tables::{BLOBS, Bytes, definition};
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, StoreError, Table};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, WriteTransaction};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The verdict on each batch of a committed group.
pub(crate) type Verdicts = Vec<Result<(), StoreError>>;

/// Writes a group into `transaction`. Blobs are encoded already.
pub(crate) fn apply(transaction: &WriteTransaction, batches: &[&Batch]) -> Result<Verdicts, redb::Error> {
    let mut tables = Tables { transaction, open: HashMap::new() };
    batches.iter().map(|batch| tables.apply(batch)).collect()
}

/// Whether the batches that passed are in the store, all as the last of them left it.
///
/// Called after a failed commit: the failure may have come after the point where the transaction was already decided.
/// When the keys hold the new values, it was, or it makes no difference.
pub(crate) fn landed(db: &Database, batches: &[&Batch]) -> Result<bool, redb::Error> {
    let mut last: HashMap<(Place, &[u8]), Option<&[u8]>> = HashMap::new();
    for op in batches.iter().flat_map(|batch| &batch.ops) {
        let (place, value) = effect(op);
        last.insert(place, value);
    }
    let transaction = db.begin_read()?;
    for ((table, key), value) in last {
        let table = transaction.open_table(table.definition())?;
        let found = table.get(key)?;
        if found.as_ref().map(redb::AccessGuard::value) != value {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One of the tables that batches change.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Table(Table),
    Blobs,
}

impl Place {
    fn definition(self) -> Bytes {
        match self {
            Self::Table(table) => definition(table),
            Self::Blobs => BLOBS,
        }
    }
}

/// The tables that a transaction has touched. Opening one costs a look-up, so each is opened once.
struct Tables<'a> {
    transaction: &'a WriteTransaction,
    open: HashMap<Place, redb::Table<'a, &'static [u8], &'static [u8]>>,
}

impl<'a> Tables<'a> {
    fn apply(&mut self, batch: &Batch) -> Result<Result<(), StoreError>, redb::Error> {
        if let Some(conflict) = self.conflict(batch)? {
            return Ok(Err(conflict));
        }
        for op in &batch.ops {
            let ((table, key), value) = effect(op);
            let table = self.table(table)?;
            match value {
                Some(value) => drop(table.insert(key, value)?),
                None => drop(table.remove(key)?),
            }
        }
        Ok(Ok(()))
    }

    /// The first condition of a batch that does not hold, given its own earlier changes.
    fn conflict(&mut self, batch: &Batch) -> Result<Option<StoreError>, redb::Error> {
        // Only changes before the last condition can decide about one, and most batches begin with their only one.
        let Some(last) = batch.ops.iter().rposition(|op| matches!(op, Op::Insert(..) | Op::Swap(..))) else {
            return Ok(None);
        };
        let mut changed: HashMap<(Table, &[u8]), Option<&[u8]>> = HashMap::new();
        for (at, op) in batch.ops[..=last].iter().enumerate() {
            let held = match op {
                Op::Insert(table, key, _) => self.digest(&changed, *table, key)?.is_none(),
                Op::Swap(table, key, old, _) => self.digest(&changed, *table, key)? == Some(*old),
                Op::Put(..) | Op::Delete(..) | Op::Blob(..) => true,
            };
            if let ((Place::Table(table), key), value) = effect(op) {
                if !held {
                    return Ok(Some(StoreError::Conflict { table, key: readable(key) }));
                }
                if at < last {
                    changed.insert((table, key), value);
                }
            }
        }
        Ok(None)
    }

    fn digest(
        &mut self,
        changed: &HashMap<(Table, &[u8]), Option<&[u8]>>,
        table: Table,
        key: &Key,
    ) -> Result<Option<Digest>, redb::Error> {
        if let Some(value) = changed.get(&(table, key.as_bytes())) {
            return Ok(value.map(Digest::of));
        }
        let stored = self.table(Place::Table(table))?.get(key.as_bytes())?;
        Ok(stored.map(|stored| Digest::of(stored.value())))
    }

    fn table(&mut self, table: Place) -> Result<&mut redb::Table<'a, &'static [u8], &'static [u8]>, redb::Error> {
        Ok(match self.open.entry(table) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(closed) => closed.insert(self.transaction.open_table(table.definition())?),
        })
    }
}

/// The key and the new value of a change.
fn effect(op: &Op) -> ((Place, &[u8]), Option<&[u8]>) {
    match op {
        Op::Put(table, key, value) | Op::Insert(table, key, value) | Op::Swap(table, key, _, value) => {
            ((Place::Table(*table), key.as_bytes()), Some(value))
        }
        Op::Delete(table, key) => ((Place::Table(*table), key.as_bytes()), None),
        Op::Blob(digest, value) => ((Place::Blobs, digest.as_bytes()), Some(value)),
    }
}

/// A key for a person: its text, with every other byte as a space between the parts.
fn readable(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    let parts = text.split(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::InMemoryBackend;

    #[test]
    fn what_landed_is_told_by_what_the_last_batch_left() {
        let key = |number| Key::of("k").number(number);
        let one = Batch::new().insert(Table::States, key(1), "old").put(Table::States, key(2), "gone");
        let mut two = Batch::new().put(Table::States, key(1), "new");
        two.push(Op::Delete(Table::States, key(2)));
        two.blob(b"content".to_vec());
        let group = [&one, &two];
        let db = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let commit = |batches: &[&Batch]| {
            let transaction = db.begin_write().unwrap();
            transaction.open_table(BLOBS).unwrap();
            assert!(apply(&transaction, batches).unwrap().iter().all(Result::is_ok));
            transaction.commit().unwrap();
        };
        commit(&[]);
        commit(&[&Batch::new().put(Table::States, key(0), "x")]);
        assert!(!landed(&db, &group).unwrap());
        commit(&[&one]);
        assert!(!landed(&db, &group).unwrap(), "only the first of them");
        commit(&[&two]);
        assert!(landed(&db, &group).unwrap());
    }
}
