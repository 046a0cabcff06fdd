//! Reasons for which a check did not run. A check that fails is a report and none of them.

use crate::TreeError;
use longhaul_sandbox::SandboxError;
use std::io::ErrorKind;

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
