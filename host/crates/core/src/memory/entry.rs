//! Entries of a memory backend, hits of a search, and the errors of a backend.
//!
//! The value of an entry is any JSON here: [`MemoryNote`](super::MemoryNote) gives it a form.

use crate::{Denial, LimitHit, Outage};
use serde::{Deserialize, Serialize};

/// Bytes of a key, of a namespace, of a value, and of all tags together.
const KEY_BYTES_MAX: usize = 1_024;
const NAMESPACE_BYTES_MAX: usize = 1_024;
const VALUE_BYTES_MAX: usize = 256 << 10;
const TAGS_BYTES_MAX: usize = 4 << 10;

/// An entry of a memory backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryEntry {
    /// Unique within its namespace.
    pub key: String,
    /// The value, as JSON text.
    pub value: String,
    /// Words to find the entry by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Milliseconds since 1970-01-01 UTC; none: never.
    #[serde(default)]
    pub expires_at_ms: Option<f64>,
}

impl MemoryEntry {
    /// True when it has expired at a time.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^53")]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms as f64)
    }

    /// Refuses entries that no backend of the host stores.
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
}

/// A hit of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryHit {
    /// The found entry.
    pub entry: MemoryEntry,
    /// The score of its fit, in the backend's own measure.
    pub score: f64,
}

/// The reason why an operation of a memory backend failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryError {
    /// The operator or the backend does not allow it.
    #[error(transparent)]
    Denied(Denial),
    /// A cap was reached.
    #[error(transparent)]
    Limit(LimitHit),
    /// The backend is not available now.
    #[error(transparent)]
    Unavailable(Outage),
    /// The entry or the query is invalid.
    #[error("it is invalid: {0}")]
    Invalid(String),
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
}
