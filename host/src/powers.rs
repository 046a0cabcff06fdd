//! The powers that a `longhaul.toml` asks for, one line each: programs it starts, hosts it reaches, directories, secrets,
//! tools. Imports compare them, trust is given to them, and people are shown them.
//!
//! A power is *plain* when it reaches nothing that a run without any configuration could not reach: the run's own tree,
//! tools over it, checks in the full sandbox, a provider's own address. Refuses to grant anything: that is `config.rs`.

use crate::config::{Config, DirectoryConfig, PluginConfig};
use longhaul_core::Digest;
use longhaul_core::grant::Access;
use longhaul_core::text::printable;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// Longest text of one power, in bytes.
const POWER_BYTES_MAX: usize = 400;

/// Differences that an error names. The rest are counted.
const SHOWN_MAX: usize = 6;

/// What a power reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerKind {
    /// A program that is started outside the sandbox of checks, or without a question.
    Command,
    /// A check: a program in the sandbox.
    Check,
    /// A host that a tool, a server or a notification reaches.
    Host,
    /// An address that the host itself sends to: models, telemetry, shared servers.
    Endpoint,
    /// A directory other than the tree of a run.
    Directory,
    /// The tree of a run.
    Tree,
    /// A secret, a key, or a variable of the environment.
    Secret,
    /// A tool, an agent or a model that a plugin may call, and the plugin itself.
    Tool,
    /// A wall that is lower than it is by default.
    Wall,
}

/// One power.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Power {
    /// What it reaches.
    pub kind: PowerKind,
    /// The table of `longhaul.toml`.
    pub table: String,
    /// What it is, as a person reads it.
    pub what: String,
    /// Whether a run without configuration could reach as much.
    pub is_plain: bool,
}

impl fmt::Display for Power {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and words come from a file that somebody else may have written.
        write!(formatter, "[{}] {}", printable(&self.table, 100), printable(&self.what, POWER_BYTES_MAX))
    }
}

/// All powers of a configuration, in order.
#[must_use]
pub fn of(config: &Config) -> BTreeSet<Power> {
    let mut found = Powers::default();
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
    found.of_notify(&whole["notify"]);
    found.of_endpoints(&whole);
    found.of_walls(&whole);
    found.0
}

/// The digest of the powers that are not plain.
#[must_use]
pub fn digest(powers: &BTreeSet<Power>) -> Digest {
    let lines: Vec<String> = powers.iter().filter(|power| !power.is_plain).map(unabridged).collect();
    Digest::of(lines.join("\n").as_bytes())
}

/// Differences between two sets, as one line: `+` is in the second alone, `-` in the first alone. None: there are none.
#[must_use]
pub fn difference<'a>(
    before: impl IntoIterator<Item = &'a Power>,
    after: impl IntoIterator<Item = &'a Power>,
) -> Option<String> {
    let (before, after): (BTreeSet<&Power>, BTreeSet<&Power>) =
        (before.into_iter().collect(), after.into_iter().collect());
    let lines = after.difference(&before).map(|power| format!("+ {power}"));
    let lines: Vec<String> = lines.chain(before.difference(&after).map(|power| format!("- {power}"))).collect();
    let more = lines.len().saturating_sub(SHOWN_MAX);
    let shown = lines.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("; ");
    match (lines.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown}; and {more} more")),
    }
}

fn unabridged(power: &Power) -> String {
    format!("{:?}\0{}\0{}", power.kind, power.table, power.what)
}

fn tables<'a>(whole: &'a Value, name: &str) -> Vec<(&'a String, &'a Value)> {
    whole[name].as_object().into_iter().flatten().collect()
}

