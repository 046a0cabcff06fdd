//! A map of a repository for a model: which files there are, and what those that matter for a task define, within a
//! budget of tokens.
//!
//! Files go in as texts and a text comes out; the same files and words give the same map. A file ranks by how many others
//! name what it defines, by the words of the task, and by how lately it was changed. Whoever wrote the files is hostile:
//! bytes, files, definitions and the work of the parsers are capped, and control characters do not come out. Refuses to
//! read a disk, to resolve a name, and to say what a file means.

mod definitions;
mod language;
mod listing;
mod rank;
mod symbols;
#[cfg(test)]
mod tests;

use rank::Ranks;

/// Most files that a map counts; the rest are left out and said.
pub const FILES_MAX: usize = 50_000;

/// Bytes of the longest file whose text is read: what is longer is seldom written by hand.
pub const FILE_BYTES_MAX: u64 = 256 << 10;

/// Bytes of all texts together.
pub const BYTES_MAX: u64 = 16 << 20;

/// A file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// From the top, with `/`.
    pub path: String,
    /// What is in it; none when it was not read, see [`wants`].
    pub text: Option<String>,
}

/// What the map is for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The task in its author's words.
    pub words: &'a str,
    /// Paths that were changed of late, the newest first.
    pub recent: &'a [String],
    /// Most tokens of the map, as [`tokens`] counts them.
    pub tokens_max: usize,
}

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
pub fn map(files: &[File], purpose: &Purpose<'_>) -> Map {
    let mut files: Vec<&File> = files.iter().collect();
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

/// A count of tokens that paths and signatures do not exceed by much: signs and parts of names make about three
/// characters a token, where prose makes four.
#[must_use]
pub fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(3)
}

/// A text on one line: white space is a space, and what else is no plain character is left out.
fn plain(text: &str) -> String {
    let spaced: String = text.chars().map(|one| if one.is_whitespace() { ' ' } else { one }).collect();
    let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().filter(|one| !one.is_control() && !is_invisible(*one)).collect()
}

/// Marks that turn the direction of a text around, and characters without a width.
fn is_invisible(one: char) -> bool {
    matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
