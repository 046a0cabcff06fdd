//! The components of a project, compared with their tables in `longhaul.toml`.
//!
//! Components are loaded, tools describe themselves, and a planner plans without a model: a goal that writes its
//! features is planned this way, and its faults show. Refuses to connect to MCP servers, of which only the pin is
//! known, and to give a component anything but the store of its own keys.

use crate::finding::Findings;
use crate::machine;
use crate::scope::CheckScope;
use longhaul_api::checks::Finding;
use longhaul_config::tools::built_in::is_built_in;
use longhaul_config::tools::mcp::{is_wanted, tool_name};
use longhaul_config::{Config, PluginConfig, toml_text};
use longhaul_core::fault;
use longhaul_core::supervisor::{Supervisor, Unsupervised};
use longhaul_core::tool::ToolInfo;
use longhaul_core::work::{CheckBody, Goal, Plan, RoleError};
use longhaul_core::{Digest, InvocationId};
use longhaul_engine::Cancel;
use longhaul_harness::{HarnessSetup, plan};
use longhaul_home::Home;
use longhaul_plugins::manifest::{PluginManifest, settings};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_plugins::plugin_set::{self, PreparedPlugin};
use longhaul_plugins::python_packages;
use longhaul_records::pins::{PinnedPlugin, PinnedPlugins};
use longhaul_toolbox::built_in;
use longhaul_toolbox::gate::ToolGate;
use std::path::Path;
use std::sync::Arc;

/// The plugin that runs checks written in Python.
const PYTHON: &str = "python";

/// Examines all components; returns the titles of the features, if the goal writes them.
pub(super) async fn look(
    found: &mut Findings,
    host: &Arc<PluginHost>,
    config: &Config,
    directory: &Path,
    scope: &CheckScope,
) -> Option<Vec<String>> {
    let mut planner = None;
    for (table, part) in config.parts().filter(|(table, _)| !scope.leaves_out(table)) {
        if is_built_in(part) {
            own_tool(found, host, config, directory, &table, part).await;
            continue;
        }
        let loaded = match scope {
            // Pinned parts were examined when the run began.
            CheckScope::Resume(_) if !names_functions(&table, part) => continue,
            CheckScope::Resume(pins) => plugin_set::pinned(host, config, pins, &table, directory).await,
            CheckScope::Run | CheckScope::Planned | CheckScope::Ask => {
                loaded(found, host, config, directory, &table, part).await
            }
        };
        match loaded {
            Ok(ready) if table == "planner" => planner = Some(ready),
            Ok(ready) => functions(found, host, config, &table, part, &ready).await,
            Err(error) => found.at(&format!("{table}.plugin"), &format!("[{table}] {error:#}")),
        }
    }
    servers(found, host, config);
    match planner {
        Some(planner) if matches!(scope, CheckScope::Run) => planned(found, host, config, directory, &planner).await,
        _ => None,
    }
}

/// The plugins that cannot be found, for a `longhaul.toml` that has other faults.
pub(super) fn missing(text: &str, directory: &Path, home: &Home) -> Vec<Finding> {
    let mut found = Findings::new(text.to_owned());
    for (table, plugin) in longhaul_config::named_plugins(text) {
        if let Err(error) = longhaul_plugins::find(&plugin, Some(directory), home) {
            found.at(&format!("{table}.plugin"), &format!("[{table}] {error:#}"));
        }
    }
    found.into_findings()
}

/// A loaded part, after its manifest was compared with its table.
async fn loaded(
    found: &mut Findings,
    host: &PluginHost,
    config: &Config,
    directory: &Path,
    table: &str,
    part: &PluginConfig,
) -> fault::Result<PreparedPlugin> {
    let read = longhaul_plugins::read(&part.plugin, Some(directory), &host.home, &host.engine)?;
    let said = read.manifest.unwrap_or_default();
    manifest(found, table, part, &said);
    let (plugin, digest) = (part.plugin.clone(), Digest::of(&read.bytes));
    if !part.packages.is_empty() {
        let lock = python_packages::locked(config, directory)?;
        python_packages::checked(table, part, &said.asks, lock.as_ref())?;
    }
    // Without packages: to lay them out may ask the index, which no check does.
    let (packages, earlier, proved) = Default::default();
    let pin = PinnedPlugin { plugin, digest, asks: said.asks, world: said.world, packages, earlier, proved };
    let loaded = host.loaded.get_pinned(&host.engine, &pin.plugin, digest, || Ok(read.bytes)).await?;
    plugin_set::ready(config, table, &pin, loaded, directory, directory).await
}

