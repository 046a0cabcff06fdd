//! `longhaul.toml`, which the operator writes.
//!
//! Reading is strict: a misspelt field is an error with its line. What a plugin may do is decided here
//! and nowhere else: what it asks for, intersected with what the operator gives.

use crate::check::text;
use crate::checkpoint::CheckpointConfig;
use crate::manifest::Asks;
use crate::memory::{self, MemoryConfig};
use crate::notify::config::NotifyConfig;
use crate::protect::ProtectConfig;
use crate::secrets::SecretConfig;
use crate::text_file;
use crate::toolbox::mcp;
use longhaul_approval::Policy;
use longhaul_core::Limits;
use longhaul_core::context::ContextRules;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::grant::{Access, DirectoryGrant, Grants, HostPattern};
use longhaul_core::work::Evidence;
use longhaul_engine::CompileLimits;
use longhaul_harness::{HarnessLimits, Strategy, route};
use longhaul_mcp::McpConfig;
use longhaul_models::ModelConfig;
use longhaul_resources::Need;
use longhaul_sandbox::Level;
use longhaul_telemetry::TelemetryConfig;
use longhaul_worktree::{EvidenceKind, NativeCheck};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The operator's file, in the root of a project.
pub const FILE: &str = "longhaul.toml";

/// The word that stands for the tree of a run where a directory is granted.
const TREE: &str = "tree";

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

/// Something in `longhaul.toml` that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{text}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Diagnostic {
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong, and what to do, in one line.
    pub text: String,
}

/// What is found wrong while a configuration is examined, each with the path of its key.
#[derive(Default)]
struct Found(Vec<(String, String)>);

impl Found {
    fn at(&mut self, path: &str, looked: fault::Result<()>) {
        if let Err(error) = looked {
            self.0.push((path.to_owned(), format!("{error:#}")));
        }
    }
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
    pub accept: Accept,
}

/// Who agrees to a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accept {
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

/// A table that says which plugin plays a part, and what it may do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginConfig {
    /// The name of a plugin, or the path of a `.wasm` file, which starts with `.` or `/`.
    pub plugin: String,
    /// Models that it may ask; the first is the default.
    pub models: Vec<String>,
    /// Tools that it may call, by their names under `[tools]`.
    pub tools: Vec<String>,
    /// Agents that it may delegate to, by their names under `[agents]`.
    pub agents: Vec<String>,
    /// Categories of features that go to this agent, over the usual ones. Only for agents.
    pub categories: Vec<String>,
    /// After how many of its steps there is a checkpoint, over `every` of `[checkpoints]`. Only for agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u32>,
    /// Whether it hears untrusted words in quarantine: it has only tools that read, and hands back only data that fits
    /// `schema`. Only for agents that others delegate to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quarantine: bool,
    /// The data that an agent in quarantine hands back; see [`crate::quarantine`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// What it is good at, for whoever chooses between agents. Only for agents.
    pub description: Option<String>,
    /// Whether its own opinion of how sure it is counts in an ask. Default true. Only for agents.
    pub confidence_from_llm: Option<bool>,
    /// Directories that it may use. Only for tools.
    pub directories: Vec<DirectoryConfig>,
    /// Hosts that it may reach. Only for tools.
    pub hosts: Vec<HostPattern>,
    /// Secrets that it may send, each to its hosts and in its header. Only for tools.
    pub secrets: Vec<SecretConfig>,
    /// Whether the operator vouches for what the tool says of its effects. Without it every effect
    /// that its grants do not prove harmless counts as `acts`.
    pub confirm_effects: bool,
    /// What asks first, and what is refused, of a tool's calls. Only for tools.
    pub approval: Policy,
    /// Commands that run without a question. Only for `builtin:shell`; see [`longhaul_approval::AllowedCommand`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Handed to the plugin as it is.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// Its own limits, over those of `[limits]`: a field that is missing is as there.
    pub limits: toml::Table,
    /// When and how its conversations are cut back, over `[context]` in the same way.
    pub context: toml::Table,
}

