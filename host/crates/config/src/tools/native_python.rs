//! The tool `python` with `runtime = "native"`: Python of this machine, in the sandbox of native programs.
//!
//! Refuses what such a tool cannot have: it works in the tree of the run, which it only reads, and sends no secret.

use crate::part::{DirectoryConfig, PluginConfig, ToolRuntime};
use longhaul_core::fault::{self, Context, bail};
use longhaul_core::grant::Access;
use serde::Deserialize;
use serde_json::Value;

/// The plugin whose place it takes.
pub const PLUGIN: &str = "python";

/// The settings of the tool, `[tools.NAME.settings]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NativePythonSettings {
    /// Longest time of a call, in milliseconds. Default 60 000.
    pub timeout_ms: u64,
    /// Most private memory of all processes of a call, in bytes. Default 1 GiB.
    pub memory_bytes_max: u64,
    /// Bytes that are kept of each output. Default 200 000.
    pub output_bytes_max: usize,
}

impl Default for NativePythonSettings {
    fn default() -> Self {
        Self { timeout_ms: 60_000, memory_bytes_max: 1 << 30, output_bytes_max: 200_000 }
    }
}

impl NativePythonSettings {
    /// Reads the settings of a table.
    pub fn of(part: &PluginConfig) -> fault::Result<Self> {
        let settings: Self = serde_json::from_value(Value::Object(part.settings.clone()))?;
        if settings.timeout_ms == 0 || settings.memory_bytes_max == 0 {
            bail!("a limit of 0 lets nothing run; remove it or set it above 0");
        }
        Ok(settings)
    }
}

/// True when a table names this tool.
pub fn is_native(part: &PluginConfig) -> bool {
    part.runtime == ToolRuntime::Native
}

/// Refuses a native runtime for another plugin or role, and grants that it cannot have; and `venv` without it.
pub(super) fn check(table: &str, part: &PluginConfig) -> fault::Result<()> {
    if !is_native(part) {
        if part.venv.is_some() {
            bail!("[{table}] `venv` is for native Python; add runtime = \"native\"");
        }
        return Ok(());
    }
    if part.plugin != PLUGIN || !table.starts_with("tools.") {
        bail!("[{table}] only the tool `{PLUGIN}` runs natively; remove runtime = \"native\"");
    }
    let PluginConfig { models, tools, agents, secrets, packages, limits, .. } = part;
    let given = [
        ("models", models.is_empty()),
        ("tools", tools.is_empty()),
        ("agents", agents.is_empty()),
        ("secrets", secrets.is_empty()),
        ("packages", packages.is_empty()),
        ("limits", limits.is_empty()),
    ];
    if let Some((field, _)) = given.iter().find(|(_, is_empty)| !is_empty) {
        bail!("[{table}] native Python takes no {field}; remove the line");
    }
    let is_the_tree = |given: &DirectoryConfig| given.is_tree() && given.access == Access::Read;
    if !part.directories.iter().all(is_the_tree) {
        bail!("[{table}] native Python reads the tree of the run and no other directory; remove the others");
    }
    NativePythonSettings::of(part).or_invalid(|| format!("[{table}.settings]"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_python_is_a_tool_that_reads_the_tree_and_may_reach_hosts() {
        let check = |table: &str, text: &str, expected: &str| {
            let part: PluginConfig = toml::from_str(text).unwrap();
            let said = super::check(table, &part).err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert_eq!(said.is_empty(), expected.is_empty(), "{text}: {said}");
            assert!(said.contains(expected), "{text}: {said}");
        };
        let native = "plugin = \"python\"\nruntime = \"native\"\n";
        let with = |rest: &str| format!("{native}{rest}");
        check("tools.python", native, "");
        check("tools.python", &with("venv = \".venv\"\nhosts = [\"https://a.example\"]"), "");
        check("tools.python", &with("directories = [{ guest = \"/work\", access = \"read\" }]"), "");
        check("tools.python", &with("settings = { timeout_ms = 1000 }"), "");
        check("tools.python", &with("directories = [{ guest = \"/w\", access = \"write\" }]"), "no other directory");
        check(
            "tools.python",
            &with("directories = [{ guest = \"/etc\", host = \"/etc\", access = \"read\" }]"),
            "no other directory",
        );
        check("tools.python", &with("models = [\"m\"]"), "takes no models");
        check("tools.python", &with("packages = [\"tabulate\"]"), "takes no packages");
        check("tools.python", &with("settings = { stream = true }"), "unknown field");
        check("tools.python", &with("settings = { timeout_ms = 0 }"), "a limit of 0");
        check("tools.x", "plugin = \"files\"\nruntime = \"native\"", "only the tool `python` runs natively");
        check("agents.x", native, "only the tool `python` runs natively");
        check("tools.x", "plugin = \"python\"\nvenv = \"v\"", "add runtime = \"native\"");
        check("tools.x", "plugin = \"python\"\nruntime = \"wasm\"", "");
    }
}
