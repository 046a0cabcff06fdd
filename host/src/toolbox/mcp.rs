//! The MCP servers of a project as tools, of which each has a name that no `[tools.NAME]` can take.

use super::gate::ToolGate;
use super::plugin_host::PluginHost;
use crate::config::Config;
use crate::secrets::{Vault, Wanting};
use crate::wiring::own_program;
use longhaul_core::fault;
use longhaul_core::grant::HostPattern;
use longhaul_core::tool::HostTool;
use longhaul_mcp::{McpConfig, McpServer, Surroundings};
use std::path::Path;
use std::sync::Arc;

/// The name that agents know a server by.
pub fn tool_name(server: &str) -> String {
    format!("mcp-{server}")
}

/// Whether some part may call a server.
pub fn is_wanted(config: &Config, server: &str) -> bool {
    let tool = tool_name(server);
    config.parts().any(|(_, part)| part.tools.contains(&tool))
}

/// What the approval gate knows of each server.
pub fn gates(config: &Config) -> impl Iterator<Item = (String, ToolGate)> {
    config.mcp.iter().map(|(name, server)| {
        let tool = tool_name(name);
        let gate = ToolGate::of_server(config.scope(), name, &tool, &server.approval);
        (tool, gate)
    })
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

/// The servers that some part may call, for the work in one tree: of lanes side by side each has its own. None is started
/// by this.
pub fn open(
    host: &Arc<PluginHost>,
    config: &Config,
    directory: &Path,
    tree: &Path,
) -> fault::Result<Vec<(String, Arc<dyn HostTool>)>> {
    let servers = config.mcp.iter().filter(|(name, _)| is_wanted(config, name));
    let opened = servers.map(|(name, server)| {
        let around = surroundings(host, config, name, directory, tree)?;
        Ok((tool_name(name), Arc::new(McpServer::new(name, server.clone(), around)) as Arc<dyn HostTool>))
    });
    opened.collect()
}

/// What a server of a project needs of the host.
///
/// Each asks for secrets under its own name: a secret is bound to one of them.
pub fn surroundings(
    host: &Arc<PluginHost>,
    config: &Config,
    server: &str,
    directory: &Path,
    tree: &Path,
) -> fault::Result<Surroundings> {
    let keeper = vec![own_program()?.into_os_string(), "keep-child".into()];
    let (vault, project) = (Vault::of(&host.home), config.scope().to_owned());
    let (table, hosts) = (format!("mcp.{server}"), config.mcp.get(server).map(sent_to).unwrap_or_default());
    let secret = move |name: &str| {
        let wanting = Wanting { project: &project, table: &table, hosts: &hosts };
        vault.get(name, &wanting).map_err(|error| format!("{error:#}"))
    };
    let randomness = Arc::clone(host);
    Ok(Surroundings {
        project: config.scope().to_owned(),
        tree: tree.to_owned(),
        base: directory.to_owned(),
        keeper,
        host: host.check_host(config.run.sandbox_min, directory)?,
        inside: vec!["mcp-child".into()],
        store: Arc::clone(&host.store),
        secret: Arc::new(secret),
        random: Arc::new(move || randomness.fresh_seed()),
    })
}
