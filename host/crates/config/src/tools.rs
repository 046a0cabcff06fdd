//! The rules of the tables of tools: built-in tools, MCP servers, and network access.
//!
//! | file | holds |
//! |---|---|
//! | `tools/built_in.rs` | built-in tools |
//! | `tools/approval.rs` | the approval policies of tools |
//! | `tools/mcp.rs` | MCP servers as tools |
//! | `tools/native_python.rs` | the tool `python` on this machine's interpreter |
//!
//! Refuses to open a tool.

pub mod approval;
pub mod built_in;
pub mod mcp;
pub mod native_python;

use crate::tables::Config;
use longhaul_sandbox::Level;
use mcp::tool_name;
use native_python::is_native;

/// True when a tool may reach a network: a plugin with hosts, an MCP server, and any built-in tool that is not known to
/// be local.
pub fn is_web_tool(config: &Config, tool: &str) -> bool {
    let Some(part) = config.tools.get(tool) else {
        // An MCP server can reach anything. An unknown tool was refused before.
        return config.mcp.keys().any(|name| tool_name(name) == tool);
    };
    match part.plugin.strip_prefix("builtin:") {
        // Its programs have no network, unless the operator runs them without a sandbox.
        Some("shell") => match part.settings.get("sandbox_min") {
            Some(least) => least == "none",
            None => config.run.sandbox_min == Level::None,
        },
        Some(own) => !["project", "search", "git", "ask-human", "todo"].contains(&own),
        // Its code has no network but its hosts, unless the operator runs it without a sandbox.
        None if is_native(part) => !part.hosts.is_empty() || config.run.sandbox_min == Level::None,
        None => !part.hosts.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_reach_the_network_answers_words_of_the_web() {
        let config: Config = toml::from_str(
            r#"
            [project]
            name = "p"
            [agents.code]
            plugin = "react"
            [tools.files]
            plugin = "files"
            [tools.fetch]
            plugin = "http-fetch"
            hosts = ["https://example.com"]
            [tools.python]
            plugin = "python"
            runtime = "native"
            [tools.asking]
            plugin = "python"
            runtime = "native"
            hosts = ["https://example.com"]
            [tools.shell]
            plugin = "builtin:shell"
            [tools.open]
            plugin = "builtin:shell"
            settings = { sandbox_min = "none" }
            [tools.browser]
            plugin = "builtin:browser"
            [tools.git]
            plugin = "builtin:git"
            [mcp.tickets]
            command = ["tickets"]
            "#,
        )
        .expect("a configuration");
        let found = ["files", "fetch", "shell", "open", "browser", "git", "mcp-tickets", "conversation", "none"]
            .map(|tool| is_web_tool(&config, tool));
        assert_eq!(found, [false, true, false, true, true, false, true, false, false]);
        assert_eq!(["python", "asking"].map(|tool| is_web_tool(&config, tool)), [false, true]);
    }
}
