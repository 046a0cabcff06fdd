//! Unfinished files of the cache directory, under names of their own until they are complete.
//!
//! The writer of such a file renames it; `cache.rs` removes those that killed hosts left.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// The prefix of unfinished files' names.
const UNFINISHED: &str = ".compiling-";

/// Makes one in `directory`. Dropping it removes it.
pub(crate) fn create_in(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)
}

/// Whether a file of this name is being written, or was left by a killed writer.
pub(crate) fn is_unfinished(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
}
