//! The MCP servers of a project as tools: their gates, and how each is opened.

use crate::environment::ToolEnvironment;
use crate::gate::ToolGate;
use longhaul_config::Config;
use longhaul_config::tools::mcp::{is_wanted, sent_to, tool_name};
use longhaul_core::fault;
use longhaul_core::tool::HostTool;
use longhaul_home::own_program;
use longhaul_mcp::{McpEnvironment, McpServer};
use longhaul_security::secrets::{SecretConsumer, SecretStore};
use std::path::Path;
use std::sync::Arc;

/// The approval gate of each server.
pub fn gates(config: &Config) -> impl Iterator<Item = (String, ToolGate)> {
    config.mcp.iter().map(|(name, server)| {
        let tool = tool_name(name);
        let gate = ToolGate::of_server(config.scope(), name, &tool, &server.approval);
        (tool, gate)
    })
}

/// The servers that some part may call, for the work in one tree: parallel lanes have their own. This starts none of
/// them.
pub fn open(
    environment: &ToolEnvironment,
    config: &Config,
    directory: &Path,
    tree: &Path,
) -> fault::Result<Vec<(String, Arc<dyn HostTool>)>> {
    let servers = config.mcp.iter().filter(|(name, _)| is_wanted(config, name));
    let opened = servers.map(|(name, server)| {
        let around = surroundings(environment, config, name, directory, tree)?;
        Ok((tool_name(name), Arc::new(McpServer::new(name, server.clone(), around)) as Arc<dyn HostTool>))
    });
    opened.collect()
}

/// The environment that a server of a project gets from the host.
///
/// Each asks for secrets under its own name: a secret is bound to one of them.
pub fn surroundings(
    environment: &ToolEnvironment,
    config: &Config,
    server: &str,
    directory: &Path,
    tree: &Path,
) -> fault::Result<McpEnvironment> {
    let keeper = vec![own_program()?.into_os_string(), "keep-child".into()];
    let (owned, project) = (Arc::clone(&environment.owned), config.scope().to_owned());
    let (table, hosts) = (format!("mcp.{server}"), config.mcp.get(server).map(sent_to).unwrap_or_default());
    let secret = move |name: &str| {
        let wanting = SecretConsumer { project: &project, table: &table, hosts: &hosts };
        SecretStore::of(owned.home()).get(name, &wanting).map_err(|error| format!("{error:#}"))
    };
    Ok(McpEnvironment {
        project: config.scope().to_owned(),
        tree: tree.to_owned(),
        base: directory.to_owned(),
        keeper,
        host: environment.check_host(config.run.sandbox_min, directory)?,
        inside: vec!["mcp-child".into()],
        store: Arc::clone(&environment.store),
        secret: Arc::new(secret),
        random: Arc::new(environment.random),
    })
}
