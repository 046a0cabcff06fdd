//! The input of a map: the files of a repository, the task, and the caps on the texts that are read.
//!
//! The caller reads the texts; nothing here opens a file.

/// Bytes of the longest file whose text is read: a longer one is seldom hand-written.
pub const FILE_BYTES_MAX: u64 = 256 << 10;

/// Bytes of all texts together.
pub const BYTES_MAX: u64 = 16 << 20;

/// A file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path from the top, with `/`.
    pub path: String,
    /// The content; none when it was not read, see [`crate::wants`].
    pub text: Option<String>,
}

/// The purpose of the map.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The task in its author's words.
    pub words: &'a str,
    /// Recently changed paths, the newest first.
    pub recent: &'a [String],
    /// Most tokens of the map, as [`crate::tokens`] counts them.
    pub tokens_max: usize,
}
