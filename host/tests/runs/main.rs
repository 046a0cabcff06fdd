//! Runs and asks from the outside: how each begins, goes on, is judged, steered and reported, and what a kill anywhere
//! leaves of it.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../crates/redis/tests/support/server.rs"]
mod redis_server;

mod ask;
mod ask_crash;
mod checkpoints;
mod compare;
mod context;
mod crash;
mod crashtest;
mod fallback;
mod fork;
mod growth;
mod memory;
mod parallel;
mod pipeline;
mod points;
mod project;
mod rehearse;
mod report;
mod revert;
mod rubric;
mod scenario_record;
mod vision;
mod watch;
