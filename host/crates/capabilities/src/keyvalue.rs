//! The private, durable key-value space of a tool or a memory backend.

use crate::ctx::Ctx;
use longhaul_bindings::imports::keyvalue::{self, KeyPage, KeyvalueError};
use longhaul_core::LimitHit;
use longhaul_core::store::{Batch, Key, Op, StoreError, Table};

/// Keys of one page.
const PAGE_KEYS_MAX: usize = 1_000;
/// Rows that one read of a page returns: with the largest values, 32 MiB.
const ROWS_AT_ONCE: usize = 8;
/// Bytes of a key, and of a value.
const KEY_BYTES_MAX: usize = 1_024;
const VALUE_BYTES_MAX: usize = 4 << 20;

type Answer<T> = wasmtime::Result<Result<T, KeyvalueError>>;

impl keyvalue::Host for Ctx {
    async fn get(&mut self, key: String) -> Answer<Option<Vec<u8>>> {
        let value = self.services.store.get(Table::KeyValue, &self.space().and(&key)).map_err(stored)?;
        Ok(Ok(value))
    }

    async fn set(&mut self, key: String, value: Vec<u8>) -> Answer<()> {
        self.check_calls()?;
        for (name, used, max) in
            [("key_bytes_max", key.len(), KEY_BYTES_MAX), ("value_bytes_max", value.len(), VALUE_BYTES_MAX)]
        {
            if used > max {
                return Ok(Err(KeyvalueError::Limit(LimitHit::new(name, used as u64, max as u64).into())));
            }
        }
        let held = self.held_without(&key)?.saturating_add((key.len() + value.len()) as u64);
        if held > self.limits.keyvalue_bytes_max {
            let hit = LimitHit::new("keyvalue_bytes_max", held, self.limits.keyvalue_bytes_max);
            return Ok(Err(KeyvalueError::Limit(hit.into())));
        }
        let batch = Batch::new().put(Table::KeyValue, self.space().and(&key), value);
        let kept = self.services.store.commit(batch).await;
        // Counted again after a failure, whose result is unknown.
        self.space_bytes = kept.is_ok().then_some(held);
        Ok(kept.map_err(failed))
    }

    async fn delete(&mut self, key: String) -> Answer<()> {
        self.check_calls()?;
        let mut batch = Batch::new();
        batch.push(Op::Delete(Table::KeyValue, self.space().and(&key)));
        self.space_bytes = None;
        Ok(self.services.store.commit(batch).await.map_err(failed))
    }

    async fn exists(&mut self, key: String) -> Answer<bool> {
        let value = self.services.store.get(Table::KeyValue, &self.space().and(&key)).map_err(stored)?;
        Ok(Ok(value.is_some()))
    }

    async fn list_keys(&mut self, prefix: String, cursor: Option<String>) -> Answer<KeyPage> {
        let space = self.space();
        let mut after = cursor.map(|cursor| space.clone().and(&cursor).as_bytes().to_vec());
        let mut names = Vec::new();
        let mut full = false;
        // The store returns values with their keys, and values are the guest's: a whole page of them at once could be
        // gigabytes.
        while !full {
            let found =
                self.services.store.scan(Table::KeyValue, &space, after.as_deref(), ROWS_AT_ONCE).map_err(stored)?;
            let Some((last, _)) = found.last() else { break };
            after = Some(last.clone());
            names.extend(found.iter().filter_map(|(key, _)| last_part(key, &space)));
            full = names.len() >= PAGE_KEYS_MAX;
        }
        let cursor = names.last().filter(|_| full).cloned();
        Ok(Ok(KeyPage { keys: names.into_iter().filter(|name| name.starts_with(&prefix)).collect(), cursor }))
    }
}

impl Ctx {
    /// Bytes of the space without one key. The first call reads all of it.
    fn held_without(&mut self, key: &str) -> wasmtime::Result<u64> {
        let all = match self.space_bytes {
            Some(bytes) => bytes,
            None => self.count_space().map_err(stored)?,
        };
        let old = self.services.store.get(Table::KeyValue, &self.space().and(key)).map_err(stored)?;
        Ok(all.saturating_sub(old.map_or(0, |value| (key.len() + value.len()) as u64)))
    }

    fn count_space(&self) -> Result<u64, StoreError> {
        let space = self.space();
        let (mut bytes, mut after) = (0, None::<Vec<u8>>);
        loop {
            let found = self.services.store.scan(Table::KeyValue, &space, after.as_deref(), ROWS_AT_ONCE)?;
            let Some((last, _)) = found.last() else { return Ok(bytes) };
            after = Some(last.clone());
            let sizes = found.iter().filter_map(|(key, value)| Some(last_part(key, &space)?.len() + value.len()));
            bytes += sizes.map(|size| size as u64).sum::<u64>();
        }
    }

    fn space(&self) -> Key {
        Key::of(&self.scope.project).and(&self.scope.plugin)
    }
}

/// The text behind `space` in a key, unescaped; see [`Key::and`].
fn last_part(key: &[u8], space: &Key) -> Option<String> {
    let rest = key.strip_prefix(space.as_bytes())?.strip_suffix(&[0, 0])?;
    Some(String::from_utf8_lossy(rest).replace("\0\u{fffd}", "\0"))
}

fn failed(error: StoreError) -> KeyvalueError {
    KeyvalueError::Failed(error.to_string())
}

fn stored(error: StoreError) -> wasmtime::Error {
    crate::Stop::from(longhaul_core::journal::JournalError::Store(error)).into()
}
