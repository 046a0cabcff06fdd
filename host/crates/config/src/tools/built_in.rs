//! The tables of built-in tools, which the host itself implements. `builtin:NAME` is no plugin's name, so no component
//! can take the place of one.

use crate::part::PluginConfig;
use crate::toml_text;
use crate::tools::native_python::{self, is_native};
use longhaul_approval::{AllowedCommand, ApprovalPolicy, PolicyMode};
use longhaul_browser::BrowserSettings;
use longhaul_core::fault::{self, Context, bail};
use serde_json::Value;

/// The prefix of a built-in tool's name.
pub const PREFIX: &str = "builtin:";

/// The tool that reads the project; the others are those of [`longhaul_tools`].
pub const PROJECT: &str = "project";

/// The tool that asks a person in the agent's words.
pub const ASK_HUMAN: &str = "ask-human";

/// The tool that keeps an agent's list of steps.
pub const TODO: &str = "todo";

/// The tool that opens web pages.
pub const BROWSER: &str = "browser";

/// The tool that reads the commits of a run, and keeps checkpoints, which are commits as well.
const GIT: &str = "git";

/// Functions of the browser that only read an open page.
const LOOKS: [&str; 3] = ["elements", "read", "screenshot"];

/// True when the host itself implements the tool of a table.
pub fn is_built_in(part: &PluginConfig) -> bool {
    part.plugin.starts_with(PREFIX) || is_native(part)
}

/// True when calls of a table's tool may make commits.
pub fn makes_commits(part: &PluginConfig) -> bool {
    part.plugin.strip_prefix(PREFIX) == Some(GIT)
}

/// True when every call of it needs an approval, whatever the configuration says.
pub fn always_asks(part: &PluginConfig) -> bool {
    part.plugin.strip_prefix(PREFIX).is_some_and(|tool| longhaul_tools::ALWAYS_ASK.contains(&tool))
}

/// The approval policy of a table's tool. Without one for a browser, a person is asked: the address alone tells
/// something to the server behind it.
pub fn policy(part: &PluginConfig) -> ApprovalPolicy {
    let mut policy = part.approval.clone();
    if part.plugin.strip_prefix(PREFIX) == Some(BROWSER) && policy.default.is_none() {
        policy.default = Some(PolicyMode::Ask);
        for function in LOOKS {
            policy.functions.entry(function.to_owned()).or_insert(PolicyMode::Allow);
        }
    }
    policy
}

/// True when the calls of a table's tool are questions to a person.
pub fn is_question(part: &PluginConfig) -> bool {
    part.plugin.strip_prefix(PREFIX) == Some(ASK_HUMAN)
}

/// Refuses an unknown built-in tool, one in a table for another role, or one with grants, which it does not need.
pub fn check(table: &str, part: &PluginConfig) -> fault::Result<()> {
    native_python::check(table, part)?;
    let name = &part.plugin;
    let Some(tool) = name.strip_prefix(PREFIX) else { return Ok(()) };
    let is_browser = tool == BROWSER;
    let is_ours = [PROJECT, ASK_HUMAN, TODO].contains(&tool);
    if !is_ours && !is_browser && !longhaul_tools::NAMES.contains(&tool) {
        let names = [PROJECT, ASK_HUMAN, TODO, BROWSER].into_iter().chain(longhaul_tools::NAMES);
        let names: Vec<String> = names.map(|name| format!("{PREFIX}{name}")).collect();
        bail!("[{table}] there is no tool `{name}`{}", toml_text::or_one_of(name, &names));
    }
    if !table.starts_with("tools.") {
        bail!("[{table}] `{name}` is a tool; write it under [tools.{tool}], and tools = [\"{tool}\"] here");
    }
    let PluginConfig { models, tools, agents, directories, hosts, secrets, packages, limits, .. } = part;
    let given = [
        ("models", models.is_empty()),
        ("tools", tools.is_empty()),
        ("agents", agents.is_empty()),
        ("directories", directories.is_empty()),
        ("hosts", is_browser || hosts.is_empty()),
        ("secrets", secrets.is_empty()),
        ("packages", packages.is_empty()),
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
        BrowserSettings::read(&settings(part)).or_invalid(|| format!("[{table}] `{name}`"))?;
    } else if !is_ours {
        longhaul_tools::check(tool, &settings(part)).or_invalid(|| format!("[{table}] `{name}`"))?;
    }
    Ok(())
}

/// The settings with the programs of the allowed commands: those may be started.
pub fn settings(part: &PluginConfig) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_tool_stands_under_tools_and_needs_nothing() {
        let check = |table: &str, text: &str, expected: &str| {
            let part: PluginConfig = toml::from_str(text).unwrap();
            let said = super::check(table, &part).err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
            assert!(said.contains(expected), "{said}");
        };
        check("tools.project", "plugin = \"builtin:project\"", "");
        check("tools.files", "plugin = \"files\"\nhosts = [\"https://a.example\"]", "");
        check("tools.x", "plugin = \"builtin:telnet\"", "there is no tool `builtin:telnet`");
        check("tools.x", "plugin = \"builtin:search\"", "");
        check("tools.x", "plugin = \"builtin:browser\"\nhosts = [\"https://a.example\"]", "");
        check("tools.x", "plugin = \"builtin:browser\"\nsettings = { browsers_max = 0 }", "`browsers_max` is 0");
        check("tools.x", "plugin = \"builtin:browser\"\nsettings = { program = \"chromium\" }", "no full path");
        check("tools.x", "plugin = \"builtin:search\"\nhosts = [\"https://a.example\"]", "takes no hosts");
        check("tools.x", "plugin = \"builtin:git\"\nsettings = { push = true }", "`git` has none");
        check("tools.x", "plugin = \"builtin:shell\"", "`programs` is empty");
        check("tools.x", "plugin = \"builtin:shell\"\nsettings = { programs = [\"../x\"] }", "no program's name");
        check(
            "tools.x",
            "plugin = \"builtin:shell\"\nsettings = { programs = [\"ls\"], shell = true }",
            "unknown field",
        );
        check("tools.x", "plugin = \"builtin:shell\"\nsettings = { programs = [\"ls\"] }", "");
        check("agents.code", "plugin = \"builtin:project\"", "write it under [tools.project]");
        check("tools.x", "plugin = \"builtin:project\"\nmodels = [\"m\"]", "takes no models");
    }
}
