//! The directories that are searched for a plugin's name.
//!
//! Nothing here checks whether a directory exists; only that of the plugins in this program is made, and no other. A
//! directory of a project is never among them, since agents write the files of a project.

use crate::directory::Home;
use crate::machine::cache;
use longhaul_core::fault;
use std::path::{Path, PathBuf};

/// The variable that names more directories with plugins; separated by `:`.
pub const PLUGINS_VARIABLE: &str = "LONGHAUL_PLUGINS";

/// The search path for plugins, in order: the environment's directories, the installed ones, the ones shipped beside
/// this program, and the ones that it carries. It has no directory for the last where they cannot be unpacked;
/// [`carried_plugins`] says why.
pub fn plugin_directories(home: &Home) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(named) = std::env::var_os(PLUGINS_VARIABLE) {
        found.extend(std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()));
    }
    found.push(home.plugins());
    if let Some(directory) = std::env::current_exe().ok().as_deref().and_then(Path::parent) {
        found.push(directory.join("plugins"));
        if let Some(above) = directory.parent() {
            found.push(above.join("plugins"));
            found.push(above.join("lib/longhaul/plugins"));
        }
    }
    found.extend(carried_plugins().ok().flatten());
    found
}

/// The directory of the plugins that this program carries, which are unpacked there first; none if it carries none.
///
/// # Errors
/// When there is no cache to unpack them into, or it cannot be written.
pub fn carried_plugins() -> fault::Result<Option<PathBuf>> {
    if !longhaul_shipped::HAS_COMPONENTS {
        return Ok(None);
    }
    Ok(longhaul_shipped::directory(&cache()?)?)
}
