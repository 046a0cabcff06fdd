//! MCP servers as tools, of which each has a name that no `[tools.NAME]` can take.

use crate::tables::Config;
use longhaul_core::grant::HostPattern;
use longhaul_mcp::McpConfig;

/// The name that agents know a server by.
pub fn tool_name(server: &str) -> String {
    format!("mcp-{server}")
}

/// Whether some part may call a server.
pub fn is_wanted(config: &Config, server: &str) -> bool {
    let tool = tool_name(server);
    config.parts().any(|(_, part)| part.tools.contains(&tool))
}

/// Where a server's secrets go: to its address, or through its program to the hosts that it reaches.
pub fn sent_to(server: &McpConfig) -> Vec<HostPattern> {
    if !server.command.is_empty() {
        return server.hosts.clone();
    }
    let url = server.url.as_deref().and_then(|url| {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        HostPattern::try_from(format!("{scheme}://{authority}")).ok()
    });
    url.into_iter().collect()
}
