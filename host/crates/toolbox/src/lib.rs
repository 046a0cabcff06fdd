//! The tools of a run: their grants, their calls, and the approval gate.
//!
//! | module | holds |
//! |---|---|
//! | [`environment`] | the store, clock, secrets and sandbox with which tools are opened, confined and recorded |
//! | [`tool_set`] | the tools of a run, with their gates |
//! | [`component`] | tools that are components, and the trait through which their exports are called |
//! | `toolbox` | the tools of one invocation, as it lists and calls them |
//! | [`gate`] | the operator's policy for the calls of a tool, and the tool's reach |
//! | [`approval_gate`] | decisions about calls: the policy, then the rules of the run, then a person |
//! | [`built_in`] | the constructors of the tools that the host itself implements |
//! | `ask_human`, `native_python`, `project`, `todo` | four of these tools |
//! | [`mcp`] | the MCP servers of a project as tools |
//! | [`tree_carrier`], [`commit_carrier`] | a run's files and commits as content of a store that other data directories share |
//! | [`discarded_changes`] | the files that calls wrote and that no commit would hold |
//!
//! This crate refuses to grant anything beyond `longhaul.toml`, and to repeat a call; the journal decides about
//! repetitions. It asks no person by itself: it stores the question, and the run waits for its answer. It names neither
//! capabilities nor an engine, so that a guest's call of a tool leads down; native Python it has of `exec`.

pub mod approval_gate;
mod ask_human;
pub mod built_in;
pub mod commit_carrier;
pub mod component;
pub mod discarded_changes;
pub mod environment;
pub mod gate;
pub mod mcp;
mod native_python;
mod project;
mod todo;
pub mod tool_set;
mod toolbox;
pub mod tree_carrier;

pub use toolbox::Toolbox;
