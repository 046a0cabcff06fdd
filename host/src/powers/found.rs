//! The tables of a `longhaul.toml`, one by one, for their powers.
//!
//! Each table has its list of keys that were looked at: those that reach something are told by a function here, the others
//! reach nothing. A value under any other key is told as it is written, so that a new setting is a power until somebody
//! has looked at it.

use super::{Power, PowerKind};
use crate::config::{Config, DirectoryConfig, FILE, PluginConfig};
use longhaul_core::grant::Access;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Component, Path};

const SHELL: &str = "builtin:shell";
const BROWSER: &str = "builtin:browser";

/// All tables.
const TABLES: &str = "project run plan ask limits context compile planner evaluator agents tools mcp models checks telemetry \
     memory checkpoints protect notify";

/// Tables that there is once, each with its keys. Caps on what is spent reach nothing.
const ONCE: [(&str, &str); 9] = [
    ("project", "name goal"),
    ("run", "strategy contract_by sandbox_min limits needs"),
    ("plan", "accept"),
    ("ask", "model agent limits"),
    (
        "compile",
        "bytes_max functions_max nesting_max interfaces_max memory_bytes_max cpu_ms_max wall_ms_max code_bytes_max \
         sandbox_min",
    ),
    (
        "telemetry",
        "otlp_endpoint service_name sample_ratio traces metrics logs metrics_every_ms export_ms_max flush_ms_max \
         queue_max",
    ),
    ("memory", "backend model episodic episodes_max facts_max embeddings redis plugin"),
    ("checkpoints", "every redis lease_ms"),
    ("notify", "on command webhook webhook_env email texts per_hour_max attempts_max retry_wait_ms"),
];

const IS_LINUX: bool = cfg!(target_os = "linux");

/// Keys of a plugin's table.
const PART: &str = "plugin models tools agents categories checkpoint_every quarantine schema description confidence_from_llm \
     directories hosts secrets approval allow settings limits context confirm_effects";

/// Keys of a check. Its variables are those of a program in the sandbox, which the repository could set itself.
const CHECK: &str = "argv files evidence twins report tests_min unpinned env read wall_ms_max memory_bytes_max output_bytes_max \
     processes_max disk_bytes_max";

/// Keys of an MCP server.
const SERVER: &str = "command directory env read write hosts sandbox url bearer tools read_only resources prompts approval \
     connect_ms_max call_ms_max output_bytes_max disk_bytes_max";

/// Keys of a server that speaks Redis.
const REDIS: &str = "url password_env user ca_file ttl_s prefix";

/// Keys of a model, of all providers.
const MODEL: &str = "fallback fallback_on fallback_rest_ms requests_at_once_max requests_per_minute_max tokens_per_minute_max \
     cache cache_bytes_max provider id base_url api_key_env api_key_file bearer allow_plain_http version beta \
     context_tokens_max temperature output_tokens_field prefill schema image_detail omit extra_body \
     thinking_tokens_max prompt_cache price_input_usd_per_million price_cached_usd_per_million \
     price_cache_written_usd_per_million price_output_usd_per_million connect_ms_max idle_ms_max total_ms_max \
     response_bytes_max line_bytes_max retry file memory_bytes_max threads nice load_ms_max reply_ms_max models \
     by";

/// Settings of the shell.
const SHELL_SETTINGS: &str = "programs read env_inherit sandbox_min env limits allow";

/// Settings of the browser.
const BROWSER_SETTINGS: &str = "program text_bytes_max load_ms_max call_ms_max idle_ms_max wall_ms_max browsers_max traffic_bytes_max \
     memory_bytes_max processes_max disk_bytes_max";

fn tables<'a>(whole: &'a Value, name: &str) -> Vec<(&'a String, &'a Value)> {
    whole[name].as_object().into_iter().flatten().collect()
}

