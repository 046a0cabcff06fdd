//! The stored records of a run, and its live events while it is worked on.
//!
//! They are the record and the state of a run, its events and their sums, its ledger, the questions to people about it
//! with their answers, the proposals and decisions of agents, and what a loss of commits leaves in doubt. Rows are
//! read, and written into a batch that the caller commits. Commits of its own make the ledger, for the reservation of
//! an interrupted call and for one that the cap of a project's day needs, [`contended::change`], for a row that several
//! processes write, and [`record::hand_over`], before a run is deleted whose journals forks share. Nothing here begins a
//! run, takes a decision of the harness, calls a plugin or a model, or knows the receivers of notifications.

pub mod approvals;
pub mod bus;
pub mod checkpointing_journal;
pub mod commit_loss;
pub mod contended;
pub mod decisions;
pub mod index;
pub mod invocation;
pub mod ledger;
pub mod long_lock;
pub mod pins;
pub mod project;
pub mod proposals;
pub mod record;
pub mod repeats;
mod step_contents;
pub mod stop_condition;
pub mod sums;
