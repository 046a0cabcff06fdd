//! A host for long-running agents: sandboxed components, journaled effects.
//!
//! The program `longhaul` is a thin view of [`service::Service`]; a Rust program can use the same.

// What is printed goes through `cli::terminal`, which cleans it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod ask;
pub mod events;
mod own_service;
pub mod owner;
mod project_models;
pub mod wiring;

pub use longhaul_api as api;
pub use longhaul_checkpoints as checkpoint;
pub use longhaul_cli as cli;
pub use longhaul_cli::bombs;
pub use longhaul_client as client;
pub use longhaul_config as config;
pub use longhaul_config::{powers, protect};
pub use longhaul_exec as exec;
pub use longhaul_graph_runner as graphs;
pub use longhaul_graph_runner::steps;
pub use longhaul_home as home;
pub use longhaul_home::{crash, logs};
pub use longhaul_maintenance::{backup, gc};
pub use longhaul_memory as memory;
pub use longhaul_monitor as resources;
pub use longhaul_notify as notify;
pub use longhaul_plugins as plugins;
pub use longhaul_plugins::manifest;
pub use longhaul_preflight as check;
pub use longhaul_records as records;
pub use longhaul_run as run;
pub use longhaul_security::{audit, identity, secrets, signing, trust};
pub use longhaul_server as server;
pub use longhaul_service as service;
pub use longhaul_toolbox as toolbox;

/// Agents, schedules and tasks: what is asked and answered of them, and what works on them.
pub mod agents {
    pub use longhaul_agents as record;
    pub use longhaul_api::agents::{
        AgentSummary, AgentView, AttemptView, FIRES, FIRES_MAX, PAGE, PAGE_MAX, ScheduleTally, ScheduleView,
        SchedulerStatus, StatusFilter, TaskView,
    };
    pub use longhaul_scheduler::{AgentExecutor, AgentWork, Scheduler, SchedulerService};
}
