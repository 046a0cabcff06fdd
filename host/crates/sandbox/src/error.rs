//! Why a program was not started.

use crate::Level;

/// Why a program was not started. One that fails, or reaches a limit, is a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The program is not there.
    #[error("{name} cannot find the program `{program}`; install it, or give its full path")]
    NoProgram {
        /// What is started: ``check `test` ``.
        name: String,
        /// `argv[0]`.
        program: String,
    },
    /// What it is granted is not there. No level could show it.
    #[error(
        "{name} was not started: `{setting}` names `{}`, which is not there; create it or leave it out of `{setting}`",
        .path.display()
    )]
    Absent {
        /// What is started.
        name: String,
        /// `read` or `write`.
        setting: &'static str,
        /// What it names.
        path: std::path::PathBuf,
    },
    /// This system confines less than must hold the program.
    #[error(
        "{name} was not started, since this system does not give the sandbox level `{level_min}`: {why}; {}, or accept \
         less by name with `sandbox_min`",
        .level_min.remedy()
    )]
    Refused {
        /// What is started.
        name: String,
        /// The least that must hold it.
        level_min: Level,
        /// What the system said.
        why: String,
    },
    /// The child could not be started or watched.
    #[error("{name} could not be run: {why}; this is the host's fault and not the program's")]
    Host {
        /// What is started.
        name: String,
        /// What the system said.
        why: String,
        /// Whether it said that there is no room on a disk: the sealed copy of this program needs some, too.
        is_full: bool,
    },
    /// There is no place for the program's temporary files.
    #[error("cannot make a directory for a program in `{}`: {source}", .path.display())]
    Room {
        /// The scratch directory.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl SandboxError {
    /// True when there was no room on a disk: nothing is wrong with the program.
    #[must_use]
    pub fn is_full_disk(&self) -> bool {
        match self {
            Self::Room { source, .. } => is_full(source),
            Self::Host { is_full, .. } => *is_full,
            _ => false,
        }
    }
}

/// Whether an error says that there is no room.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
