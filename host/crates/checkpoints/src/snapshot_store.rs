//! Snapshots that are saved in the data directory under a key, with an expiry.
//!
//! A key is part of a row's key, so it may have any length and any characters, and names no file. An expired snapshot
//! is not returned any more; `gc` removes it, as it removes those of a certain age.

use longhaul_api::checkpoints::SavedSnapshot;
use longhaul_core::Clock;
use longhaul_core::store::{Batch, Key, Op, Store, StoreError, Table};

/// The saved snapshots of a data directory.
pub struct SnapshotStore<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Clock,
}

impl<'a> SnapshotStore<'a> {
    /// The snapshots of a store, by this clock.
    pub fn new(store: &'a dyn Store, clock: &'a dyn Clock) -> Self {
        Self { store, clock }
    }

    /// Saves a snapshot for this time, in place of one with the same key.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn save(&self, key: &str, snapshot: Vec<u8>, ttl_ms: u64) -> Result<SavedSnapshot, StoreError> {
        let saved_ms = self.clock.now_ms();
        let until_ms = saved_ms.saturating_add(ttl_ms);
        let saved = SavedSnapshot { key: key.to_owned(), saved_ms, until_ms, bytes: snapshot.len() as u64 };
        let about = serde_json::to_vec(&saved).expect("text and numbers, which JSON always holds");
        let batch = Batch::new().put(Table::States, about_key(key), about);
        self.store.commit(batch.put(Table::States, snapshot_key(key), snapshot)).await?;
        Ok(saved)
    }

    /// The snapshot of a key, unless it has expired.
    ///
    /// # Errors
    /// When the store fails.
    pub fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let about = self.store.get(Table::States, &about_key(key))?;
        let living = about.and_then(|bytes| read(&bytes)).is_some_and(|saved| saved.until_ms > self.clock.now_ms());
        if living { self.store.get(Table::States, &snapshot_key(key)) } else { Ok(None) }
    }

    /// The snapshots that have not expired, in the order of their keys.
    ///
    /// # Errors
    /// When the store fails.
    pub fn list(&self) -> Result<Vec<SavedSnapshot>, StoreError> {
        let now_ms = self.clock.now_ms();
        Ok(self.all()?.into_iter().filter(|saved| saved.until_ms > now_ms).collect())
    }

    /// Removes expired snapshots, and those saved longer ago than `age_ms`; returns how many.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn purge(&self, age_ms: u64) -> Result<usize, StoreError> {
        let old = self.older(age_ms)?;
        for saved in &old {
            self.remove(&saved.key).await?;
        }
        Ok(old.len())
    }

    /// The number of snapshots that [`Self::purge`] would remove.
    ///
    /// # Errors
    /// When the store fails.
    pub fn old(&self, age_ms: u64) -> Result<usize, StoreError> {
        Ok(self.older(age_ms)?.len())
    }

    fn older(&self, age_ms: u64) -> Result<Vec<SavedSnapshot>, StoreError> {
        let now_ms = self.clock.now_ms();
        let is_old = |saved: &SavedSnapshot| saved.until_ms <= now_ms || now_ms.saturating_sub(saved.saved_ms) > age_ms;
        Ok(self.all()?.into_iter().filter(is_old).collect())
    }

    /// Removes one snapshot.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn remove(&self, key: &str) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.push(Op::Delete(Table::States, about_key(key)));
        batch.push(Op::Delete(Table::States, snapshot_key(key)));
        self.store.commit(batch).await
    }

    fn all(&self) -> Result<Vec<SavedSnapshot>, StoreError> {
        let rows = self.store.scan(Table::States, &Key::of("checkpoints").and("about"), None, usize::MAX)?;
        Ok(rows.iter().filter_map(|(_, bytes)| read(bytes)).collect())
    }
}

fn read(bytes: &[u8]) -> Option<SavedSnapshot> {
    serde_json::from_slice(bytes).ok()
}

fn about_key(key: &str) -> Key {
    Key::of("checkpoints").and("about").and(key)
}

fn snapshot_key(key: &str) -> Key {
    Key::of("checkpoints").and("snapshot").and(key)
}
