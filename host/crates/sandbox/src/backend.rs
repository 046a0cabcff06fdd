//! Backends: what holds a program by more than the walls of this machine's kernel.
//!
//! The two processes make namespaces and a root for the program as at the level `full`, and start the backend there in
//! place of the program. So a backend never decides what a program sees, and all that it starts ends with the
//! namespaces. It turns a place into a command and the files that this command reads; it starts nothing itself, and
//! refuses to say that a program runs: the innermost process, which it starts in the program's place, does that.

mod runsc;

pub(crate) use runsc::Runsc;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Holds programs.
pub(crate) trait Backend {
    /// Its program on this machine; else why there is none.
    fn find(&self) -> Result<PathBuf, String>;

    /// How it is told to hold the innermost process in `place`.
    fn describe(&self, place: &Place<'_>) -> Start;

    /// Processes of its own around a program.
    fn processes(&self) -> u64;
}

/// Where a program is held, by paths as the backend sees them.
pub(crate) struct Place<'a> {
    /// The root that the program shall see: complete, and read-only but for what it may change.
    pub(crate) root: &'a Path,
    /// What it may change, in that root.
    pub(crate) writable: Vec<PathBuf>,
    /// An empty directory that the program never sees, for files and state of the backend.
    pub(crate) state: &'a Path,
    /// The innermost process.
    pub(crate) argv: Vec<String>,
    /// All of its variables.
    pub(crate) env: BTreeMap<String, String>,
}

/// How a backend is started.
#[derive(Debug)]
pub(crate) struct Start {
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Files that it reads, by their names in [`Place::state`].
    pub(crate) files: Vec<(&'static str, String)>,
}

/// A program by its name, in the PATH of the host: the program that is held has no say.
fn find_in_path(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    let found = candidates.find_map(|candidate| candidate.canonicalize().ok().filter(|path| path.is_file()));
    found.ok_or_else(|| format!("`{name}` is in no directory of PATH"))
}
