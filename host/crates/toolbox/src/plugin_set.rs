//! The plugins of a run: pinned by digest, loaded, with their grants and limits.

use longhaul_records::pins::{PYTHON_CHECKS, PinnedPlugin, PinnedPlugins};

use crate::built_in::{self, ToolSite};
use crate::discarded_changes::DiscardedChanges;
use crate::gate::ToolGate;
use crate::mcp;
use crate::plugin_host::PluginHost;
use longhaul_capabilities::null::NullServices;
use longhaul_capabilities::{InvocationScope, InvocationSetup, Services};
use longhaul_config::quarantine::{self, Shape};
use longhaul_config::secrets::SecretConfig;
use longhaul_config::tools::built_in::is_built_in;
use longhaul_config::tools::is_web_tool;
use longhaul_config::tools::mcp::tool_name;
use longhaul_config::{Config, PluginConfig, grants, memory};
use longhaul_core::context::ContextRules;
use longhaul_core::fault::{self, Context};
use longhaul_core::grant::{Access, DirectoryGrant, Grants};
use longhaul_core::memory::Embedded;
use longhaul_core::store::Batch;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::tool::HostTool;
use longhaul_core::{InvocationId, Limits, RunId};
use longhaul_egress::{SecretPlaceholders, SecretRedactor};
use longhaul_engine::{Plugin, Role};
use longhaul_home::crash::CrashPoints;
use longhaul_plugins::manifest::PluginManifest;
use longhaul_plugins::{self as plugins, verdict};
use longhaul_security::secrets::{self, SecretStore};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Destinations that are remembered. Beyond that number a person is asked again.
const REACHED_MAX: usize = 10_000;

/// Reads every plugin that the configuration names; `batch` stores their bytes.
pub fn pin(host: &PluginHost, config: &Config, project: &Path, batch: &mut Batch) -> fault::Result<PinnedPlugins> {
    let mut pins = PinnedPlugins::new();
    let python = PluginConfig { plugin: "python".into(), ..PluginConfig::default() };
    let parts = config.parts().chain([(PYTHON_CHECKS.to_owned(), &python)]);
    for (table, part) in parts {
        if is_built_in(part) {
            // The host's own code has no bytes that could change.
            continue;
        }
        if table == PYTHON_CHECKS && plugins::find(&part.plugin, Some(project), &host.home).is_err() {
            // Only a feature with such a check needs it, and reports its absence then.
            continue;
        }
        let found = plugins::read(&part.plugin, Some(project), &host.home, &host.engine)
            .with_context(|| format!("[{table}]"))?;
        let digest = batch.blob(found.bytes);
        let PluginManifest { asks, world, .. } = found.manifest.unwrap_or_default();
        pins.insert(table, PinnedPlugin { plugin: part.plugin.clone(), digest, asks, world });
    }
    Ok(pins)
}

/// One part: a loaded plugin with its grants and limits.
pub struct PreparedPlugin {
    /// The table in `longhaul.toml`.
    pub table: String,
    /// The loaded plugin.
    pub plugin: Arc<Plugin>,
    /// The grants of the part.
    pub grants: Grants,
    /// The limits of its calls.
    pub limits: Limits,
    /// The rules that trim its conversations.
    pub context: ContextRules,
    /// The operator's settings for it, an object.
    pub settings: serde_json::Value,
    /// Secrets that it may send.
    pub secrets: Vec<SecretConfig>,
    /// Whether the operator vouches for its effects.
    pub confirm_effects: bool,
    /// The schema of the data that a quarantined agent returns.
    pub quarantine: Option<Shape>,
}

impl PreparedPlugin {
    /// The settings without secrets, which a tool describes itself by.
    #[must_use]
    pub fn concealed_settings(&self) -> serde_json::Value {
        secrets::concealed(&self.settings, &self.secrets)
    }
}

/// The parts of a run.
pub struct PluginSet {
    host: Arc<PluginHost>,
    project: String,
    parts: BTreeMap<String, PreparedPlugin>,
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
    /// Tracks what calls write into the tree; none where nothing is committed.
    unkept: Option<DiscardedChanges>,
}

