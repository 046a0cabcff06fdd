//! The specification that the host passes to the child, and the words of the child's reply.

use crate::Level;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The specification of the child, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) level: Level,
    pub(crate) role: Role,
    /// The priority of the started program: the host's.
    pub(crate) nice: i32,
    /// Arguments that lead to [`crate::sandbox_child`], for the next process.
    pub(crate) prefix_args: Vec<String>,
    pub(crate) argv: Vec<String>,
    /// Only at a level with a backend, until the backend is started.
    pub(crate) backend: Option<BackendFiles>,
    /// Holds `work`, `home`, `tmp` and `dev`; [`SCRATCH`] inside namespaces.
    pub(crate) scratch: PathBuf,
    /// In place of `scratch/work`: a tree that is worked on without a copy.
    pub(crate) tree: Option<PathBuf>,
    /// The program's working directory, relative to that.
    pub(crate) cwd: PathBuf,
    /// Read-only paths, besides the system's directories.
    pub(crate) read: Vec<PathBuf>,
    /// Writable paths.
    pub(crate) write: Vec<PathBuf>,
    pub(crate) memory_bytes_max: u64,
    pub(crate) cpu_seconds_max: u64,
    pub(crate) processes_max: u64,
    pub(crate) file_bytes_max: u64,
}

/// The role of a process between the host and a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Makes the namespaces, and watches the host.
    Outer,
    /// The first in the namespaces: starts the program, or the backend around it.
    Inner,
    /// The first in a backend: becomes a user and group, and starts the program.
    Innermost { user: (u32, u32) },
}

/// The files of a backend.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BackendFiles {
    /// Its own program.
    pub(crate) program: PathBuf,
    /// The path of this binary: a sealed copy has no path in a file system.
    pub(crate) binary: PathBuf,
}

/// The scratch directory of a program with namespaces. Always the same, so that output does not differ.
pub(crate) const SCRATCH: &str = "/tmp";

/// The prefix of the program's variables until the program is started: until then they have no meaning, above all not
/// to the loader of the processes that build the sandbox.
pub(crate) const VARIABLE: &str = "LONGHAUL_OF_PROGRAM_";

/// The prefix of the first line of standard error.
pub(crate) const SAID: &str = "longhaul-check: ";

/// The word after [`SAID`] when the program starts next.
pub(crate) const READY: &str = "ready";

/// The word after [`SAID`] when nothing was started.
pub(crate) const REFUSED: &str = "refused";

/// Asks the program to end, over the socket that the child has as standard input.
pub(crate) const END: u8 = b'e';

/// The signal by which the outer process ends itself when there were more processes than allowed. Nothing inside can
/// reach it, so that nothing inside can fake it.
pub(crate) const CROWDED: Signal = Signal::USR1;

impl Spec {
    /// The specification for the innermost process: nothing about the machine outside.
    pub(crate) fn for_innermost(&self, user: (u32, u32)) -> Self {
        let (role, scratch) = (Role::Innermost { user }, PathBuf::from(SCRATCH));
        let (read, write) = (Vec::new(), Vec::new());
        Self { role, scratch, backend: None, tree: None, read, write, ..self.clone() }
    }

    /// The scratch directory, as the program sees it.
    pub(crate) fn scratch_inside(&self) -> &Path {
        if self.level.has_namespaces() { Path::new(SCRATCH) } else { &self.scratch }
    }

    /// The work directory, as the program sees it.
    pub(crate) fn work(&self) -> PathBuf {
        match &self.tree {
            Some(tree) if !self.level.has_namespaces() => tree.clone(),
            _ => self.scratch_inside().join("work"),
        }
    }
}
