//! A host for long-running agents: sandboxed components, journaled effects.
//!
//! The program `longhaul` is a thin view of [`service::Service`]; a Rust program can use the same.

// What is printed goes through `cli::terminal`, which cleans it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agents;
pub mod ask;
pub mod bombs;
pub mod check;
pub mod cli;
pub mod client;
pub mod events;
pub mod graphs;
pub mod memory;
pub mod notify;
mod project_models;
pub mod resources;
pub mod server;
pub mod service;
pub mod steps;
mod toolbox;
pub mod wiring;

pub use longhaul_checkpoints as checkpoint;
pub use longhaul_config as config;
pub use longhaul_config::{powers, protect};
pub use longhaul_exec as exec;
pub use longhaul_home as home;
pub use longhaul_home::{crash, logs};
pub use longhaul_maintenance::{backup, gc};
pub use longhaul_plugins as plugins;
pub use longhaul_plugins::manifest;
pub use longhaul_records as records;
pub use longhaul_run as run;
pub use longhaul_security::{audit, identity, secrets, signing, trust};
pub use toolbox::plugin_set as cast;
