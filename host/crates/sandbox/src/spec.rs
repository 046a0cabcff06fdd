//! What the host tells the child, and the words that the child answers with.

use crate::Level;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the child is told, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) level: Level,
    pub(crate) role: Role,
    /// How what is started stands to others: as the host does.
    pub(crate) nice: i32,
    /// Arguments that lead to [`crate::sandbox_child`], for the next process.
    pub(crate) prefix_args: Vec<String>,
    pub(crate) argv: Vec<String>,
    /// At a level that has a backend, until there.
    pub(crate) backend: Option<BackendFiles>,
    /// Holds `work`, `home`, `tmp` and `dev`; [`SCRATCH`] inside namespaces.
    pub(crate) scratch: PathBuf,
    /// Stands for `scratch/work`: a tree that is worked on and not copied.
    pub(crate) tree: Option<PathBuf>,
    /// Where the program starts, from there.
    pub(crate) cwd: PathBuf,
    /// Seen read-only, besides the system's directories.
    pub(crate) read: Vec<PathBuf>,
    /// Seen writable.
    pub(crate) write: Vec<PathBuf>,
    pub(crate) memory_bytes_max: u64,
    pub(crate) cpu_seconds_max: u64,
    pub(crate) processes_max: u64,
    pub(crate) file_bytes_max: u64,
}

/// Which of the processes between the host and a program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Makes the namespaces, and watches the host.
    Outer,
    /// The first in the namespaces: starts the program, or the backend that holds it.
    Inner,
    /// The first in a backend: becomes a user and group, and starts the program.
    Innermost { user: (u32, u32) },
}

/// What a backend is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BackendFiles {
    /// Its own program.
    pub(crate) program: PathBuf,
    /// This binary, where it lies: a sealed copy has no place in a file system.
    pub(crate) binary: PathBuf,
}

/// Where a program with namespaces has its scratch directory. Always the same, so that output does not differ.
pub(crate) const SCRATCH: &str = "/tmp";

/// What the names of the program's variables begin with until the program is started: on the way there they mean
/// nothing to anybody, above all not to the loader of the processes that build the walls.
pub(crate) const VARIABLE: &str = "LONGHAUL_OF_PROGRAM_";

/// How the first line of standard error begins.
pub(crate) const SAID: &str = "longhaul-check: ";

/// The word after [`SAID`] when the program is started next.
pub(crate) const READY: &str = "ready";

/// The word after [`SAID`] when nothing was started.
pub(crate) const REFUSED: &str = "refused";

/// Asks the program to end, over the socket that the child has as standard input.
pub(crate) const END: u8 = b'e';

/// The signal that the outer process ends itself by when there were more processes than allowed. Nothing inside
/// can reach it, so that nothing inside can pretend it.
pub(crate) const CROWDED: Signal = Signal::USR1;

impl Spec {
    /// What the innermost process is told: nothing of the machine outside.
    pub(crate) fn for_innermost(&self, user: (u32, u32)) -> Self {
        let (role, scratch) = (Role::Innermost { user }, PathBuf::from(SCRATCH));
        let (read, write) = (Vec::new(), Vec::new());
        Self { role, scratch, backend: None, tree: None, read, write, ..self.clone() }
    }

    /// The scratch directory, as the program sees it.
    pub(crate) fn scratch_inside(&self) -> &Path {
        if self.level.has_namespaces() { Path::new(SCRATCH) } else { &self.scratch }
    }

    /// The directory that is worked in, as the program sees it.
    pub(crate) fn work(&self) -> PathBuf {
        match &self.tree {
            Some(tree) if !self.level.has_namespaces() => tree.clone(),
            _ => self.scratch_inside().join("work"),
        }
    }
}
