//! The input of a map: the files of a repository, the task, and the caps on the texts that are read.
//!
//! The caller reads the texts; nothing here opens a file.

/// Bytes of the longest file whose text is read: what is longer is seldom written by hand.
pub const FILE_BYTES_MAX: u64 = 256 << 10;

/// Bytes of all texts together.
pub const BYTES_MAX: u64 = 16 << 20;

/// A file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// From the top, with `/`.
    pub path: String,
    /// What is in it; none when it was not read, see [`crate::wants`].
    pub text: Option<String>,
}

/// What the map is for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The task in its author's words.
    pub words: &'a str,
    /// Paths that were changed of late, the newest first.
    pub recent: &'a [String],
    /// Most tokens of the map, as [`crate::tokens`] counts them.
    pub tokens_max: usize,
}
