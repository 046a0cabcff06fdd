//! A program that an agent asked for, run on the tree itself.
//!
//! It is held as a check is (see `sandbox.rs`), but works on the tree and not on a copy, since what it writes is the
//! work. Refuses the host's environment, a place outside of the tree to start in, and to run where less holds it than
//! the operator accepts. What it may start, the caller decides.

use crate::TreeError;
use crate::at::remove_all;
use crate::native::run::{Program, Run};
use crate::native::{CheckHost, NativeError};
use crate::sandbox::Sandbox;
use longhaul_core::LimitHit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A program, and what it may use.
#[derive(Clone, Debug)]
pub struct Held {
    /// The program's full path, and its arguments; no shell.
    pub argv: Vec<String>,
    /// Where it starts, from the top of the tree.
    pub cwd: PathBuf,
    /// All that it gets, besides LANG, HOME and TMPDIR.
    pub env: BTreeMap<String, String>,
    /// Directories that it does not see in a full sandbox, besides those of the host: see [`private_places`].
    pub hidden: Vec<PathBuf>,
    /// Directories in them that it sees nevertheless, read-only.
    pub shown: Vec<PathBuf>,
    /// The least that must hold it.
    pub sandbox_min: Sandbox,
    /// What it may use.
    pub limits: HeldLimits,
}

/// What a program may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeldLimits {
    /// Time on the clock, in milliseconds. Default 30 000.
    pub wall_ms_max: u64,
    /// Time after that, in which it may end by itself, in milliseconds. Default 5 000.
    pub grace_ms: u64,
    /// Time on processors of each process, in seconds. Default 30.
    pub cpu_seconds_max: u64,
    /// Address space of each process, in bytes. Default 1 GiB. Node, Go and Java reserve more.
    pub memory_bytes_max: u64,
    /// Bytes kept of each output; the middle is left out. Default 1 000 000.
    pub output_bytes_max: u64,
    /// Processes and threads; for root, processes, of which a few more can be there for some milliseconds. Default
    /// 64. Holds where there are namespaces.
    pub processes_max: u64,
    /// Bytes of one file that it writes. Default 256 MiB.
    pub file_bytes_max: u64,
    /// Bytes that the disk may lose meanwhile, to whomever. Default 1 GiB. Looked at each half second.
    pub disk_bytes_max: u64,
}

impl Default for HeldLimits {
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

/// How it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldReport {
    /// 128 and the number of the signal where one ended it; -1 where a limit did.
    pub exit_code: i32,
    /// The limit that ended it.
    pub hit: Option<LimitHit>,
    /// Beginning and end of what it printed.
    pub stdout: String,
    /// Beginning and end of what it complained.
    pub stderr: String,
    /// Whether something is left out of one of them.
    pub truncated: bool,
    /// What held it.
    pub sandbox: Sandbox,
    /// How long it took.
    pub wall_ms: u64,
}

/// Where people keep what is theirs, and where services listen. The rest of the system's files every program reads.
#[must_use]
pub fn private_places() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.parent().is_some());
    ["/home", "/root", "/mnt", "/media", "/srv", "/run"].iter().map(PathBuf::from).chain(home).collect()
}

/// Runs a program on the tree in `tree`.
///
/// # Errors
/// When it did not run. One that fails, or reaches a limit, is a report.
pub async fn run_held(host: &CheckHost, tree: &Path, held: &Held) -> Result<HeldReport, NativeError> {
    let name = held.argv.first().cloned().unwrap_or_default();
    let scratch = scratch(host)?;
    let program = program(held);
    let run = Run {
        host,
        name: &name,
        program: &program,
        scratch: scratch.path(),
        tree: Some((tree, &held.cwd)),
        hidden: &held.hidden,
        shown: &held.shown,
        sandbox_min: held.sandbox_min,
    };
    let done = run.in_the_best_sandbox().await;
    tokio::task::spawn_blocking(move || {
        let path = scratch.keep();
        if let Err(error) = remove_all(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove what a program left");
        }
    });
    let done = done?;
    let ((stdout, out_cut), (stderr, err_cut)) = (done.stdout.text(), done.stderr.text());
    let (exit_code, hit, sandbox, wall_ms) = (done.exit_code, done.hit, done.sandbox, done.wall_ms);
    Ok(HeldReport { exit_code, hit, stdout, stderr, truncated: out_cut || err_cut, sandbox, wall_ms })
}

pub(crate) fn program(held: &Held) -> Program {
    let limits = &held.limits;
    Program {
        argv: held.argv.clone(),
        env: held.env.clone(),
        wall_ms_max: limits.wall_ms_max,
        grace_ms: limits.grace_ms,
        cpu_seconds_max: limits.cpu_seconds_max,
        memory_bytes_max: limits.memory_bytes_max,
        output_bytes_max: limits.output_bytes_max,
        processes_max: limits.processes_max,
        disk_bytes_max: limits.disk_bytes_max,
        file_bytes_max: limits.file_bytes_max,
    }
}

/// A home and a place for temporary files, new for each program.
pub(crate) fn scratch(host: &CheckHost) -> Result<tempfile::TempDir, TreeError> {
    let prefix = format!("check-{}-", std::process::id());
    let scratch = tempfile::Builder::new().prefix(&prefix).tempdir_in(&host.scratch);
    let scratch = scratch.map_err(TreeError::io("make a directory in", &host.scratch))?;
    for dir in ["work", "home", "tmp", "dev"] {
        let dir = scratch.path().join(dir);
        std::fs::create_dir(&dir).map_err(TreeError::io("make", &dir))?;
    }
    Ok(scratch)
}
