//! A map of a repository for a model: its files, and the definitions of those that are relevant for a task, within a
//! budget of tokens.
//!
//! Files go in as texts and a text comes out; the same files and words give the same map. The rank of a file depends on
//! the number of other files that use its definitions, on the words of the task, and on its last change. The files are
//! hostile: bytes, files, definitions and the work of the parsers are capped, and control characters are removed.
//! Refuses to read a disk, to resolve a name, and to interpret a file.

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

/// Most files of a map; the map says how many are left out.
pub const FILES_MAX: usize = 50_000;

/// A map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The text for the model.
    pub text: String,
    /// The number of files.
    pub files: usize,
    /// The number of files with listed definitions.
    pub described: usize,
}

/// True when the text of a file is useful: it is source code in a parsed language, and not too long.
#[must_use]
pub fn wants(path: &str, bytes: u64) -> bool {
    bytes <= FILE_BYTES_MAX && language::of(path).is_some()
}

/// Makes the map. `files` may be in any order.
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
