//! What the store holds of a run, and what is told of it while it is worked on.
//!
//! The record and the state of a run, its events, its ledger, the questions to people about it with their answers, and what
//! agents propose and decide. Rows are read, and written into a batch that the caller commits; the ledger alone commits by
//! itself what a call that was cut off held. Nothing here begins a run, takes a decision of the harness, calls a plugin or a
//! model, or knows who is notified.

pub mod approvals;
pub mod bus;
pub mod checkpointing_journal;
pub mod decisions;
pub mod index;
pub mod invocation;
pub mod ledger;
pub mod pins;
pub mod project;
pub mod proposals;
pub mod record;
pub mod stop_condition;