/// One granted directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryConfig {
    /// Where the guest sees it.
    pub guest: String,
    /// `tree` for the tree of the run, otherwise a path, relative to the project.
    #[serde(default = "default_tree")]
    pub host: PathBuf,
    /// `read` or `write`.
    pub access: Access,
}

impl DirectoryConfig {
    /// Whether it is the tree of a run.
    pub fn is_tree(&self) -> bool {
        self.host == Path::new(TREE)
    }
}

fn default_goal() -> PathBuf {
    "GOAL.md".into()
}

fn default_tree() -> PathBuf {
    TREE.into()
}

/// The table that is not there.
fn default_part(plugin: &str, models: &[String]) -> PluginConfig {
    PluginConfig { plugin: plugin.into(), models: models.to_vec(), ..PluginConfig::default() }
}

/// What is said of a value, which may have line breaks of its own.
fn one_line(said: &str) -> String {
    longhaul_core::text::printable(said, usize::MAX)
}

impl Config {
    /// Reads the file of a project.
    pub fn read(project: &Path) -> fault::Result<Self> {
        let path = project.join(FILE);
        let text = text_file::of_config(project).with_context(|| {
            format!("cannot read `{}`; make a project with `longhaul new` or `longhaul init`", path.display())
        })?;
        Self::parse(&text).with_context(|| format!("`{}`", path.display()))
    }

    /// Reads the text of a file; the first fault is the error.
    pub fn parse(text: &str) -> fault::Result<Self> {
        Self::parse_all(text).map_err(|faults| match faults.into_iter().next() {
            Some(fault) => fault.into(),
            None => Fault::msg("it cannot be read"),
        })
    }

