//! A run: what is stored of it, the actor that owns it, and the work that it does.
//!
//! The harness decides, in a pure step; the actor stores the state with the events in one transaction
//! and then starts the work; the stage carries work out. Nothing here takes a decision of the harness.

mod actor;
pub mod approvals;
mod bus;
mod checks;
pub mod decisions;
mod gatekeeper;
mod grounds;
pub mod index;
pub mod ledger;
mod marked;
pub mod project;
pub mod proposals;
mod record;
pub mod revert;
mod stage;
mod steps;
pub mod unkept;
mod until;

pub use actor::{Actor, Handle, apply, apply_with};
pub use bus::{Bus, Heard, Watching};
pub use record::{
    ProjectRecord, RunRecord, StoredRun, best_effort, events_after, last_event, last_event_ms, list, load, newest_in,
    newest_on_branch, put_step, put_until, questions, questions_answered, record, records, until,
};
pub use revert::Reverted;
pub use stage::{CHOICE, End, Kept, Stage};
pub use until::Until;
