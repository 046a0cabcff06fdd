//! Files that an import reads again. A change of their form is a new version of it.

use crate::memory::{MemoryItem, MemoryScope};
use longhaul_core::memory::MemoryNote;
use serde::{Deserialize, Serialize};

/// The version of the form of exported memory.
const MEMORY_VERSION: u32 = 1;

/// The memory of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryExport {
    /// The version of the form: 1.
    pub longhaul_memory: u32,
    /// The items.
    pub memories: Vec<ExportedMemory>,
}

/// An exported item of memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportedMemory {
    /// The scope.
    pub shelf: MemoryScope,
    /// The key, unique within its scope.
    pub key: String,
    /// The value with its author and its trust, as the store holds it.
    pub note: MemoryNote,
    /// Time of expiry, in milliseconds since 1970-01-01 UTC; null: never.
    pub expires_at_ms: Option<f64>,
    /// Always null: there is no query.
    pub score: Option<f64>,
}

impl From<MemoryItem> for ExportedMemory {
    fn from(inner: MemoryItem) -> Self {
        let MemoryItem { shelf, key, note, expires_at_ms, score } = inner;
        Self { shelf, key, note, expires_at_ms, score }
    }
}

impl From<Vec<MemoryItem>> for MemoryExport {
    fn from(inner: Vec<MemoryItem>) -> Self {
        Self { longhaul_memory: MEMORY_VERSION, memories: inner.into_iter().map(Into::into).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn exported_memory_has_the_form_of_its_version() {
        let (key, note) = ("k".to_owned(), MemoryNote::default());
        let stored = serde_json::to_value(&note).unwrap();
        let item = MemoryItem { shelf: MemoryScope::Fact, key, note, expires_at_ms: None, score: None };
        assert_eq!(
            serde_json::to_value(MemoryExport::from(vec![item])).unwrap(),
            json!({
                "longhaul_memory": 1,
                "memories": [{ "shelf": "fact", "key": "k", "note": stored, "expires_at_ms": null, "score": null }],
            })
        );
    }
}
