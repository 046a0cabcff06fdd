//! Finds faults of a project before a model is asked: `longhaul check`, and the first step of `run`, `resume` and
//! `ask`.
//!
//! | module | holds |
//! |---|---|
//! | `checker` | the order in which a project is examined |
//! | [`machine`] | this machine: directories, programs, keys, secrets, the goal and the repository |
//! | [`plugins`] | components: their presence, settings, functions, and the plan of a written goal |
//! | `scope` | the parts of a project that a run, an ask or a resumed run needs |
//! | `finding` | one fault, with its file and line |
//! | `overview` | the parts, models, checks and features of the run that would begin |
//!
//! This crate refuses to send anything to a model, a server or a plugin's host, to start a program of the project, and
//! to change anything.

mod checker;
mod finding;
pub mod machine;
mod overview;
pub mod plugins;
mod scope;

pub use checker::Checker;
pub use finding::{of_goal, refuse};
pub use longhaul_api::checks::{Finding, Overview};
pub use scope::CheckScope;
