//! The words of a memory backend: entries, what a search finds, and why it says no; and the trait that every backend
//! has.
//!
//! | file | holds |
//! |---|---|
//! | `memory/embedded.rs` | the backend over the store, which is the default |
//! | `memory/note.rs` | who remembered what, how far it can be trusted, and what it replaced |
//! | `memory/episode.rs` | what a run came to, and which runs were alike |
//! | `memory/rank.rs` | which entries bear on a question: by full text, or by meaning too |
//!
//! A backend keeps what it is given and judges nothing: trust and conflicts are in the notes that callers put.

mod embedded;
mod episode;
mod note;
mod rank;

pub use embedded::Embedded;
pub use episode::{Episode, closest, jaccard};
pub use note::{Note, Replaced, Trust};
pub use rank::{EMBEDDED_MAX, Embedder, FullText, Hybrid, Ranking};

use crate::store::Batch;
use crate::{Denial, LimitHit, Outage};
use serde::{Deserialize, Serialize};

/// Bytes of a key, of a namespace, of a value, and of all tags together.
const KEY_BYTES_MAX: usize = 1_024;
const NAMESPACE_BYTES_MAX: usize = 1_024;
const VALUE_BYTES_MAX: usize = 256 << 10;
const TAGS_BYTES_MAX: usize = 4 << 10;

/// Entries of a namespace that a search of the host's own backends looks at, in the order of their keys. What is
/// beyond is not found.
pub const SEARCHED_MAX: usize = 2_000;

/// Bytes of them that a search holds, give or take what is read at once: an agent may fill a namespace with the longest
/// values, and two hundred of them may search at a time. What is beyond is not found either.
pub const SEARCHED_BYTES_MAX: usize = 16 << 20;

/// Where entries are kept. A namespace sees nothing of another; an entry that expired is neither got, listed nor
/// found.
#[async_trait::async_trait]
pub trait MemoryBackend: Send + Sync {
    /// Keeps an entry, in place of one with the same key. To put the same entry again changes nothing. One whose
    /// expiry is not in the future is gone at once.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] for a value that is no JSON, [`MemoryError::Limit`] for one that is too long, and
    /// [`MemoryError::Unavailable`] when the same call may succeed later.
    async fn put(&self, namespace: &str, entry: Entry) -> Result<(), MemoryError>;

    /// The entry of a key.
    ///
    /// # Errors
    /// [`MemoryError::Unavailable`] or [`MemoryError::Failed`].
    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Entry>, MemoryError>;

    /// At most `limit` entries that fit `query`, the best first.
    ///
    /// # Errors
    /// [`MemoryError::Unavailable`] or [`MemoryError::Failed`].
    async fn search(&self, namespace: &str, query: &str, limit: u32) -> Result<Vec<Hit>, MemoryError>;

    /// Whether there was an entry to delete.
    ///
    /// # Errors
    /// [`MemoryError::Unavailable`] or [`MemoryError::Failed`].
    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, MemoryError>;

    /// At most `limit` keys that start with `prefix`, from the one behind `after`.
    ///
    /// # Errors
    /// [`MemoryError::Unavailable`] or [`MemoryError::Failed`].
    async fn list(&self, namespace: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Page, MemoryError>;

    /// Keeps an entry if what is kept under its key is still `before`; answers whether it was, so that of two who keep
    /// one key at once neither is lost. A backend that cannot tell keeps it in any case.
    ///
    /// # Errors
    /// As [`Self::put`].
    async fn replace(&self, namespace: &str, before: Option<&Entry>, entry: Entry) -> Result<bool, MemoryError> {
        let _ = before;
        self.put(namespace, entry).await.map(|()| true)
    }

    /// What a `put` would write, where entries are rows of the host's own store: then it commits in one transaction
    /// with what it belongs to. None where they are kept elsewhere.
    ///
    /// # Errors
    /// As [`Self::put`].
    fn staged(&self, _namespace: &str, _entry: &Entry) -> Result<Option<Batch>, MemoryError> {
        Ok(None)
    }
}

/// One thing that is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Unique within its namespace.
    pub key: String,
    /// JSON.
    pub value: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Milliseconds since 1970-01-01 UTC; none: kept.
    #[serde(default)]
    pub expires_at_ms: Option<f64>,
}

impl Entry {
    /// Whether it is over at a time.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^53")]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms as f64)
    }

    /// Refuses what no backend of the host keeps.
    ///
    /// # Errors
    /// [`MemoryError::Limit`] or [`MemoryError::Invalid`].
    pub fn check(&self, namespace: &str) -> Result<(), MemoryError> {
        let tags: usize = self.tags.iter().map(String::len).sum();
        for (name, used, max) in [
            ("namespace_bytes_max", namespace.len(), NAMESPACE_BYTES_MAX),
            ("key_bytes_max", self.key.len(), KEY_BYTES_MAX),
            ("value_bytes_max", self.value.len(), VALUE_BYTES_MAX),
            ("tags_bytes_max", tags, TAGS_BYTES_MAX),
        ] {
            if used > max {
                return Err(MemoryError::Limit(LimitHit::new(name, used as u64, max as u64)));
            }
        }
        if self.expires_at_ms.is_some_and(|at_ms| !at_ms.is_finite()) {
            return Err(MemoryError::Invalid("the expiry is no time".to_owned()));
        }
        let json = serde_json::from_str::<serde::de::IgnoredAny>(&self.value);
        json.map(drop).map_err(|error| MemoryError::Invalid(format!("the value is not JSON: {error}")))
    }

    /// Its words: the key, the texts of the value, the tags. Of a note, the value alone: a search for `web` is not one
    /// for what came from there.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = self.key.clone();
        add_words(&Note::read(self).value, &mut words);
        self.tags.iter().for_each(|tag| words.extend([" ", tag]));
        words
    }
}

/// The texts and numbers of a value, and the names of its fields. Depth is bounded by the parser's.
fn add_words(value: &serde_json::Value, words: &mut String) {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => words.extend([" ", &number.to_string()]),
        Value::String(text) => words.extend([" ", text]),
        Value::Array(items) => items.iter().for_each(|item| add_words(item, words)),
        Value::Object(fields) => {
            for (name, value) in fields {
                words.extend([" ", name]);
                add_words(value, words);
            }
        }
    }
}

/// The best of some entries, as the host's own backends rank them: by full text, the best first, and of equal ones the
/// one with the smaller key. What shares no word with the query is not among them.
#[must_use]
pub fn ranked(entries: Vec<Entry>, query: &str, limit: u32) -> Vec<Hit> {
    let words: Vec<String> = entries.iter().map(Entry::words).collect();
    let scores = crate::full_text::scores(&words, query);
    rank::best(entries, scores, limit)
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The entry.
    pub entry: Entry,
    /// How well it fits, in the backend's own measure.
    pub score: f64,
}

/// A piece of a list of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// In the backend's order.
    pub keys: Vec<String>,
    /// Hand it back as `after` to get the next piece; none at the end.
    pub next: Option<String>,
}

/// Why a memory backend did not do it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryError {
    /// Not allowed.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// Not there now.
    #[error(transparent)]
    Unavailable(Outage),
    /// What was handed over cannot be kept or looked for.
    #[error("it is invalid: {0}")]
    Invalid(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}
