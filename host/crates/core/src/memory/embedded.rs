//! The default backend: entries are rows of the host's own store.
//!
//! Several processes may write one store, so what replaces an entry has a condition on the row that was read, which the
//! store decides about. Expired entries are not shown, and are removed by [`Embedded::purge`]. A search reads at most
//! [`SEARCHED_MAX`](super::SEARCHED_MAX) entries, and no more bytes than
//! [`SEARCHED_BYTES_MAX`](super::SEARCHED_BYTES_MAX).

use super::{
    FullText, KeyPage, MemoryBackend, MemoryEntry, MemoryError, MemoryHit, Ranking, SEARCHED_BYTES_MAX, SEARCHED_MAX,
    StagedEntry,
};
use crate::Clock;
use crate::store::{Batch, Key, Op, Row, Store, StoreError, Table};
use std::sync::Arc;

/// Rows that one read returns: with the largest values, 16 MiB.
const ROWS_AT_ONCE: usize = 64;

/// Namespaces with rows of their own, so that the file shows their purpose.
const TIERS: [&str; 2] = ["working", "episodic"];

/// The prefix of the keys of all other namespaces.
const OTHERS: &str = "@";

/// The embedded backend; see the module.
pub struct Embedded {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ranking: Arc<dyn Ranking>,
}

