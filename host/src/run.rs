//! A run: the actor that owns it, and the work that it does. What is stored of it is in `longhaul-records`.
//!
//! The harness decides, in a pure step; the actor stores the state with the events in one transaction
//! and then starts the work; the stage carries work out. Nothing here takes a decision of the harness.

mod actor;
mod checks;
mod grounds;
pub mod revert;
mod stage;
mod step_rows;
mod steps;

pub use actor::{Actor, Handle, apply, apply_with};
pub use longhaul_records::record::{ProjectRecord, RunRecord, records};
pub use stage::{End, Stage};
pub use step_rows::put_step;
