//! The caps on the size of a tree.
//!
//! A count is refused as soon as it exceeds its cap, with the path at which it did. Nothing is ever cut to size.

use crate::TreeError;
use crate::names::shown;

/// The caps of a tree.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TreeCaps {
    /// Files that are not ignored. Default 200 000.
    pub files_max: u64,
    /// Bytes of the files of a checkout, and of all changes together. Default 4 GiB.
    pub bytes_max: u64,
    /// Bytes of one changed file; a larger one is in no commit, and [`crate::Scan::left_out`] names it. Default 64 MiB.
    pub file_bytes_max: u64,
    /// Directories within each other. Default 128.
    pub depth_max: u64,
}

impl Default for TreeCaps {
    fn default() -> Self {
        Self { files_max: 200_000, bytes_max: 4 << 30, file_bytes_max: 64 << 20, depth_max: 128 }
    }
}

/// Refuses `used` over `max`.
pub(crate) fn cap(name: &str, used: u64, max: u64, path: &[u8]) -> Result<(), TreeError> {
    if used > max { Err(TreeError::limit(name, used, max, shown(path))) } else { Ok(()) }
}