    /// Reads the text that a run was begun with: what it says was looked at then, by the rules of then.
    pub fn parse_pinned(text: &str) -> fault::Result<Self> {
        Self::read_text(text).map_err(|error| Fault::msg(text::of_toml(text, &error).1))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// All faults that the text alone shows; where it cannot be read as a whole, the first.
    pub fn parse_all(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let config = Self::read_text(text).map_err(|error| {
            let (line, said) = text::of_toml(text, &error);
            vec![Diagnostic { line, text: one_line(&said) }]
        })?;
        let found = config.faults();
        if found.is_empty() {
            return Ok(config);
        }
        let placed =
            |(path, said): (String, String)| Diagnostic { line: text::line_of(text, &path), text: one_line(&said) };
        Err(found.into_iter().map(placed).collect())
    }

    fn read_text(text: &str) -> Result<Self, toml::de::Error> {
        let mut config: Self = toml::from_str(text)?;
        config.fill_in(&toml::from_str(text)?);
        Ok(config)
    }

    /// A planner and an evaluator where the file has no such table: with the models that the operator gave to whoever
    /// works, so that a goal in free words can be planned and judged.
    fn fill_in(&mut self, written: &toml::Table) {
        // A name of nothing is the fault of the table that has it.
        let is_there = |name: &&String| self.models.contains_key(*name);
        let models = self.agents.get("code").map_or(&[][..], |part| &part.models);
        let models: Vec<String> = models.iter().filter(is_there).cloned().collect();
        if !written.contains_key("planner") {
            self.planner = default_part("initializer", &models);
        }
        if !written.contains_key("evaluator") {
            let plugin = if models.is_empty() { "check-evaluator" } else { "rubric-evaluator" };
            self.evaluator = default_part(plugin, &models);
        }
    }

    /// Native checks whose pass rests on an exit code alone.
    pub fn exit_checks(&self) -> BTreeSet<String> {
        let is_exit = |check: &NativeCheck| check.evidence_kind() == EvidenceKind::Exit;
        self.checks.iter().filter(|(_, check)| is_exit(check)).map(|(name, _)| name.clone()).collect()
    }

    /// What the pass of other native checks rests on that have no counterexamples.
    pub fn weak_checks(&self) -> BTreeMap<String, Evidence> {
        let weak = |check: &NativeCheck| match check.evidence_kind() {
            EvidenceKind::Junit => Some(Evidence::Junit),
            EvidenceKind::Exit => None,
            _ => (!check.twins).then_some(Evidence::TestNames),
        };
        self.checks.iter().filter_map(|(name, check)| Some((name.clone(), weak(check)?))).collect()
    }

    /// What is kept of the project is found by this.
    pub fn scope(&self) -> &str {
        if self.project.id.is_empty() { &self.project.name } else { &self.project.id }
    }

    /// The evaluator when it judges by checks alone: it is the one that asks no model, or it has none.
    pub fn checks_only(&self, asks: Option<&Asks>) -> Option<String> {
        let PluginConfig { plugin, models, .. } = &self.evaluator;
        let is_modelless = asks.is_some_and(|asks| asks.models) && models.is_empty();
        let is_known = plugin.split('@').next() == Some("check-evaluator");
        (is_known || is_modelless).then(|| plugin.clone())
    }

    /// What is wrong, with the path of the key that it is about.
    fn faults(&self) -> Vec<(String, String)> {
        let mut found = Found::default();
        found.at("project.name", self.check_name());
        found.at("agents", self.check_agents());
        found.at("ask", self.check_ask());
        found.at("run.contract_by", self.check_contract());
        found.at("agents", self.check_categories());
        found.at("notify", self.notify.as_ref().map_or(Ok(()), NotifyConfig::check));
        // The environment is looked at when something is to be sent.
        found.at("telemetry", self.telemetry.settings(&|_| None).map(drop).map_err(Into::into));
        found.at("context", self.context.check().map_err(|wrong| Fault::msg(format!("[context]: {wrong}"))));
        found.at("checkpoints", self.checkpoints.check());
        found.at("protect", self.protect.check());
        found.at("memory", self.memory.check(&self.models.keys().collect::<Vec<_>>()));
        for (name, server) in &self.mcp {
            found.at(&format!("mcp.{name}"), self.check_server(name, server));
        }
        for (table, part) in self.parts() {
            self.check_part(&table, part, &mut found);
        }
        found.at("run.limits.cost_microdollars_max", self.check_cost_caps());
        for (name, check) in &self.checks {
            found.at(&format!("checks.{name}"), check.validate(name).map_err(Into::into));
        }
        found.0
    }

    fn check_name(&self) -> fault::Result<()> {
        let name = &self.project.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            bail!("[project] name `{name}`: take 1 to 64 letters, digits, `-` and `_`");
        }
        Ok(())
    }

    fn check_agents(&self) -> fault::Result<()> {
        if self.agents.is_empty() {
            bail!("there is no agent `code`, who takes what no other does; add [agents.code] plugin = \"react\"");
        }
        Ok(())
    }

    fn check_contract(&self) -> fault::Result<()> {
        self.run.contract_by.as_ref().map_or(Ok(()), |name| named("[run] contract_by", "agents", name, &self.agents))
    }

    fn check_server(&self, name: &str, server: &McpConfig) -> fault::Result<()> {
        server.check(name)?;
        if self.tools.contains_key(&mcp::tool_name(name)) {
            bail!("[tools.{0}] has the name of [mcp.{name}]; give one another name", mcp::tool_name(name));
        }
        Ok(())
    }

    /// A cap on money that nobody can hold is worse than none.
    fn check_cost_caps(&self) -> fault::Result<()> {
        let name = "cost_microdollars_max";
        let table = match self.run.limits.cost_microdollars_max {
            Some(_) => "[run.limits]",
            None if self.ask.limits.contains_key(name) => "[ask.limits]",
            None => return Ok(()),
        };
        let used: Vec<String> = self.models.keys().filter(|model| self.uses_model(model)).cloned().collect();
        if let Some(model) = longhaul_models::config::without_prices(&self.models, &used).first() {
            bail!(
                "{table} {name} cannot be held: nobody knows what model `{model}` costs; add to [models.{model}], in \
                 US dollars, 0.0 where it costs nothing: price_input_usd_per_million = 0.0 and \
                 price_output_usd_per_million = 0.0, or remove the cap"
            );
        }
        Ok(())
    }