impl PluginSet {
    /// Loads every pinned plugin.
    pub async fn load(
        host: Arc<PluginHost>,
        config: &Config,
        pins: &PinnedPlugins,
        directory: &Path,
        tree: &Path,
        supervisor: &Arc<dyn Supervisor>,
    ) -> fault::Result<Self> {
        host.secrets.learn(config, directory);
        let mut parts = BTreeMap::new();
        for (table, pin) in pins.iter().filter(|(table, _)| *table != memory::PLUGIN) {
            parts.insert(table.clone(), part(&host, config, table, pin, directory, tree).await?);
        }
        let own_tools = config.tools.iter().filter(|(_, part)| is_built_in(part));
        let (name, sandbox_min) = (&config.project.name, config.run.sandbox_min);
        let site = ToolSite { host: &host, project: directory, name, sandbox_min, tree, supervisor };
        let own_tools = own_tools.map(|(name, part)| Ok((name.clone(), built_in::open(name, part, &site)?)));
        let servers = mcp::open(&host, config, directory, tree)?.into_iter().map(Ok);
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
        let project = config.scope().to_owned();
        Ok(Self { host, project, parts, own_tools, gates, web_tools, servers, reached: Mutex::default(), unkept: None })
    }

    /// With a tracker of what calls write into the tree.
    pub fn watched(self, unkept: Option<DiscardedChanges>) -> Self {
        Self { unkept, ..self }
    }

