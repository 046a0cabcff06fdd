//! What can go wrong with processes, and whether the same call may succeed later.

/// Why something about processes could not be told or done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// There is no such process any more, or its number belongs to another one.
    #[error("process {pid} is not there any more")]
    Absent {
        /// Its number.
        pid: u32,
    },
    /// The system does not let us.
    #[error("process {pid} belongs to somebody else; end it as its user, or as root")]
    NotOurs {
        /// Its number.
        pid: u32,
    },
    /// Killed, and still there: it waits within the kernel, mostly for a disk or a network file system.
    #[error("{left} processes below {pid} were killed and are still there; they wait for a disk or the like")]
    StillThere {
        /// The root of the tree.
        pid: u32,
        /// How many.
        left: usize,
    },
    /// The machine does not say.
    #[error("this system does not tell what its processes use: {why}")]
    Untold {
        /// Why.
        why: String,
    },
}

impl ResourceError {
    /// True when the same call may succeed later without anyone changing anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::StillThere { .. } => true,
            Self::Absent { .. } | Self::NotOurs { .. } | Self::Untold { .. } => false,
        }
    }
}