    /// What only a run with a repository asks for.
    pub fn check_run(&self) -> fault::Result<()> {
        if !self.agents.contains_key("code") {
            bail!("there is no agent `code`, who takes what no other does; add [agents.code] plugin = \"react\"");
        }
        Ok(())
    }

    fn check_ask(&self) -> fault::Result<()> {
        if self.run.strategy == Strategy::Ask {
            bail!("[run] strategy is `session` or `pipeline`; an ask is started with `longhaul ask`");
        }
        self.ask.model.as_ref().map_or(Ok(()), |name| named("[ask] model", "models", name, &self.models))?;
        self.ask.agent.as_ref().map_or(Ok(()), |name| named("[ask] agent", "agents", name, &self.agents))?;
        overlaid(&HarnessLimits::of_ask(), &self.ask.limits).context("[ask.limits]")?;
        Ok(())
    }

    /// The caps of an ask.
    pub fn ask_limits(&self) -> HarnessLimits {
        // What does not fit was refused when the file was read.
        overlaid(&HarnessLimits::of_ask(), &self.ask.limits).unwrap_or_else(|_| HarnessLimits::of_ask())
    }

    /// The model that chooses between agents; none when nobody has one.
    pub fn chooser(&self) -> Option<String> {
        let of_parts =
            || std::iter::once(&self.planner).chain(self.agents.values()).find_map(|part| part.models.first());
        self.ask.model.as_ref().or_else(of_parts).cloned()
    }

    fn check_part(&self, table: &str, part: &PluginConfig, found: &mut Found) {
        if part.plugin.is_empty() {
            return found.at(table, Err(Fault::msg(format!("[{table}] has no plugin; add: plugin = \"NAME\""))));
        }
        found.at(&format!("{table}.plugin"), crate::toolbox::built_in::check(table, part));
        found.at(&format!("{table}.approval"), crate::toolbox::gate::check(table, part));
        found.at(&format!("{table}.secrets"), crate::secrets::check(table, &part.secrets));
        found.at(&format!("{table}.quarantine"), crate::quarantine::check(self, table, part));
        found.at(&format!("{table}.limits"), self.check_limits(table, part));
        found.at(&format!("{table}.context"), self.check_context(table, part));
        let servers: Vec<String> = self.mcp.keys().map(|name| mcp::tool_name(name)).collect();
        let known = [
            ("models", &part.models, self.models.keys().collect::<Vec<_>>()),
            ("tools", &part.tools, self.tools.keys().chain(&servers).collect()),
            ("agents", &part.agents, self.agents.keys().collect()),
        ];
        for (kind, wanted, known) in known {
            for missing in wanted.iter().filter(|name| !known.contains(name)) {
                let make = format!("add [{kind}.{missing}], or remove the name");
                let or = text::or_make(missing, &known, &make);
                let wrong =
                    Fault::msg(format!("[{table}] {kind} names `{missing}`, and there is no [{kind}.{missing}]{or}"));
                found.at(&format!("{table}.{kind}"), Err(wrong));
            }
        }
    }

    fn check_limits(&self, table: &str, part: &PluginConfig) -> fault::Result<()> {
        self.own_limits(part).map(drop).with_context(|| format!("[{table}.limits]"))
    }

    fn check_context(&self, table: &str, part: &PluginConfig) -> fault::Result<()> {
        let rules = self.own_context(part).with_context(|| format!("[{table}.context]"))?;
        rules.check().map_err(|wrong| Fault::msg(format!("[{table}.context]: {wrong}")))
    }

