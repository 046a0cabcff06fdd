//! Reasons for which a check did not run. A failing check is a report and no error.

use crate::TreeError;
use longhaul_sandbox::SandboxError;
use std::io::ErrorKind;

/// The reason why a check did not run. A failing check is a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// The check in `[checks]` is invalid.
    #[error("check `{name}` {why}")]
    Invalid {
        /// The check.
        name: String,
        /// The fault and its remedy.
        why: String,
    },
    /// The check differs from its pin when the work started.
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
        /// The error of the system.
        why: String,
    },
}

impl NativeError {
    /// True when a disk was full: the check is not at fault.
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
