//! The tables of `longhaul.toml`, as types.
//!
//! A table that another crate owns has its type there. Refuses to check anything beyond the type of a field: `rules.rs`
//! does.

use crate::checkpoints::CheckpointConfig;
use crate::labels::LABELS_MAX;
use crate::memory::MemoryConfig;
use crate::notify::NotifyConfig;
use crate::part::PluginConfig;
use crate::protect::ProtectConfig;
use longhaul_core::Limits;
use longhaul_core::context::ContextRules;
use longhaul_harness::{HarnessLimits, Strategy};
use longhaul_mcp::McpConfig;
use longhaul_models::ModelConfig;
use longhaul_resources::Need;
use longhaul_sandbox::{CompileLimits, Level};
use longhaul_telemetry::TelemetryConfig;
use longhaul_worktree::NativeCheck;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// `longhaul.toml`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The project.
    pub project: ProjectConfig,
    /// The settings of runs.
    #[serde(default)]
    pub run: RunConfig,
    /// Acceptance of plans.
    #[serde(default)]
    pub plan: PlanConfig,
    /// The settings of asks.
    #[serde(default)]
    pub ask: AskConfig,
    /// The limits of every invocation.
    #[serde(default)]
    pub limits: Limits,
    /// The rules that trim every conversation.
    #[serde(default)]
    pub context: ContextRules,
    /// The limits of compiling a plugin.
    #[serde(default)]
    pub compile: CompileLimits,
    /// The planner, which turns the goal into features.
    ///
    /// Default: `initializer`, with the models of `[agents.code]`.
    #[serde(default)]
    pub planner: PluginConfig,
    /// The evaluator. Default: `rubric-evaluator`, with the models of `[agents.code]`; `check-evaluator` without
    /// models.
    #[serde(default)]
    pub evaluator: PluginConfig,
    /// The agents, by name. The harness asks for `code`, `research`, `testing` and `documentation`, and takes `code` if
    /// there is no other.
    #[serde(default)]
    pub agents: BTreeMap<String, PluginConfig>,
    /// The tools that agents may get.
    #[serde(default)]
    pub tools: BTreeMap<String, PluginConfig>,
    /// MCP servers. Agents know `[mcp.NAME]` as the tool `mcp-NAME`.
    #[serde(default)]
    pub mcp: BTreeMap<String, McpConfig>,
    /// Models, by the names that plugins use.
    #[serde(default)]
    pub models: BTreeMap<String, ModelConfig>,
    /// Native checks: fixed commands that decide features.
    #[serde(default)]
    pub checks: BTreeMap<String, NativeCheck>,
    /// The destination of traces, metrics and logs of runs. Default: none.
    #[serde(default)]
    pub telemetry: TelemetryConfig,
    /// The memory of agents and runs.
    #[serde(default)]
    pub memory: MemoryConfig,
    /// Checkpoints of runs, and the server that shares them.
    #[serde(default)]
    pub checkpoints: CheckpointConfig,
    /// Files that a feature may change only with a person's approval.
    #[serde(default)]
    pub protect: ProtectConfig,
    /// Notifications when a run asks, parks, fails or completes. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifyConfig>,
}

/// `[project]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectConfig {
    /// Letters, digits, `-` and `_`. The branch is `longhaul/NAME`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub name: String,
    /// The project's id, which the data directory stores and no file has, see `identity.rs`. Empty when the name is the
    /// id.
    #[serde(skip)]
    pub id: String,
    /// The goal's file, Markdown. Default `GOAL.md`.
    #[serde(default = "default_goal")]
    pub goal: PathBuf,
    /// Money that all runs of the project may use in a day, asks included, in millionths of a US dollar. Days begin at
    /// 00:00 UTC. Default none, else at least 1. Checked before each request to a model, on every server that works on
    /// the project's runs, and each request needs budget for its highest expected cost. Who finds none waits until the
    /// next day. Calls without a known price count as free. A change takes effect when a run begins its next work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cost_microdollars_per_day_max: Option<u64>,
    /// Tokens that all runs of the project may use in a day, input and output. Default none, else at least 1. Checked
    /// as `cost_microdollars_per_day_max` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens_per_day_max: Option<u64>,
    /// Runs of the project that work at once, asks included, on all servers together. Default none, else at least 1.
    /// Further ones wait in the queue. One that waits for a person does not count; nor does one that waits for a
    /// service, while the server that leads has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub runs_at_once_max: Option<u32>,
}

