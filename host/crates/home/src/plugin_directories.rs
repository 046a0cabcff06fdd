//! The directories in which a plugin is looked for by its name.
//!
//! Only lists them: nothing here looks whether a directory is there. A directory of a project is never among them, since
//! agents write the files of a project.

use crate::directory::Home;
use std::path::{Path, PathBuf};

/// Names directories with plugins, beside the usual ones; separated by `:`.
pub const PLUGINS_VARIABLE: &str = "LONGHAUL_PLUGINS";

/// Where plugins are looked for by name, in order: the environment's directories, the installed ones, the ones that
/// came with this program.
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
