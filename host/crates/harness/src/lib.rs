//! The state machines of a run.
//!
//! A strategy is one pure function: [`step()`] takes the state and an input, and returns the actions to take. This
//! crate does no input or output, reads no clock and draws no random numbers; time is an argument. It starts nothing
//! itself: the driver in the host stores the state and the emitted events in one transaction, and only then carries out
//! the [`Work`]. After a crash [`pending`] returns the same work again, under the same keys.
//!
//! It never trusts a generator's own statement: a feature passes by the verdict on its own criteria
//! ([`longhaul_core::work::Verdict::passes`]) that rests on more than vacuous checks, or by a person's word.

pub mod action;
pub mod contract;
pub mod day;
pub mod decisions;
pub mod detect;
mod evidence;
mod fork;
pub mod input;
pub mod limits;
pub mod plan;
pub mod route;
pub mod select;
pub mod state;
pub mod step;
mod texts;

pub use action::{Action, Choice, EndStatus, Park, StepSummary, Work, WorkKind};
pub use input::{Dispatch, HarnessSetup, Input, PersonRequest, Strategy, Trial, TrialOutcome, WorkFailure, WorkReport};
pub use limits::HarnessLimits;
pub use plan::PlanError;
pub use state::{Feature, Lane, RunState, RunStatus, StateError};
pub use step::{Ignored, OrderRefusal, Reaction, pending, step, wants_replan};
