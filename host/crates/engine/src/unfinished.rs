//! Unfinished files of the cache directory, under names of their own until they are complete, and the locks of those
//! who write them.
//!
//! The writer of such a file renames it; `cache.rs` removes those that killed hosts left.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The prefix of unfinished files' names.
const UNFINISHED: &str = ".compiling-";

/// Makes one in `directory`. Dropping it removes it.
pub(crate) fn create_in(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)
}

/// The lock file of the compilation into the file `path`.
pub(crate) fn lock_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(UNFINISHED);
    name.push(path.file_name().unwrap_or_default());
    name.push(".lock");
    path.with_file_name(name)
}

/// True when a file of this name is being written, or was left by a killed writer.
pub(crate) fn is_unfinished(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
}
