//! The parts of a configuration: every table that names a plugin, and values across all of them.
//!
//! Refuses to compute a part's limits: `limits.rs` does.

use crate::memory;
use crate::part::{DirectoryConfig, PluginConfig};
use crate::tables::Config;
use longhaul_core::grant::Access;
use std::collections::{BTreeMap, BTreeSet};

/// Tools of the host that work in a tree without a grant of it.
const TREE_TOOLS: [&str; 3] = ["builtin:browser", "builtin:git", "builtin:shell"];

impl Config {
    /// Every table that names a plugin, with its name.
    pub fn parts(&self) -> impl Iterator<Item = (String, &PluginConfig)> {
        let agents = self.agents.iter().map(|(name, part)| (format!("agents.{name}"), part));
        let tools = self.tools.iter().map(|(name, part)| (format!("tools.{name}"), part));
        [("planner".to_owned(), &self.planner), ("evaluator".to_owned(), &self.evaluator)]
            .into_iter()
            .chain(agents)
            .chain(tools)
            .chain(self.memory.plugin.iter().map(|part| (memory::PLUGIN.to_owned(), part)))
    }

    /// The table of that name.
    pub fn part(&self, table: &str) -> Option<&PluginConfig> {
        self.parts().find(|(name, _)| name == table).map(|(_, part)| part)
    }

    /// Takes the plugins' settings of another configuration.
    pub fn keep_settings_of(&mut self, other: &Self) {
        let agents = self.agents.iter_mut().map(|(name, part)| (format!("agents.{name}"), part));
        let tools = self.tools.iter_mut().map(|(name, part)| (format!("tools.{name}"), part));
        let both = [("planner".to_owned(), &mut self.planner), ("evaluator".to_owned(), &mut self.evaluator)];
        let memory = self.memory.plugin.iter_mut().map(|part| (memory::PLUGIN.to_owned(), part));
        for (table, part) in both.into_iter().chain(agents).chain(tools).chain(memory) {
            if let Some(kept) = other.part(&table) {
                part.settings.clone_from(&kept.settings);
            }
        }
    }

    /// The configuration without powers beyond a run and its tree: programs, hosts, directories and secrets.
    #[must_use]
    pub fn without_powers(mut self) -> Self {
        self.notify = None;
        self.mcp.clear();
        let memory = self.memory.plugin.iter_mut();
        for part in [&mut self.planner, &mut self.evaluator]
            .into_iter()
            .chain(self.agents.values_mut())
            .chain(self.tools.values_mut())
            .chain(memory)
        {
            part.directories.retain(DirectoryConfig::is_tree);
            part.hosts.clear();
            part.secrets.clear();
            part.allow.clear();
        }
        self
    }

    /// True when a tool may change the tree of a run or of an ask.
    pub fn changes_trees(&self) -> bool {
        self.tools.values().any(writes_tree)
    }

    /// True when this tool may change the tree of a run. An MCP server may, and so may a tool that is not there any
    /// more.
    pub fn may_change_tree(&self, tool: &str) -> bool {
        self.tools.get(tool).is_none_or(writes_tree)
    }

    /// Steps of a part between two checkpoints.
    pub fn checkpoint_every(&self, table: &str) -> u32 {
        self.part(table).and_then(|part| part.checkpoint_every).unwrap_or(self.checkpoints.every)
    }

    /// True when any part may ask that model.
    pub fn uses_model(&self, name: &String) -> bool {
        let of_the_host = [&self.ask.model, &self.memory.model];
        of_the_host.contains(&&Some(name.clone())) || self.parts().any(|(_, part)| part.models.contains(name))
    }

    /// The models that any part may ask, by their names.
    pub fn used_models(&self) -> Vec<String> {
        self.models.keys().filter(|model| self.uses_model(model)).cloned().collect()
    }

    /// The model that chooses between agents; none when no part has one.
    pub fn chooser(&self) -> Option<String> {
        let of_parts =
            || std::iter::once(&self.planner).chain(self.agents.values()).find_map(|part| part.models.first());
        self.ask.model.as_ref().or_else(of_parts).cloned()
    }

    /// The agent of each assigned category.
    pub fn categories(&self) -> BTreeMap<String, String> {
        let of = |(name, part): (&String, &PluginConfig)| {
            part.categories.iter().map(|category| (category.clone(), name.clone())).collect::<Vec<_>>()
        };
        self.agents.iter().flat_map(of).collect()
    }

    /// The descriptions of agents, by their names.
    pub fn described(&self) -> BTreeMap<String, String> {
        let of = |(name, part): (&String, &PluginConfig)| Some((name.clone(), part.description.clone()?));
        self.agents.iter().filter_map(of).collect()
    }

    /// Agents whose own confidence is ignored.
    pub fn confidence_ignored(&self) -> BTreeSet<String> {
        let ignored = self.agents.iter().filter(|(_, part)| part.confidence_from_llm == Some(false));
        ignored.map(|(name, _)| name.clone()).collect()
    }
}

/// True for a tool that is granted the tree for writing, or that works there by itself.
fn writes_tree(part: &PluginConfig) -> bool {
    let is_granted = |directory: &DirectoryConfig| directory.is_tree() && directory.access == Access::Write;
    TREE_TOOLS.contains(&part.plugin.as_str()) || part.directories.iter().any(is_granted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_changed_by_tools_that_may_write_it_and_by_those_of_the_host() {
        let changes = |tool: &str| {
            let text = format!("[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n[tools.t]\n{tool}\n");
            toml::from_str::<Config>(&text).expect(tool).changes_trees()
        };
        assert!(changes("plugin = \"files\"\ndirectories = [{ guest = \"/work\", access = \"write\" }]"));
        assert!(!changes("plugin = \"files\"\ndirectories = [{ guest = \"/work\", access = \"read\" }]"));
        assert!(!changes("plugin = \"files\"\ndirectories = [{ guest = \"/w\", host = \"d\", access = \"write\" }]"));
        assert!(changes("plugin = \"builtin:git\""));
        assert!(!changes("plugin = \"builtin:search\""));
    }
}
