//! A run: what is stored of it, the actor that owns it, and the work that it does.
//!
//! The harness decides, in a pure step; the actor stores the state with the events in one transaction
//! and then starts the work; the stage carries work out. Nothing here takes a decision of the harness.

mod actor;
mod bus;
mod checks;
pub mod decisions;
pub mod proposals;
mod record;
mod stage;

pub use actor::{Actor, Handle, apply};
pub use bus::{Bus, Heard};
pub use record::{RunRecord, StoredRun, events_after, list, load, newest_in, put_step, question, record, records};
pub use stage::{Kept, Stage};
