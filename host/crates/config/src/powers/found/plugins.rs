//! The powers of a plugin's table: what it reaches, starts and is given.

use super::collected::Powers;
use super::values::{texts, words};
use crate::part::{DirectoryConfig, PluginConfig};
use crate::powers::power::PowerKind;
use crate::tools::built_in;
use crate::tools::native_python::is_native;
use longhaul_core::grant::Access;
use longhaul_core::text::shell_word;
use serde_json::Value;

const SHELL: &str = "builtin:shell";
const BROWSER: &str = "builtin:browser";

/// Keys of a plugin's table.
const PART: &str = "plugin runtime venv models tools agents categories checkpoint_every quarantine schema description \
     confidence_from_llm directories hosts secrets approval allow packages settings limits context confirm_effects";

/// Settings of the shell.
const SHELL_SETTINGS: &str = "programs read env_inherit sandbox_min env limits allow";

/// Settings of the browser.
const BROWSER_SETTINGS: &str = "program text_bytes_max load_ms_max call_ms_max idle_ms_max wall_ms_max browsers_max traffic_bytes_max \
     memory_bytes_max processes_max disk_bytes_max";

impl Powers {
    pub(super) fn of_part(&mut self, table: &str, part: &PluginConfig) {
        let what = format!("is the plugin `{}`", part.plugin);
        // Another component in its place would have all that the table grants; a component file came with the project.
        if reaches_on(part) || is_file(&part.plugin) {
            self.add(PowerKind::Tool, table, what);
        } else {
            self.add_plain(PowerKind::Tool, table, what);
        }
        if reaches_on(part) && is_file(&part.plugin) {
            self.of_own_files(PowerKind::Tool, table, [part.plugin.as_str()], None);
        }
        for (what, names) in [("tool", &part.tools), ("agent", &part.agents)] {
            for name in names {
                self.add_plain(PowerKind::Tool, table, format!("calls the {what} `{name}`"));
            }
        }
        for given in &part.directories {
            self.of_directory(table, given);
        }
        for host in &part.hosts {
            // The literal pattern: with its methods, if not all are meant.
            self.add(PowerKind::Host, table, format!("reaches {}", String::from(host.clone())));
        }
        for secret in &part.secrets {
            for host in &secret.hosts {
                let what = format!("sends the secret `{}` to {} in `{}`", secret.name, host.origin(), secret.header);
                self.add(PowerKind::Secret, table, what);
            }
        }
        for package in &part.packages {
            self.add_plain(PowerKind::Tool, table, format!("imports the package `{package}` in its sandbox"));
        }
        if is_native(part) {
            self.add_plain(PowerKind::Check, table, "runs code in Python of this machine in the sandbox");
        }
        if let Some(venv) = &part.venv {
            self.add(PowerKind::Directory, table, format!("reads {} in the sandbox", venv.display()));
        }
        for command in &part.allow {
            self.add(PowerKind::Command, table, format!("runs `{command}` in the sandbox without a question"));
        }
        let whole = serde_json::to_value(part).unwrap_or_default();
        let asks_by_default = built_in::always_asks(part) || part.plugin == BROWSER;
        self.of_approval(table, &whole["approval"], asks_by_default);
        if part.confirm_effects {
            let what = "is believed what it says of its effects";
            if reaches_on(part) {
                self.add(PowerKind::Wall, table, what);
            } else {
                self.add_plain(PowerKind::Wall, table, what);
            }
        }
        if part.quarantine {
            self.add_guard(table, "hears untrusted words in quarantine");
        }
        match part.plugin.as_str() {
            SHELL => self.of_shell(table, &whole["settings"]),
            BROWSER => self.of_browser(table, &whole["settings"]),
            // Other tools have no such settings, or are components, whose settings do not extend their reach.
            _ => {}
        }
        self.of_others(table, &whole, PART);
    }

    fn of_directory(&mut self, table: &str, given: &DirectoryConfig) {
        let verb = if given.access == Access::Write { "writes" } else { "reads" };
        if given.is_tree() {
            self.add_plain(PowerKind::Tree, table, format!("{verb} the tree of the run as {}", given.guest));
        } else {
            let what = format!("{verb} the directory {} as {}", given.host.display(), given.guest);
            self.add(PowerKind::Directory, table, what);
        }
    }

    fn of_shell(&mut self, table: &str, settings: &Value) {
        if let Some(programs) = words(&settings["programs"]) {
            self.add_plain(PowerKind::Check, table, format!("may start {programs} in the sandbox"));
        }
        for path in texts(&settings["read"]) {
            self.add(PowerKind::Directory, table, format!("reads {path} in the sandbox"));
        }
        for variable in texts(&settings["env_inherit"]) {
            self.add(PowerKind::Secret, table, format!("is handed the variable `{variable}`"));
        }
        self.of_level(table, "sandbox_min", &settings["sandbox_min"]);
        self.of_others(table, settings, SHELL_SETTINGS);
    }

    fn of_browser(&mut self, table: &str, settings: &Value) {
        if let Some(program) = settings["program"].as_str() {
            self.add(PowerKind::Command, table, format!("starts `{}`", shell_word(program)));
        }
        self.of_others(table, settings, BROWSER_SETTINGS);
    }
}

/// True when what a table grants reaches beyond the tree of a run.
fn reaches_on(part: &PluginConfig) -> bool {
    let is_beyond = |given: &DirectoryConfig| !given.is_tree();
    !part.hosts.is_empty() || !part.secrets.is_empty() || part.directories.iter().any(is_beyond)
}

/// True when the path of a file names the plugin.
fn is_file(plugin: &str) -> bool {
    plugin.starts_with(['.', '/'])
}