fn manifest(found: &mut Findings, table: &str, part: &PluginConfig, manifest: &PluginManifest) {
    if let Some(declared) = &manifest.settings {
        for (name, wrong) in settings::faults(&part.plugin, declared, &part.settings) {
            let text = format!("[{table}.settings] {name}: {wrong}");
            found.at(&format!("{table}.settings.{name}"), &text);
        }
    }
    let asked: Vec<&str> = manifest.asks.directories.iter().map(|asked| asked.guest.as_str()).collect();
    for given in part.directories.iter().filter(|given| !asked.contains(&given.guest.as_str())) {
        let (guest, plugin, or) = (&given.guest, &part.plugin, toml_text::or_one_of(&given.guest, &asked));
        let text = format!("[{table}] directories gives `{guest}`, which plugin `{plugin}` does not ask for{or}");
        found.at(&format!("{table}.directories"), &text);
    }
}

/// True when the policy of a tool names functions.
fn names_functions(table: &str, part: &PluginConfig) -> bool {
    table.starts_with("tools.") && part.approval.named().next().is_some()
}

/// Checks that a tool describes itself as the contract requires, and has the functions that its policy names.
async fn functions(
    found: &mut Findings,
    host: &Arc<PluginHost>,
    config: &Config,
    table: &str,
    part: &PluginConfig,
    ready: &PreparedPlugin,
) {
    let Some(tool) = table.strip_prefix("tools.") else { return };
    let (loaded, digest) = (&host.loaded, ready.plugin.digest());
    if loaded.is_described(digest) && !names_functions(table, part) {
        return;
    }
    let setup = plugin_set::setup_alone(host, config.scope(), ready, &caller(), ready.grants.clone());
    let told = ready.plugin.describe(setup, &Cancel::default(), &ready.concealed_settings()).await;
    let silent = |error: &dyn std::fmt::Display| format!("[{table}] does not say what it can do: {error}");
    match told.result {
        Ok(Ok(info)) => {
            loaded.note_described(digest);
            named(found, table, &ToolGate::of(tool, part, &PinnedPlugins::new(), false), &info);
        }
        Ok(Err(error)) => found.at(table, &silent(&error)),
        Err(error) => found.at(table, &silent(&error)),
    }
}

async fn own_tool(
    found: &mut Findings,
    host: &Arc<PluginHost>,
    config: &Config,
    directory: &Path,
    table: &str,
    part: &PluginConfig,
) {
    let Some(tool) = table.strip_prefix("tools.").filter(|_| names_functions(table, part)) else { return };
    let supervisor: Arc<dyn Supervisor> = Arc::new(Unsupervised);
    let name = &config.project.name;
    let sandbox_min = config.run.sandbox_min;
    let environment = &host.tool_environment();
    let (project, tree, supervisor) = (directory, directory, &supervisor);
    let site = built_in::ToolSite { environment, project, name, sandbox_min, tree, supervisor };
    let Ok(own) = built_in::open(tool, part, &site) else { return };
    if let Ok(info) = own.info(tool).await {
        named(found, table, &ToolGate::of(tool, part, &PinnedPlugins::new(), false), &info);
    }
}

/// Only the pins of MCP servers are known: none is started for this. A server without approved tools would have none
/// for its agents.
fn servers(found: &mut Findings, host: &Arc<PluginHost>, config: &Config) {
    for (name, server) in config.mcp.iter().filter(|(name, _)| is_wanted(config, name)) {
        let tool = tool_name(name);
        let known = longhaul_mcp::known(&*host.store, config.scope(), name, &tool, server);
        let gate = ToolGate::of_server(config.scope(), name, &tool, &server.approval);
        if let Ok(Some(info)) = known {
            named(found, &format!("mcp.{name}"), &gate, &info);
        }
        if let Ok(false) = longhaul_mcp::is_approved(&*host.store, config.scope(), name, server) {
            let text = format!(
                "[mcp.{name}] its tools are not approved yet; look at them and approve: longhaul mcp accept {name}"
            );
            found.at(&format!("mcp.{name}"), &text);
        }
    }
}