impl Embedded {
    /// A backend over a store; entries expire by this clock, and are found by full text.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, ranking: Arc::new(FullText) }
    }

    /// Uses another ranking.
    #[must_use]
    pub fn ranked_by(self, ranking: Arc<dyn Ranking>) -> Self {
        Self { ranking, ..self }
    }

    /// Removes expired entries of all namespaces; returns how many.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn purge(&self) -> Result<usize, StoreError> {
        let now_ms = self.clock.now_ms();
        let mut after: Option<Vec<u8>> = None;
        let mut purged = 0;
        loop {
            let rows = self.store.scan(Table::Memory, &Key::default(), after.as_deref(), ROWS_AT_ONCE)?;
            let Some((last, _)) = rows.last() else { return Ok(purged) };
            after = Some(last.clone());
            let mut batch = Batch::new();
            let is_over = |bytes: &[u8]| read(bytes).is_ok_and(|entry| entry.is_expired(now_ms));
            let over: Vec<&Row> = rows.iter().filter(|(_, bytes)| is_over(bytes)).collect();
            for (key, bytes) in &over {
                // It may have been replaced since.
                delete_unchanged(&mut batch, Key::from_bytes(key.clone()), bytes);
            }
            if batch.is_empty() {
                continue;
            }
            match self.store.commit(batch).await {
                Ok(()) => purged += over.len(),
                // Nothing of the batch was removed; the next purge removes it.
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Unexpired entries after a key, at most `limit`, and none beyond the cap of bytes.
    fn entries(&self, namespace: &str, after: Option<&str>, limit: usize) -> Result<Vec<MemoryEntry>, MemoryError> {
        let (space, now_ms) = (space(namespace), self.clock.now_ms());
        let mut after = after.map(|key| space.clone().and(key).as_bytes().to_vec());
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        loop {
            let rows: Vec<Row> =
                self.store.scan(Table::Memory, &space, after.as_deref(), ROWS_AT_ONCE).map_err(stored)?;
            let Some((last, _)) = rows.last() else { return Ok(entries) };
            after = Some(last.clone());
            for (_, row) in &rows {
                let entry = read(row)?;
                if entries.len() == limit || bytes >= SEARCHED_BYTES_MAX {
                    return Ok(entries);
                }
                if !entry.is_expired(now_ms) {
                    bytes = bytes.saturating_add(row.len());
                    entries.push(entry);
                }
            }
        }
    }
}

#[async_trait::async_trait]
impl MemoryBackend for Embedded {
    async fn put(&self, namespace: &str, entry: MemoryEntry) -> Result<(), MemoryError> {
        self.store.commit(self.batch(namespace, &entry)?).await.map_err(stored)
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<MemoryEntry>, MemoryError> {
        let bytes = self.store.get(Table::Memory, &space(namespace).and(key)).map_err(stored)?;
        bytes.map_or(Ok(None), |bytes| self.living(&bytes))
    }

    async fn search(&self, namespace: &str, query: &str, limit: u32) -> Result<Vec<MemoryHit>, MemoryError> {
        self.ranking.rank(namespace, self.entries(namespace, None, SEARCHED_MAX)?, query, limit).await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, MemoryError> {
        let was_there = self.get(namespace, key).await?.is_some();
        let mut batch = Batch::new();
        batch.push(Op::Delete(Table::Memory, space(namespace).and(key)));
        self.store.commit(batch).await.map_err(stored)?;
        self.ranking.forget(namespace, key).await?;
        Ok(was_there)
    }

    async fn list(
        &self,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<KeyPage, MemoryError> {
        // The keys of a prefix are not one range of the store's keys, since a key ends in a mark.
        let mut keys = Vec::new();
        let mut after = after.map(str::to_owned);
        loop {
            let entries = self.entries(namespace, after.as_deref(), ROWS_AT_ONCE)?;
            let Some(last) = entries.last() else { return Ok(KeyPage { keys, next: None }) };
            after = Some(last.key.clone());
            for MemoryEntry { key, .. } in entries.into_iter().filter(|entry| entry.key.starts_with(prefix)) {
                if keys.len() == limit as usize {
                    return Ok(KeyPage { next: keys.last().cloned(), keys });
                }
                keys.push(key);
            }
        }
    }

    async fn replace(
        &self,
        namespace: &str,
        before: Option<&MemoryEntry>,
        entry: MemoryEntry,
    ) -> Result<bool, MemoryError> {
        match self.replacing(namespace, before, &entry)? {
            Some(batch) => was_first(self.store.commit(batch).await),
            None => Ok(false),
        }
    }

    async fn remove(&self, namespace: &str, before: &MemoryEntry) -> Result<bool, MemoryError> {
        let key = space(namespace).and(&before.key);
        let row = self.store.get(Table::Memory, &key).map_err(stored)?;
        let Some(row) = row.filter(|row| self.living(row).is_ok_and(|entry| entry.as_ref() == Some(before))) else {
            return Ok(false);
        };
        let mut batch = Batch::new();
        delete_unchanged(&mut batch, key, &row);
        let is_removed = was_first(self.store.commit(batch).await)?;
        if is_removed {
            self.ranking.forget(namespace, &before.key).await?;
        }
        Ok(is_removed)
    }

    fn staged(&self, namespace: &str, entry: &MemoryEntry) -> Result<Option<Batch>, MemoryError> {
        self.batch(namespace, entry).map(Some)
    }

    fn staged_replace(
        &self,
        namespace: &str,
        before: Option<&MemoryEntry>,
        entry: &MemoryEntry,
    ) -> Result<StagedEntry, MemoryError> {
        Ok(self.replacing(namespace, before, entry)?.map_or(StagedEntry::Changed, StagedEntry::Rows))
    }
}

impl Embedded {
    fn batch(&self, namespace: &str, entry: &MemoryEntry) -> Result<Batch, MemoryError> {
        entry.check(namespace)?;
        let key = space(namespace).and(&entry.key);
        let mut batch = Batch::new();
        if entry.is_expired(self.clock.now_ms()) {
            batch.push(Op::Delete(Table::Memory, key));
            return Ok(batch);
        }
        Ok(batch.put(Table::Memory, key, written(entry)?))
    }

    /// The batch that stores an entry in place of `before`. None: another one is stored by now.
    fn replacing(
        &self,
        namespace: &str,
        before: Option<&MemoryEntry>,
        entry: &MemoryEntry,
    ) -> Result<Option<Batch>, MemoryError> {
        entry.check(namespace)?;
        let key = space(namespace).and(&entry.key);
        let row = self.store.get(Table::Memory, &key).map_err(stored)?;
        let now = row.as_deref().map_or(Ok(None), |row| self.living(row))?;
        if now.as_ref() != before {
            return Ok(None);
        }
        // The condition is on the row itself: an expired one, or one of an earlier version, has other bytes than
        // `before` would get.
        let mut batch = Batch::new();
        match (entry.is_expired(self.clock.now_ms()), &row) {
            (false, _) => batch = batch.replace(Table::Memory, key, row.as_deref(), written(entry)?),
            (true, Some(row)) => delete_unchanged(&mut batch, key, row),
            (true, None) => {}
        }
        Ok(Some(batch))
    }

    /// The entry of a row, unless it has expired.
    fn living(&self, row: &[u8]) -> Result<Option<MemoryEntry>, MemoryError> {
        Ok(Some(read(row)?).filter(|entry| !entry.is_expired(self.clock.now_ms())))
    }
}

/// Adds the removal of a row, which fails if another writer changed it.
fn delete_unchanged(batch: &mut Batch, key: Key, row: &[u8]) {
    batch.push(Op::replace(Table::Memory, key.clone(), Some(row), row.to_vec()));
    batch.push(Op::Delete(Table::Memory, key));
}

/// True when the conditions of a commit held, so that no other writer came first.
fn was_first(committed: Result<(), StoreError>) -> Result<bool, MemoryError> {
    match committed {
        Ok(()) => Ok(true),
        Err(StoreError::Conflict { .. }) => Ok(false),
        Err(error) => Err(stored(error)),
    }
}

/// The prefix of a namespace's keys. No two namespaces share it, and none is a prefix of another's.
fn space(namespace: &str) -> Key {
    match namespace.split_once('/') {
        Some((tier, of)) if TIERS.contains(&tier) => Key::of(tier).and(of),
        _ => Key::of(OTHERS).and(namespace),
    }
}

fn written(entry: &MemoryEntry) -> Result<Vec<u8>, MemoryError> {
    serde_json::to_vec(entry).map_err(|error| MemoryError::Failed(error.to_string()))
}

fn read(bytes: &[u8]) -> Result<MemoryEntry, MemoryError> {
    serde_json::from_slice(bytes).map_err(|error| MemoryError::Failed(format!("an entry is damaged: {error}")))
}

fn stored(error: StoreError) -> MemoryError {
    MemoryError::Failed(error.to_string())
}
