//! Tools that the host answers itself. `builtin:NAME` is no plugin's name: nobody can put a component in its place.

use super::ask_human::AskHuman;
use super::project::ProjectTool;
use crate::config::PluginConfig;
use crate::wiring::World;
use anyhow::bail;
use longhaul_core::tool::HostTool;
use std::sync::Arc;

/// What a built-in tool's name starts with.
const PREFIX: &str = "builtin:";

/// What an agent may know of its project, and propose for it.
const PROJECT: &str = "builtin:project";

/// Asks a person in the agent's words.
pub const ASK_HUMAN: &str = "builtin:ask-human";

/// Runs commands on the machine.
const SHELL: &str = "builtin:shell";

/// Whether a table names a built-in tool.
pub fn is_built_in(part: &PluginConfig) -> bool {
    part.plugin.starts_with(PREFIX)
}

/// The tool of a table that [`check`] let through.
pub fn open(world: &World, part: &PluginConfig) -> Arc<dyn HostTool> {
    if part.plugin == ASK_HUMAN {
        return Arc::new(AskHuman);
    }
    Arc::new(ProjectTool { store: Arc::clone(&world.store), clock: Arc::clone(&world.clock) })
}

/// Whether no configuration lets its calls pass without a question.
pub fn always_asks(part: &PluginConfig) -> bool {
    part.plugin == SHELL
}

/// Refuses a built-in tool that there is not, or where no tool stands, or with grants: it needs none.
pub fn check(table: &str, part: &PluginConfig) -> anyhow::Result<()> {
    let name = &part.plugin;
    if !is_built_in(part) {
        return Ok(());
    }
    if ![PROJECT, ASK_HUMAN].contains(&name.as_str()) {
        bail!("[{table}] there is no tool `{name}`; there are `{PROJECT}` and `{ASK_HUMAN}`");
    }
    if !table.starts_with("tools.") {
        let tool = name.trim_start_matches(PREFIX);
        bail!("[{table}] `{name}` is a tool; write it under [tools.{tool}], and tools = [\"{tool}\"] here");
    }
    let PluginConfig { models, tools, agents, directories, hosts, settings, limits, .. } = part;
    let given = [
        ("models", models.is_empty()),
        ("tools", tools.is_empty()),
        ("agents", agents.is_empty()),
        ("directories", directories.is_empty()),
        ("hosts", hosts.is_empty()),
        ("settings", settings.is_empty()),
        ("limits", limits.is_empty()),
    ];
    if let Some((field, _)) = given.iter().find(|(_, is_empty)| !is_empty) {
        bail!("[{table}] `{name}` takes no {field}; remove the line");
    }
    Ok(())
}