fn named(found: &mut Findings, table: &str, gate: &ToolGate, info: &ToolInfo) {
    if let Some(wrong) = gate.unknown_function(info) {
        found.at(&format!("{table}.approval"), &wrong);
    }
}

/// Plans the goal without a model; returns the titles of its features.
async fn planned(
    found: &mut Findings,
    host: &Arc<PluginHost>,
    config: &Config,
    directory: &Path,
    planner: &PreparedPlugin,
) -> Option<Vec<String>> {
    let file = config.project.goal.display().to_string();
    let goal = machine::goal(directory, config).ok()?;
    match plan_of(host, config, planner, goal).await {
        Planned::Written(plan) => {
            let told = plan.steps.iter().map(|step| format!("{}: {}", step.spec.id, step.spec.title)).collect();
            accepted(found, host, config, directory, &file, plan);
            Some(told)
        }
        Planned::Wrong(text) => {
            found.of_goal(config, &text);
            None
        }
        Planned::Denied(text) => {
            found.at("planner", &format!("[planner] {text}"));
            None
        }
        Planned::AsksAModel if config.planner.models.is_empty() => {
            let text = format!(
                "[planner] names no models, and `{file}` writes no features; add: models = [\"NAME\"], or write `## Feature: TITLE` sections"
            );
            found.at("planner", &text);
            None
        }
        Planned::AsksAModel => None,
    }
}

/// The result of planning without any services.
pub enum Planned {
    /// The goal writes its features.
    Written(Plan),
    /// The planner reports a fault of the goal.
    Wrong(String),
    /// The planner was denied something.
    Denied(String),
    /// The planner wants to ask a model, or another service of a run.
    AsksAModel,
}

/// Runs the planner without any services.
pub async fn plan_of(host: &Arc<PluginHost>, config: &Config, planner: &PreparedPlugin, goal: String) -> Planned {
    let native_checks: Vec<&String> = config.checks.keys().collect();
    let goal = Goal {
        text: goal,
        context: serde_json::json!({ "project": config.project.name, "native_checks": native_checks }),
        settings: planner.settings.clone(),
        criteria: Vec::new(),
    };
    let setup = plugin_set::setup_alone(host, config.scope(), planner, &caller(), planner.grants.clone());
    match planner.plugin.plan(setup, &Cancel::default(), goal).await.result {
        Ok(Ok(plan)) => Planned::Written(plan),
        Ok(Err(RoleError::Blocked(text))) => Planned::Wrong(text),
        Ok(Err(RoleError::Denied(denial))) => Planned::Denied(denial.to_string()),
        // Without a journal every request of the planner fails.
        Ok(Err(_)) | Err(_) => Planned::AsksAModel,
    }
}

/// Checks the plan that a goal writes against the configuration.
fn accepted(found: &mut Findings, host: &PluginHost, config: &Config, directory: &Path, file: &str, plan: Plan) {
    let agents: Vec<String> = config.agents.keys().cloned().collect();
    for step in &plan.steps {
        let spec = &step.spec;
        if let Some(agent) = spec.agent.as_ref().filter(|agent| !agents.contains(agent)) {
            let or = toml_text::or_one_of(agent, &agents);
            let text = format!("feature `{}` asks for the agent `{agent}`, which is not in [agents]{or}", spec.id);
            found.in_file(file, None, &text);
        }
    }
    let is_python = |body: &CheckBody| matches!(body, CheckBody::Python(_));
    let has_python = plan.steps.iter().flat_map(|step| &step.spec.checks).any(|check| is_python(&check.body));
    if has_python && let Err(error) = longhaul_plugins::find(PYTHON, Some(directory), &host.home) {
        found.in_file(file, None, &format!("a check is written in Python, and {error:#}"));
    }
    let setup = HarnessSetup {
        agents,
        checks: config.checks.keys().cloned().collect(),
        strategy: config.run.strategy,
        checks_only: config.checks_only(None),
        ..HarnessSetup::default()
    };
    if let Err(error) = plan::accept(plan, &setup, &config.run.limits) {
        found.in_file(file, None, &error.to_string());
    }
}

/// The caller, which is no run.
fn caller() -> InvocationId {
    InvocationId::from_text("check/1")
}
