//! The tools of a run: components, those of the host, and servers, with the gate of each.

use crate::built_in::{self, ToolSite};
use crate::component::ComponentTool;
use crate::discarded_changes::DiscardedChanges;
use crate::environment::ToolEnvironment;
use crate::gate::ToolGate;
use crate::mcp;
use crate::tree_carrier::TreeCarrier;
use longhaul_config::Config;
use longhaul_config::tools::built_in::{is_built_in, makes_commits};
use longhaul_config::tools::is_web_tool;
use longhaul_config::tools::mcp::tool_name;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_core::grant::Access;
use longhaul_core::journal::EffectClass;
use longhaul_core::tool::HostTool;
use longhaul_egress::{SecretPlaceholders, SecretRedactor};
use longhaul_records::pins::PinnedPlugins;
use longhaul_security::secrets::SecretStore;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Destinations that are remembered. Beyond that number a person is asked again.
const REACHED_MAX: usize = 10_000;

/// The tools of a run.
pub struct ToolSet {
    environment: ToolEnvironment,
    project: String,
    /// Tools that are components, by name.
    components: BTreeMap<String, ComponentTool>,
    /// Tools that the host itself implements, by name.
    own_tools: BTreeMap<String, Arc<dyn HostTool>>,
    /// The approval gate of each tool, by its name.
    gates: BTreeMap<String, ToolGate>,
    /// Tools whose answers may come from the network.
    web_tools: BTreeSet<String>,
    /// Tools that are MCP servers, with the names of the secrets that each gets.
    servers: BTreeMap<String, Vec<String>>,
    /// Destinations of calls in this process.
    reached: Mutex<BTreeSet<String>>,
    /// Tools whose calls may make commits.
    committing: BTreeSet<String>,
    /// Watches the tree; none where nothing is committed.
    watch: Option<TreeWatch>,
}

/// The watch over the tree that tools work in.
pub struct TreeWatch {
    /// Tracks what calls write into the tree and no commit would hold.
    pub unkept: DiscardedChanges,
    /// Stores the tree; none where neither another data directory nor a fork needs it.
    pub carrier: Option<TreeCarrier>,
}

impl ToolSet {
    /// No tools, for work of that project.
    pub fn empty(environment: ToolEnvironment, project: &str) -> Self {
        Self {
            environment,
            project: project.to_owned(),
            components: BTreeMap::new(),
            own_tools: BTreeMap::new(),
            gates: BTreeMap::new(),
            web_tools: BTreeSet::new(),
            servers: BTreeMap::new(),
            reached: Mutex::default(),
            committing: BTreeSet::new(),
            watch: None,
        }
    }

    /// Opens the tools of a configuration beside its components, which are loaded.
    pub fn open(
        config: &Config,
        pins: &PinnedPlugins,
        components: BTreeMap<String, ComponentTool>,
        site: &ToolSite<'_>,
    ) -> fault::Result<Self> {
        let own_tools = config.tools.iter().filter(|(_, part)| is_built_in(part));
        let own_tools = own_tools.map(|(name, part)| Ok((name.clone(), built_in::open(name, part, site)?)));
        let servers = mcp::open(site.environment, config, site.project, site.tree)?.into_iter().map(Ok);
        let own_tools = own_tools.chain(servers).collect::<fault::Result<_>>()?;
        let gates = config
            .tools
            .iter()
            .map(|(name, part)| (name.clone(), ToolGate::of(name, part, pins, is_web_tool(config, name))));
        let gates = gates.chain(mcp::gates(config)).collect();
        let names = config.tools.keys().cloned().chain(config.mcp.keys().map(|name| tool_name(name)));
        let web_tools = names.filter(|tool| is_web_tool(config, tool)).collect();
        let servers = config.mcp.iter();
        let servers =
            servers.map(|(name, server)| (tool_name(name), server.secrets().map(str::to_owned).collect())).collect();
        let committing = config.tools.iter().filter(|(_, part)| makes_commits(part));
        let committing = committing.map(|(name, _)| name.clone()).collect();
        let empty = Self::empty(site.environment.clone(), config.scope());
        Ok(Self { components, own_tools, gates, web_tools, servers, committing, ..empty })
    }

    /// With what watches the tree.
    pub fn watched(self, watch: Option<TreeWatch>) -> Self {
        Self { watch, ..self }
    }

