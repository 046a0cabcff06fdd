//! The reason why a program was not started.

use crate::Level;

/// The reason why a program was not started. A program that fails, or reaches a limit, is a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The program does not exist.
    #[error("{name} cannot find the program `{program}`; install it, or give its full path")]
    NoProgram {
        /// The name of the program: ``check `test` ``.
        name: String,
        /// `argv[0]`.
        program: String,
    },
    /// A granted path does not exist. No level could show it.
    #[error(
        "{name} was not started: `{setting}` names `{}`, which is not there; create it or leave it out of `{setting}`",
        .path.display()
    )]
    Absent {
        /// The name of the program.
        name: String,
        /// `read` or `write`.
        setting: &'static str,
        /// The path.
        path: std::path::PathBuf,
    },
    /// This system cannot give the required sandbox level.
    #[error(
        "{name} was not started, since this system does not give the sandbox level `{level_min}`: {why}; {}, or accept \
         less by name with `sandbox_min`",
        .level_min.remedy()
    )]
    Refused {
        /// The name of the program.
        name: String,
        /// The lowest accepted level.
        level_min: Level,
        /// The error of the system.
        why: String,
    },
    /// The child could not be started or watched.
    #[error("{name} could not be run: {why}; this is the host's fault and not the program's")]
    Host {
        /// The name of the program.
        name: String,
        /// The error of the system.
        why: String,
        /// True when a disk was full: the sealed copy of this program needs space, too.
        is_full: bool,
    },
    /// The program's temporary directory cannot be made.
    #[error("cannot make a directory for a program in `{}`: {source}", .path.display())]
    Room {
        /// The scratch directory.
        path: std::path::PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl SandboxError {
    /// True when a disk was full: the program is not at fault.
    #[must_use]
    pub fn is_full_disk(&self) -> bool {
        match self {
            Self::Room { source, .. } => is_full(source),
            Self::Host { is_full, .. } => *is_full,
            _ => false,
        }
    }
}

/// True when an error reports a full disk.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
