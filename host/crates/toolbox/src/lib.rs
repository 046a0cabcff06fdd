//! The plugins and tools of a run: their loading, their grants, and the approval gate.
//!
//! | module | holds |
//! |---|---|
//! | [`plugin_host`] | the store, clock, engine and secrets with which plugins are loaded, confined and served |
//! | [`plugin_set`] | the plugins of a run, pinned by digest, with their grants and limits |
//! | `toolbox` | the tools of one invocation, as it lists and calls them |
//! | [`gate`] | the operator's policy for the calls of a tool, and the tool's reach |
//! | [`approval_gate`] | decisions about calls: the policy, then the rules of the run, then a person |
//! | [`built_in`] | the constructors of the tools that the host itself implements |
//! | `ask_human`, `project`, `todo` | three of these tools |
//! | [`mcp`] | the MCP servers of a project as tools |
//! | [`discarded_changes`] | the files that calls wrote and that no commit would hold |
//!
//! This crate refuses to grant anything beyond `longhaul.toml`, and to repeat a call; the journal decides about
//! repetitions. It asks no person by itself: it stores the question, and the run waits for its answer.

pub mod approval_gate;
mod ask_human;
pub mod built_in;
pub mod discarded_changes;
pub mod gate;
pub mod mcp;
pub mod plugin_host;
pub mod plugin_set;
mod project;
mod todo;
mod toolbox;

pub use toolbox::Toolbox;
