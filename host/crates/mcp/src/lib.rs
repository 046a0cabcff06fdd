//! MCP servers of others as tools of agents.
//!
//! A server is a child process that speaks over its standard input and output, or an address that is reached through
//! the egress guard. It is started at its first use and again when it is gone. What it says of its tools is pinned
//! where it is first seen; when it says something else later, nothing is called until a person accepts that. This
//! crate believes nothing that a server says of effects, offers it neither sampling nor roots nor a person to ask, and
//! repeats no call whose outcome is unknown.

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
