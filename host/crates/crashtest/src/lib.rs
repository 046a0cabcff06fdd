//! The plan of a crash test, and the comparison of killed runs with two that were not killed.
//!
//! A run lists the durable points that it reaches ([`points`]); [`plan`] chooses where to kill it. Of each run there is
//! a [`RunObservation`]: its state, its journals, its verdicts, its commits, and what receivers outside of the process
//! saw. [`Reference`] is what the runs without a kill have in common, and [`Reference::judge`] finds what a killed and
//! resumed run did twice, lost, or did otherwise.
//!
//! This crate is pure: it starts no process, opens no store and prints nothing.

mod error;
mod observation;
pub mod plan;
pub mod points;
mod questions;
mod receivers;
mod reference;
mod report;
mod traces;

pub use error::CrashtestError;
pub use observation::{EntryKey, FinishedWork, RunObservation};
pub use plan::PlannedKill;
pub use points::PointOccurrence;
pub use receivers::{Likeness, ReceivedRequest, model_requests};
pub use reference::{EffectTotals, KillEvidence, Reference, TrialFindings};
pub use report::{CrashReport, CrashTrial, PointSummary};
pub use traces::{Facet, TraceKey};

#[cfg(test)]
mod samples;
