//! Record, replay and divergence of one invocation.
//!
//! [`Recorder`] is the [`Journal`](longhaul_core::journal::Journal) that capabilities see, over any
//! [`Store`](longhaul_core::store::Store). It answers from the journal until the journal ends and
//! keeps new calls from there; [`entries`], [`finished`] and [`resolution`] serve people.
//!
//! This crate executes nothing and never decides that an effect happened: an unknown outcome is resolved by a person or
//! by `verify`. `record.rs` describes the records.

mod asked;
mod decide;
mod disown;
mod list;
mod load;
mod messages;
mod record;
mod recorder;

pub use asked::{AskedCall, AskedCalls};
pub use disown::disowned;
pub use list::{ResolveError, began, children, entries, finished, resolution, unresolved};
pub use recorder::{Opened, Recorder};
