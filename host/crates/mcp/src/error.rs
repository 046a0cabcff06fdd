//! Errors of MCP servers.

use longhaul_core::tool::ToolError;
use longhaul_core::{Denial, LimitHit, Outage};

/// The reason why a server cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// Its table is invalid.
    #[error("[mcp.{server}] {what}")]
    Config {
        /// The server.
        server: String,
        /// The fault, with its remedy.
        what: String,
    },
    /// It is unavailable, or does not respond.
    #[error("the MCP server `{server}` is not there: {reason}")]
    Down {
        /// The server.
        server: String,
        /// The reason, with its last output.
        reason: String,
    },
    /// Its list of tools is too long, or endless.
    #[error("the MCP server `{server}` lists more than {bound}; have it offer fewer tools")]
    TooMany {
        /// The server.
        server: String,
        /// The bound, with the counted unit.
        bound: String,
    },
    /// Its description of its tools differs from the pin.
    #[error(
        "the MCP server `{server}` describes its tools otherwise than when they were pinned ({pinned} then, {found} now)"
    )]
    Changed {
        /// The server.
        server: String,
        /// The pinned digest.
        pinned: String,
        /// The present digest.
        found: String,
    },
    /// No person approved its description of its tools.
    #[error("the tools of the MCP server `{server}` are not approved yet (their digest is {found})")]
    Unapproved {
        /// The server.
        server: String,
        /// The present digest.
        found: String,
    },
    /// It was ended at a limit that a new start would only reset.
    #[error(
        "the MCP server `{server}` was ended, since the disk lost more than {} bytes while it ran; raise {} of \
         [mcp.{server}], or have it write less",
        .hit.max,
        .hit.name
    )]
    Limit {
        /// The server.
        server: String,
        /// The limit.
        hit: LimitHit,
    },
    /// The store failed.
    #[error("{0}")]
    Store(String),
}

impl McpError {
    /// True when the same call may succeed later without anyone changing a file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Down { .. } => true,
            Self::Config { .. }
            | Self::TooMany { .. }
            | Self::Changed { .. }
            | Self::Unapproved { .. }
            | Self::Limit { .. }
            | Self::Store(_) => false,
        }
    }
}

impl From<McpError> for ToolError {
    fn from(error: McpError) -> Self {
        match &error {
            McpError::Changed { server, found, .. } | McpError::Unapproved { server, found } => Self::Denied(Denial {
                reason: error.to_string(),
                fix: format!("look at what it says now, then run: longhaul mcp accept {server} {found}"),
            }),
            McpError::Down { .. } => Self::Unavailable(Outage { reason: error.to_string(), retry_after_ms: None }),
            McpError::Limit { hit, .. } => Self::Limit(hit.clone()),
            McpError::Config { .. } | McpError::TooMany { .. } | McpError::Store(_) => Self::Failed(error.to_string()),
        }
    }
}
