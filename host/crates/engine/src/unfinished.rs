//! Files of the cache directory that are being written, under names of their own until they are whole.
//!
//! Whoever writes such a file renames it; `cache.rs` removes what killed hosts left.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// How the names of files start that are being written.
const UNFINISHED: &str = ".compiling-";

/// Makes one in `directory`. Dropping it removes it.
pub(crate) fn create_in(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)
}

/// Whether a file of this name is being written, or was left by who wrote it.
pub(crate) fn is_unfinished(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
}
