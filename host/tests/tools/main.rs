//! The tools of agents: the shipped ones, the project's, the browser's and those of MCP servers; the approvals that
//! come before their effects, and the secrets that they never see.

#[path = "../common/mod.rs"]
mod common;

mod approval_cases;
mod approval_session;
mod approvals;
mod browser;
mod mcp;
mod project_tools;
mod secrets;
mod tools;
