//! Code that users and models bring: single jobs, steps of graphs, and agents that are code, on schedules.

#[path = "../common/mod.rs"]
mod common;

mod agents;
mod exec;
mod graph;
mod graph_equivalence;
mod graph_output;
mod graph_steps;
mod native;
mod programs;
mod sessions;
mod task_kills;