/// The words of a list, each as a shell would need it.
fn words(list: &Value) -> Option<String> {
    let words: Vec<String> = texts(list).map(quoted).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The scheme, host and port of an address, without what may be secret in it.
fn origin(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{}", authority.rsplit('@').next().unwrap_or_default())
}

fn is_loopback(address: &str) -> bool {
    let origin = origin(address);
    let authority = origin.split_once("://").map_or(origin.as_str(), |(_, rest)| rest);
    let host = authority.rsplit_once(':').map_or(authority, |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { host } else { authority }
    });
    host == "localhost"
        || host == "[::1]"
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Powers(pub(super) BTreeSet<Power>);

impl Powers {
    /// Goes through all tables.
    pub(super) fn of(config: &Config) -> Self {
        let mut found = Self::default();
        for (table, part) in config.parts() {
            found.of_part(&table, part);
        }
        // Generic values, since each crate has its own types for these and only their names matter here.
        let whole = serde_json::to_value(config).unwrap_or_default();
        for (name, check) in tables(&whole, "checks") {
            found.of_check(&format!("checks.{name}"), check);
        }
        for (name, server) in tables(&whole, "mcp") {
            found.of_server(&format!("mcp.{name}"), server);
        }
        for (name, model) in tables(&whole, "models") {
            found.of_model(&format!("models.{name}"), model);
        }
        found.of_goal(&config.project.goal);
        found.of_notify(&whole["notify"]);
        found.of_endpoints(&whole);
        found.of_walls(&whole);
        for (table, reviewed) in ONCE {
            found.of_others(table, &whole[table], reviewed);
        }
        found.of_others(FILE, &whole, TABLES);
        found
    }

    fn add(&mut self, kind: PowerKind, table: &str, what: impl Into<String>) {
        self.0.insert(Power { kind, table: table.to_owned(), what: what.into(), is_plain: false });
    }

    fn add_plain(&mut self, kind: PowerKind, table: &str, what: impl Into<String>) {
        self.0.insert(Power { kind, table: table.to_owned(), what: what.into(), is_plain: true });
    }

    fn of_part(&mut self, table: &str, part: &PluginConfig) {
        self.add_plain(PowerKind::Tool, table, format!("is the plugin `{}`", part.plugin));
        for (what, names) in [("tool", &part.tools), ("agent", &part.agents)] {
            for name in names {
                self.add_plain(PowerKind::Tool, table, format!("calls the {what} `{name}`"));
            }
        }
        for given in &part.directories {
            self.of_directory(table, given);
        }
        for host in &part.hosts {
            // As it is written: with its methods, where not all are meant.
            self.add(PowerKind::Host, table, format!("reaches {}", String::from(host.clone())));
        }
        for secret in &part.secrets {
            for host in &secret.hosts {
                let what = format!("sends the secret `{}` to {} in `{}`", secret.name, host.origin(), secret.header);
                self.add(PowerKind::Secret, table, what);
            }
        }
        for command in &part.allow {
            self.add(PowerKind::Command, table, format!("runs `{command}` in the sandbox without a question"));
        }
        let whole = serde_json::to_value(part).unwrap_or_default();
        self.of_approval(table, &whole["approval"]);
        if part.confirm_effects {
            let what = "is believed what it says of its effects";
            let reaches_on = !(part.hosts.is_empty() && part.secrets.is_empty());
            if reaches_on || part.directories.iter().any(|given| !given.is_tree()) {
                self.add(PowerKind::Wall, table, what);
            } else {
                self.add_plain(PowerKind::Wall, table, what);
            }
        }
        match part.plugin.as_str() {
            SHELL => self.of_shell(table, &whole["settings"]),
            BROWSER => self.of_browser(table, &whole["settings"]),
            // Others have none, or are components, which reach no more by what they are told.
            _ => {}
        }
        self.of_others(table, &whole, PART);
    }

    /// What passes although a person would be asked about it by default.
    fn of_approval(&mut self, table: &str, policy: &Value) {
        let rules = policy["rules"].as_array().into_iter().flatten();
        for (which, said) in std::iter::once(("", policy)).chain(rules.map(|rule| (" that a rule names", rule))) {
            if said["when_heard"] == "allow" {
                self.add(PowerKind::Wall, table, format!("lets calls{which} pass after untrusted words were heard"));
            }
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
        if !is_whole(&settings["sandbox_min"]) {
            self.add(PowerKind::Wall, table, format!("sandbox_min = {}", settings["sandbox_min"]));
        }
        self.of_others(table, settings, SHELL_SETTINGS);
    }

    fn of_browser(&mut self, table: &str, settings: &Value) {
        if let Some(program) = settings["program"].as_str() {
            self.add(PowerKind::Command, table, format!("starts `{}`", quoted(program)));
        }
        self.of_others(table, settings, BROWSER_SETTINGS);
    }

    /// Its words are told to models.
    fn of_goal(&mut self, goal: &Path) {
        if leads_out(goal) {
            self.add(PowerKind::Directory, "project", format!("reads {} as the goal", goal.display()));
        }
    }

    /// Values of a table under keys that nobody has looked at.
    fn of_others(&mut self, table: &str, values: &Value, reviewed: &str) {
        for (key, value) in values.as_object().into_iter().flatten() {
            let is_said = match value {
                Value::Null | Value::Bool(false) => false,
                Value::Array(list) => !list.is_empty(),
                Value::Object(table) => !table.is_empty(),
                Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
            };
            if is_said && !reviewed.split(' ').any(|known| known == key) {
                self.add(PowerKind::Wall, table, format!("{key} = {value}"));
            }
        }
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

    fn of_check(&mut self, table: &str, check: &Value) {
        if let Some(command) = words(&check["argv"]) {
            self.add_plain(PowerKind::Check, table, format!("checks by `{command}` in the sandbox"));
        }
        // With the links to it and the virtual environment that it lies in.
        if let Some(program) = texts(&check["argv"]).next().filter(|word| is_elsewhere(Path::new(word))) {
            self.add(PowerKind::Directory, table, format!("sees {program} in the sandbox, with its tool chain"));
        }
        for path in texts(&check["read"]) {
            self.add(PowerKind::Directory, table, format!("reads {path} in the sandbox"));
        }
        self.of_others(table, check, CHECK);
    }

    fn of_server(&mut self, table: &str, server: &Value) {
        if let Some(command) = words(&server["command"]) {
            let directory = server["directory"].as_str().unwrap_or("tree");
            self.add(PowerKind::Command, table, format!("starts `{command}` in {directory}"));
        }
        if let Some(url) = server["url"].as_str() {
            self.add(PowerKind::Host, table, format!("reaches {}", origin(url)));
        }
        if let Some(secret) = server["bearer"].as_str() {
            self.add(PowerKind::Secret, table, format!("sends the secret `{secret}`"));
        }
        for (variable, value) in server["env"].as_object().into_iter().flatten() {
            if let Some(name) = value["secret"].as_str() {
                self.add(PowerKind::Secret, table, format!("is handed the secret `{name}` as {variable}"));
            } else if let Some(from) = value["from"].as_str() {
                self.add(PowerKind::Secret, table, format!("is handed the variable `{from}` as {variable}"));
            } else if let Some(value) = value.as_str() {
                // A variable such as LD_PRELOAD is as good as another command.
                self.add(PowerKind::Command, table, format!("starts with {variable}={}", quoted(value)));
            }
        }
        let granted = [
            (PowerKind::Host, "hosts", "reaches"),
            (PowerKind::Directory, "read", "reads"),
            (PowerKind::Directory, "write", "writes"),
        ];
        for (kind, field, verb) in granted {
            for given in texts(&server[field]) {
                self.add(kind, table, format!("{verb} {given}"));
            }
        }
        let level = &server["sandbox"];
        if !is_whole(level) {
            self.add(PowerKind::Wall, table, format!("sandbox = {level}"));
        }
        if let Some(digest) = server["tools"].as_str() {
            self.add(PowerKind::Wall, table, format!("takes the tools {digest} without a question"));
        }
        for function in texts(&server["read_only"]) {
            self.add(PowerKind::Wall, table, format!("takes `{function}` for one that only reads"));
        }
        self.of_approval(table, &server["approval"]);
        self.of_others(table, server, SERVER);
    }

    fn of_model(&mut self, table: &str, model: &Value) {
        let address = model["base_url"].as_str().filter(|address| !is_usual_endpoint(address));
        let key = ["api_key_env", "api_key_file"].iter().find_map(|field| Some((*field, model[*field].as_str()?)));
        match address {
            Some(address) if key.is_none() && is_loopback(address) => {
                self.add_plain(PowerKind::Endpoint, table, format!("asks {} without a key", origin(address)));
            }
            Some(address) => self.add(PowerKind::Endpoint, table, format!("sends prompts to {}", origin(address))),
            None => {
                let provider = model["provider"].as_str().unwrap_or_default();
                self.add_plain(PowerKind::Endpoint, table, format!("asks {provider}"));
            }
        }
        match key {
            Some(("api_key_file", path)) => self.add(PowerKind::Secret, table, format!("reads a key from {path}")),
            Some((_, variable)) if address.is_some() || !is_usual_key(variable) => {
                self.add(PowerKind::Secret, table, format!("sends the variable `{variable}` as its key"));
            }
            Some((_, variable)) => {
                self.add_plain(PowerKind::Secret, table, format!("sends the variable `{variable}` as its key"));
            }
            None => {}
        }
        for (field, value) in [("allow_plain_http", &model["allow_plain_http"]), ("extra_body", &model["extra_body"])] {
            let is_said = value == &Value::Bool(true) || value.as_object().is_some_and(|fields| !fields.is_empty());
            if is_said {
                self.add(PowerKind::Endpoint, table, format!("{field} = {value}"));
            }
        }
        if let Some(file) = model["file"].as_str().filter(|file| leads_out(Path::new(file))) {
            self.add(PowerKind::Endpoint, table, format!("reads the file {file}"));
        }
        self.of_others(table, model, MODEL);
    }

    fn of_notify(&mut self, notify: &Value) {
        if let Some(command) = words(&notify["command"]) {
            self.add(PowerKind::Command, "notify", format!("starts `{command}` outside the sandbox"));
        }
        if let Some(command) = words(&notify["email"]["sendmail"]) {
            self.add(PowerKind::Command, "notify.email", format!("starts `{command}` outside the sandbox"));
        }
        if let Some(webhook) = notify["webhook"].as_str() {
            self.add(PowerKind::Host, "notify", format!("posts to {}", origin(webhook)));
        }
        if let Some(variable) = notify["webhook_env"].as_str() {
            self.add(PowerKind::Host, "notify", format!("posts to the address in the variable `{variable}`"));
        }
        for mailbox in texts(&notify["email"]["to"]) {
            self.add(PowerKind::Host, "notify.email", format!("mails to {mailbox}"));
        }
        if notify["texts"] == true {
            self.add(PowerKind::Wall, "notify", "tells what agents and models wrote");
        }
    }

    fn of_endpoints(&mut self, whole: &Value) {
        let endpoints = [
            ("telemetry", &whole["telemetry"]["otlp_endpoint"]),
            ("memory.redis", &whole["memory"]["redis"]["url"]),
            ("checkpoints.redis", &whole["checkpoints"]["redis"]["url"]),
        ];
        for (table, address) in endpoints {
            if let Some(address) = address.as_str() {
                self.add(PowerKind::Endpoint, table, format!("sends to {}", origin(address)));
            }
        }
        for (table, server) in
            [("memory.redis", &whole["memory"]["redis"]), ("checkpoints.redis", &whole["checkpoints"]["redis"])]
        {
            if let Some(variable) = server["password_env"].as_str() {
                self.add(PowerKind::Secret, table, format!("sends the variable `{variable}` as its password"));
            }
            if let Some(file) = server["ca_file"].as_str() {
                self.add(PowerKind::Endpoint, table, format!("is checked by the authority in {file}"));
            }
            self.of_others(table, server, REDIS);
        }
    }

    /// What other tables lower; one that is not written changes nothing.
    fn of_walls(&mut self, whole: &Value) {
        for table in ["run", "compile"] {
            let min = &whole[table]["sandbox_min"];
            // Of compilation any other level than `none` asks for the same, and off Linux there is only that.
            let is_lower = if table == "compile" { min == "none" && IS_LINUX } else { !is_whole(min) };
            if is_lower {
                self.add(PowerKind::Wall, table, format!("sandbox_min = {min}"));
            }
        }
        for (field, value) in tables(whole, "protect") {
            let is_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            if !is_nothing {
                self.add(PowerKind::Wall, "protect", format!("{field} = {value}"));
            }
        }
    }
}

/// Whether a path may lead out of the project.
pub(crate) fn leads_out(path: &Path) -> bool {
    path.is_absolute() || leads_out_of_itself(path)
}

/// Whether a program is named by a path that is not the system's.
fn is_elsewhere(program: &Path) -> bool {
    let is_system = ["/usr", "/bin", "/sbin", "/nix/store", "/gnu/store"].iter().any(|dir| program.starts_with(dir));
    program.is_absolute() && (!is_system || leads_out_of_itself(program))
}

fn leads_out_of_itself(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A level of sandbox that is not below the default.
fn is_whole(level: &Value) -> bool {
    level.is_null() || level == "full" || level == "runsc"
}

/// The providers' own addresses.
fn is_usual_endpoint(address: &str) -> bool {
    matches!(origin(address).as_str(), "https://api.openai.com" | "https://api.anthropic.com")
}

/// Variables that providers themselves name.
fn is_usual_key(variable: &str) -> bool {
    matches!(variable, "OPENAI_API_KEY" | "ANTHROPIC_API_KEY")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_that_nobody_has_looked_at_is_a_power() {
        let mut found = Powers::default();
        let table = json!({ "known": 1, "off": false, "none": null, "empty": [], "new": ["x"], "newer": true });
        found.of_others("tools.t", &table, "known older");
        let told: Vec<String> = found.0.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["[tools.t] new = [\"x\"]", "[tools.t] newer = true"]);
    }
}
