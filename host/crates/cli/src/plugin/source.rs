//! The component that an argument names: a file, or the file of a plugin.

use crate::context::Context;
use longhaul_core::fault;
use std::path::{Path, PathBuf};

/// The file itself, or the file of the plugin with that name.
pub(crate) fn file_of(context: &Context, file: &str) -> fault::Result<PathBuf> {
    if Path::new(file).is_file() {
        return Ok(PathBuf::from(file));
    }
    longhaul_plugins::find(file, Some(&context.project), &context.home)
}

/// The name of a file for people.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
