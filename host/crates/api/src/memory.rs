//! What a project remembers, as it is asked for and shown. Opens no memory.

use longhaul_core::memory::{MemoryEntry, MemoryNote};
use serde::{Deserialize, Serialize};

/// What is asked of a project's memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryRequest {
    /// Everything, in the order of keys.
    List {
        /// Only keys that start so.
        prefix: String,
        /// At most so many of each shelf.
        limit: usize,
    },
    /// What bears on a question, the best first.
    Search {
        /// The question.
        query: String,
        /// At most so many of each shelf.
        limit: u32,
    },
    /// One whole.
    Show {
        /// Its key.
        key: String,
        /// Only there; none: wherever it is.
        #[serde(default)]
        shelf: Option<MemoryScope>,
    },
    /// Marks it as a person's own words, and answers what it is now.
    Promote {
        /// Its key.
        key: String,
        /// Only there; none: wherever it is.
        #[serde(default)]
        shelf: Option<MemoryScope>,
    },
    /// Removes it, and answers what it was.
    Forget {
        /// Its key.
        key: String,
        /// Only there; none: wherever it is.
        #[serde(default)]
        shelf: Option<MemoryScope>,
    },
}

/// Where something is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// What later runs may want to know.
    Fact,
    /// What a run came to.
    Episode,
    /// What the run noted for itself.
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
