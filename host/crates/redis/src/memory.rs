//! A memory backend that several processes and machines share.
//!
//! | key | holds |
//! |---|---|
//! | PREFIX`:m:`LENGTH`:`NAMESPACE`:`KEY | an entry, JSON, with its expiry |
//! | PREFIX`:i:`NAMESPACE | the keys of a namespace, a sorted set, in their order |
//!
//! The length in front keeps a namespace from reaching into a key. An entry without a lifetime of its own expires after
//! `ttl_s`. Redis removes expired entries by its own clock; entries that are expired by the host's clock are never
//! returned. A key without an entry leaves the index when a call finds it. A search reads at most
//! [`SEARCHED_MAX`](longhaul_core::memory::SEARCHED_MAX) entries, and no more bytes than
//! [`SEARCHED_BYTES_MAX`](longhaul_core::memory::SEARCHED_BYTES_MAX).

use crate::link::Link;
use crate::{RedisConfig, RedisError};
use longhaul_core::Clock;
use longhaul_core::memory::{
    FullText, KeyPage, MemoryBackend, MemoryEntry, MemoryError, MemoryHit, Ranking, SEARCHED_BYTES_MAX, SEARCHED_MAX,
};
use redis::{Cmd, cmd};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// The number of entries in one read: with the largest values, 16 MiB.
const AT_ONCE: usize = 64;

/// Stores an entry and its place in the index, together; the index lives at least as long as the entry.
const PUT: &str = "
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[3])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return 1";

/// As [`PUT`], if the stored value is the one that the caller saw, or if both are none. A value that is expired by the
/// host's clock counts as none.
const REPLACE: &str = "
local kept = redis.call('GET', KEYS[1])
if kept then
  local read, stored = pcall(cjson.decode, kept)
  if not read then return redis.error_reply('an entry is none') end
  if stored.until_ms <= tonumber(ARGV[6]) then kept = false else kept = stored.entry.value end
end
if kept then
  if ARGV[4] == '0' or kept ~= ARGV[5] then return 0 end
elseif ARGV[4] ~= '0' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[3])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return 1";

/// Deletes an entry and its place in the index, if the stored value is the one that the caller saw. A value that is
/// expired by the host's clock counts as none.
const REMOVE: &str = "
local kept = redis.call('GET', KEYS[1])
if not kept then return 0 end
local read, stored = pcall(cjson.decode, kept)
if not read then return redis.error_reply('an entry is none') end
if stored.until_ms <= tonumber(ARGV[2]) or stored.entry.value ~= ARGV[3] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])";

/// Removes keys without an entry from the index, except those that were stored again since.
const SWEEP: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 then return redis.call('ZREM', KEYS[2], ARGV[1]) end
return 0";

const DELETE: &str = "
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])";

/// The memory backend; see the module.
pub struct RedisMemory {
    link: Link,
    clock: Arc<dyn Clock>,
    prefix: String,
    ttl_ms: u64,
    ranking: Arc<dyn Ranking>,
}

/// An entry in the server's form.
#[derive(Serialize, Deserialize)]
struct Stored {
    entry: MemoryEntry,
    until_ms: u64,
}

impl RedisMemory {
    /// A backend on a server. Nothing is sent yet. The password is looked up with `variable`, and files are relative to
    /// `base`.
    ///
    /// # Errors
    /// [`RedisError::Config`].
    pub fn new(
        config: &RedisConfig,
        variable: &dyn Fn(&str) -> Option<String>,
        base: &Path,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RedisError> {
        let link = config.link(variable, base)?;
        let ranking = Arc::new(FullText);
        Ok(Self { link, clock, prefix: config.prefix.clone(), ttl_ms: config.ttl_ms(), ranking })
    }

    /// Replaces the ranking by full text with another one.
    #[must_use]
    pub fn ranked_by(self, ranking: Arc<dyn Ranking>) -> Self {
        Self { ranking, ..self }
    }

    fn place(&self, namespace: &str, key: &str) -> String {
        format!("{}:m:{}:{namespace}:{key}", self.prefix, namespace.len())
    }

    fn index(&self, namespace: &str) -> String {
        format!("{}:i:{namespace}", self.prefix)
    }

    fn script(&self, text: &str, namespace: &str, key: &str) -> Cmd {
        let mut command = cmd("EVAL");
        command.arg(text).arg(2).arg(self.place(namespace, key)).arg(self.index(namespace));
        command
    }

    /// The entry from the server's bytes, unless it is expired.
    fn living(&self, bytes: Option<Vec<u8>>) -> Result<Option<MemoryEntry>, MemoryError> {
        let read = |bytes: Vec<u8>| serde_json::from_slice::<Stored>(&bytes);
        let stored = bytes.map(read).transpose();
        let stored = stored.map_err(|error| MemoryError::Failed(format!("an entry on the server is none: {error}")))?;
        Ok(stored.filter(|stored| stored.until_ms > self.clock.now_ms()).map(|stored| stored.entry))
    }

    /// The server's form of an entry, with its lifetime in milliseconds; none for an expired one.
    fn stored(&self, namespace: &str, entry: MemoryEntry) -> Result<Option<(Vec<u8>, u64)>, MemoryError> {
        entry.check(namespace)?;
        let now_ms = self.clock.now_ms();
        let until_ms = entry.expires_at_ms.map_or_else(|| now_ms.saturating_add(self.ttl_ms), whole);
        let Some(left_ms) = until_ms.checked_sub(now_ms).filter(|left_ms| *left_ms > 0) else { return Ok(None) };
        let bytes = serde_json::to_vec(&Stored { entry, until_ms });
        let bytes = bytes.map_err(|error| MemoryError::Failed(error.to_string()))?;
        // Redis accepts no longer lifetime than fits into its own clock.
        Ok(Some((bytes, left_ms.min(LIFE_MS_MAX))))
    }

    /// The keys of an index within a range.
    async fn keys(&self, namespace: &str, from: &[u8], to: &[u8]) -> Result<Vec<String>, MemoryError> {
        let mut command = cmd("ZRANGEBYLEX");
        command.arg(self.index(namespace)).arg(from).arg(to).arg("LIMIT").arg(0).arg(AT_ONCE);
        Ok(self.link.ask(&command).await?)
    }

    /// The unexpired entries of some keys. Keys without an entry leave the index.
    async fn entries(&self, namespace: &str, keys: &[String]) -> Result<Vec<MemoryEntry>, MemoryError> {
        let places: Vec<String> = keys.iter().map(|key| self.place(namespace, key)).collect();
        let found: Vec<Option<Vec<u8>>> = self.link.ask(cmd("MGET").arg(places)).await?;
        let mut entries = Vec::new();
        for (key, bytes) in keys.iter().zip(found) {
            if bytes.is_none() {
                let _: i64 = self.link.ask(self.script(SWEEP, namespace, key).arg(key)).await?;
            }
            entries.extend(self.living(bytes)?);
        }
        Ok(entries)
    }
}

#[async_trait::async_trait]
impl MemoryBackend for RedisMemory {
    async fn put(&self, namespace: &str, entry: MemoryEntry) -> Result<(), MemoryError> {
        let key = entry.key.clone();
        let Some((bytes, left_ms)) = self.stored(namespace, entry)? else {
            return self.delete(namespace, &key).await.map(drop);
        };
        let _: i64 = self.link.ask(self.script(PUT, namespace, &key).arg(bytes).arg(left_ms).arg(key)).await?;
        Ok(())
    }

