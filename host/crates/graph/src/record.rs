//! A graph as it lies in a store: a head, a row for each step, a row for each of the last changes.
//!
//! What can be found again by analysis is not kept: edges come from sources and from what runs were seen to do. A
//! reader ignores fields that it does not know, new fields have a default, and a head of a later [`FORMAT`] is refused.

use crate::analysis::{AnalysisMode, VariableName};
use crate::graph::StepId;
use longhaul_core::Digest;
use longhaul_core::graph::{GraphSummary, GraphVersion, PatchView, StepEnvironment};
use longhaul_core::store::{Batch, Key, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The format that is written. It changes when a reader of the old one could misread the new one.
pub const FORMAT: u32 = 1;

/// Changes whose rows are kept; older ones go as new ones come.
pub const VERSIONS_MAX: u64 = 1_000;

/// Bytes of a source that lies in the row of its step; a longer one is content by its digest.
pub const INLINE_BYTES_MAX: usize = 4 << 10;

/// Requests that are known when they come again.
const TOKENS_MAX: usize = 8;

/// The key of a graph's head.
#[must_use]
pub fn head_key(name: &str) -> Key {
    Key::of("head").and(name)
}

/// What the keys of all heads begin with.
#[must_use]
pub fn heads() -> Key {
    Key::of("head")
}

/// The key of a step's row.
#[must_use]
pub fn step_key(name: &str, row: u64) -> Key {
    steps(name).number(row)
}

/// What the keys of a graph's steps begin with.
#[must_use]
pub fn steps(name: &str) -> Key {
    Key::of("step").and(name)
}

/// The key of a change.
#[must_use]
pub fn version_key(name: &str, number: u64) -> Key {
    versions(name).number(number)
}

/// What the keys of a graph's changes begin with.
#[must_use]
pub fn versions(name: &str) -> Key {
    Key::of("version").and(name)
}

/// What a graph is made of, and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphHead {
    /// [`FORMAT`].
    pub format: u32,
    /// Its name.
    pub name: String,
    /// The invocation whose it is, if it is an agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `python`. Graphs of earlier versions may have `javascript`, which this one does not read.
    pub language: String,
    /// How much analysis takes for a mutation.
    #[serde(default)]
    pub mode: AnalysisMode,
    /// Where the randomness of its steps comes from.
    pub seed: Digest,
    /// What its steps see.
    #[serde(default)]
    pub surroundings: StepEnvironment,
    /// Counts what was asked for and changed it.
    pub version: u64,
    /// Counts what was written: several times while a run goes on.
    pub revision: u64,
    /// The number of the next step's row.
    pub next_row: u64,
    /// How many steps there are, and how many of them are stale.
    pub steps: u64,
    /// Likewise.
    pub stale: u64,
    /// When it was made, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// When it was last written.
    pub changed_ms: u64,
    /// The last requests that changed it.
    #[serde(default)]
    pub tokens: Vec<RequestToken>,
}

/// A request that was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestToken {
    /// What it calls itself.
    pub token: String,
    /// What it was answered, where that cannot be told from the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchView>,
}

impl GraphHead {
    /// The head of a new graph.
    #[must_use]
    pub fn new(name: &str, language: &str, seed: Digest, surroundings: StepEnvironment, now_ms: u64) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            owner: None,
            language: language.to_owned(),
            mode: AnalysisMode::default(),
            seed,
            surroundings,
            version: 1,
            revision: 1,
            next_row: 0,
            steps: 0,
            stale: 0,
            created_ms: now_ms,
            changed_ms: now_ms,
            tokens: Vec::new(),
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// In words, when a later longhaul wrote it, or it is damaged.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let head: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("a graph's head is damaged: {error}"))?;
        if head.format > FORMAT {
            return Err(format!(
                "the graph `{}` has format {}, and this longhaul reads {FORMAT}; use a newer longhaul",
                head.name, head.format
            ));
        }
        Ok(head)
    }

    /// In short.
    #[must_use]
    pub fn summary(&self) -> GraphSummary {
        GraphSummary {
            name: self.name.clone(),
            language: self.language.clone(),
            version: self.version,
            steps: usize::try_from(self.steps).unwrap_or(usize::MAX),
            stale: usize::try_from(self.stale).unwrap_or(usize::MAX),
            created_ms: self.created_ms,
            changed_ms: self.changed_ms,
            of_agent: self.owner.is_some(),
        }
    }

    /// The request of this token, if it was carried out.
    #[must_use]
    pub fn done(&self, token: &str) -> Option<&RequestToken> {
        self.tokens.iter().find(|done| done.token == token && !token.is_empty())
    }

    /// Notes that a request was carried out.
    pub fn note(&mut self, token: &str, patch: Option<PatchView>) {
        if token.is_empty() {
            return;
        }
        if self.tokens.len() >= TOKENS_MAX {
            self.tokens.remove(0);
        }
        self.tokens.push(RequestToken { token: token.to_owned(), patch });
    }
}