    /// Each is one that features can have, and goes to one agent.
    fn check_categories(&self) -> fault::Result<()> {
        for (table, part) in self.parts().filter(|(_, part)| !part.categories.is_empty()) {
            if !table.starts_with("agents.") {
                bail!("[{table}] takes no categories: features go to agents; remove the line");
            }
            if let Some(unknown) = part.categories.iter().find(|category| !route::is_category(category)) {
                let or = text::or_one_of(unknown, &route::ROUTES.map(|(category, _)| category));
                bail!("[{table}] categories names `{unknown}`{or}");
            }
        }
        let mut taken = BTreeMap::new();
        for (name, part) in &self.agents {
            for category in &part.categories {
                if let Some(other) = taken.insert(category, name) {
                    bail!("category `{category}` is given to [agents.{other}] and to [agents.{name}]; keep one");
                }
            }
        }
        Ok(())
    }

    /// After how many steps of a part there is a checkpoint.
    pub fn checkpoint_every(&self, table: &str) -> u32 {
        self.part(table).and_then(|part| part.checkpoint_every).unwrap_or(self.checkpoints.every)
    }

    /// Whether anybody may ask that model.
    pub fn uses_model(&self, name: &String) -> bool {
        let of_the_host = [&self.ask.model, &self.memory.model];
        of_the_host.contains(&&Some(name.clone())) || self.parts().any(|(_, part)| part.models.contains(name))
    }

    /// The agents of those categories that were given to one.
    pub fn categories(&self) -> BTreeMap<String, String> {
        let of = |(name, part): (&String, &PluginConfig)| {
            part.categories.iter().map(|category| (category.clone(), name.clone())).collect::<Vec<_>>()
        };
        self.agents.iter().flat_map(of).collect()
    }

    /// What agents are good at, by their names.
    pub fn described(&self) -> BTreeMap<String, String> {
        let of = |(name, part): (&String, &PluginConfig)| Some((name.clone(), part.description.clone()?));
        self.agents.iter().filter_map(of).collect()
    }

    /// Agents whose own opinion of how sure they are counts for nothing.
    pub fn confidence_ignored(&self) -> BTreeSet<String> {
        let ignored = self.agents.iter().filter(|(_, part)| part.confidence_from_llm == Some(false));
        ignored.map(|(name, _)| name.clone()).collect()
    }

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

    /// Without what reaches beyond a run and its tree: programs, hosts, directories and secrets.
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

    /// What the plugin of a table may use.
    pub fn limits_of(&self, part: &PluginConfig) -> Limits {
        // What does not fit was refused when the file was read.
        self.own_limits(part).unwrap_or_else(|_| self.limits.clone())
    }

    fn own_limits(&self, part: &PluginConfig) -> fault::Result<Limits> {
        overlaid(&self.limits, &part.limits)
    }

    /// When and how the conversations of the plugin of a table are cut back.
    pub fn context_of(&self, part: &PluginConfig) -> ContextRules {
        // What does not fit was refused when the file was read.
        self.own_context(part).unwrap_or_else(|_| self.context.clone())
    }

    fn own_context(&self, part: &PluginConfig) -> fault::Result<ContextRules> {
        overlaid(&self.context, &part.context)
    }
}

/// The fields of all, with those of one over them.
fn overlaid<T: Serialize + DeserializeOwned>(all: &T, own: &toml::Table) -> fault::Result<T> {
    let mut fields = toml::Table::try_from(all)?;
    fields.extend(own.clone());
    fields.try_into().map_err(|error: toml::de::Error| Fault::msg(text::of_toml("", &error).1))
}

/// Refuses the name of a table that is not there.
fn named<T>(what: &str, kind: &str, name: &str, tables: &BTreeMap<String, T>) -> fault::Result<()> {
    if tables.contains_key(name) {
        return Ok(());
    }
    let known: Vec<&String> = tables.keys().collect();
    let or = text::or_make(name, &known, &format!("add [{kind}.{name}], or remove the line"));
    bail!("{what} names `{name}`, and there is no [{kind}.{name}]{or}")
}

