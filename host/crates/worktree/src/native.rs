//! Runs the operator's checks.
//!
//! A check runs on a copy of exactly what would be committed, with the files that decide it taken from the base commit.
//! Refuses a shell, the host's environment and, where the system can, the network and every file except the copy. A
//! check that fails or reaches a limit is a report and no error.

mod check;
mod copy;
mod error;
mod go_library;
mod judged;
mod pinned;
mod spare;

pub use check::NativeCheck;
pub use copy::{ExactCopy, clear_scratch};
pub use error::NativeError;
pub use pinned::PinnedFiles;
pub(crate) use spare::SpareSlot;

use crate::caps::TreeCaps;
use crate::git::UserRepository;
use crate::names::shown;
use crate::scan::Base;
use crate::tree::Tree;
use copy::Copy;
use judged::{Judged, Judging};
use longhaul_core::Digest;
use longhaul_core::work::CheckReport;
use longhaul_sandbox::{Level, SandboxHost};
use pinned::Pinned;
use serde::{Deserialize, Serialize};

/// The result of a check, and its sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeReport {
    /// The public report.
    pub report: CheckReport,
    /// Sandbox level of the check; the lowest of several runs.
    pub sandbox: Level,
    /// The duration.
    pub wall_ms: u64,
    /// [`crate::Scan::digest`] of the tree that it ran on.
    pub subject: Digest,
}

/// Pins `check` to the commit `base`.
///
/// # Errors
/// When the check is invalid or the commit does not exist.
pub fn pins(project: &UserRepository, base: &str, name: &str, check: &NativeCheck) -> Result<PinnedFiles, NativeError> {
    check.validate(name)?;
    let base = Base::read(&project.repo()?, base, &TreeCaps::default())?;
    let pinned = Pinned::of(&base, check);
    let mut notes = Vec::new();
    for glob in check.files.iter().filter(|glob| !pinned.globs.contains(glob.as_str())) {
        notes.push(format!("check `{name}`: `{glob}` matches no file of commit {}, so it pins nothing", base.commit));
    }
    let files = pinned.files.keys().map(|path| shown(path)).collect();
    Ok(PinnedFiles { base: base.commit.to_string(), digest: pinned.digest(check), files, notes })
}

/// Runs `check` on a copy of exactly what would be committed on `parent`, with the pinned files of `pins.base` over it.
/// Files that the check left there are removed afterwards; the tree keeps one copy for the next check.
///
/// # Errors
/// When it did not run. A check that fails, or reaches a limit, is a report.
pub async fn run_native(
    host: &SandboxHost,
    project: &UserRepository,
    tree: &Tree,
    parent: &str,
    name: &str,
    check: &NativeCheck,
    pins: &PinnedFiles,
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
        // Deleting a build takes a while, so nothing waits for it.
        tokio::task::spawn_blocking(move || copy.done());
    }
    let Judged { report, level, wall_ms } = judged?;
    Ok(NativeReport { report, sandbox: level, wall_ms, subject })
}
