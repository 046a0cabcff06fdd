//! Memory of a project beyond its runs: its storage, the recollections of agents, and the memories of finished runs.
//!
//! | module | holds |
//! |---|---|
//! | `backend` | the backend that `[memory]` names |
//! | [`factory`] | the parts that the program provides: sentence models, servers |
//! | `plugin` | a component as the backend |
//! | `namespaces` | the namespaces of a project |
//! | [`recollect`](mod@recollect) | recollections of earlier runs for planners and sessions |
//! | [`remember`] | stores the memory of a run when it ends |
//! | `extract` | extracts facts and an episode from a finished run |
//!
//! There are three namespaces: `working/RUN` and `episodic/PROJECT` are what `recall` gives agents, `episodes/PROJECT`
//! holds the outcomes of runs. Memory is data wherever an agent reads it. An unavailable backend stops no run, which
//! then continues with less. This crate makes no client of a server and no sentence model itself: the program gives it
//! both.

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
