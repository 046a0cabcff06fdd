//! A group of batches: each is checked by itself, all are committed once, by the log or in one transaction of redb.
//!
//! A batch whose conditions do not hold is left out as a whole before any of its changes is made, so
//! that it costs the others nothing.

use crate::recent::{Change, Layers, Recent};
use crate::tables::Place;
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, StoreError, Table};
use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase as _, ReadableTable as _, WriteTransaction};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The verdict on each batch of a committed group.
pub(crate) type Verdicts = Vec<Result<(), StoreError>>;

/// The verdicts on a group of which nothing is written yet.
pub(crate) fn check(db: &Database, recent: &Recent, batches: &[&Batch]) -> Result<Verdicts, redb::Error> {
    // Held to the end: what the database gets meanwhile is still in the layers.
    let layers = recent.read();
    let mut stored = Stored { db, layers: &layers, transaction: None, open: HashMap::new() };
    let mut changed: HashMap<(Place, &[u8]), Option<&[u8]>> = HashMap::new();
    let mut verdicts = Verdicts::with_capacity(batches.len());
    for batch in batches {
        let conflict = conflict(batch, |table, key| match changed.get(&(Place::Table(table), key)) {
            Some(value) => Ok(value.map(Digest::of)),
            None => stored.digest(Place::Table(table), key),
        })?;
        if conflict.is_none() {
            changed.extend(batch.ops.iter().map(effect));
        }
        verdicts.push(conflict.map_or(Ok(()), Err));
    }
    Ok(verdicts)
}

/// The changes of a batch that passed.
pub(crate) fn into_effects(batch: Batch) -> impl Iterator<Item = (Place, Change)> {
    batch.ops.into_iter().map(|op| match op {
        Op::Put(table, key, value) | Op::Insert(table, key, value) | Op::Swap(table, key, _, value) => {
            (Place::Table(table), (key.as_bytes().to_vec(), Some(value)))
        }
        Op::Delete(table, key) => (Place::Table(table), (key.as_bytes().to_vec(), None)),
        Op::Blob(digest, value) => (Place::Blobs, (digest.as_bytes().to_vec(), Some(value))),
    })
}

/// Writes a group into `transaction`. Blobs are encoded already.
pub(crate) fn apply(transaction: &WriteTransaction, batches: &[&Batch]) -> Result<Verdicts, redb::Error> {
    let mut tables = Tables { transaction, open: HashMap::new() };
    batches.iter().map(|batch| tables.apply(batch)).collect()
}

/// True when the batches that passed are in the store, all as the last of them left it.
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

/// The tables that a transaction has touched. Opening one costs a look-up, so each is opened once.
struct Tables<'a> {
    transaction: &'a WriteTransaction,
    open: HashMap<Place, redb::Table<'a, &'static [u8], &'static [u8]>>,
}

impl<'a> Tables<'a> {
    fn apply(&mut self, batch: &Batch) -> Result<Result<(), StoreError>, redb::Error> {
        let conflict = conflict(batch, |table, key| {
            let stored = self.table(Place::Table(table))?.get(key)?;
            Ok(stored.map(|stored| Digest::of(stored.value())))
        })?;
        if let Some(conflict) = conflict {
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

    fn table(&mut self, table: Place) -> Result<&mut redb::Table<'a, &'static [u8], &'static [u8]>, redb::Error> {
        Ok(match self.open.entry(table) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(closed) => closed.insert(self.transaction.open_table(table.definition())?),
        })
    }
}

/// The values before a group: those of the layers, and of the database below them.
struct Stored<'a> {
    db: &'a Database,
    layers: &'a Layers,
    open: HashMap<Place, ReadOnlyTable<&'static [u8], &'static [u8]>>,
    /// Fields are dropped in their order, so the transaction outlives all pages of the tables.
    transaction: Option<ReadTransaction>,
}

impl Stored<'_> {
    fn digest(&mut self, place: Place, key: &[u8]) -> Result<Option<Digest>, redb::Error> {
        if let Some(value) = self.layers.find(place, key) {
            return Ok(value.map(Digest::of));
        }
        let stored = self.table(place)?.get(key)?;
        Ok(stored.map(|stored| Digest::of(stored.value())))
    }

    fn table(&mut self, place: Place) -> Result<&ReadOnlyTable<&'static [u8], &'static [u8]>, redb::Error> {
        let transaction = match &mut self.transaction {
            Some(transaction) => transaction,
            none => none.insert(self.db.begin_read()?),
        };
        let table = match self.open.entry(place) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(closed) => closed.insert(transaction.open_table(place.definition())?),
        };
        Ok(table)
    }
}

/// The first condition of a batch that does not hold, given its own earlier changes. `stored` tells the digest of a
/// value before the batch.
fn conflict<'a>(
    batch: &'a Batch,
    mut stored: impl FnMut(Table, &'a [u8]) -> Result<Option<Digest>, redb::Error>,
) -> Result<Option<StoreError>, redb::Error> {
    // Only changes before the last condition can decide about one, and most batches begin with their only one.
    let Some(last) = batch.ops.iter().rposition(|op| matches!(op, Op::Insert(..) | Op::Swap(..))) else {
        return Ok(None);
    };
    let mut changed: HashMap<(Place, &[u8]), Option<&[u8]>> = HashMap::new();
    for (at, op) in batch.ops[..=last].iter().enumerate() {
        let mut digest = |table, key: &'a Key| match changed.get(&(Place::Table(table), key.as_bytes())) {
            Some(value) => Ok(value.map(Digest::of)),
            None => stored(table, key.as_bytes()),
        };
        let held = match op {
            Op::Insert(table, key, _) => digest(*table, key)?.is_none(),
            Op::Swap(table, key, old, _) => digest(*table, key)? == Some(*old),
            Op::Put(..) | Op::Delete(..) | Op::Blob(..) => true,
        };
        let ((place, key), value) = effect(op);
        if let (false, Place::Table(table)) = (held, place) {
            return Ok(Some(StoreError::conflict(table, key)));
        }
        if at < last {
            changed.insert((place, key), value);
        }
    }
    Ok(None)
}

/// The key and the new value of a change.
pub(crate) fn effect(op: &Op) -> ((Place, &[u8]), Option<&[u8]>) {
    match op {
        Op::Put(table, key, value) | Op::Insert(table, key, value) | Op::Swap(table, key, _, value) => {
            ((Place::Table(*table), key.as_bytes()), Some(value))
        }
        Op::Delete(table, key) => ((Place::Table(*table), key.as_bytes()), None),
        Op::Blob(digest, value) => ((Place::Blobs, digest.as_bytes()), Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::BLOBS;
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
