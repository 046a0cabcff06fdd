//! The path of `longhaul.toml`, and the limit of its size.

use longhaul_home::text_file;
use std::io;
use std::path::Path;

/// The operator's file, in the root of a project.
pub const FILE: &str = "longhaul.toml";

/// Bytes of `longhaul.toml`. The longest one of this repository has 4 KiB.
pub const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The text of `longhaul.toml` in a project.
///
/// # Errors
/// As [`text_file::read`].
pub fn of_config(project: &Path) -> io::Result<String> {
    text_file::read(&project.join(FILE), CONFIG_BYTES_MAX)
}
