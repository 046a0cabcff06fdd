//! What surfaces may ask for and are answered, as types: the same for the command line, the socket, HTTP and MCP.
//!
//! The service answers each [`request::Request`] with an [`answer::Answer`]; all other modules hold what these two are made
//! of, one module a subject. This crate opens nothing, looks nothing up and takes no decision beyond refusing a relative
//! path, and it knows none of those who ask or answer.
//!
//! | file | holds |
//! |---|---|
//! | `request.rs`, `paths.rs` | requests, and that each path in them is whole |
//! | `answer.rs` | answers |
//! | `operations.rs` | the operations of each resource as a trait, with their clients |
//! | `seen.rs` | what a watcher of a run receives |
//! | `runs.rs` | projects, runs, questions, and what replays, rechecks and reverts gave |
//! | `approvals.rs` | what people are asked about calls of tools |
//! | `decisions.rs` | the decisions of a project |
//! | `checks.rs` | what is wrong with a project |
//! | `checkpoints.rs` | runs as they stand |
//! | `trajectories.rs` | what agents were told, said and did |
//! | `memory.rs` | what projects remember |
//! | `agents.rs` | agents, schedules and tasks |
//! | `graphs.rs` | graphs of steps of code |
//! | `resources.rs` | what is used of the machine |
//! | `security.rs`, `tokens.rs` | the audit log, trust, grants, and tokens for HTTP |
//! | `upkeep.rs` | backup, check and collection of a data directory |

pub mod agents;
pub mod answer;
pub mod approvals;
pub mod checkpoints;
pub mod checks;
pub mod decisions;
pub mod graphs;
pub mod memory;
pub mod operations;
pub mod paths;
pub mod request;
pub mod resources;
pub mod runs;
pub mod security;
pub mod seen;
pub mod tokens;
pub mod trajectories;
pub mod upkeep;
