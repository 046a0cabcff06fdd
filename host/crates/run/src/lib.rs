//! A run at work: the actor that owns its state, and the execution of its work.
//!
//! | module | holds |
//! |---|---|
//! | `actor` | the owner of one run: it takes orders and results one after the other, and stores before it acts |
//! | `apply` | inputs to a run that has no actor |
//! | `executor` | the execution of one piece of work: plugins that are called, checks, commits |
//! | `checks` | the pinned checks of a feature |
//! | [`carried`] | the trees and commits of a run in the store, and how another data directory makes them again |
//! | [`places`] | the data directory that has the trees of a run |
//! | [`queue`] | the number of runs that work at once, and the order of the others |
//! | `step_rows` | the rows of one step of a run |
//! | `steps` | steps of components as events, each exactly once |
//! | [`revert`] | reverts to an earlier commit |
//! | `worktrees` | the trees of a run beside its branch |
//!
//! The harness decides, in a pure step; the actor stores the state with the events in one transaction and then starts
//! the work; the work executor carries it out. `longhaul-records` holds the records of a run. This crate refuses to
//! take a decision of the harness, and to begin, list or remove a run.

mod actor;
mod apply;
pub mod carried;
mod checks;
mod executor;
pub mod places;
pub mod queue;
pub mod revert;
mod step_rows;
mod steps;
mod worktrees;

pub use actor::{RunActor, RunHandle};
pub use apply::{apply, apply_with};
pub use executor::{WorkEnd, WorkExecutor};
pub use step_rows::put_step;
