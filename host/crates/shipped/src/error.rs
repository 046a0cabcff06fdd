//! The reasons why carried components cannot be unpacked.

use std::io;
use std::path::PathBuf;

/// The error of an unpacking.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShippedError {
    /// The cache cannot be used.
    #[error(
        "cannot {doing} `{path}` ({why}), where the plugins of this program are unpacked; name another cache with LONGHAUL_CACHE",
        path = .path.display()
    )]
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// The path of the file or directory.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// The bytes in the program are not those that were built.
    #[error("this program is damaged: `{name}` in it is not what was built; install the program again")]
    Damaged {
        /// The component.
        name: String,
    },
}