    /// The tracker of what calls of a tool write into the tree, and the directories of the tool. Programs of the host's
    /// own tools are not tracked: ignored files that they write belong to a tool chain.
    pub fn watch(&self, tool: &str) -> Option<(&DiscardedChanges, Vec<(String, PathBuf)>)> {
        let unkept = self.unkept.as_ref()?;
        let part = self.part(&format!("tools.{tool}"));
        let places: Vec<_> = match part {
            Some(part) => {
                let writable = part.grants.directories.iter().filter(|grant| grant.access == Access::Write);
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

    /// Loads the plugin of the memory backend alone.
    pub async fn of_memory(
        host: Arc<PluginHost>,
        config: &Config,
        pins: &PinnedPlugins,
        directory: &Path,
    ) -> fault::Result<Self> {
        let pin = pins.get(memory::PLUGIN).or_invalid(|| {
            format!("this run began without [{}]; a run keeps the memory that it began with", memory::PLUGIN)
        })?;
        let loaded = part(&host, config, memory::PLUGIN, pin, directory, directory).await?;
        Ok(Self {
            host,
            project: config.scope().to_owned(),
            parts: BTreeMap::from([(memory::PLUGIN.to_owned(), loaded)]),
            own_tools: BTreeMap::new(),
            gates: BTreeMap::new(),
            web_tools: BTreeSet::new(),
            servers: BTreeMap::new(),
            reached: Mutex::default(),
            unkept: None,
        })
    }

    /// Whether the answers of a tool may come from the network.
    pub fn is_web(&self, tool: &str) -> bool {
        self.web_tools.contains(tool)
    }

    /// Whether a call reached this destination before. The destinations of an earlier process are unknown, so a person
    /// may be asked again.
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

    /// The points where crash tests end the process.
    pub fn crash(&self) -> &CrashPoints {
        &self.host.crash
    }

    /// The part of a table.
    pub fn part(&self, table: &str) -> Option<&PreparedPlugin> {
        self.parts.get(table)
    }

    /// The tools, by the names that agents use.
    pub fn tools(&self) -> impl Iterator<Item = (&str, &PreparedPlugin)> {
        self.parts.iter().filter_map(|(table, part)| Some((table.strip_prefix("tools.")?, part)))
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

    /// The memory that the plugin of a part reads and writes.
    pub fn scope(&self, part: &PreparedPlugin) -> InvocationScope {
        InvocationScope { project: self.project.clone(), plugin: part.table.clone() }
    }

    /// The secrets of one call of a tool, with fresh placeholders.
    pub fn placeholders(&self, part: &PreparedPlugin) -> fault::Result<SecretPlaceholders> {
        let secret_store = SecretStore::of(&self.host.home);
        let keys = part
            .secrets
            .iter()
            .map(|granted| secret_store.key(granted, &self.project, &part.table))
            .collect::<fault::Result<_>>()?;
        Ok(SecretPlaceholders::new(&part.table, keys, || self.host.fresh_seed()))
    }

    /// The redactor for the answers of tools and checks.
    pub fn redactor(&self) -> SecretRedactor {
        self.host.secrets.redactor()
    }

    /// Records in the audit log which secrets a run gives to a tool.
    pub async fn note_secrets(&self, tool: &str, run: &RunId) -> fault::Result<()> {
        let of_plugin = self.part(&format!("tools.{tool}")).into_iter().flat_map(|part| &part.secrets);
        let of_plugin = of_plugin.map(|secret| (format!("tools.{tool}"), secret.name.as_str()));
        let of_server = self.servers.get(tool).into_iter().flatten();
        let of_server = of_server.map(|secret| (tool.replacen('-', ".", 1), secret.as_str()));
        for (table, secret) in of_plugin.chain(of_server) {
            self.host.audit.secret_used(run, &table, secret).await?;
        }
        Ok(())
    }

    /// The setup of a tool call: no journal of its own, the real clock, fresh randomness.
    pub fn setup_tool(&self, part: &PreparedPlugin, caller: &InvocationId, grants: Grants) -> InvocationSetup {
        setup_alone(&self.host, &self.project, part, caller, grants)
    }
}

/// The setup of a call without services: no journal, no models, the real clock, fresh randomness.
pub fn setup_alone(
    host: &PluginHost,
    project: &str,
    part: &PreparedPlugin,
    caller: &InvocationId,
    grants: Grants,
) -> InvocationSetup {
    let null = Arc::new(NullServices);
    InvocationSetup {
        invocation: caller.clone(),
        scope: InvocationScope { project: project.to_owned(), plugin: part.table.clone() },
        grants,
        limits: part.limits.clone(),
        services: Services {
            models: null.clone(),
            tools: null.clone(),
            checks: null.clone(),
            delegate: null.clone(),
            graphs: null.clone(),
            approvals: null.clone(),
            supervisor: Arc::new(longhaul_core::supervisor::Unsupervised),
            store: Arc::clone(&host.store),
            memory: Arc::new(Embedded::new(Arc::clone(&host.store), Arc::clone(&host.clock))),
            clock: Arc::clone(&host.clock),
            watch: null,
            exchange: None,
        },
        journal: None,
        context: None,
        seed: host.fresh_seed(),
        console: None,
        placeholders: Arc::default(),
        told: None,
    }
}

/// One part, loaded from the bytes that its run pinned.
async fn part(
    host: &PluginHost,
    config: &Config,
    table: &str,
    pin: &PinnedPlugin,
    directory: &Path,
    tree: &Path,
) -> fault::Result<PreparedPlugin> {
    let bytes =
        host.store.blob(&pin.digest)?.or_internal(|| format!("the store lost the bytes of plugin `{}`", pin.plugin))?;
    ready(host, config, table, pin, &bytes, directory, tree).await
}

/// The part of a table as a run pinned it, for work without a tree.
pub async fn pinned(
    host: &PluginHost,
    config: &Config,
    pins: &PinnedPlugins,
    table: &str,
    directory: &Path,
) -> fault::Result<PreparedPlugin> {
    let pin = pins.get(table).with_context(|| format!("the run has no plugin for [{table}]"))?;
    part(host, config, table, pin, directory, directory).await
}

/// One part, loaded from `bytes`.
pub async fn ready(
    host: &PluginHost,
    config: &Config,
    table: &str,
    pin: &PinnedPlugin,
    bytes: &[u8],
    directory: &Path,
    tree: &Path,
) -> fault::Result<PreparedPlugin> {
    let checks = python_checks(tree);
    let configured = if table == PYTHON_CHECKS {
        &checks.0
    } else {
        config
            .part(table)
            .or_invalid(|| format!("the run has a plugin for [{table}], which longhaul.toml no longer has"))?
    };
    let plugin = host.loaded.get(&host.engine, &pin.plugin, bytes).await?;
    plugin.expect(role_of(table))?;
    verdict::check_world(pin.world.as_deref(), plugin.role())?;
    let mut grants = match table {
        PYTHON_CHECKS => checks.1.clone(),
        _ => grants(table, configured, &pin.asks, directory, tree),
    };
    if plugin.role().is_pure() {
        // Access to the world belongs in a tool, whose calls are journaled.
        grants.directories.clear();
        grants.hosts.clear();
    }
    Ok(PreparedPlugin {
        table: table.to_owned(),
        plugin,
        grants,
        limits: config.limits_of(configured),
        context: config.context_of(configured),
        settings: serde_json::Value::Object(configured.settings.clone()),
        secrets: configured.secrets.clone(),
        confirm_effects: configured.confirm_effects,
        quarantine: quarantine::shape_of(configured)?,
    })
}

fn role_of(table: &str) -> Role {
    match table.split('.').next() {
        Some("planner") => Role::Planner,
        Some("evaluator") => Role::Evaluator,
        Some("agents") => Role::Agent,
        Some("memory") => Role::Memory,
        _ => Role::Tool,
    }
}

/// Checks can read the work and cannot change it.
fn python_checks(tree: &Path) -> (PluginConfig, Grants) {
    let directory = DirectoryGrant { guest: "/work".into(), host: tree.to_owned(), access: Access::Read };
    let grants = Grants { table: PYTHON_CHECKS.into(), directories: vec![directory], ..Grants::default() };
    (PluginConfig { plugin: "python".into(), ..PluginConfig::default() }, grants)
}
