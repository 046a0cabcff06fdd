//! A program that is to be confined: words, places, limits, and how it ended.

use crate::Level;
use longhaul_core::LimitHit;
use longhaul_core::process_registry::ChildKind;
use longhaul_core::redact::Redact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How programs are confined on this machine.
#[derive(Clone, Debug)]
pub struct SandboxHost {
    /// This very binary.
    pub program: PathBuf,
    /// Arguments that lead to [`crate::sandbox_child`]; the specification comes after them.
    pub prefix_args: Vec<String>,
    /// The directory below which programs get their temporary files; it must exist.
    pub scratch: PathBuf,
    /// Directories that no tool chain shows to a program: the data directory. Setting `read` or `write` to one of them
    /// does.
    pub hidden: Vec<PathBuf>,
    /// The user's files of the project, which no tool chain shows either, but for a virtual environment in there, by
    /// its own directories alone.
    pub checkout: Option<PathBuf>,
    /// The least that must hold a program of which nothing else is said: `[run] sandbox_min`.
    pub level_min: Level,
    /// Takes secrets out of what programs print; none: nothing is secret.
    pub redact: Option<Arc<dyn Redact>>,
}

/// Where Node.js looks for dependencies, from the directory of a module on.
pub(crate) const NODE_MODULES: &str = "node_modules";

/// A program with all that it is given.
#[derive(Clone, Debug)]
pub struct Program {
    /// What errors and lists call it: ``check `test` ``.
    pub name: String,
    /// What it is for, in the list of children.
    pub kind: ChildKind,
    /// The program and its arguments; no shell.
    pub argv: Vec<String>,
    /// A program that it starts in turn, whose tool chain it sees as well.
    pub starts: Option<String>,
    /// Where it starts, from the top of the tree or of its work directory.
    pub cwd: PathBuf,
    /// All variables that it gets, besides LANG, HOME and TMPDIR. Without a PATH it has the host's. None of them shows
    /// it a file.
    pub env: BTreeMap<String, String>,
    /// A directory that stands for its work directory, which is empty and temporary otherwise.
    pub tree: Option<PathBuf>,
    /// Files and directories that it sees read-only at their own paths, besides the system's and its tool chain's: full
    /// paths. A Unix socket can be connected to.
    pub read: Vec<PathBuf>,
    /// Directories that it sees and may change at their own paths: full paths.
    pub write: Vec<PathBuf>,
    /// Seen read-only at its own path, and by links as `node_modules` of its work directory, where that has none and is
    /// no tree: what [`Program::node_modules_of`] answers.
    pub node_modules: Option<PathBuf>,
    /// Its standard input.
    pub input: ProgramInput,
    /// Its standard output.
    pub output: ProgramOutput,
    /// The least that must hold it.
    pub level_min: Level,
    /// What it may use.
    pub limits: ProgramLimits,
}

impl Program {
    /// A program with defaults: nothing granted, level [`Level::Full`].
    #[must_use]
    pub fn new(name: impl Into<String>, argv: Vec<String>) -> Self {
        Self {
            name: name.into(),
            kind: ChildKind::Program,
            argv,
            starts: None,
            cwd: PathBuf::new(),
            env: BTreeMap::new(),
            tree: None,
            read: Vec::new(),
            write: Vec::new(),
            node_modules: None,
            input: ProgramInput::Null,
            output: ProgramOutput::Captured,
            level_min: Level::Full,
            limits: ProgramLimits::default(),
        }
    }

    /// The installed dependencies of a project with Node.js. No link: a repository may bring one along, to anything.
    #[must_use]
    pub fn node_modules_of(checkout: &Path) -> Option<PathBuf> {
        let path = checkout.canonicalize().ok()?.join(NODE_MODULES);
        path.symlink_metadata().is_ok_and(|found| found.is_dir()).then_some(path)
    }
}

/// Standard input of a program. Never a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramInput {
    /// It ends at once.
    #[default]
    Null,
    /// A pipe that the caller writes to; see [`crate::Running::take_stdin`].
    Pipe,
}

/// Standard output of a program. Never a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramOutput {
    /// Beginning and end are kept for the report; nobody reads that of [`crate::start`].
    #[default]
    Captured,
    /// A pipe that the caller reads; see [`crate::Running::take_stdout`].
    Pipe,
}

/// Limits of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgramLimits {
    /// Time on the clock, in milliseconds. Default 30 000.
    pub wall_ms_max: u64,
    /// Time after that, in which it may end by itself, in milliseconds. Default 5 000.
    pub grace_ms: u64,
    /// Time on processors of each process, in seconds. Default 30.
    pub cpu_seconds_max: u64,
    /// Memory that each process may write to and shares with nobody, in bytes. Default 1 GiB. It may reserve 256 GiB of
    /// address space more, as Node and Go do, but not at `runsc`, which counts all of that. All of its processes
    /// together, with what they share, may have four times as much, which is looked at each half second.
    pub memory_bytes_max: u64,
    /// Bytes kept of each output; the middle is left out. Default 1 000 000.
    pub output_bytes_max: u64,
    /// Processes and threads. Default 64. Holds where there are namespaces.
    pub processes_max: u64,
    /// Bytes of one file that it writes. Default 256 MiB.
    pub file_bytes_max: u64,
    /// Bytes that the disk may lose meanwhile, to whomever. Default 1 GiB. Looked at each half second.
    pub disk_bytes_max: u64,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            wall_ms_max: 30_000,
            grace_ms: 5_000,
            cpu_seconds_max: 30,
            memory_bytes_max: 1 << 30,
            output_bytes_max: 1_000_000,
            processes_max: 64,
            file_bytes_max: 256 << 20,
            disk_bytes_max: 1 << 30,
        }
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// 128 and the number of the signal where one ended it; -1 where a limit did.
    pub exit_code: i32,
    /// The limit that ended it.
    pub hit: Option<LimitHit>,
    /// Beginning and end of its output.
    pub stdout: String,
    /// Beginning and end of its errors.
    pub stderr: String,
    /// Whether something is left out of one of them.
    pub truncated: bool,
    /// What held it.
    pub level: Level,
    /// How long it took, in milliseconds.
    pub wall_ms: u64,
}
