//! The rows of a graph in a store: a head, a row for each step, a row for each of the last changes.
//!
//! Results of analysis are not stored: edges are derived from sources and from observations of runs. A reader ignores
//! unknown fields, new fields have a default, and a head of a later [`FORMAT`] is refused.

use crate::analysis::{AnalysisMode, VariableName};
use crate::graph::StepId;
use longhaul_core::Digest;
use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_core::graph::{GraphSummary, GraphVersion, PatchView, StepEnvironment};
use longhaul_core::store::{Batch, Key, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The written format. It changes when a reader of the old one could misread the new one.
pub const FORMAT: u32 = 1;

/// The number of changes whose rows are kept; each new one removes the oldest.
pub const VERSIONS_MAX: u64 = 1_000;

/// The longest source in the row of its step, in bytes; a longer one is a blob under its digest.
pub const INLINE_BYTES_MAX: usize = 4 << 10;

/// The number of request tokens that are kept, to recognise repeated requests.
const TOKENS_MAX: usize = 8;

/// The key of a graph's head.
#[must_use]
pub fn head_key(name: &str) -> Key {
    Key::of("head").and(name)
}

/// The prefix of the keys of all heads.
#[must_use]
pub fn heads() -> Key {
    Key::of("head")
}

/// The key of a step's row.
#[must_use]
pub fn step_key(name: &str, row: u64) -> Key {
    steps(name).number(row)
}

/// The prefix of the keys of a graph's steps.
#[must_use]
pub fn steps(name: &str) -> Key {
    Key::of("step").and(name)
}

/// The key of a change.
#[must_use]
pub fn version_key(name: &str, number: u64) -> Key {
    versions(name).number(number)
}

/// The prefix of the keys of a graph's changes.
#[must_use]
pub fn versions(name: &str) -> Key {
    Key::of("version").and(name)
}

/// The settings and the position of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphHead {
    /// [`FORMAT`].
    pub format: u32,
    /// Its name.
    pub name: String,
    /// The invocation that owns it, if it is an agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `python`. Graphs of earlier versions may have `javascript`, which this one does not read.
    pub language: String,
    /// The mode that decides what counts as a mutation.
    #[serde(default)]
    pub mode: AnalysisMode,
    /// The source of its steps' randomness.
    pub seed: Digest,
    /// The environment of its steps.
    #[serde(default)]
    pub surroundings: StepEnvironment,
    /// The number of requests that changed it.
    pub version: u64,
    /// The number of writes: several during one run.
    pub revision: u64,
    /// The number of the next step's row.
    pub next_row: u64,
    /// The number of its steps.
    pub steps: u64,
    /// The number of its stale steps.
    pub stale: u64,
    /// The time of its creation, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The time of the last write.
    pub changed_ms: u64,
    /// The last requests that changed it.
    #[serde(default)]
    pub tokens: Vec<RequestToken>,
}

/// A completed request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestToken {
    /// The token that the caller gave it.
    pub token: String,
    /// The response, if it does not follow from the graph.
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

    /// Reads a head.
    ///
    /// # Errors
    /// A text, when a later longhaul wrote it, or it is damaged.
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

    /// A summary of the head.
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
            directories: self.surroundings.directories.iter().map(directory).collect(),
            hosts: self.surroundings.hosts.iter().cloned().map(String::from).collect(),
        }
    }

    /// The completed request with this token, if there is one.
    #[must_use]
    pub fn done(&self, token: &str) -> Option<&RequestToken> {
        self.tokens.iter().find(|done| done.token == token && !token.is_empty())
    }

    /// Records that a request was completed.
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

/// A directory in the form in which a person grants it.
fn directory(grant: &DirectoryGrant) -> String {
    let mode = if grant.access == Access::Read { ":ro" } else { "" };
    format!("{}:{}{mode}", grant.host.display(), grant.guest)
}

/// A text in its row, or in a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    /// The text.
    Inline(String),
    /// Its digest.
    Blob(Digest),
}

impl Text {
    /// Stores a text, a long one as a blob.
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
    /// [`StoreError::Damaged`] when the blob is missing, and those of the store.
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

/// A step. `H` is the results of its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRow<H> {
    /// Its name.
    pub id: StepId,
    /// Its source.
    pub source: Text,
    /// Its last source that parsed, if this one does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Text>,
    /// True when it is to be run again.
    pub stale: bool,
    /// Names that its runs were observed to read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub observed_reads: BTreeSet<VariableName>,
    /// Names that its runs were observed to change.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub observed_writes: BTreeSet<VariableName>,
    /// True when its last run raised.
    #[serde(default)]
    pub failed: bool,
    /// The results of its runs.
    pub history: H,
}

/// The effect of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRow {
    /// The time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The change, in one line.
    pub what: String,
    /// The changed or removed step, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// Its source before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
}

impl VersionRow {
    /// The version in the form of the interface.
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
