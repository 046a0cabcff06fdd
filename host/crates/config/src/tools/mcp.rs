//! MCP servers as tools, each under a name that no `[tools.NAME]` can take.

use crate::tables::Config;
use longhaul_core::grant::HostPattern;
use longhaul_mcp::McpConfig;

/// The name by which agents call a server.
pub fn tool_name(server: &str) -> String {
    format!("mcp-{server}")
}

/// True when some part may call a server.
pub fn is_wanted(config: &Config, server: &str) -> bool {
    let tool = tool_name(server);
    config.parts().any(|(_, part)| part.tools.contains(&tool))
}

/// The hosts that get a server's secrets: its address, or the hosts that its program reaches.
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
