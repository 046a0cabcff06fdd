//! MCP servers of others as tools of agents.
//!
//! A server is a child process that speaks over its standard input and output, or an address that is reached through
//! the egress guard. It is started at its first use and again after it ended. Its description of its tools is pinned
//! when it is first seen; after a change nothing is called until a person accepts it. This crate trusts no claim of a
//! server about effects, offers it neither sampling nor roots nor elicitation, and repeats no call whose outcome is
//! unknown.

mod config;
mod definitions;
mod environment;
mod error;
mod extract;
mod http;
mod inside;
mod keeper;
mod offers;
mod process;
mod server;
mod walled;

pub use config::{McpConfig, Value};
pub use definitions::{Definition, accept, is_approved, known, pinned};
pub use environment::{McpEnvironment, SecretOf};
pub use error::McpError;
pub use extract::{Extracted, extract};
pub use inside::mcp_child;
pub use keeper::keep_child;
pub use server::McpServer;
