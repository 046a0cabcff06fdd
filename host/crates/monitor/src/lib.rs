//! Resource usage of this process's runs, and the enforcement of their limits.
//!
//! The owner of a data directory samples its children twice a second while there are any. A process tree over a limit
//! is asked to end, and killed when it does not; its caller gets the limit as the reason. If control groups are
//! available, each child gets one, so that the kernel enforces the limits between two samples. The engine enforces the
//! limits of component instances; they are only shown here. Refuses to end a process that it did not start.
//!
//! | file | holds |
//! |---|---|
//! | `monitor.rs` | the sampling of children and machine, and the end of a child over a limit |
//! | `admission.rs` | admission of agents' tasks |

mod admission;
mod monitor;

pub use admission::AdmissionController;
pub use monitor::Monitor;
