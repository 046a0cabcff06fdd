//! Tools that the host answers itself. `builtin:NAME` is no plugin's name: nobody can put a component in its place.

use super::ask_human::AskHuman;
use super::plugin_host::PluginHost;
use super::project::ProjectTool;
use super::todo::Todo;
use crate::check::text;
use crate::config::PluginConfig;
use longhaul_approval::{AllowedCommand, Mode, Policy};
use longhaul_browser::{Around, Browser, BrowserSettings};
use longhaul_core::fault::{self, Context, bail};
use longhaul_core::grant::Grants;
use longhaul_core::supervisor::Supervisor;
use longhaul_core::tool::HostTool;
use longhaul_egress::{Caps, Guard};
use longhaul_sandbox::Level;
use longhaul_tools::Place;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// What a built-in tool's name starts with.
const PREFIX: &str = "builtin:";

/// The one that knows the project; the others are those of [`longhaul_tools`].
const PROJECT: &str = "project";

/// The one that asks a person in the agent's words.
const ASK_HUMAN: &str = "ask-human";

/// The one that keeps an agent's list of steps.
const TODO: &str = "todo";

/// The one that opens web pages.
const BROWSER: &str = "browser";

/// Its functions that only look at what is open already.
const LOOKS: [&str; 3] = ["elements", "read", "screenshot"];

/// Whether a table names a built-in tool.
pub fn is_built_in(part: &PluginConfig) -> bool {
    part.plugin.starts_with(PREFIX)
}

/// Where the tools of a run work.
pub struct Site<'a> {
    /// What confines the programs of tools.
    pub host: &'a PluginHost,
    /// The user's project.
    pub project: &'a Path,
    /// Its name, which the branch has too.
    pub name: &'a str,
    /// The least that must hold programs.
    pub sandbox_min: Level,
    /// The tree of the run.
    pub tree: &'a Path,
    /// Who counts what leaves.
    pub supervisor: &'a Arc<dyn Supervisor>,
}

/// The tool of a table that [`check`] let through.
pub fn open(tool: &str, part: &PluginConfig, site: &Site<'_>) -> fault::Result<Arc<dyn HostTool>> {
    let Site { host, project, name, sandbox_min, tree, supervisor } = *site;
    let (store, clock) = (Arc::clone(&host.store), Arc::clone(&host.clock));
    match part.plugin.strip_prefix(PREFIX) {
        Some(PROJECT) => Ok(Arc::new(ProjectTool { store, clock })),
        Some(ASK_HUMAN) => Ok(Arc::new(AskHuman)),
        Some(TODO) => Ok(Arc::new(Todo)),
        Some(BROWSER) => {
            let grants = Grants { table: format!("tools.{tool}"), hosts: part.hosts.clone(), ..Grants::default() };
            let around = Around {
                host: host.check_host(sandbox_min, project)?,
                child_args: vec!["browser-child".into()],
                guard: Guard::new(grants, Caps::default()),
                supervisor: Arc::clone(supervisor),
            };
            Ok(Arc::new(Browser::new(around, BrowserSettings::read(&settings(part))?)))
        }
        tool => {
            let place = Place {
                project: project.to_owned(),
                tree: tree.to_owned(),
                branch: format!("longhaul/{name}"),
                host: host.check_host(sandbox_min, project)?,
                clock,
            };
            Ok(longhaul_tools::open(tool.unwrap_or_default(), &settings(part), &place)?)
        }
    }
}

/// Whether no configuration lets its calls pass without a question.
pub fn always_asks(part: &PluginConfig) -> bool {
    part.plugin.strip_prefix(PREFIX).is_some_and(|tool| longhaul_tools::ALWAYS_ASK.contains(&tool))
}

/// What the operator says of a table's tool. Where nothing is said of what a browser does, a person is asked: an address
/// tells something to whoever it leads to.
pub fn policy(part: &PluginConfig) -> Policy {
    let mut policy = part.approval.clone();
    if part.plugin.strip_prefix(PREFIX) == Some(BROWSER) && policy.default.is_none() {
        policy.default = Some(Mode::Ask);
        for function in LOOKS {
            policy.functions.entry(function.to_owned()).or_insert(Mode::Allow);
        }
    }
    policy
}

/// Whether the calls of a table's tool are questions to a person.
pub fn is_question(part: &PluginConfig) -> bool {
    part.plugin.strip_prefix(PREFIX) == Some(ASK_HUMAN)
}

/// Refuses a built-in tool that there is not, or where no tool stands, or with grants: it needs none.
pub fn check(table: &str, part: &PluginConfig) -> fault::Result<()> {
    let name = &part.plugin;
    let Some(tool) = name.strip_prefix(PREFIX) else { return Ok(()) };
    let is_browser = tool == BROWSER;
    let is_ours = [PROJECT, ASK_HUMAN, TODO].contains(&tool);
    if !is_ours && !is_browser && !longhaul_tools::NAMES.contains(&tool) {
        let names = [PROJECT, ASK_HUMAN, TODO, BROWSER].into_iter().chain(longhaul_tools::NAMES);
        let names: Vec<String> = names.map(|name| format!("{PREFIX}{name}")).collect();
        bail!("[{table}] there is no tool `{name}`{}", text::or_one_of(name, &names));
    }
    if !table.starts_with("tools.") {
        bail!("[{table}] `{name}` is a tool; write it under [tools.{tool}], and tools = [\"{tool}\"] here");
    }
    let PluginConfig { models, tools, agents, directories, hosts, secrets, limits, .. } = part;
    let given = [
        ("models", models.is_empty()),
        ("tools", tools.is_empty()),
        ("agents", agents.is_empty()),
        ("directories", directories.is_empty()),
        ("hosts", is_browser || hosts.is_empty()),
        ("secrets", secrets.is_empty()),
        ("settings", !is_ours || part.settings.is_empty()),
        ("limits", limits.is_empty()),
    ];
    if let Some((field, _)) = given.iter().find(|(_, is_empty)| !is_empty) {
        bail!("[{table}] `{name}` takes no {field}; remove the line");
    }
    if part.settings.contains_key("allow") {
        bail!("[{table}.settings] takes no allow; write it above, under [{table}]");
    }
    if is_browser {
        BrowserSettings::read(&settings(part)).with_context(|| format!("[{table}] `{name}`"))?;
    } else if !is_ours {
        longhaul_tools::check(tool, &settings(part)).with_context(|| format!("[{table}] `{name}`"))?;
    }
    Ok(())
}

/// With the programs of the commands that are allowed: those may be started.
fn settings(part: &PluginConfig) -> Value {
    let mut settings = part.settings.clone();
    let allowed = AllowedCommand::read_all(&part.allow).unwrap_or_default();
    if !allowed.is_empty() {
        let programs = settings.entry("programs").or_insert_with(|| Value::Array(Vec::new()));
        for program in allowed.iter().map(|one| Value::from(one.program())) {
            if let Value::Array(programs) = programs
                && !programs.contains(&program)
            {
                programs.push(program);
            }
        }
        settings.insert("allow".to_owned(), allowed.iter().map(AllowedCommand::line).collect());
    }
    Value::Object(settings)
}
