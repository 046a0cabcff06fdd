//! Errors about processes, and whether the same call may succeed later.

/// The reason why information or an action on processes failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The process does not exist any more, or its number belongs to another one.
    #[error("process {pid} is not there any more")]
    Absent {
        /// The number of the process.
        pid: u32,
    },
    /// The system refuses permission.
    #[error("process {pid} belongs to another user; end it as its user, or as root")]
    NotOurs {
        /// The number of the process.
        pid: u32,
    },
    /// Killed, but still there: it waits within the kernel, mostly for a disk or a network file system.
    #[error("{left} processes below {pid} were killed and are still there; they wait for a disk or the like")]
    StillThere {
        /// The root of the tree.
        pid: u32,
        /// The number of remaining processes.
        left: usize,
    },
    /// The machine does not provide the information.
    #[error("this system does not tell what its processes use: {why}")]
    Untold {
        /// The reason.
        why: String,
    },
}

impl ResourceError {
    /// True when the same call may succeed later without any change.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::StillThere { .. } => true,
            Self::Absent { .. } | Self::NotOurs { .. } | Self::Untold { .. } => false,
        }
    }
}