    async fn replace(
        &self,
        namespace: &str,
        before: Option<&MemoryEntry>,
        entry: MemoryEntry,
    ) -> Result<bool, MemoryError> {
        let key = entry.key.clone();
        let Some((bytes, left_ms)) = self.stored(namespace, entry)? else {
            return self.delete(namespace, &key).await.map(|_| true);
        };
        // This finds a broken connection first: repeated, the second answer would be that another caller was faster.
        let _: String = self.link.ask(&cmd("PING")).await?;
        let mut command = self.script(REPLACE, namespace, &key);
        command.arg(bytes).arg(left_ms).arg(key).arg(u8::from(before.is_some()));
        command.arg(before.map_or("", |entry| &entry.value)).arg(self.clock.now_ms());
        Ok(self.link.ask_once(&command).await?)
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<MemoryEntry>, MemoryError> {
        let bytes: Option<Vec<u8>> = self.link.ask(cmd("GET").arg(self.place(namespace, key))).await?;
        self.living(bytes)
    }

    async fn search(&self, namespace: &str, query: &str, limit: u32) -> Result<Vec<MemoryHit>, MemoryError> {
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        let mut from = b"-".to_vec();
        while entries.len() < SEARCHED_MAX && bytes < SEARCHED_BYTES_MAX {
            let keys = self.keys(namespace, &from, b"+").await?;
            let Some(last) = keys.last() else { break };
            from = behind(last);
            let found = self.entries(namespace, &keys).await?;
            bytes = bytes.saturating_add(found.iter().map(|entry| entry.value.len()).sum());
            entries.extend(found);
        }
        self.ranking.rank(namespace, entries, query, limit).await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, MemoryError> {
        // This finds a broken connection first, since the next command must not be repeated.
        let _: String = self.link.ask(&cmd("PING")).await?;
        let was_there = self.get(namespace, key).await?.is_some();
        let deleted: i64 = self.link.ask_once(self.script(DELETE, namespace, key).arg(key)).await?;
        self.ranking.forget(namespace, key).await?;
        Ok(was_there && deleted > 0)
    }

    async fn remove(&self, namespace: &str, before: &MemoryEntry) -> Result<bool, MemoryError> {
        // As in `replace`: repeated, the second answer would be that another caller was faster.
        let _: String = self.link.ask(&cmd("PING")).await?;
        let mut command = self.script(REMOVE, namespace, &before.key);
        command.arg(&before.key).arg(self.clock.now_ms()).arg(&before.value);
        let is_removed: bool = self.link.ask_once(&command).await?;
        if is_removed {
            self.ranking.forget(namespace, &before.key).await?;
        }
        Ok(is_removed)
    }

    async fn list(
        &self,
        namespace: &str,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<KeyPage, MemoryError> {
        let mut from = match after.filter(|after| *after >= prefix) {
            Some(after) => behind(after),
            None => [b"[", prefix.as_bytes()].concat(),
        };
        // No key has this byte: keys are UTF-8.
        let to = [b"[", prefix.as_bytes(), &[u8::MAX]].concat();
        let mut listed: Vec<String> = Vec::new();
        loop {
            let keys = self.keys(namespace, &from, &to).await?;
            let Some(last) = keys.last() else { return Ok(KeyPage { keys: listed, next: None }) };
            from = behind(last);
            for entry in self.entries(namespace, &keys).await? {
                if listed.len() == limit as usize {
                    return Ok(KeyPage { next: listed.last().cloned(), keys: listed });
                }
                listed.push(entry.key);
            }
        }
    }
}

/// A lifetime of a thousand years, in milliseconds.
const LIFE_MS_MAX: u64 = 1_000 * 365 * 86_400_000;

/// The place in an index after a key.
fn behind(key: &str) -> Vec<u8> {
    [b"(", key.as_bytes()].concat()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float ends at the bounds")]
fn whole(ms: f64) -> u64 {
    ms as u64
}
