//! The text of `longhaul.toml`, which somebody else may have written: the files of a project are what its repository made
//! of them.
//!
//! Refuses what [`read`] refuses.

use crate::config;
pub(crate) use longhaul_home::text_file::read;
use std::io;
use std::path::Path;

/// Bytes of `longhaul.toml`. The longest of ours has 4 KiB.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The text of `longhaul.toml` in a project.
///
/// # Errors
/// As [`read`].
pub(crate) fn of_config(project: &Path) -> io::Result<String> {
    read(&project.join(config::FILE), CONFIG_BYTES_MAX)
}
