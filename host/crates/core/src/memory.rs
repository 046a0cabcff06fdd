//! The words of a memory backend: entries, what a search finds, and why it says no.

use crate::{Denial, LimitHit, Outage};
use serde::{Deserialize, Serialize};

/// One thing that is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Unique within its namespace.
    pub key: String,
    /// JSON.
    pub value: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Milliseconds since 1970-01-01 UTC; none: kept.
    pub expires_at_ms: Option<f64>,
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
