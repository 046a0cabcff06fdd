//! A map of a repository for a model: which files there are, and what those that matter for a task define, within a
//! budget of tokens.
//!
//! Files go in as texts and a text comes out; the same files and words give the same map. A file ranks by how many others
//! name what it defines, by the words of the task, and by how lately it was changed. Whoever wrote the files is hostile:
//! bytes, files, definitions and the work of the parsers are capped, and control characters do not come out. Refuses to
//! read a disk, to resolve a name, and to say what a file means.

mod definitions;
mod input;
mod language;
mod listing;
mod rank;
mod symbols;
#[cfg(test)]
mod tests;
mod text;

pub use input::{BYTES_MAX, FILE_BYTES_MAX, Purpose, SourceFile};
pub use text::tokens;

use rank::Ranks;

/// Most files that a map counts; the rest are left out and said.
pub const FILES_MAX: usize = 50_000;

/// A map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// For the model.
    pub text: String,
    /// How many files there are.
    pub files: usize,
    /// Of how many it says what they define.
    pub described: usize,
}

/// Whether the text of a file is of use: it is source code in a language that is parsed, and not too long.
#[must_use]
pub fn wants(path: &str, bytes: u64) -> bool {
    bytes <= FILE_BYTES_MAX && language::of(path).is_some()
}

/// Makes the map. `files` may stand in any order.
#[must_use]
pub fn map(files: &[SourceFile], purpose: &Purpose<'_>) -> Map {
    let mut files: Vec<&SourceFile> = files.iter().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    let left_out = files.len().saturating_sub(FILES_MAX);
    files.truncate(FILES_MAX);
    let defined = definitions::of_all(&files);
    let ranks = Ranks::of(&files, &defined, purpose);
    let mut text = listing::text(&files, left_out, purpose.tokens_max / LISTING_SHARE);
    let room = purpose.tokens_max.saturating_sub(tokens(&text));
    let (symbols, described) = symbols::text(&files, &defined, &ranks, room);
    text.push_str(&symbols);
    Map { text, files: files.len() + left_out, described }
}

/// The part of the budget that the list of files may use.
const LISTING_SHARE: usize = 3;
