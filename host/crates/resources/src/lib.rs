//! Usage of processes and of the machine, limits of process trees, and the end of a tree.
//!
//! | file | holds |
//! |---|---|
//! | `process.rs` | the processes that there are, and which belong together |
//! | `usage.rs` | what a tree, and the machine, use |
//! | `gpu.rs` | memory of graphics cards |
//! | `limits.rs` | what a tree may use, and when it is over |
//! | `end.rs` | a tree is ended: asked first, then killed |
//! | `cgroup.rs` | control groups, where the system lets us make them |
//! | `admission.rs` | whether there is room for one more |
//! | `history.rs` | the last samples, for plots |
//!
//! Refuses to signal a process by its number alone, since numbers are given away again; to wait without a cap; and to
//! take a machine that tells nothing for one that has everything free.

pub mod admission;
pub mod cgroup;
mod end;
pub mod gpu;
pub mod history;
mod limits;
mod process;
mod usage;

pub use admission::{Admission, Need, Reserve, Verdict};
pub use end::{Ended, GRACE, end_tree};
pub use gpu::GpuUsage;
pub use history::{History, Sample};
pub use limits::{ResourceLimits, Rule, Watchdog};
pub use process::{Process, Stat, Table};
pub use usage::{Sampler, SystemUsage, Usage};

/// The sum; of nothing it is 0, where the standard library has -0, which is shown with its sign.
pub fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, number| sum + number)
}

/// Errors about processes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// There is no such process any more, or its number belongs to another one.
    #[error("process {pid} is not there any more")]
    Absent {
        /// Number of the process.
        pid: u32,
    },
    /// The system does not let us.
    #[error("process {pid} belongs to somebody else; end it as its user, or as root")]
    NotOurs {
        /// Number of the process.
        pid: u32,
    },
    /// Killed, and still there: it waits within the kernel, mostly for a disk or a network file system.
    #[error("{left} processes below {pid} were killed and are still there; they wait for a disk or the like")]
    StillThere {
        /// The root of the tree.
        pid: u32,
        /// Number of processes that are left.
        left: usize,
    },
    /// The machine does not say.
    #[error("this system does not tell what its processes use: {why}")]
    Untold {
        /// The reason.
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

/// Bytes as MB of 1,048,576.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shown, and compared with limits of whole MB")]
pub fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn the_sum_of_nothing_has_no_sign() {
        assert_eq!(format!("{:.1} MB", sum(std::iter::empty())), "0.0 MB");
        assert_eq!(sum([1.5, 2.0].into_iter()), 3.5);
    }
}
