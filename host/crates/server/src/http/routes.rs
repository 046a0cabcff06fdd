//! The handlers of operations, by resource. Each asks the service and replies with the wire type of
//! its answer.
//!
//! A handler's attribute declares its method, its path and its part of the OpenAPI document; [`super::operations`]
//! lists the handlers with their scopes.

pub mod agents;
pub mod approvals;
pub mod archive;
pub mod calls;
pub mod commits;
pub mod comparison;
pub mod events;
pub mod exec;
pub mod exports;
pub mod features;
pub mod forks;
pub mod graphs;
pub mod journal;
pub mod knowledge;
pub mod plugins;
pub mod projects;
pub mod rehearsals;
pub mod reports;
pub mod resources;
pub mod runs;
pub mod schedules;
pub mod server;
pub mod workers;
