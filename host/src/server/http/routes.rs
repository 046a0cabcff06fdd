//! The routes, by what they are about. Each is a request of the service and a view of its answer.

pub mod agents;
pub mod approvals;
pub mod events;
pub mod exec;
pub mod features;
pub mod journal;
pub mod knowledge;
pub mod plugins;
pub mod projects;
pub mod reports;
pub mod resources;
pub mod runs;
pub mod schedules;
pub mod server;
