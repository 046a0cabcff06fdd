//! The API of the service: its operations, with the types of their requests and responses. The command line, the
//! socket, HTTP and MCP all use these.
//!
//! The service carries out each operation of [`operations`]; all other modules hold the types, one module a resource.
//! This crate opens nothing, looks nothing up and decides nothing, except that it refuses relative paths. It knows no
//! surface and no service.
//!
//! | file | holds |
//! |---|---|
//! | `operations.rs` | the operations of each resource as a trait, with their clients and their names on the wire |
//! | `paths.rs` | the refusal of relative paths, and the places where requests name paths |
//! | `seen.rs` | what a watcher of a run receives |
//! | `projects.rs`, `checks.rs` | projects, and what is wrong with one |
//! | `runs.rs` | runs, questions and reverts |
//! | `run_lists.rs` | pages and numbers of runs |
//! | `commits.rs` | the changes of a commit |
//! | `comparison.rs` | runs beside each other |
//! | `features.rs` | features of runs, and proposals for them |
//! | `forks.rs` | runs that go on from a point of another one |
//! | `journal.rs` | journals, replays and events |
//! | `points.rs` | points in the past of a run, and the run at one |
//! | `rehearsals.rs` | rehearsals of runs on other bytes, and moves to them |
//! | `approvals.rs` | what people are asked about calls of tools |
//! | `decisions.rs` | the decisions of a project |
//! | `checkpoints.rs` | runs as they stand |
//! | `trajectories.rs` | what agents were told, said and did |
//! | `memory.rs` | what projects remember |
//! | `agents.rs` | agents, schedules and tasks |
//! | `graphs.rs`, `graph_output.rs` | graphs of steps of code, and their output while they run |
//! | `resources.rs` | what is used of the machine |
//! | `workers.rs` | the servers that work on runs of one store |
//! | `security.rs`, `tokens.rs` | the audit log, trust, grants, and tokens for HTTP |
//! | `upkeep.rs` | backup, check and collection of a data directory |
//! | `wire.rs` | the published form of each resource: `--json`, HTTP and MCP |

pub mod agents;
pub mod approvals;
pub mod checkpoints;
pub mod checks;
pub mod commits;
pub mod comparison;
pub mod decisions;
pub mod features;
pub mod forks;
pub mod graph_output;
pub mod graphs;
pub mod journal;
pub mod memory;
pub mod operations;
pub mod paths;
pub mod points;
pub mod projects;
pub mod rehearsals;
pub mod resources;
pub mod run_lists;
pub mod runs;
pub mod security;
pub mod seen;
pub mod tokens;
pub mod trajectories;
pub mod upkeep;
pub mod wire;
pub mod workers;
