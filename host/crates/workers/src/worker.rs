//! The record of a worker. Only the worker writes its row, and only the leader reads it.

use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Store, Table};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A worker, as it told when it last joined or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// The number of its claim on its seat, which a later process of the same data directory does not share.
    pub epoch: u64,
    /// The name of its machine.
    pub host: String,
    /// The number of its process there.
    pub process: u32,
    /// The version of longhaul.
    pub version: String,
    /// Its labels, which runs may need.
    pub labels: BTreeSet<String>,
    /// The number of runs that it works on at once.
    pub runs_max: u32,
    /// Its address for other servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl WorkerRecord {
    /// Adds the row of a worker, in place of the one before.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn put(&self, batch: Batch, name: &str) -> fault::Result<Batch> {
        Ok(batch.put(Table::States, Key::of("worker").and(name), serde_json::to_vec(self)?))
    }

    /// All workers that ever joined, by name.
    ///
    /// # Errors
    /// When the store, or a row, cannot be read.
    pub fn all(store: &dyn Store) -> fault::Result<BTreeMap<String, Self>> {
        let prefix = Key::of("worker");
        let mut found = BTreeMap::new();
        for (key, value) in store.scan(Table::States, &prefix, None, usize::MAX)? {
            let name = text_after(&key, &prefix).context("the row of a worker has no name")?;
            found.insert(name, serde_json::from_slice(&value).context("read the row of a worker")?);
        }
        Ok(found)
    }
}

/// The text part of a key behind a prefix. None: there is none, or more than that.
pub(crate) fn text_after(key: &[u8], prefix: &Key) -> Option<String> {
    let part = key.strip_prefix(prefix.as_bytes())?.strip_suffix(&[0, 0])?;
    // Names of workers and of runs have no 0, so none of theirs is escaped.
    (!part.contains(&0)).then(|| String::from_utf8(part.to_vec()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_behind_a_prefix_is_read_and_more_than_one_is_none() {
        let prefix = Key::of("worker");
        let read = |key: Key| text_after(key.as_bytes(), &prefix);
        assert_eq!(read(Key::of("worker").and("a-1")).as_deref(), Some("a-1"));
        assert_eq!(read(Key::of("worker").and("a").and("b")), None);
        assert_eq!(read(Key::of("worker").and("a\0b")), None);
        assert_eq!((read(Key::of("worker")), read(Key::of("claim").and("a"))), (None, None));
    }
}
