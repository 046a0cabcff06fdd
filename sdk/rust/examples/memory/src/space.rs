//! A namespace in the key-value space of the plugin.
//!
//! A key is the length of the namespace in bytes, `:`, the namespace, the key. No two pairs give one key: the
//! length ends at the first `:`, and then says where the namespace ends.

use longhaul_sdk::memory::Entry;
use longhaul_sdk::{Error, clock, keyvalue};
use serde::{Deserialize, Serialize};

pub(crate) struct Space {
    prefix: String,
}

/// The stored form of an entry. The value stays the text that was put.
#[derive(Serialize, Deserialize)]
struct Kept {
    value: String,
    tags: Vec<String>,
    expires_at_ms: Option<f64>,
}

impl Space {
    pub(crate) fn of(namespace: &str) -> Self {
        Self { prefix: format!("{}:{namespace}", namespace.len()) }
    }

    /// The key of the key-value space.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(crate) fn put(&self, entry: &Entry) -> Result<(), Error> {
        let (value, tags) = (entry.value.clone(), entry.tags.clone());
        let kept = Kept { value, tags, expires_at_ms: entry.expires_at_ms };
        keyvalue::set_json(&self.key(&entry.key), &kept)
    }

    /// The entry, unless it has expired; then it is deleted here.
    pub(crate) fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        let full = self.key(key);
        let Some(kept) = keyvalue::get_json::<Kept>(&full)? else {
            return Ok(None);
        };
        if kept.expires_at_ms.is_some_and(|at| at <= clock::now_ms()) {
            keyvalue::delete(&full)?;
            return Ok(None);
        }
        let Kept { value, tags, expires_at_ms } = kept;
        Ok(Some(Entry { key: key.to_owned(), value, tags, expires_at_ms }))
    }

    /// All keys with this prefix, in the order of their code points; expired ones may be among them.
    pub(crate) fn keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let keys = keyvalue::keys(&self.key(prefix))?;
        Ok(keys.iter().filter_map(|key| key.strip_prefix(&self.prefix)).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pairs_of_namespace_and_key_give_one_key() {
        let pairs =
            [("", "1:a"), ("1:a", ""), ("1", ":a"), ("a", "b"), ("", "ab"), ("ab", ""), ("ä", "b"), ("a:", "b")];
        let mut keys: Vec<String> = pairs.iter().map(|(namespace, key)| Space::of(namespace).key(key)).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), pairs.len());
    }

    #[test]
    fn no_namespace_is_the_start_of_another() {
        let namespaces = ["", "a", "a:", "ab", "1:a", "ten letter"];
        let prefixes = namespaces.map(|namespace| Space::of(namespace).prefix);
        for (at, one) in prefixes.iter().enumerate() {
            for (other_at, other) in prefixes.iter().enumerate() {
                assert!(at == other_at || !other.starts_with(one.as_str()), "{one} {other}");
            }
        }
    }
}
