//! Usage of processes and of the machine, limits of process trees, and the end of a tree.
//!
//! | file | holds |
//! |---|---|
//! | `process.rs` | all processes, and the trees that they form |
//! | `usage.rs` | the usage of a tree, and of the machine |
//! | `gpu.rs` | memory of graphics cards |
//! | `limits.rs` | the limits of a tree, and the check of them |
//! | `end.rs` | the end of a tree: asked first, then killed |
//! | `cgroup.rs` | control groups, if the system lets us make them |
//! | `own_cgroup.rs` | our own group, and its memory |
//! | `admission.rs` | whether there is capacity for one more |
//! | `disk.rs` | the space of a disk |
//! | `history.rs` | the last samples, for plots |
//!
//! Refuses to signal a process by its number alone, since numbers are reused; to wait without a cap; and to treat a
//! machine without figures as one with everything free.

pub mod admission;
pub mod cgroup;
mod disk;
mod end;
mod error;
pub mod gpu;
pub mod history;
mod limits;
mod numbers;
mod own_cgroup;
mod process;
mod usage;

pub use admission::{PromisedResources, Reserve};
pub use disk::DiskSpace;
pub use end::{GRACE, TreeEnd, end_tree};
pub use error::ResourceError;
pub use gpu::GpuUsage;
pub use history::{History, Sample};
pub use limits::{PartialLimits, ResourceLimits, Watchdog};
pub use longhaul_core::capacity::{AdmissionVerdict, Need};
pub use numbers::{mb, sum};
pub use process::{Process, ProcessTable, Stat};
pub use usage::{ProcessUsage, Sampler, SystemUsage};
