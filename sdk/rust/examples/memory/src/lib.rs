//! The memory backend `shelf`: entries in the plugin's key-value space.
//!
//! Nothing is kept in the instance, so what was put is there for the next one. Namespaces cannot see each other.
//! An entry that has expired is gone: it is not got, listed or found, and is deleted when it is met. A search
//! reads every entry of its namespace; this is a shelf and no library.

mod space;
mod words;

use longhaul_sdk::keyvalue;
use longhaul_sdk::memory::{Entry, Hit, Memory, MemoryContext, MemoryError, Page};
use serde_json::Value;

use space::Space;

struct Shelf;

impl Memory for Shelf {
    fn put(namespace: String, entry: Entry, _: MemoryContext) -> Result<(), MemoryError> {
        check(&entry)?;
        Ok(Space::of(&namespace).put(&entry)?)
    }

    fn get(namespace: String, key: String, _: MemoryContext) -> Result<Option<Entry>, MemoryError> {
        Ok(Space::of(&namespace).get(&key)?)
    }

    fn search(namespace: String, query: String, limit: u32, _: MemoryContext) -> Result<Vec<Hit>, MemoryError> {
        let words = words::of(&query);
        if words.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let space = Space::of(&namespace);
        // Scores first and entries again at the end, so that only `limit` of them are held at once.
        let mut found = Vec::new();
        for key in space.keys("")? {
            let score = space.get(&key)?.map_or(0.0, |entry| words::share_in(&words, &entry));
            found.extend((score > 0.0).then_some((key, score)));
        }
        // Keys came in order and the sort is stable, so equal scores stay in that order.
        found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        found.truncate(limit as usize);
        let mut hits = Vec::new();
        for (key, score) in found {
            hits.extend(space.get(&key)?.map(|entry| Hit { entry, score }));
        }
        Ok(hits)
    }

    fn delete(namespace: String, key: String, _: MemoryContext) -> Result<bool, MemoryError> {
        let space = Space::of(&namespace);
        let is_there = space.get(&key)?.is_some();
        if is_there {
            keyvalue::delete(&space.key(&key))?;
        }
        Ok(is_there)
    }

    fn list(
        namespace: String,
        prefix: String,
        cursor: Option<String>,
        limit: u32,
        _: MemoryContext,
    ) -> Result<Page, MemoryError> {
        let space = Space::of(&namespace);
        let (mut keys, mut next) = (Vec::new(), None);
        for key in space.keys(&prefix)? {
            let is_behind = cursor.as_ref().is_some_and(|after| key <= *after);
            if is_behind || space.get(&key)?.is_none() {
                continue;
            }
            if keys.len() >= limit as usize {
                next = keys.last().cloned();
                break;
            }
            keys.push(key);
        }
        Ok(Page { keys, cursor: next })
    }
}

longhaul_sdk::export_memory!(Shelf);

fn check(entry: &Entry) -> Result<(), MemoryError> {
    if entry.key.is_empty() {
        return Err(MemoryError::Invalid("the key is empty; name the entry".to_owned()));
    }
    if let Err(error) = serde_json::from_str::<Value>(&entry.value) {
        return Err(MemoryError::Invalid(format!("the value is not JSON: {error}")));
    }
    if entry.expires_at_ms.is_some_and(|at| !at.is_finite()) {
        return Err(MemoryError::Invalid("`expires-at-ms` is no time; leave it out to keep the entry".to_owned()));
    }
    Ok(())
}
