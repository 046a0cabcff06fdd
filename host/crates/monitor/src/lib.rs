//! What runs in this process use of the machine, and that they stay within their limits.
//!
//! The owner of a data directory looks at its children twice a second while there are any. A tree that is over a limit
//! is asked to end and killed when it does not; whoever started it is told the limit. Where control groups can be made,
//! each child gets one, so that the kernel holds the limits between two looks. Instances of components are held to
//! theirs by the engine, and only shown here. Refuses to end what it did not start.
//!
//! | file | holds |
//! |---|---|
//! | `monitor.rs` | the looks at children and machine, and the end of a child that is over a limit |
//! | `admission.rs` | whether there is room for a task of an agent |

mod admission;
mod monitor;

pub use admission::AdmissionController;
pub use monitor::Monitor;
