//! A host for long-running agents: sandboxed components, journaled effects.
//!
//! The program `longhaul` is a thin view of [`service::Service`]; a Rust program can use the same.

// What is printed goes through `cli::terminal`, which cleans it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agents;
pub mod ask;
pub mod audit;
pub mod backup;
pub mod bombs;
pub mod check;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod crash;
pub mod door;
pub mod events;
pub mod exec;
pub mod gc;
pub mod graphs;
pub mod home;
pub mod identity;
pub mod logs;
pub mod manifest;
pub mod memory;
pub mod nobody;
pub mod notify;
pub mod plugins;
pub mod powers;
mod project_models;
pub mod protect;
mod quarantine;
pub mod resources;
pub mod run;
pub mod secrets;
pub mod server;
pub mod service;
pub mod signing;
pub mod steps;
mod text_file;
mod toolbox;
pub mod trust;
pub mod wiring;

pub use longhaul_records as records;
pub use toolbox::plugin_set as cast;
