//! The plugins and tools of a run: their loading, their grants, and the approval gate.
//!
//! | module | holds |
//! |---|---|
//! | [`plugin_host`] | the store, the clock, the engine and the secrets that plugins are loaded, confined and served with |
//! | [`plugin_set`] | the plugins of a run, pinned by digest, with their grants and limits |
//! | `toolbox` | the tools of one invocation, as it lists and calls them |
//! | [`gate`] | the operator's policy for the calls of a tool, and what the tool can reach |
//! | [`approval_gate`] | decisions about calls: the policy, then the rules of the run, then a person |
//! | [`built_in`] | how the tools that the host answers itself are opened |
//! | `ask_human`, `project`, `todo` | three of these tools |
//! | [`mcp`] | the MCP servers of a project as tools |
//! | [`discarded_changes`] | the files that calls wrote and that no commit would hold |
//!
//! This crate refuses to grant what `longhaul.toml` does not grant, and to repeat a call, about which the journal decides. It
//! asks no person by itself: it stores the question, and the run waits for its answer.

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
