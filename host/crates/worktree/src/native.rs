//! Running the operator's checks.
//!
//! A check runs on a copy of exactly what would be committed, with the files that decide it taken from the base
//! commit. Refuses a shell, the host's environment and, where the system can, the network
//! and every file but the copy. A check that fails or reaches a limit is a report and no error.

mod check;
mod copy;
mod output;
mod pinned;
pub(crate) mod run;
mod spare;

pub use check::NativeCheck;
pub use copy::{ExactCopy, clear_scratch};
pub(crate) use output::Output;
pub(crate) use spare::Shelf;

use self::run::{Done, Program, Run};
use crate::TreeError;
use crate::git::Project;
use crate::sandbox::Sandbox;
use crate::scan::{Base, shown};
use crate::tree::{Tree, TreeCaps};
use copy::Copy;
use longhaul_core::Digest;
use longhaul_core::work::CheckReport;
use pinned::Pinned;
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
    /// Less holds it here than must.
    #[error(
        "`{name}` was not started, since this system does not let it be confined: {why}; allow user namespaces, or \
         accept less with `sandbox_min`"
    )]
    NoSandbox {
        /// The program.
        name: String,
        /// What the system said.
        why: String,
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
    let program = check.program();
    let scratch = copy.dir();
    let run =
        Run { host, name, program: &program, scratch, tree: None, hidden: &[], shown: &[], sandbox_min: Sandbox::None };
    let done = run.in_the_best_sandbox().await;
    let subject = copy.scan.digest;
    // Deleting a build takes a while, and is nobody's concern.
    tokio::task::spawn_blocking(move || copy.done());
    let done = done?;
    let (sandbox, wall_ms) = (done.sandbox, done.wall_ms);
    Ok(NativeReport { report: report(name, done), sandbox, wall_ms, subject })
}

/// Bytes of one file that a check writes. A debug build's archives have hundreds of megabytes.
const FILE_BYTES_MAX: u64 = 4 << 30;

impl NativeCheck {
    fn program(&self) -> Program {
        let cores = std::thread::available_parallelism().map_or(1, |cores| u64::try_from(cores.get()).unwrap_or(1));
        let mut env = self.env.clone();
        if let Some(rustup) = run::rustup_home().and_then(|home| home.into_os_string().into_string().ok()) {
            env.entry("RUSTUP_HOME".to_owned()).or_insert(rustup);
        }
        Program {
            argv: self.argv.clone(),
            env,
            wall_ms_max: self.wall_ms_max,
            grace_ms: 0,
            cpu_seconds_max: self.wall_ms_max.div_ceil(1_000).saturating_mul(cores),
            memory_bytes_max: self.memory_bytes_max,
            output_bytes_max: self.output_bytes_max,
            processes_max: self.processes_max,
            disk_bytes_max: self.disk_bytes_max,
            file_bytes_max: FILE_BYTES_MAX.min(self.disk_bytes_max),
        }
    }
}

fn report(name: &str, done: Done) -> CheckReport {
    let Done { exit_code, hit, stdout, stderr, .. } = done;
    let (stdout, out_cut) = stdout.text();
    let (mut stderr, err_cut) = stderr.text();
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
        truncated: out_cut || err_cut,
    }
}