    /// The tracker of what calls of a tool write into the tree, and the directories of the tool. Programs of the host's
    /// own tools are not tracked: ignored files that they write belong to a tool chain.
    pub fn watch(&self, tool: &str) -> Option<(&DiscardedChanges, Vec<(String, PathBuf)>)> {
        let unkept = &self.watch.as_ref()?.unkept;
        let places: Vec<_> = match self.component(tool) {
            Some(component) => {
                let writable = component.grants.directories.iter().filter(|grant| grant.access == Access::Write);
                writable.map(|grant| (grant.guest.clone(), grant.host.clone())).collect()
            }
            None if self.servers.contains_key(tool) => {
                let tree = unkept.tree().to_owned();
                vec![(tree.to_string_lossy().into_owned(), tree)]
            }
            None => Vec::new(),
        };
        (!places.is_empty()).then_some((unkept, places))
    }

    /// The carrier of the tree, if a call of this class may have changed the tree, or made a commit.
    pub fn carrier(&self, tool: &str, class: EffectClass) -> Option<&TreeCarrier> {
        let carrier = self.watch.as_ref()?.carrier.as_ref()?;
        let may_write = match self.component(tool) {
            // Whatever it claims, it writes where it may.
            Some(component) => component.grants.directories.iter().any(|grant| grant.access == Access::Write),
            None => class != EffectClass::ReadOnly || self.servers.contains_key(tool),
        };
        may_write.then_some(carrier)
    }

    /// True when calls of a tool may make commits.
    pub fn makes_commits(&self, tool: &str) -> bool {
        self.committing.contains(tool)
    }

    /// The resources with which they work.
    pub fn environment(&self) -> &ToolEnvironment {
        &self.environment
    }

    /// True when the answers of a tool may come from the network.
    pub fn is_web(&self, tool: &str) -> bool {
        self.web_tools.contains(tool)
    }

    /// True when a call reached this destination before. The destinations of an earlier process are unknown, so a
    /// person may be asked again.
    pub fn has_reached(&self, destination: &str) -> bool {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).contains(destination)
    }

    /// Notes the destinations of a call.
    pub fn reaches(&self, destinations: Vec<String>) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.len() < REACHED_MAX {
            reached.extend(destinations);
        }
    }

    /// The tools that are components, by the names that agents use.
    pub fn components(&self) -> impl Iterator<Item = (&str, &ComponentTool)> {
        self.components.iter().map(|(name, component)| (name.as_str(), component))
    }

    /// The component of that name.
    pub fn component(&self, name: &str) -> Option<&ComponentTool> {
        self.components.get(name)
    }

    /// The tools that the host itself implements.
    pub fn own_tools(&self) -> impl Iterator<Item = (&str, &dyn HostTool)> {
        self.own_tools.iter().map(|(name, tool)| (name.as_str(), &**tool))
    }

    /// The host tool of that name.
    pub fn own_tool(&self, name: &str) -> Option<&dyn HostTool> {
        self.own_tools.get(name).map(|tool| &**tool)
    }

    /// The approval gate of a tool.
    pub fn gate(&self, name: &str) -> Option<&ToolGate> {
        self.gates.get(name)
    }

    /// The secrets of one call of a component, with fresh placeholders.
    pub fn placeholders(&self, component: &ComponentTool) -> fault::Result<SecretPlaceholders> {
        let secret_store = SecretStore::of(&self.environment.home);
        let keys = component
            .secrets
            .iter()
            .map(|granted| secret_store.key(granted, &self.project, &component.table))
            .collect::<fault::Result<_>>()?;
        Ok(SecretPlaceholders::new(&component.table, keys, self.environment.random))
    }

    /// The redactor for the answers of tools.
    pub fn redactor(&self) -> SecretRedactor {
        self.environment.secrets.redactor()
    }

    /// Records in the audit log which secrets a run gives to a tool.
    pub async fn note_secrets(&self, tool: &str, run: &RunId) -> fault::Result<()> {
        let of_plugin = self.component(tool).into_iter().flat_map(|component| &component.secrets);
        let of_plugin = of_plugin.map(|secret| (format!("tools.{tool}"), secret.name.as_str()));
        let of_server = self.servers.get(tool).into_iter().flatten();
        let of_server = of_server.map(|secret| (tool.replacen('-', ".", 1), secret.as_str()));
        for (table, secret) in of_plugin.chain(of_server) {
            self.environment.audit.secret_used(run, &table, secret).await?;
        }
        Ok(())
    }
}
