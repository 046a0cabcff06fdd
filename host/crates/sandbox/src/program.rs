//! A program to confine: its command, paths, limits, and report.

use crate::Level;
use longhaul_core::LimitHit;
use longhaul_core::output::OutputSink;
use longhaul_core::process_registry::ChildKind;
use longhaul_core::redact::Redact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configuration of sandboxes on this machine.
#[derive(Clone, Debug)]
pub struct SandboxHost {
    /// This very binary.
    pub program: PathBuf,
    /// Arguments that lead to [`crate::sandbox_child`]; the specification comes after them.
    pub prefix_args: Vec<String>,
    /// The directory below which programs get their temporary files; it must exist.
    pub scratch: PathBuf,
    /// The directory for what the host makes once for many programs, none of which sees it: Go's compiled library.
    /// None: nothing is kept.
    pub cache: Option<PathBuf>,
    /// Directories that no tool chain shows to a program: the data directory. Only `read` or `write` of one of them
    /// does.
    pub hidden: Vec<PathBuf>,
    /// The user's checkout of the project, which no tool chain shows either, except a virtual environment in it, by its
    /// own directories alone.
    pub checkout: Option<PathBuf>,
    /// The lowest level for programs without a setting of their own: `[run] sandbox_min`.
    pub level_min: Level,
    /// Redacts secrets in programs' output; none: nothing is secret.
    pub redact: Option<Arc<dyn Redact>>,
}

/// The directory in which Node.js looks for dependencies.
pub(crate) const NODE_MODULES: &str = "node_modules";

/// A program with its grants and limits.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name in errors and lists: ``check `test` ``.
    pub name: String,
    /// Its kind, in the list of children.
    pub kind: ChildKind,
    /// The program and its arguments; no shell.
    pub argv: Vec<String>,
    /// A program that it starts in turn, whose tool chain is visible as well.
    pub starts: Option<String>,
    /// Its working directory, from the top of the tree or of its work directory.
    pub cwd: PathBuf,
    /// All of its variables, besides LANG, HOME and TMPDIR. Without a PATH it has the host's. None of them makes a file
    /// visible.
    pub env: BTreeMap<String, String>,
    /// A directory in place of its work directory, which is empty and temporary otherwise.
    pub tree: Option<PathBuf>,
    /// Files and directories that are read-only at their own paths, besides the system's and its tool chain's: full
    /// paths. A Unix socket can be connected to.
    pub read: Vec<PathBuf>,
    /// Directories that are writable at their own paths: full paths.
    pub write: Vec<PathBuf>,
    /// Read-only at its own path, and by links as `node_modules` of its work directory, if that has none and is no
    /// tree: the result of [`Program::node_modules_of`].
    pub node_modules: Option<PathBuf>,
    /// Its standard input.
    pub input: ProgramInput,
    /// Its standard output.
    pub output: ProgramOutput,
    /// Receives the beginning of each captured stream while it runs, half of `output_bytes_max`, after redaction.
    pub sink: Option<Arc<dyn OutputSink>>,
    /// The lowest accepted level.
    pub level_min: Level,
    /// Its limits.
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
            sink: None,
            level_min: Level::Full,
            limits: ProgramLimits::default(),
        }
    }

    /// The installed dependencies of a Node.js project. Not a link: a repository may bring one along, to anything.
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
    /// Beginning and end are kept for the report; those of [`crate::start`] are not used.
    #[default]
    Captured,
    /// A pipe that the caller reads; see [`crate::Running::take_stdout`].
    Pipe,
}

/// Limits of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgramLimits {
    /// Wall time, in milliseconds. Default 30 000.
    pub wall_ms_max: u64,
    /// Grace period after that, in milliseconds. Default 5 000.
    pub grace_ms: u64,
    /// Processor time of each process, in seconds. Default 30.
    pub cpu_seconds_max: u64,
    /// Private writable memory of each process, in bytes. Default 1 GiB. It may reserve 256 GiB of address space more,
    /// as Node and Go do, but not at `runsc`, which counts all of that. All of its processes together, including shared
    /// memory, may have four times as much, which is checked each half second.
    pub memory_bytes_max: u64,
    /// Bytes kept of each output; the middle is left out. Default 1 000 000.
    pub output_bytes_max: u64,
    /// Processes and threads. Default 64. Enforced where there are namespaces.
    pub processes_max: u64,
    /// Bytes of one file that it writes. Default 256 MiB.
    pub file_bytes_max: u64,
    /// Bytes that the disk may lose meanwhile, to any process. Default 1 GiB. Checked each half second.
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

/// The result of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// 128 plus the number of a signal that ended it; -1 if a limit did.
    pub exit_code: i32,
    /// The limit that ended it.
    pub hit: Option<LimitHit>,
    /// Beginning and end of its standard output.
    pub stdout: String,
    /// Beginning and end of its standard error.
    pub stderr: String,
    /// True when a part of one of them is left out.
    pub truncated: bool,
    /// Its sandbox level.
    pub level: Level,
    /// The duration, in milliseconds.
    pub wall_ms: u64,
}
