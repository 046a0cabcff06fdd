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
//! | `own_cgroup.rs` | the group that we are in, and its memory |
//! | `admission.rs` | whether there is room for one more |
//! | `history.rs` | the last samples, for plots |
//!
//! Refuses to signal a process by its number alone, since numbers are given away again; to wait without a cap; and to
//! take a machine that tells nothing for one that has everything free.

pub mod admission;
pub mod cgroup;
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
pub use end::{GRACE, TreeEnd, end_tree};
pub use error::ResourceError;
pub use gpu::GpuUsage;
pub use history::{History, Sample};
pub use limits::{PartialLimits, ResourceLimits, Watchdog};
pub use longhaul_core::capacity::{AdmissionVerdict, Need};
pub use numbers::{mb, sum};
pub use process::{Process, ProcessTable, Stat};
pub use usage::{ProcessUsage, Sampler, SystemUsage};
