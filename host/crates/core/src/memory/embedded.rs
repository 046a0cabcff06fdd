//! The default backend: entries are rows of the host's own store.
//!
//! Expired entries are not shown, and are removed by [`Embedded::purge`]. A search reads at most
//! [`SEARCHED_MAX`](super::SEARCHED_MAX) entries, and no more bytes than
//! [`SEARCHED_BYTES_MAX`](super::SEARCHED_BYTES_MAX).

use super::{
    FullText, KeyPage, MemoryBackend, MemoryEntry, MemoryError, MemoryHit, Ranking, SEARCHED_BYTES_MAX, SEARCHED_MAX,
};
use crate::store::{Batch, Key, Op, Row, Store, StoreError, Table};
use crate::{Clock, Digest};
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
                let key = Key::from_bytes(key.clone());
                // Only if it is unchanged: it may have been replaced since.
                batch.push(Op::Swap(Table::Memory, key.clone(), Digest::of(bytes), bytes.clone()));
                batch.push(Op::Delete(Table::Memory, key));
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
        let entry = bytes.map(|bytes| read(&bytes)).transpose()?;
        Ok(entry.filter(|entry| !entry.is_expired(self.clock.now_ms())))
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

    fn staged(&self, namespace: &str, entry: &MemoryEntry) -> Result<Option<Batch>, MemoryError> {
        self.batch(namespace, entry).map(Some)
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
        let bytes = serde_json::to_vec(entry).map_err(|error| MemoryError::Failed(error.to_string()))?;
        Ok(batch.put(Table::Memory, key, bytes))
    }
}

/// The prefix of a namespace's keys. No two namespaces share it, and none is a prefix of another's.
fn space(namespace: &str) -> Key {
    match namespace.split_once('/') {
        Some((tier, of)) if TIERS.contains(&tier) => Key::of(tier).and(of),
        _ => Key::of(OTHERS).and(namespace),
    }
}

fn read(bytes: &[u8]) -> Result<MemoryEntry, MemoryError> {
    serde_json::from_slice(bytes).map_err(|error| MemoryError::Failed(format!("an entry is damaged: {error}")))
}

fn stored(error: StoreError) -> MemoryError {
    MemoryError::Failed(error.to_string())
}
