//! A store in memory, with the rules of the real one and nothing durable.

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Row, Store, StoreError, Table};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Everything that a scene's plugin stores.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Data>);

#[derive(Clone, Debug, Default)]
struct Data {
    rows: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    blobs: BTreeMap<Digest, Vec<u8>>,
}

impl MemoryStore {
    /// A store without any data.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything in one table: two stores are alike when these are.
    #[must_use]
    pub fn rows(&self, table: Table) -> Vec<Row> {
        let data = self.lock();
        let rows = data.rows.iter().filter(|((of, _), _)| *of == table);
        rows.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Data> {
        // A batch is applied to a copy, so what a panic leaves is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Data {
    fn apply(&mut self, op: Op) -> Result<(), StoreError> {
        let place = |table, key: &Key| (table, key.as_bytes().to_vec());
        match op {
            Op::Put(table, key, value) => drop(self.rows.insert(place(table, &key), value)),
            Op::Insert(table, key, value) => {
                if self.rows.contains_key(&place(table, &key)) {
                    return Err(conflict(table, &key));
                }
                self.rows.insert(place(table, &key), value);
            }
            Op::Swap(table, key, old, value) => match self.rows.get_mut(&place(table, &key)) {
                Some(held) if Digest::of(held) == old => *held = value,
                _ => return Err(conflict(table, &key)),
            },
            Op::Delete(table, key) => drop(self.rows.remove(&place(table, &key))),
            Op::Blob(digest, bytes) => drop(self.blobs.insert(digest, bytes)),
        }
        Ok(())
    }
}

fn conflict(table: Table, key: &Key) -> StoreError {
    StoreError::Conflict { table, key: String::from_utf8_lossy(key.as_bytes()).into_owned() }
}

#[async_trait::async_trait]
impl Store for MemoryStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().rows.get(&(table, key.as_bytes().to_vec())).cloned())
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        let prefix = prefix.as_bytes();
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded((table, after.to_vec())),
            _ => Bound::Included((table, prefix.to_vec())),
        };
        let data = self.lock();
        let rows = data.rows.range((start, Bound::Unbounded));
        let rows = rows.take_while(|((of, key), _)| *of == table && key.starts_with(prefix)).take(limit);
        Ok(rows.map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().blobs.get(digest).cloned())
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let mut data = self.lock();
        let mut next = data.clone();
        batch.ops.into_iter().try_for_each(|op| next.apply(op))?;
        *data = next;
        Ok(())
    }
}

/// A store as one of several processes has it: the others write between its reads and its commits.
#[derive(Clone, Debug)]
pub struct ProcessStore(Arc<MemoryStore>);

impl ProcessStore {
    /// One process's handle of a store.
    #[must_use]
    pub fn of(store: &Arc<MemoryStore>) -> Self {
        Self(Arc::clone(store))
    }
}

#[async_trait::async_trait]
impl Store for ProcessStore {
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get(table, key)
    }

    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.0.scan(table, prefix, after, limit)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.blob(digest)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        self.0.commit(batch).await
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }
}
