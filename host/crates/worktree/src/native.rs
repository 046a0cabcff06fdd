//! Running the operator's checks.
//!
//! A check runs on a copy of exactly what would be committed, with the files that decide it taken from the base
//! commit. Refuses a shell, the host's environment and, where the system can, the network
//! and every file but the copy. A check that fails or reaches a limit is a report and no error.

mod check;
mod copy;
mod output;
mod pinned;
mod run;
mod spare;

pub use check::NativeCheck;
pub use copy::{ExactCopy, clear_scratch};
pub(crate) use spare::Shelf;

use crate::TreeError;
use crate::git::Project;
use crate::sandbox::Sandbox;
use crate::scan::{Base, shown};
use crate::tree::{Tree, TreeCaps};
use copy::Copy;
use longhaul_core::Digest;
use longhaul_core::work::CheckReport;
use pinned::Pinned;
use run::Run;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::PathBuf;

/// How checks are run on this machine.
#[derive(Clone, Debug)]
pub struct CheckHost {
    /// This very binary.
    pub program: PathBuf,
    /// Arguments that lead to [`crate::check_child`]; the specification comes after them.
    pub prefix_args: Vec<String>,
    /// Where temporary copies are made; it must exist. It may lie in a hidden directory.
    pub scratch: PathBuf,
    /// Directories and files that a check must not see in a full sandbox: the data directory, keys.
    pub hidden: Vec<PathBuf>,
}

/// How a check ended, and how it was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeReport {
    /// What everybody sees.
    pub report: CheckReport,
    /// What held it.
    pub sandbox: Sandbox,
    /// How long it took.
    pub wall_ms: u64,
    /// [`Scan::digest`] of the tree that it ran on.
    pub subject: Digest,
}

/// Why a check did not run. A check that fails is a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// The program is not there.
    #[error("check `{name}` cannot find the program `{program}`; install it, or give its full path in [checks]")]
    NoProgram {
        /// The check.
        name: String,
        /// `argv[0]`.
        program: String,
    },
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
    /// The copy could not be made.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The child could not be started or watched.
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
        let Self::Tree(TreeError::Io { source, .. }) = self else { return false };
        matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
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
    host: &CheckHost,
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
    let run = Run { host, name, check, scratch: copy.dir() };
    let done = run.in_the_best_sandbox().await;
    let subject = copy.scan.digest;
    // Deleting a build takes a while, and is nobody's concern.
    tokio::task::spawn_blocking(move || copy.done());
    let (report, sandbox, wall_ms) = done?;
    Ok(NativeReport { report, sandbox, wall_ms, subject })
}
