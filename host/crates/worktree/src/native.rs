//! Running the operator's checks.
//!
//! A check runs on a copy of exactly what would be committed, with the files that decide it taken from the base
//! commit. Refuses a shell, the host's environment and, where the system can, the network
//! and every file but the copy. A check that fails or reaches a limit is a report and no error.

mod check;
mod copy;
mod judged;
mod pinned;
mod spare;

pub use check::NativeCheck;
pub use copy::{ExactCopy, clear_scratch};
pub(crate) use spare::Shelf;

use crate::TreeError;
use crate::git::Project;
use crate::scan::{Base, shown};
use crate::tree::{Tree, TreeCaps};
use copy::Copy;
use judged::{Judged, Judging};
use longhaul_core::Digest;
use longhaul_core::work::CheckReport;
use longhaul_sandbox::{LeadsOut, Level, Limits, Program, Report, SandboxError, SandboxHost, granted};
use pinned::Pinned;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;

/// How a check ended, and how it was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeReport {
    /// What everybody sees.
    pub report: CheckReport,
    /// Sandbox level of the check; the least of several runs.
    pub sandbox: Level,
    /// How long it took.
    pub wall_ms: u64,
    /// [`Scan::digest`] of the tree that it ran on.
    pub subject: Digest,
}

/// Why a check did not run. A check that fails is a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// What is written in `[checks]` cannot be run.
    #[error("check `{name}` {why}")]
    Invalid {
        /// The check.
        name: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The check is not what was pinned when work started.
    #[error(
        "check `{name}` was pinned as {expected} and is {found} now; restore it in longhaul.toml, or start a new run"
    )]
    NotPinned {
        /// The check.
        name: String,
        /// The digest of the pins.
        expected: String,
        /// The digest now.
        found: String,
    },
    /// It was not started.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The copy could not be made.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The copy could not be worked on.
    #[error("check `{name}` could not be run: {why}; this is the host's fault and not the check's")]
    Host {
        /// The check.
        name: String,
        /// What the system said.
        why: String,
    },
}

impl NativeError {
    /// True when there was no room on a disk: nothing is wrong with the check.
    #[must_use]
    pub fn is_full_disk(&self) -> bool {
        match self {
            Self::Tree(TreeError::Io { source, .. }) => {
                matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
            }
            Self::Sandbox(error) => error.is_full_disk(),
            _ => false,
        }
    }
}

/// The files that decide a check, as the base commit has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// The commit.
    pub base: String,
    /// Of the command, its settings and every file with its content.
    pub digest: Digest,
    /// Sorted.
    pub files: Vec<String>,
    /// For the operator: globs that pin nothing.
    pub notes: Vec<String>,
}

/// Pins `check` to the commit `base`.
///
/// # Errors
/// When the check is not valid or the commit is not there.
pub fn pins(project: &Project, base: &str, name: &str, check: &NativeCheck) -> Result<Pins, NativeError> {
    check.validate(name)?;
    let base = Base::read(&project.repo()?, base, &TreeCaps::default())?;
    let pinned = Pinned::of(&base, check);
    let mut notes = Vec::new();
    for glob in check.files.iter().filter(|glob| !pinned.globs.contains(glob.as_str())) {
        notes.push(format!("check `{name}`: `{glob}` matches no file of commit {}, so it pins nothing", base.commit));
    }
    let files = pinned.files.keys().map(|path| shown(path)).collect();
    Ok(Pins { base: base.commit.to_string(), digest: pinned.digest(check), files, notes })
}

/// Runs `check` on a copy of exactly what would be committed on `parent`, with the pinned files of
/// `pins.base` over it. What the check left there is removed afterwards; the tree keeps one copy for the next check.
///
/// # Errors
/// When it did not run. A check that fails, or reaches a limit, is a report.
pub async fn run_native(
    host: &SandboxHost,
    project: &Project,
    tree: &Tree,
    parent: &str,
    name: &str,
    check: &NativeCheck,
    pins: &Pins,
) -> Result<NativeReport, NativeError> {
    check.validate(name)?;
    let failed = |why: String| NativeError::Host { name: name.to_owned(), why };
    let copy = {
        let (project, tree, parent) = (project.clone(), tree.clone(), parent.to_owned());
        let (host, name, check, pins) = (host.clone(), name.to_owned(), check.clone(), pins.clone());
        let make = move || Copy::make(&host, &project, &tree, &parent, &name, &check, &pins);
        tokio::task::spawn_blocking(make).await.map_err(|error| failed(error.to_string()))??
    };
    let subject = copy.scan.digest;
    let mut judging = Judging { host, project, tree, name, check, copy: Some(copy) };
    let judged = judging.run(&pins.base).await;
    if let Some(copy) = judging.copy {
        // Deleting a build takes a while, and is nobody's concern.
        tokio::task::spawn_blocking(move || copy.done());
    }
    let Judged { report, level, wall_ms } = judged?;
    Ok(NativeReport { report, sandbox: level, wall_ms, subject })
}

/// Bytes of one file that a check writes. A debug build's archives have hundreds of megabytes.
const FILE_BYTES_MAX: u64 = 4 << 30;

impl NativeCheck {
    fn program(&self, name: &str, project: &Project, level_min: Level) -> Result<Program, NativeError> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| u64::try_from(cores.get()).unwrap_or(1));
        let limits = Limits {
            wall_ms_max: self.wall_ms_max,
            grace_ms: 0,
            cpu_seconds_max: self.wall_ms_max.div_ceil(1_000).saturating_mul(cores),
            memory_bytes_max: self.memory_bytes_max,
            output_bytes_max: self.output_bytes_max,
            processes_max: self.processes_max,
            disk_bytes_max: self.disk_bytes_max,
            file_bytes_max: FILE_BYTES_MAX.min(self.disk_bytes_max),
        };
        let env = self.env.clone();
        let read = self.read.iter().map(|path| granted(project.root(), path));
        let not_granted = |error: LeadsOut| NativeError::Invalid {
            name: name.to_owned(),
            why: format!("cannot `read` what it names: {error}"),
        };
        let read = read.collect::<Result<Vec<_>, _>>().map_err(not_granted)?;
        let program = Program::new(format!("check `{name}`"), self.argv.clone());
        Ok(Program { env, read, level_min, limits, ..program })
    }
}

/// Of one run: how it was held is told of all of them together.
fn report(name: &str, done: Report) -> CheckReport {
    let Report { exit_code, hit, stdout, mut stderr, truncated, .. } = done;
    if let Some(hit) = &hit {
        let line_end = if stderr.is_empty() || stderr.ends_with('\n') { "" } else { "\n" };
        // Limits of all of its processes together begin so.
        let together = if hit.name.starts_with("max_") { "[program] of resources.toml, and in " } else { "" };
        let raise = format!("raise it in {together}[checks.{name}], or make the check use less");
        stderr.push_str(&format!("{line_end}{hit}; {raise}\n"));
    }
    CheckReport {
        name: name.to_owned(),
        passed: hit.is_none() && exit_code == 0,
        exit_code,
        stdout,
        stderr,
        truncated,
        sandbox: None,
    }
}
