//! The plugins of a run: pinned by digest, loaded, with their grants and limits.

use crate::manifest::PluginManifest;
use crate::plugin_host::PluginHost;
use crate::search::{self, FoundPlugin};
use crate::{python_packages, verdict};
use longhaul_capabilities::null::NullServices;
use longhaul_capabilities::{InvocationScope, InvocationSetup, Services};
use longhaul_config::quarantine::{self, Shape};
use longhaul_config::secrets::SecretConfig;
use longhaul_config::tools::built_in::is_built_in;
use longhaul_config::{Config, PluginConfig, grants, memory};
use longhaul_core::context::ContextRules;
use longhaul_core::fault::{self, Context};
use longhaul_core::grant::{Access, DirectoryGrant, Grants};
use longhaul_core::memory::Embedded;
use longhaul_core::store::Batch;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::{Digest, InvocationId, Limits};
use longhaul_egress::SecretRedactor;
use longhaul_engine::{Plugin, Role};
use longhaul_home::crash::CrashPoints;
use longhaul_records::pins::{PYTHON_CHECKS, PinnedPlugin, PinnedPlugins, ProvedPast};
use longhaul_security::secrets;
use longhaul_toolbox::built_in::ToolSite;
use longhaul_toolbox::component::ComponentTool;
use longhaul_toolbox::tool_set::{ToolSet, TreeWatch};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Reads every plugin that the configuration names; `batch` stores their bytes.
pub fn pin(host: &PluginHost, config: &Config, project: &Path, batch: &mut Batch) -> fault::Result<PinnedPlugins> {
    let mut pins = PinnedPlugins::new();
    let lock = python_packages::locked(config, project)?;
    let python = PluginConfig { plugin: "python".into(), ..PluginConfig::default() };
    let parts = config.parts().chain([(PYTHON_CHECKS.to_owned(), &python)]);
    for (table, part) in parts {
        if is_built_in(part) {
            // The host's own code has no bytes that could change.
            continue;
        }
        if table == PYTHON_CHECKS && search::find(&part.plugin, Some(project), &host.home).is_err() {
            // Only a feature with such a check needs it, and reports its absence then.
            continue;
        }
        let found = search::read(&part.plugin, Some(project), &host.home, &host.engine)
            .with_context(|| format!("[{table}]"))?;
        let digest = batch.blob(found.bytes);
        let PluginManifest { asks, world, .. } = found.manifest.unwrap_or_default();
        let packages = python_packages::checked(&table, part, &asks, lock.as_ref())?;
        let (plugin, earlier, proved) = (part.plugin.clone(), Vec::new(), BTreeMap::new());
        pins.insert(table, PinnedPlugin { plugin, digest, asks, world, packages, earlier, proved });
    }
    Ok(pins)
}

/// The pin of a table for other bytes of its plugin, which have this role. The packages of a run stay as it pinned
/// them.
pub fn repin(
    config: &Config,
    table: &str,
    pin: &PinnedPlugin,
    role: Role,
    found: &FoundPlugin,
) -> fault::Result<PinnedPlugin> {
    let PluginManifest { asks, world, .. } = found.manifest.clone().unwrap_or_default();
    verdict::check_world(world.as_deref(), role).with_context(|| format!("[{table}]"))?;
    if let Some(part) = config.part(table).filter(|_| !pin.packages.is_empty()) {
        python_packages::checked(table, part, &asks, None)?;
    }
    let (plugin, digest, packages) = (pin.plugin.clone(), Digest::of(&found.bytes), pin.packages.clone());
    Ok(PinnedPlugin { plugin, digest, asks, world, packages, earlier: Vec::new(), proved: BTreeMap::new() })
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
    /// True when the operator vouches for its effects.
    pub confirm_effects: bool,
    /// The schema of the data that a quarantined agent returns.
    pub quarantine: Option<Shape>,
    /// The invocations that began on earlier bytes and go on with later ones.
    proved: BTreeMap<InvocationId, ProvedPast>,
}

impl PreparedPlugin {
    /// The settings without secrets, which a tool describes itself by.
    #[must_use]
    pub fn concealed_settings(&self) -> serde_json::Value {
        secrets::concealed(&self.settings, &self.secrets)
    }

    /// The digest of the bytes that the journal of an invocation names: those that it began with, where these were
    /// proved on its past.
    #[must_use]
    pub fn began_with(&self, invocation: &InvocationId) -> Digest {
        let own = self.plugin.digest();
        self.proved.get(invocation).filter(|past| past.goes_on == own).map_or(own, |past| past.began)
    }

    /// The part as a tool of its run.
    fn tool(&self) -> ComponentTool {
        ComponentTool {
            table: self.table.clone(),
            grants: self.grants.clone(),
            settings: self.settings.clone(),
            secrets: self.secrets.clone(),
            confirm_effects: self.confirm_effects,
        }
    }
}

/// The parts of a run.
pub struct PluginSet {
    host: Arc<PluginHost>,
    project: String,
    parts: BTreeMap<String, PreparedPlugin>,
    /// The parts that were moved to other bytes during the run.
    moved: BTreeMap<String, MovedPart>,
    tools: Arc<ToolSet>,
}

/// A part that was moved to other bytes, with what is needed to load the earlier ones.
struct MovedPart {
    pin: PinnedPlugin,
    config: Config,
    directory: PathBuf,
    tree: PathBuf,
    /// The parts with earlier bytes by their digests, each loaded when an invocation goes on with it.
    earlier: BTreeMap<Digest, OnceCell<PreparedPlugin>>,
}