/// The words of a list, each as a shell would need it.
fn words(list: &Value) -> Option<String> {
    let words: Vec<String> = list.as_array()?.iter().filter_map(|word| word.as_str().map(quoted)).collect();
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

#[derive(Default)]
struct Powers(BTreeSet<Power>);

impl Powers {
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
        for path in check["read"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.add(PowerKind::Directory, table, format!("reads {path} in the sandbox"));
        }
        for lower in ["sandbox", "sandbox_min", "network"] {
            let value = &check[lower];
            if !is_whole(value) && value != &Value::Bool(false) {
                self.add(PowerKind::Wall, table, format!("{lower} = {value}"));
            }
        }
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
            for given in server[field].as_array().into_iter().flatten().filter_map(Value::as_str) {
                self.add(kind, table, format!("{verb} {given}"));
            }
        }
        let level = &server["sandbox"];
        if !is_whole(level) {
            self.add(PowerKind::Wall, table, format!("sandbox = {level}"));
        }
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
        }
    }

    /// What other tables lower; one that is not written changes nothing.
    fn of_walls(&mut self, whole: &Value) {
        let min = &whole["run"]["sandbox_min"];
        if !is_whole(min) {
            self.add(PowerKind::Wall, "run", format!("sandbox_min = {min}"));
        }
        for (field, value) in tables(whole, "protect") {
            let is_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            if !is_nothing {
                self.add(PowerKind::Wall, "protect", format!("{field} = {value}"));
            }
        }
    }
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

    fn powers_of(more: &str) -> BTreeSet<Power> {
        let text = format!("[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n{more}");
        of(&Config::parse(&text).unwrap_or_else(|error| panic!("{more}: {error:#}")))
    }

    #[track_caller]
    fn asked(more: &str) -> Vec<String> {
        powers_of(more).iter().filter(|power| !power.is_plain).map(ToString::to_string).collect()
    }

    #[test]
    fn what_a_run_without_configuration_could_do_is_plain() {
        let plain = "tools = [\"files\"]\n[tools.files]\nplugin = \"files\"\n\
                     directories = [{ guest = \"/work\", access = \"write\" }]\n\
                     [checks]\nunit = { argv = [\"cargo\", \"test\"] }\n";
        assert_eq!(asked(plain), Vec::<String>::new());
        for model in [
            "provider = \"local\"",
            "provider = \"openai\"\nid = \"m\"\nbase_url = \"http://127.0.0.1:8080/v1\"",
            "provider = \"openai\"\nid = \"m\"\napi_key_env = \"OPENAI_API_KEY\"",
        ] {
            assert_eq!(asked(&format!("[models.m]\n{model}\n")), Vec::<String>::new(), "{model}");
        }
    }

    #[test]
    fn what_reaches_further_is_a_power_with_its_table() {
        let one = |more: &str, expected: &str| {
            let found = asked(more);
            assert!(found.iter().any(|power| power == expected), "{expected}\n{found:#?}");
        };
        one("[notify]\ncommand = [\"sh\", \"-c\", \"id\"]", "[notify] starts `sh -c id` outside the sandbox");
        one("[notify]\nwebhook = \"https://u:p@x.example/s3cret\"", "[notify] posts to https://x.example");
        one("[mcp.m]\ncommand = [\"server\", \"a b\"]", "[mcp.m] starts `server 'a b'` in tree");
        one(
            "[mcp.m]\ncommand = [\"x\"]\nenv = { LD_PRELOAD = \"/tmp/a.so\" }",
            "[mcp.m] starts with LD_PRELOAD=/tmp/a.so",
        );
        one(
            "[mcp.m]\ncommand = [\"x\"]\nenv = { T = { from = \"HOME\" } }",
            "[mcp.m] is handed the variable `HOME` as T",
        );
        let tool = |line: &str| format!("[tools.t]\nplugin = \"t\"\n{line}");
        one(&tool("hosts = [\"GET https://a.example\"]"), "[tools.t] reaches GET https://a.example:443");
        one(
            &tool("directories = [{ guest = \"/k\", host = \"../keys\", access = \"read\" }]"),
            "[tools.t] reads the directory ../keys as /k",
        );
        one(
            &tool("secrets = [{ name = \"g\", hosts = [\"https://a.example\"] }]"),
            "[tools.t] sends the secret `g` to https://a.example:443 in `authorization`",
        );
        // A key is as good as sent where the repository names the address.
        let model = "[models.m]\nprovider = \"openai\"\nid = \"m\"\nbase_url = \"https://x.example/v1\"\n";
        one(model, "[models.m] sends prompts to https://x.example");
        one(
            &format!("{model}api_key_env = \"OPENAI_API_KEY\""),
            "[models.m] sends the variable `OPENAI_API_KEY` as its key",
        );
        one(
            "[models.m]\nprovider = \"openai\"\nid = \"m\"\napi_key_file = \"/home/u/.ssh/id\"",
            "[models.m] reads a key from /home/u/.ssh/id",
        );
        // Names that only begin like this machine's are others.
        one(
            "[models.m]\nprovider = \"openai\"\nid = \"m\"\nbase_url = \"http://127.0.0.1.x.example/v1\"",
            "[models.m] sends prompts to http://127.0.0.1.x.example",
        );
    }

    #[test]
    fn a_difference_is_one_line_with_both_sides_and_counts_what_it_leaves_out() {
        let (none, one) = (powers_of(""), powers_of("[notify]\ncommand = [\"a\\u001b[2J\"]"));
        assert_eq!(difference(&none, &none), None);
        let told = difference(&none, &one).expect("a difference");
        assert!(told.starts_with("+ [notify] starts ") && !told.contains('\u{1b}'), "{told:?}");
        assert!(difference(&one, &none).expect("a difference").starts_with("- [notify]"));
        let checks: String = (0..9).map(|number| format!("c{number} = {{ argv = [\"true\"] }}\n")).collect();
        let many = powers_of(&format!("[checks]\n{checks}"));
        assert!(difference(&none, &many).expect("a difference").ends_with("; and 3 more"));
        assert_eq!((digest(&none), digest(&none) == digest(&one)), (digest(&many), false), "checks are plain");
    }
}
