//! Backends: confinement of programs beyond this machine's kernel.
//!
//! The two processes make namespaces and a root for the program as at the level `full`, and start the backend there in
//! place of the program. So a backend never decides what a program sees, and all its processes end with the namespaces.
//! It converts a place into a command and the files that this command reads. It starts nothing itself, and does not
//! report that a program runs: the innermost process, which it starts in the program's place, does that.

mod runsc;

pub(crate) use runsc::Runsc;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A backend for programs.
pub(crate) trait Backend {
    /// Its program on this machine; else why there is none.
    fn find(&self) -> Result<PathBuf, String>;

    /// Its command and files for the innermost process in `place`.
    fn describe(&self, place: &Place<'_>) -> Start;

    /// The number of its own processes around a program.
    fn processes(&self) -> u64;
}

/// The place of a confined program, by paths as the backend sees them.
pub(crate) struct Place<'a> {
    /// The root for the program: complete, and read-only except for `writable`.
    pub(crate) root: &'a Path,
    /// The writable paths, in that root.
    pub(crate) writable: Vec<PathBuf>,
    /// An empty directory that the program never sees, for the backend's files and state.
    pub(crate) state: &'a Path,
    /// The command of the innermost process.
    pub(crate) argv: Vec<String>,
    /// All of its environment variables.
    pub(crate) env: BTreeMap<String, String>,
}

/// The start of a backend.
#[derive(Debug)]
pub(crate) struct Start {
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// The files that it reads, by their names in [`Place::state`].
    pub(crate) files: Vec<(&'static str, String)>,
}

/// Finds a program in the PATH of the host: the confined program cannot influence it.
fn find_in_path(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    let found = candidates.find_map(|candidate| candidate.canonicalize().ok().filter(|path| path.is_file()));
    found.ok_or_else(|| format!("`{name}` is in no directory of PATH"))
}
