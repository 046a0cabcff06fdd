//! The graphs of a data directory: kept in its store, run in the sandbox, diagnosed and patched on a copy.
//!
//! A graph is opened once and then kept in memory; the store decides, by the number of its last write. Each change is
//! one transaction, and each step that ends is one, so that a kill loses the step that was running and nothing else.
//! One caller at a time changes a graph; any number of callers read it. An agent's graph belongs to its invocation:
//! others read it and do not change it. `longhaul-graph` decides about dependencies and staleness; this crate does not.
//!
//! | file | holds |
//! |---|---|
//! | `service.rs` | the service: reads, creates, changes and removes graphs |
//! | `task.rs`, `perform.rs` | the operations on one graph, and their execution |
//! | `work.rs` | one change in progress |
//! | `run.rs`, `runner.rs` | the run of stale steps, and their interpreter |
//! | `mend.rs`, `advice.rs` | the diagnosis and repair of a failed step, by rules and by a model's advice |
//! | `opened.rs` | a graph in memory, and its rows |
//! | `views.rs` | views of a graph's state |
//! | `agents.rs` | graphs of agents |
//! | `errors.rs` | errors for callers |
//! | `files.rs` | the content of files that steps read, as digests |
//! | `steps.rs` | the run of one step |
//! | `output_log.rs` | the output of steps while they run, for readers with a cursor |

mod advice;
mod agents;
mod errors;
mod files;
mod mend;
mod opened;
mod output_log;
mod perform;
mod run;
mod runner;
mod service;
pub mod steps;
mod task;
mod views;
mod work;

pub use service::GraphService;