impl PluginSet {
    /// Loads every pinned plugin, and opens the tools of the run. `watch` watches the tree that they work in.
    pub async fn load(
        host: Arc<PluginHost>,
        config: &Config,
        pins: &PinnedPlugins,
        directory: &Path,
        tree: &Path,
        supervisor: &Arc<dyn Supervisor>,
        watch: Option<TreeWatch>,
    ) -> fault::Result<Self> {
        host.secrets.learn(config, directory);
        let mut parts = BTreeMap::new();
        for (table, pin) in pins.iter().filter(|(table, _)| *table != memory::PLUGIN) {
            parts.insert(table.clone(), part(&host, config, table, pin, directory, tree).await?);
        }
        let moved = pins.iter().filter(|(_, pin)| !pin.earlier.is_empty());
        let moved = moved.map(|(table, pin)| (table.clone(), MovedPart::new(pin, config, directory, tree))).collect();
        let component = |(table, part): (&String, &PreparedPlugin)| {
            table.strip_prefix("tools.").map(|name| (name.to_owned(), part.tool()))
        };
        let components = parts.iter().filter_map(component).collect();
        let environment = &host.tool_environment();
        let (name, sandbox_min) = (&config.project.name, config.run.sandbox_min);
        let site = ToolSite { environment, project: directory, name, sandbox_min, tree, supervisor };
        let tools = Arc::new(ToolSet::open(config, pins, components, &site)?.watched(watch));
        Ok(Self { host, project: config.scope().to_owned(), parts, moved, tools })
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
        let parts = BTreeMap::from([(memory::PLUGIN.to_owned(), loaded)]);
        let tools = Arc::new(ToolSet::empty(host.tool_environment(), config.scope()));
        Ok(Self { host, project: config.scope().to_owned(), parts, moved: BTreeMap::new(), tools })
    }

    /// The points where crash tests end the process.
    pub fn crash(&self) -> &CrashPoints {
        &self.host.crash
    }

    /// The part of a table.
    pub fn part(&self, table: &str) -> Option<&PreparedPlugin> {
        self.parts.get(table)
    }

    /// The part of a table that carries out an invocation: one that began before the run was moved to other bytes may
    /// have to end on the earlier ones. `began` is the digest in its journal; none: it has no journal yet.
    pub async fn part_of(
        &self,
        table: &str,
        invocation: &InvocationId,
        began: Option<Digest>,
    ) -> fault::Result<Option<&PreparedPlugin>> {
        let (newest, Some(moved)) = (self.parts.get(table), self.moved.get(table)) else {
            return Ok(self.parts.get(table));
        };
        let pin = moved.pin.of_invocation(invocation, began);
        let Some(earlier) = moved.earlier.get(&pin.digest) else { return Ok(newest) };
        let MovedPart { config, directory, tree, .. } = moved;
        let loading = earlier.get_or_try_init(|| part(&self.host, config, table, pin, directory, tree));
        loading.await.map(Some)
    }

    /// The tools of the run.
    pub fn tools(&self) -> &Arc<ToolSet> {
        &self.tools
    }

    /// The memory that the plugin of a part reads and writes.
    pub fn scope(&self, part: &PreparedPlugin) -> InvocationScope {
        InvocationScope { project: self.project.clone(), plugin: part.table.clone() }
    }

    /// The redactor for the answers of checks.
    pub fn redactor(&self) -> SecretRedactor {
        self.host.secrets.redactor()
    }

    /// The setup of a tool call: no journal of its own, the real clock, fresh randomness.
    pub fn setup_tool(&self, part: &PreparedPlugin, caller: &InvocationId, grants: Grants) -> InvocationSetup {
        setup_alone(&self.host, &self.project, part, caller, grants)
    }
}

impl MovedPart {
    fn new(pin: &PinnedPlugin, config: &Config, directory: &Path, tree: &Path) -> Self {
        Self {
            pin: pin.clone(),
            config: config.clone(),
            directory: directory.to_owned(),
            tree: tree.to_owned(),
            earlier: pin.earlier.iter().map(|earlier| (earlier.digest, OnceCell::new())).collect(),
        }
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
    let lost = || format!("the store lost the bytes of plugin `{}`", pin.plugin);
    let loading = host
        .loaded
        .get_pinned(&host.engine, &pin.plugin, pin.digest, || host.store.blob(&pin.digest)?.or_internal(lost));
    let plugin = loading.await?;
    ready(config, table, pin, plugin, directory, tree).await
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

/// One part, with its plugin loaded.
pub async fn ready(
    config: &Config,
    table: &str,
    pin: &PinnedPlugin,
    plugin: Arc<Plugin>,
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
    plugin.expect(role_of(table))?;
    verdict::check_world(pin.world.as_deref(), plugin.role())?;
    let mut grants = match table {
        PYTHON_CHECKS => checks.1.clone(),
        _ => grants(table, configured, &pin.asks, directory, tree),
    };
    grants.directories.extend(python_packages::granted(&pin.packages).await.with_context(|| format!("[{table}]"))?);
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
        proved: pin.proved.clone(),
    })
}

/// The role of the plugin of a table.
#[must_use]
pub fn role_of(table: &str) -> Role {
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
