//! What a project remembers, as it is asked for and shown. Opens no memory.

use crate::runs::RunRef;
use longhaul_core::memory::{MemoryEntry, MemoryNote};
use serde::{Deserialize, Serialize};

/// List everything, in the order of keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListMemory {
    /// A run of the project.
    pub run: RunRef,
    /// Only keys that start so.
    pub prefix: String,
    /// At most so many of each scope.
    pub limit: usize,
}

/// Search for what bears on a question, the best first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The question.
    pub query: String,
    /// At most so many of each scope.
    pub limit: u32,
}

/// Show what has a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The key.
    pub key: String,
    /// Only there; none: wherever it is.
    #[serde(default)]
    pub shelf: Option<MemoryScope>,
}

/// Mark what has a key as a person's own words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromoteMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The key.
    pub key: String,
    /// Only there; none: wherever it is.
    #[serde(default)]
    pub shelf: Option<MemoryScope>,
}

/// Delete what has a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForgetMemory {
    /// A run of the project.
    pub run: RunRef,
    /// The key.
    pub key: String,
    /// Only there; none: wherever it is.
    #[serde(default)]
    pub shelf: Option<MemoryScope>,
}

/// The kind of a memory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Shelf))]
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
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Fact, Self::Episode, Self::Working];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Episode => "episode",
            Self::Working => "working",
        }
    }
}

/// Something that is remembered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryItem {
    /// Where.
    pub shelf: MemoryScope,
    /// Its key.
    pub key: String,
    /// What, by whom, and whose words.
    pub note: MemoryNote,
    /// When it is over, in milliseconds since 1970-01-01 UTC; none: never.
    pub expires_at_ms: Option<f64>,
    /// How well it fits the question, above 0; none where nothing was asked.
    pub score: Option<f64>,
}

impl MemoryItem {
    /// An entry of a shelf, with how well it fits.
    #[must_use]
    pub fn of(shelf: MemoryScope, entry: MemoryEntry, score: Option<f64>) -> Self {
        Self { shelf, note: MemoryNote::read(&entry), key: entry.key, expires_at_ms: entry.expires_at_ms, score }
    }
}