/// `[run]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// `session` or `pipeline`: how the run continues after a failed step of the plan. Default `session`.
    pub strategy: Strategy,
    /// The agent, by its name under `[agents]`, that adds missing criteria and checks of a feature before another agent
    /// begins to work on it. Default none.
    pub contract_by: Option<String>,
    /// The lowest sandbox level for checks and all other native programs: `runsc`, `full`, `namespaces`, `landlock` or
    /// `none`. If this machine gives less, they are not started. Default `full`.
    pub sandbox_min: Level,
    /// The caps of a run.
    pub limits: HarnessLimits,
    /// Resources that the machine must have free before work of the run begins, for example `{ memory_mb = 2048.0 }`. A
    /// run without enough of them waits, and reports it. Default 256 MB of memory, and none of a graphics card.
    pub needs: Option<Need>,
    /// Labels that a server must have to work on the run, such as `gpu`: each of them stands in `labels` of `[worker]`
    /// in its `server.toml`, also of the leader. A run waits while no server has them all. Each has 1 to 63 of a-z,
    /// 0-9, `.`, `_` and `-`, and a letter or a digit first. Default none, at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = LABELS_MAX), inner(length(min = 1, max = 63), regex(pattern = "^[a-z0-9][a-z0-9._-]*$")))]
    pub labels_needed: Vec<String>,
    /// The priority of the run among those that wait for their turn, from 0 to 9: a higher number goes first, and of
    /// equal ones the run that came first. Default 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9))]
    pub priority: Option<u8>,
    /// Keep the files of the run's trees as they were after each call that may have changed them, so that the run can be
    /// forked at each of these points. Such a call then takes a walk through the tree, and what it changed is stored
    /// until the run is deleted. A run keeps what it began with. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tree_history: bool,
}

/// The priority of a run that names none.
const PRIORITY: u8 = 4;

/// The highest priority of a run.
pub(crate) const PRIORITY_MAX: u8 = 9;

impl RunConfig {
    /// Resources that the machine must have free before work begins.
    pub fn needs(&self) -> Need {
        self.needs.unwrap_or(Need { memory_mb: 256.0, gpu_memory_mb: 0.0 })
    }

    /// Labels that a server must have to work on the run.
    pub fn labels_needed(&self) -> &[String] {
        &self.labels_needed
    }

    /// The priority among runs that wait, from 0 to 9.
    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or(PRIORITY)
    }
}

/// `[plan]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanConfig {
    /// The party that agrees to the checks that a planner wrote; they are pinned then.
    pub accept: PlanAcceptance,
}

/// The party that agrees to a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlanAcceptance {
    /// No person is asked: a plan is shown and worked on. The default, so that a run needs no person.
    #[default]
    Auto,
    /// A person: the run pauses after planning, and a resume agrees to the plan.
    Ask,
}

/// `[ask]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AskConfig {
    /// The model that chooses between agents, by its name under `[models]`. Default: the planner's, or else that of the
    /// first agent with one.
    pub model: Option<String>,
    /// The agent, by its name under `[agents]`, for tasks with an unknown agent. Default: the first by name.
    pub agent: Option<String>,
    /// The caps of an ask, over its defaults: a missing field has its default.
    #[schemars(schema_with = "ask_limits")]
    pub limits: toml::Table,
}

/// The schema of `[ask.limits]`: the caps of a run, with the defaults of an ask.
fn ask_limits(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = HarnessLimits::json_schema(generator);
    let own = serde_json::to_value(HarnessLimits::of_ask()).unwrap_or_default();
    let keys = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    for (name, key) in keys {
        if let (Some(key), Some(default)) = (key.as_object_mut(), own.get(name)) {
            key.insert("default".to_owned(), default.clone());
        }
    }
    schema
}

fn default_goal() -> PathBuf {
    "GOAL.md".into()
}

impl ProjectConfig {
    /// True when the goal's file has its default name, which a project without runs does not write.
    #[must_use]
    pub fn has_default_goal(&self) -> bool {
        self.goal == default_goal()
    }
}

impl Config {
    /// The key under which data of the project is stored.
    pub fn scope(&self) -> &str {
        if self.project.id.is_empty() { &self.project.name } else { &self.project.id }
    }
}
