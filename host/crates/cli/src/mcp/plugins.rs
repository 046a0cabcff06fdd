//! Tool plugins as tools of an MCP client: `PLUGIN__FUNCTION`, each call in a fresh instance.
//!
//! A plugin gets only grants that it asks for and the command line gives; the default is none. Calls are part of no run
//! and are not journaled.

use crate::context::Context;
use crate::plugin::{kit, tool_components};
use longhaul_config::{DirectoryConfig, PluginConfig, grants};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::grant::{DirectoryGrant, Grants, HostPattern};
use longhaul_plugins::InspectedPlugin;
use longhaul_testkit::{Call, Ending, HandClock, Kit, Scene};
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::OnceCell;

/// Separator between the names of a plugin and of its function.
const BETWEEN: &str = "__";

/// Grants from the command line.
pub struct CommandGrants {
    pub directories: Vec<DirectoryGrant>,
    pub hosts: Vec<HostPattern>,
}

/// The tool plugins that a run of this project would find.
pub struct Plugins {
    project: PathBuf,
    components: Vec<(String, PathBuf)>,
    given: PluginConfig,
    kit: OnceCell<Kit>,
    described: OnceCell<Vec<Tool>>,
}

impl Plugins {
    pub fn new(context: &Context, given: CommandGrants) -> Self {
        let directory = |one: DirectoryGrant| DirectoryConfig { guest: one.guest, host: one.host, access: one.access };
        let directories = given.directories.into_iter().map(directory).collect();
        Self {
            project: context.project.clone(),
            components: tool_components(context),
            given: PluginConfig { directories, hosts: given.hosts, ..PluginConfig::default() },
            kit: OnceCell::new(),
            described: OnceCell::new(),
        }
    }

    /// Lists each function of each plugin. A plugin that cannot be described is left out, with a line in the log.
    pub async fn tools(&self) -> Vec<Tool> {
        let describe = || async {
            let mut tools = Vec::new();
            for (name, path) in &self.components {
                match self.describe(name, path).await {
                    Ok(found) => tools.extend(found),
                    Err(error) => tracing::warn!("the plugin `{name}` is left out: {error:#}"),
                }
            }
            tools
        };
        self.described.get_or_init(describe).await.clone()
    }

    async fn describe(&self, name: &str, path: &Path) -> fault::Result<Vec<Tool>> {
        let told = returned(&self.scene(path).await?, Call::from_json("describe", json!({}))?).await?;
        let functions = told["functions"].as_array().context("it describes no functions")?;
        Ok(functions.iter().filter_map(|function| tool(name, function)).collect())
    }

    /// Calls `PLUGIN__FUNCTION`.
    pub async fn call(&self, name: &str, arguments: Value) -> fault::Result<Value> {
        let found = self
            .components
            .iter()
            .find_map(|(plugin, path)| Some((path, name.strip_prefix(plugin.as_str())?.strip_prefix(BETWEEN)?)));
        let Some((path, function)) = found else {
            bail!("there is no tool `{}`", longhaul_core::text::truncate(name, 120))
        };
        let answer = returned(&self.scene(path).await?, Call::tool(function, &arguments)).await?;
        Ok(answer.get("output").cloned().unwrap_or(answer))
    }

    async fn scene(&self, path: &Path) -> fault::Result<Scene> {
        let kit = self.kit.get_or_try_init(|| async { kit() }).await?;
        let mut scene = kit.load(path).await?.with_clock(HandClock::running_from(now_ms()));
        let Grants { directories, hosts, .. } = self.granted(path)?;
        for directory in directories {
            scene = scene.directory(directory);
        }
        for host in hosts {
            scene = scene.host(host);
        }
        Ok(scene)
    }

    fn granted(&self, path: &Path) -> fault::Result<Grants> {
        let asks = InspectedPlugin::read(path)?.manifest.asks;
        Ok(grants("mcp", &self.given, &asks, &self.project, &self.project))
    }
}

async fn returned(scene: &Scene, call: Call) -> fault::Result<Value> {
    match scene.call(call).await?.ending {
        Ending::Returned(value) => Ok(value),
        Ending::Refused(refusal) => bail!("{}", refusal.text),
        Ending::Stopped(error) => Err(error.into()),
    }
}

fn tool(plugin: &str, function: &Value) -> Option<Tool> {
    let name = function["name"].as_str()?;
    let description = function["description"].as_str().unwrap_or_default().to_owned();
    let schema = match &function["parameters"] {
        Value::String(text) => serde_json::from_str(text).ok()?,
        other => other.clone(),
    };
    let schema: JsonObject = serde_json::from_value(schema).ok()?;
    Some(Tool::new(format!("{plugin}{BETWEEN}{name}"), description, Arc::new(schema)))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
