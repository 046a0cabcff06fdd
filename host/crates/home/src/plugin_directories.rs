//! The directories that are searched for a plugin's name.
//!
//! Only lists them: nothing here checks whether a directory exists. A directory of a project is never among them, since
//! agents write the files of a project.

use crate::directory::Home;
use std::path::{Path, PathBuf};

/// The variable that names more directories with plugins; separated by `:`.
pub const PLUGINS_VARIABLE: &str = "LONGHAUL_PLUGINS";

/// The search path for plugins, in order: the environment's directories, the installed ones, the ones shipped with this
/// program.
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
    found
}
