//! The memory backend `{{name}}`: entries in the key-value space, which is the only place of truth.
//!
//! An instance may be gone after any call, so nothing is kept in it.

use longhaul_sdk::memory::{Entry, Hit, Memory, MemoryContext, MemoryError, Page};
use longhaul_sdk::{Error, clock, keyvalue};
use serde::{Deserialize, Serialize};

struct Plugin;

/// An entry as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    value: serde_json::Value,
    tags: Vec<String>,
    expires_at_ms: Option<f64>,
}

impl Memory for Plugin {
    fn put(namespace: String, entry: Entry, _: MemoryContext) -> Result<(), MemoryError> {
        if entry.key.is_empty() {
            return Err(MemoryError::Invalid("an entry needs a key".to_owned()));
        }
        let value = serde_json::from_str(&entry.value)
            .map_err(|error| MemoryError::Invalid(format!("the value is not JSON: {error}")))?;
        let stored = Stored { value, tags: entry.tags, expires_at_ms: entry.expires_at_ms };
        let bytes = serde_json::to_vec(&stored).map_err(Error::from)?;
        Ok(keyvalue::set(&place(&namespace, &entry.key), &bytes).map_err(Error::from)?)
    }

    fn get(namespace: String, key: String, _: MemoryContext) -> Result<Option<Entry>, MemoryError> {
        Ok(read(&namespace, &key)?)
    }

    fn search(namespace: String, query: String, limit: u32, _: MemoryContext) -> Result<Vec<Hit>, MemoryError> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let mut hits = Vec::new();
        for key in keys(&namespace, "")? {
            let Some(entry) = read(&namespace, &key)? else { continue };
            let text = format!("{} {} {}", entry.key, entry.tags.join(" "), entry.value).to_lowercase();
            let found = words.iter().filter(|word| text.contains(*word)).count();
            if found > 0 {
                #[allow(clippy::cast_precision_loss, reason = "there are few words")]
                hits.push(Hit { entry, score: found as f64 / words.len() as f64 });
            }
        }
        // The sort is stable, so equal scores stay in the order of their keys.
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(limit as usize);
        Ok(hits)
    }

    fn delete(namespace: String, key: String, _: MemoryContext) -> Result<bool, MemoryError> {
        let was_there = read(&namespace, &key)?.is_some();
        keyvalue::delete(&place(&namespace, &key)).map_err(Error::from)?;
        Ok(was_there)
    }

    fn list(
        namespace: String,
        prefix: String,
        cursor: Option<String>,
        limit: u32,
        _: MemoryContext,
    ) -> Result<Page, MemoryError> {
        let mut listed = Vec::new();
        for key in keys(&namespace, &prefix)? {
            let is_next = cursor.as_ref().is_none_or(|after| key > *after);
            if is_next && read(&namespace, &key)?.is_some() {
                listed.push(key);
            }
        }
        let is_last = listed.len() <= limit as usize;
        listed.truncate(limit as usize);
        let next = if is_last { None } else { listed.last().cloned() };
        Ok(Page { keys: listed, cursor: next })
    }
}

/// The key of an entry. The length in front keeps `a` + `bc` apart from `ab` + `c`.
fn place(namespace: &str, key: &str) -> String {
    format!("{}:{namespace}{key}", namespace.len())
}

/// The entry, unless it has expired; then it is removed.
fn read(namespace: &str, key: &str) -> Result<Option<Entry>, Error> {
    let place = place(namespace, key);
    let Some(bytes) = keyvalue::get(&place)? else { return Ok(None) };
    let stored: Stored = serde_json::from_slice(&bytes)?;
    if stored.expires_at_ms.is_some_and(|at| at <= clock::now_ms()) {
        keyvalue::delete(&place)?;
        return Ok(None);
    }
    let Stored { value, tags, expires_at_ms } = stored;
    Ok(Some(Entry { key: key.to_owned(), value: value.to_string(), tags, expires_at_ms }))
}

/// The keys that begin with `prefix`, expired ones among them, in order.
fn keys(namespace: &str, prefix: &str) -> Result<Vec<String>, Error> {
    let (start, all) = (place(namespace, ""), place(namespace, prefix));
    let mut keys = Vec::new();
    let mut cursor = None;
    loop {
        let page = keyvalue::list_keys(&all, cursor.as_deref())?;
        keys.extend(page.keys.iter().filter_map(|key| key.strip_prefix(&start)).map(str::to_owned));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    keys.sort();
    Ok(keys)
}

longhaul_sdk::export_memory!(Plugin);
