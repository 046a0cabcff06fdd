//! The graphs of a data directory: kept in its store, run in the sandbox, diagnosed and patched on a copy.
//!
//! A graph is opened once and then kept in memory; what lies in the store decides, by the number of its last writing.
//! Each change is one transaction, and each step that ends is one, so that a kill loses the step that was under way and
//! nothing else. One graph is changed by one caller at a time, and looked at by any. An agent's graph belongs to its
//! invocation: others look at it and do not change it. Nothing here knows what depends on what, or what is stale; that
//! is the affair of `longhaul-graph`.
//!
//! | file | holds |
//! |---|---|
//! | `desk.rs` | the graphs: asked about, made, changed, removed |
//! | `task.rs`, `perform.rs` | what is done with one graph, and that it is done |
//! | `work.rs` | one change that is under way |
//! | `run.rs`, `runner.rs` | stale steps run, and the interpreter that they run in |
//! | `mend.rs`, `advice.rs` | why a step failed and which source mends it; what a model says to that |
//! | `opened.rs` | a graph in memory, and its rows |
//! | `views.rs` | how a graph stands |
//! | `agents.rs` | graphs of agents |
//! | `errors.rs` | what callers are told of refusals |
//! | `steps.rs` | one step run |

mod advice;
mod agents;
mod desk;
mod errors;
mod mend;
mod opened;
mod perform;
mod run;
mod runner;
pub mod steps;
mod task;
mod views;
mod work;

pub use desk::{Desk, GraphResponse};
