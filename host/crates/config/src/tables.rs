//! The tables of `longhaul.toml`, as types.
//!
//! Each table that another crate owns has its type there. Refuses to check anything beyond the type of a field: that is
//! `rules.rs`.

use crate::checkpoints::CheckpointConfig;
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
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// `longhaul.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the project is.
    pub project: ProjectConfig,
    /// How a run goes.
    #[serde(default)]
    pub run: RunConfig,
    /// Who agrees to a plan.
    #[serde(default)]
    pub plan: PlanConfig,
    /// How an ask goes.
    #[serde(default)]
    pub ask: AskConfig,
    /// What every invocation may use.
    #[serde(default)]
    pub limits: Limits,
    /// When and how every conversation is cut back.
    #[serde(default)]
    pub context: ContextRules,
    /// What compiling a plugin may cost.
    #[serde(default)]
    pub compile: CompileLimits,
    /// Who turns the goal into features.
    ///
    /// Default: `initializer`, with the models of `[agents.code]`.
    #[serde(default)]
    pub planner: PluginConfig,
    /// Who judges. Default: `rubric-evaluator`, with the models of `[agents.code]`; `check-evaluator` where there are none.
    #[serde(default)]
    pub evaluator: PluginConfig,
    /// Who works, by name. The harness asks for `code`, `research`, `testing` and `documentation`, and
    /// takes `code` where there is no other.
    #[serde(default)]
    pub agents: BTreeMap<String, PluginConfig>,
    /// What agents may be given.
    #[serde(default)]
    pub tools: BTreeMap<String, PluginConfig>,
    /// MCP servers. Agents know `[mcp.NAME]` as the tool `mcp-NAME`.
    #[serde(default)]
    pub mcp: BTreeMap<String, McpConfig>,
    /// Models, by the names that plugins know them by.
    #[serde(default)]
    pub models: BTreeMap<String, ModelConfig>,
    /// Native checks: fixed commands that decide features.
    #[serde(default)]
    pub checks: BTreeMap<String, NativeCheck>,
    /// Where traces, metrics and logs of runs are sent. Default: nowhere.
    #[serde(default)]
    pub telemetry: TelemetryConfig,
    /// Where agents remember, and what of a run is remembered.
    #[serde(default)]
    pub memory: MemoryConfig,
    /// Where runs can be gone on from, and who may.
    #[serde(default)]
    pub checkpoints: CheckpointConfig,
    /// Which files a feature may change only with a person's approval.
    #[serde(default)]
    pub protect: ProtectConfig,
    /// Who is told when a run asks, parks, fails or completes. Default: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifyConfig>,
}

/// `[project]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectConfig {
    /// Letters, digits, `-` and `_`. The branch is `longhaul/NAME`.
    pub name: String,
    /// The project's id, which no file says: the data directory does, see `identity.rs`. Empty where the name is it.
    #[serde(skip)]
    pub id: String,
    /// The goal's file, Markdown. Default `GOAL.md`.
    #[serde(default = "default_goal")]
    pub goal: PathBuf,
}

/// `[run]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// `session` or `pipeline`: what becomes of a plan whose steps fail. Default `session`.
    pub strategy: Strategy,
    /// The agent, by its name under `[agents]`, that is asked for criteria and checks which a feature lacks
    /// before another begins to work on it. Default none.
    pub contract_by: Option<String>,
    /// The least sandbox level that must hold checks and all other native programs: `runsc`, `full`, `namespaces`,
    /// `landlock` or `none`. Where this machine gives less, they are not started. Default `full`.
    pub sandbox_min: Level,
    /// The caps of a run.
    pub limits: HarnessLimits,
    /// What the machine must have free before work of the run begins, for example `{ memory_mb = 2048.0 }`. A run for
    /// which there is no room waits, and says so. Default 256 MB of memory, and none of a graphics card.
    pub needs: Option<Need>,
}

impl RunConfig {
    /// What the machine must have free before work begins.
    pub fn needs(&self) -> Need {
        self.needs.unwrap_or(Need { memory_mb: 256.0, gpu_memory_mb: 0.0 })
    }
}

/// `[plan]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanConfig {
    /// Who agrees to the checks that a planner wrote, which are pinned then.
    pub accept: PlanAcceptance,
}

/// Who agrees to a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanAcceptance {
    /// Nobody is asked: a plan is shown and worked on. The default, so that a run needs no person.
    #[default]
    Auto,
    /// A person: the run pauses once there is a plan, and a resume agrees to it.
    Ask,
}

/// `[ask]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskConfig {
    /// The model that chooses between agents, by its name under `[models]`. Default: the planner's, or else that of the
    /// first agent that has one.
    pub model: Option<String>,
    /// The agent, by its name under `[agents]`, for what is given to nobody known. Default: the first by name.
    pub agent: Option<String>,
    /// The caps of an ask, over its defaults: a field that is missing is as there.
    pub limits: toml::Table,
}

fn default_goal() -> PathBuf {
    "GOAL.md".into()
}

impl Config {
    /// What is kept of the project is found by this.
    pub fn scope(&self) -> &str {
        if self.project.id.is_empty() { &self.project.name } else { &self.project.id }
    }
}
