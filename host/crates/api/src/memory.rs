//! Requests and responses about the memory of a project. This module opens no memory.

use crate::runs::RunRef;
use longhaul_core::memory::{MemoryEntry, MemoryNote};
use serde::{Deserialize, Serialize};

/// List all items, sorted by key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The beginning of the listed keys. Empty: all keys.
    pub prefix: String,
    /// The most items of each scope.
    pub limit: usize,
}

/// Find the items that fit a query, the best first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The query.
    pub query: String,
    /// The most items of each scope.
    pub limit: u32,
}

/// Show the items of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The key.
    pub key: String,
    /// The scope. None: every scope that has the key.
    #[serde(default)]
    pub shelf: Option<MemoryScope>,
}

/// Mark the items of a key as a person's own words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromoteMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The key.
    pub key: String,
    /// The scope. None: every scope that has the key.
    #[serde(default)]
    pub shelf: Option<MemoryScope>,
}

/// Delete the items of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForgetMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The key.
    pub key: String,
    /// The scope. None: every scope that has the key.
    #[serde(default)]
    pub shelf: Option<MemoryScope>,
}

/// The kind of a memory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// A fact for later runs.
    Fact,
    /// The summary of a run.
    Episode,
    /// A note of the run for itself.
    Working,
}

impl MemoryScope {
    /// All scopes, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Fact, Self::Episode, Self::Working];

    /// The name in JSON and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Episode => "episode",
            Self::Working => "working",
        }
    }
}

/// An item of memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryItem {
    /// The scope.
    pub shelf: MemoryScope,
    /// The key, unique within its scope.
    pub key: String,
    /// The value, with its author and its trust.
    pub note: MemoryNote,
    /// The time of expiry, in milliseconds since 1970-01-01 UTC. None: never.
    pub expires_at_ms: Option<f64>,
    /// The relevance to the query, above 0. None: there was no query.
    pub score: Option<f64>,
}

impl MemoryItem {
    /// An item of an entry of the backend.
    #[must_use]
    pub fn of(shelf: MemoryScope, entry: MemoryEntry, score: Option<f64>) -> Self {
        Self { shelf, note: MemoryNote::read(&entry), key: entry.key, expires_at_ms: entry.expires_at_ms, score }
    }
}
