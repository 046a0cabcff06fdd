//! Record, replay and divergence of one invocation.
//!
//! [`Recorder`] is the [`Journal`](longhaul_core::journal::Journal) that capabilities see, over any
//! [`Store`](longhaul_core::store::Store). It answers from the journal until the journal ends and
//! keeps new calls from there; [`entries`], [`finished`] and [`resolution`] serve people. A journal may begin with
//! entries of another one, which it refers to: [`share`] makes such a beginning for a fork, and [`hand_over`] keeps it
//! where the other one is deleted.
//!
//! This crate executes nothing and never decides that an effect happened: an unknown outcome is resolved by a person or
//! by `verify`. `record.rs` describes the records.

mod asked;
mod decide;
mod disown;
mod hand_over;
mod list;
mod load;
mod messages;
mod record;
mod recorder;
mod share;
mod shared;
mod whole;

pub use asked::{AskedCall, AskedCalls};
pub use disown::disowned;
pub use hand_over::{hand_over, holders};
pub use list::{ResolveError, began, children, delegations, entries, finished, resolution, unresolved};
pub use recorder::{Opened, Recorder};
pub use share::{answered_through, share, share_at, share_with_answer, shared_through};
pub use whole::whole;
