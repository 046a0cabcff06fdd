//! The types and traits that every other crate shares.
//!
//! Nothing here does input or output, reads a clock or knows WebAssembly: a crate that needs one of
//! those has a trait here and its implementation elsewhere, joined in the host's `wiring.rs`.

pub mod approval;
pub mod capacity;
pub mod clock;
pub mod context;
pub mod counted;
pub mod crash;
pub mod decision;
pub mod denial;
pub mod digest;
pub mod event;
pub mod fault;
pub mod full_text;
pub mod grant;
pub mod graph;
pub mod ids;
pub mod journal;
pub mod json;
pub mod limits;
pub mod memory;
pub mod model;
pub mod name;
pub mod output;
pub mod packages;
pub mod pip;
pub mod process_registry;
pub mod project;
pub mod project_models;
pub mod redact;
pub mod section;
pub mod shared;
pub mod store;
pub mod stream;
pub mod supervisor;
pub mod test_summary;
pub mod text;
pub mod tool;
pub mod watch;
pub mod wildcard;
pub mod work;

pub use clock::Clock;
pub use denial::{Denial, LimitHit, Outage};
pub use digest::Digest;
pub use event::{Event, RunEvent};
pub use ids::{InvocationId, RunId};
pub use limits::Limits;
pub use name::Name;
