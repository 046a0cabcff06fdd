//! The MCP servers of a project as tools, of which each has a name that no `[tools.NAME]` can take.

use super::gate::ToolGate;
use crate::config::Config;
use crate::secrets::Vault;
use crate::wiring::{World, own_program};
use longhaul_core::tool::HostTool;
use longhaul_mcp::{McpServer, Surroundings};
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
        let gate = ToolGate::of_server(&config.project.name, name, &tool, &server.approval);
        (tool, gate)
    })
}

/// The servers that some part may call, for the work in one tree: of lanes side by side each has its own. None is started
/// by this.
pub fn open(
    world: &Arc<World>,
    config: &Config,
    directory: &Path,
    tree: &Path,
) -> anyhow::Result<Vec<(String, Arc<dyn HostTool>)>> {
    let around = surroundings(world, config, directory, tree)?;
    let servers = config.mcp.iter().filter(|(name, _)| is_wanted(config, name));
    let server = |name: &String, config| Arc::new(McpServer::new(name, config, around.clone())) as Arc<dyn HostTool>;
    Ok(servers.map(|(name, config)| (tool_name(name), server(name, config.clone()))).collect())
}

/// What a server of a project needs of the host.
pub fn surroundings(
    world: &Arc<World>,
    config: &Config,
    directory: &Path,
    tree: &Path,
) -> anyhow::Result<Surroundings> {
    let keeper = vec![own_program()?.into_os_string(), "keep-child".into()];
    let vault = Vault::of(&world.home);
    let randomness = Arc::clone(world);
    Ok(Surroundings {
        project: config.project.name.clone(),
        tree: tree.to_owned(),
        base: directory.to_owned(),
        keeper,
        host: world.check_host(config.run.sandbox_min)?,
        inside: vec!["mcp-child".into()],
        store: Arc::clone(&world.store),
        secret: Arc::new(move |name| vault.get(name).map_err(|error| format!("{error:#}"))),
        random: Arc::new(move || randomness.fresh_seed()),
    })
}