/// A text that lies in its row, or beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    /// The text.
    Inline(String),
    /// The digest of it.
    Blob(Digest),
}

impl Text {
    /// Keeps a text, a long one as content.
    #[must_use]
    pub fn keep(text: &str, batch: &mut Batch) -> Self {
        if text.len() <= INLINE_BYTES_MAX {
            Self::Inline(text.to_owned())
        } else {
            Self::Blob(batch.blob(text.as_bytes().to_vec()))
        }
    }

    /// The text.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is not there, and those of the store.
    pub fn read(&self, store: &dyn Store) -> Result<String, StoreError> {
        let digest = match self {
            Self::Inline(text) => return Ok(text.clone()),
            Self::Blob(digest) => digest,
        };
        let damaged = |detail: String| StoreError::Damaged { path: "graphs".to_owned(), detail };
        let bytes = store.blob(digest)?.ok_or_else(|| damaged(format!("the content {digest} is not there")))?;
        String::from_utf8(bytes).map_err(|_| damaged(format!("the content {digest} is not UTF-8")))
    }
}

/// A step. `H` is what its runs gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRow<H> {
    /// Its name.
    pub id: StepId,
    /// Its source.
    pub source: Text,
    /// Its last source that could be read, where this one cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Text>,
    /// Whether it is to run.
    pub stale: bool,
    /// What its runs were seen to read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub observed_reads: BTreeSet<VariableName>,
    /// What its runs were seen to change.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub observed_writes: BTreeSet<VariableName>,
    /// Whether its last run raised.
    #[serde(default)]
    pub failed: bool,
    /// What its runs gave.
    pub history: H,
}

/// What a change did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRow {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What, in one line.
    pub what: String,
    /// The step that was changed or removed, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// Its source before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
}

impl VersionRow {
    /// In the words of the outside.
    #[must_use]
    pub fn version(self, number: u64) -> GraphVersion {
        GraphVersion { number, at_ms: self.at_ms, what: self.what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_as_it_was_and_one_of_a_later_format_is_refused() {
        let mut head = GraphHead::new("main", "python", Digest::of(b"7"), StepEnvironment::default(), 5);
        head.note("t-1", None);
        let bytes = serde_json::to_vec(&head).unwrap();
        assert_eq!(GraphHead::read(&bytes).unwrap(), head);
        head.format = FORMAT + 1;
        let refused = GraphHead::read(&serde_json::to_vec(&head).unwrap()).unwrap_err();
        assert!(refused.contains("use a newer longhaul"), "{refused}");
        assert!(GraphHead::read(b"{").unwrap_err().contains("damaged"));
    }

    #[test]
    fn the_last_requests_are_known_and_one_without_a_token_never_is() {
        let mut head = GraphHead::new("main", "python", Digest::of(b"7"), StepEnvironment::default(), 5);
        for number in 0..=TOKENS_MAX {
            head.note(&format!("t-{number}"), None);
        }
        head.note("", None);
        assert!(head.done("t-0").is_none() && head.done("t-1").is_some() && head.done("").is_none());
    }

    #[test]
    fn a_long_source_lies_beside_its_row() {
        let mut batch = Batch::new();
        assert_eq!(Text::keep("a = 1", &mut batch), Text::Inline("a = 1".to_owned()));
        assert!(batch.is_empty());
        let long = "x".repeat(INLINE_BYTES_MAX + 1);
        assert_eq!(Text::keep(&long, &mut batch), Text::Blob(Digest::of(long.as_bytes())));
        assert_eq!(batch.ops.len(), 1);
    }
}
