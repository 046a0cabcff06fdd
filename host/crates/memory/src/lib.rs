//! Memory of a project beyond its runs: where it is kept, what agents are told of it, and what is kept of a run.
//!
//! | module | holds |
//! |---|---|
//! | `backend` | the backend that `[memory]` names |
//! | [`factory`] | what the program makes for it: sentence models, servers |
//! | `plugin` | a component as the backend |
//! | `namespaces` | the namespaces of a project |
//! | [`recollect`](mod@recollect) | what planners and sessions are told of earlier runs |
//! | [`remember`] | what is kept of a run when it ends |
//! | `extract` | how facts and an episode are made of what a run left |
//!
//! Three namespaces: `working/RUN` and `episodic/PROJECT` are what `recall` gives agents, `episodes/PROJECT` what runs
//! came to. What is remembered is data wherever it is told. A backend that is away stops no run, which then goes on with
//! less. This crate makes no client of a server and no sentence model itself: the program gives it both.

mod backend;
mod extract;
pub mod factory;
mod namespaces;
mod plugin;
pub mod recollect;
pub mod remember;

pub use backend::open;
pub use extract::words_heard;
pub use factory::MemoryFactory;
pub use namespaces::{episodes_of, facts_of};
pub use recollect::{recollect, told_words};
pub use remember::{Rememberer, is_due, put_due};
