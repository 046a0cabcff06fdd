//! Forks: runs that go on from a point of another run, and share its past with it.
//!
//! A fork begins with the other run's state at the point. What had ended there is in that state and is never done again;
//! of the work that was under way, the answered entries of its journals are shared by reference. So a fork costs as
//! much however long the past is. What the other run did after the point is told before, and not undone.
//!
//! | module | holds |
//! |---|---|
//! | [`points`] | the run as it was at a point |
//! | `plan` | all of a fork, found by reading: its record, its state, and what is told about it |
//! | `cuts` | how far the journals of each piece of work are shared |
//! | `answers` | the type of an answer that a person wrote in the place of a recorded one |
//! | `effects` | the effects of the other run after the point |
//! | `trees` | the files of the work that was under way |
//! | `make` | the fork as one transaction, with its branch and its trees before |
//!
//! This crate refuses to change the other run, to undo an effect, to take an approval along, and to begin the work of a
//! fork, which a resume does.

mod answers;
mod cuts;
mod effects;
mod make;
mod plan;
pub mod points;
#[cfg(test)]
mod random_forks;
mod trees;

pub use make::make;
pub use plan::{PlannedFork, plan};