/// What a plugin may do: what it asks for, as far as the operator gives it.
pub fn grants(table: &str, part: &PluginConfig, asks: &Asks, project: &Path, tree: &Path) -> Grants {
    let listed = |asked: bool, given: &[String]| if asked { given.to_vec() } else { Vec::new() };
    Grants {
        table: table.to_owned(),
        directories: part.directories.iter().filter_map(|given| directory(given, asks, project, tree)).collect(),
        hosts: part.hosts.iter().flat_map(|host| asked_host(asks, host)).collect(),
        tools: listed(asks.tools, &part.tools),
        agents: listed(asks.agents, &part.agents),
        models: listed(asks.models, &part.models),
    }
}

fn directory(given: &DirectoryConfig, asks: &Asks, project: &Path, tree: &Path) -> Option<DirectoryGrant> {
    let asked = asks.directories.iter().find(|asked| asked.guest == given.guest)?;
    let host = if given.host == Path::new(TREE) { tree.to_owned() } else { project.join(&given.host) };
    Some(DirectoryGrant { guest: given.guest.clone(), host, access: given.access.min(asked.access) })
}

/// A host as far as the plugin asks for it.
fn asked_host(asks: &Asks, given: &HostPattern) -> Vec<HostPattern> {
    let asked = |asked: &String| match asked.as_str() {
        "*" => Some(given.clone()),
        asked => given.within(&HostPattern::try_from(asked.to_owned()).ok()?),
    };
    asks.hosts.iter().filter_map(asked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::context::Policy;

    const SMALL: &str = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n";

    #[track_caller]
    fn check(more: &str, expected: &str) {
        let error = Config::parse(&format!("{SMALL}{more}")).expect_err(more);
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    }

    #[test]
    fn who_plans_and_judges_without_a_table_has_the_models_of_whoever_works() {
        let parts = |more: &str| {
            let config = Config::parse(&format!("{SMALL}{more}")).expect("it is read");
            let asks = Asks { models: true, ..Asks::default() };
            let told = |part: &PluginConfig| format!("{} {}", part.plugin, part.models.join(","));
            (told(&config.planner), told(&config.evaluator), config.checks_only(Some(&asks)))
        };
        let none = ("initializer ".into(), "check-evaluator ".into(), Some("check-evaluator".to_owned()));
        assert_eq!(parts(""), none);
        let model = "models = [\"m\"]\n[models.m]\nprovider = \"local\"\n";
        assert_eq!(parts(model), ("initializer m".into(), "rubric-evaluator m".into(), None));
        let (_, evaluator, only) = parts(&format!("{model}[evaluator]\nplugin = \"rubric-evaluator\"\n"));
        assert_eq!((evaluator.as_str(), only.as_deref()), ("rubric-evaluator ", Some("rubric-evaluator")));
    }

    #[test]
    fn what_is_wrong_in_the_file_is_said_with_its_place() {
        check("tols = [\"files\"]", "line 5: [agents.code] unknown field `tols`; did you mean `tools`?");
        check("tools = [\"files\"]", "line 5: [agents.code] tools names `files`, and there is no [tools.files]; add");
        check(
            "tools = [\"flies\"]\n[tools.files]\nplugin = \"files\"",
            "line 5: [agents.code] tools names `flies`, and there is no [tools.flies]; did you mean `files`?",
        );
        check("[tools.files]\n", "[tools.files] has no plugin");
        check("categories = [\"poetry\"]", "[agents.code] categories names `poetry`; there are `functional`");
        check("categories = [\"test\"]", "[agents.code] categories names `test`; did you mean `testing`?");
        check(
            "categories = [\"ui\"]\n[agents.b]\nplugin = \"react\"\ncategories = [\"ui\"]",
            "category `ui` is given to [agents.b] and to [agents.code]; keep one",
        );
        check("[evaluator]\nplugin = \"x\"\ncategories = [\"ui\"]", "[evaluator] takes no categories");
        check("[limits]\nfuel = 1", "line 6: [limits] unknown field `fuel`; did you mean `fuel_max`?");
        check("[agents.code.limits]\nfuel = 1", "[agents.code.limits]: unknown field `fuel`; did you mean `fuel_max`?");
        check("[context]\npolicy = \"forget\"", "unknown variant `forget`");
        check("[context]\nfull_percent_max = 0", "[context]: full_percent_max is 0; take 1 to 100");
        check("[agents.code.context]\nfull = 1", "[agents.code.context]: unknown field `full`");
        check("[agents.code.context]\nreset_percent_max = 80", "[agents.code.context]: compact_percent_max is 40");
    }

    #[test]
    fn a_cap_on_money_needs_prices() {
        let model = |id: &str, more: &str| {
            format!("models = [\"m\"]\n[models.m]\nprovider = \"openai\"\nid = \"{id}\"\n{more}")
        };
        let cap = "[run.limits]\ncost_microdollars_max = 5";
        let unknown = "[run.limits] cost_microdollars_max cannot be held: nobody knows what model `m` costs; add to \
                       [models.m], in US dollars, 0.0 where it costs nothing: price_input_usd_per_million = 0.0";
        check(&format!("{}{cap}", model("mine", "")), unknown);
        check(
            &format!("{}[ask.limits]\ncost_microdollars_max = 5", model("mine", "")),
            "[ask.limits] cost_microdollars_max",
        );
        // Another host may ask another price for the same name.
        check(&format!("{}{cap}", model("gpt-5-mini", "base_url = \"http://127.0.0.1:1/v1\"\n")), unknown);
        let prices = "price_input_usd_per_million = 0.0\nprice_output_usd_per_million = 0.0\n";
        for known in [model("mine", prices), model("gpt-5-mini", "")] {
            Config::parse(&format!("{SMALL}{known}{cap}")).expect(&known);
        }
        // A model that nobody asks costs nothing.
        let unused = model("mine", "").replacen("models = [\"m\"]\n", "", 1);
        Config::parse(&format!("{SMALL}{unused}{cap}")).expect("unused");
        Config::parse(&format!("{SMALL}{}", model("mine", ""))).expect("no cap");
    }

    #[test]
    fn own_limits_change_what_they_name_and_nothing_else() {
        let text = format!("{SMALL}[agents.code.limits]\nfuel_max = 7\n[limits]\nfuel_max = 9\nwall_ms_max = 5\n");
        let config = Config::parse(&text).unwrap();
        let limits = config.limits_of(&config.agents["code"]);
        assert_eq!((limits.fuel_max, limits.wall_ms_max), (7, 5));
        assert_eq!(config.limits_of(&config.planner).fuel_max, 9);
        let text = format!(
            "{SMALL}[agents.code.context]\npolicy = \"halve\"\n[context]\nwindow_tokens_max = 8000\nfull_percent_max = 70\n"
        );
        let config = Config::parse(&text).unwrap();
        let rules = config.context_of(&config.agents["code"]);
        assert_eq!((rules.policy, rules.window_tokens_max, rules.full_percent_max), (Policy::Halve, Some(8_000), 70));
        assert_eq!(config.context_of(&config.planner).policy, Policy::Auto);
    }

    #[test]
    fn nothing_is_granted_that_is_not_on_both_lists() {
        let part: PluginConfig = toml::from_str(
            "plugin = \"x\"\nmodels = [\"m\"]\ndirectories = [{ guest = \"/work\", access = \"write\" }, { guest = \"/etc\", host = \"/etc\", access = \"read\" }]\nhosts = [\"https://a.example\"]",
        )
        .unwrap();
        let asks: Asks = toml::from_str("directories = [{ guest = \"/work\", access = \"read\" }]").unwrap();
        let grants = grants("tools.x", &part, &asks, Path::new("/p"), Path::new("/t"));
        assert_eq!(
            grants.directories,
            [DirectoryGrant { guest: "/work".into(), host: "/t".into(), access: Access::Read }]
        );
        assert!(grants.models.is_empty() && grants.hosts.is_empty());
    }
}
