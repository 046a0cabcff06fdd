//! Collects the powers of a `longhaul.toml`, table by table.
//!
//! Each table has its list of reviewed keys: those that reach something are reported by a function here, the others
//! reach nothing. A value under any other key is reported literally, so that a new setting is a power until it is
//! reviewed.

use super::power::{Power, PowerKind};
use crate::file::FILE;
use crate::part::{DirectoryConfig, PluginConfig};
use crate::tables::Config;
use crate::tools::built_in;
use longhaul_core::Digest;
use longhaul_core::digest::Digester;
use longhaul_core::grant::Access;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

const SHELL: &str = "builtin:shell";
const BROWSER: &str = "builtin:browser";

/// Length from which on letters and digits in a path may be a key.
const KEY_CHARS_MIN: usize = 20;

/// All tables.
const TABLES: &str = "project run plan ask limits context compile planner evaluator agents tools mcp models checks telemetry \
     memory checkpoints protect notify";

/// Tables that occur once, each with its keys. Caps on spending reach nothing.
const ONCE: [(&str, &str); 10] = [
    ("project", "name goal"),
    ("run", "strategy contract_by sandbox_min limits needs"),
    ("plan", "accept"),
    ("protect", "paths allow"),
    ("ask", "model agent limits"),
    (
        "compile",
        "bytes_max functions_max nesting_max interfaces_max memory_bytes_max cpu_ms_max wall_ms_max code_bytes_max \
         sandbox_min",
    ),
    (
        "telemetry",
        "otlp_endpoint service_name sample_ratio traces metrics logs metrics_every_ms export_ms_max flush_ms_max \
         queue_max content_bytes_max",
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

/// All powers of a configuration, with the digests of a project's files if it is given.
pub(super) fn of(config: &Config, project: Option<&Path>) -> BTreeSet<Power> {
    let project = project.map(|project| project.canonicalize().unwrap_or_else(|_| project.to_owned()));
    let mut powers = Powers { found: BTreeSet::new(), project };
    powers.of_all(config);
    powers.found
}

fn tables<'a>(whole: &'a Value, name: &str) -> Vec<(&'a String, &'a Value)> {
    whole[name].as_object().into_iter().flatten().collect()
}

/// The words of a list, each quoted for a shell.
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

/// The scheme, host and port of an address, without its possibly secret parts.
fn origin(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{}", authority.rsplit('@').next().unwrap_or_default())
}

/// An address as people see it. Its user, the part after `?` or `#`, and path components that may be keys are replaced
/// by a digest of all of it; `hides_path`: the whole path is.
fn address(text: &str, hides_path: bool) -> String {
    let origin = origin(text);
    let Some((_, rest)) = text.split_once("://") else { return origin };
    let behind = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
    let path = behind.split(['?', '#']).next().unwrap_or_default();
    let shown: Vec<&str> = path.split('/').map(|part| if may_be_key(part) { "..." } else { part }).collect();
    let told = if hides_path { origin } else { format!("{origin}{}", shown.join("/")) };
    if told == text { told } else { format!("{told}, {}", Digest::of(text.as_bytes()).short()) }
}

fn may_be_key(part: &str) -> bool {
    let has = |is: fn(&u8) -> bool| part.as_bytes().iter().any(is);
    part.len() >= KEY_CHARS_MIN && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
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

/// The powers so far.
#[derive(Default)]
struct Powers {
    found: BTreeSet<Power>,
    /// The project whose files are examined; none: no files are.
    project: Option<PathBuf>,
}

impl Powers {
    /// Goes through all tables.
    fn of_all(&mut self, config: &Config) {
        for (table, part) in config.parts() {
            self.of_part(&table, part);
        }
        // Generic values, since each crate has its own types for these tables and only the names matter here.
        let whole = serde_json::to_value(config).unwrap_or_default();
        for (name, check) in tables(&whole, "checks") {
            self.of_check(&format!("checks.{name}"), check);
        }
        for (name, server) in tables(&whole, "mcp") {
            self.of_server(&format!("mcp.{name}"), server);
        }
        for (name, model) in tables(&whole, "models") {
            self.of_model(&format!("models.{name}"), model);
        }
        self.of_goal(&config.project.goal);
        self.of_notify(&whole["notify"]);
        self.of_endpoints(&whole);
        self.of_walls(&whole);
        for (table, reviewed) in ONCE {
            self.of_others(table, &whole[table], reviewed);
        }
        self.of_others(FILE, &whole, TABLES);
    }

    fn add(&mut self, kind: PowerKind, table: &str, what: impl Into<String>) {
        self.found.insert(Power { kind, table: table.to_owned(), what: what.into(), is_plain: false });
    }

    fn add_plain(&mut self, kind: PowerKind, table: &str, what: impl Into<String>) {
        self.found.insert(Power { kind, table: table.to_owned(), what: what.into(), is_plain: true });
    }

    fn add_guard(&mut self, table: &str, what: impl Into<String>) {
        self.add_plain(PowerKind::Guard, table, what);
    }

    fn of_part(&mut self, table: &str, part: &PluginConfig) {
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

    /// Calls that pass although they would need an approval by default, and the opposite.
    fn of_approval(&mut self, table: &str, policy: &Value, asks_by_default: bool) {
        let (default, functions) = (&policy["default"], tables(policy, "functions"));
        let rules: Vec<(String, &Value)> =
            policy["rules"].as_array().into_iter().flatten().map(|rule| (calls_of(rule), rule)).collect();
        let asks = |mode: &Value| mode == "ask" || mode == "deny";
        let default_asks = asks(default) || asks_by_default && default != "allow";
        let something_asks = default_asks || functions.iter().any(|&(_, mode)| asks(mode));
        self.of_mode(table, "calls", default, asks_by_default);
        for (function, mode) in functions {
            self.of_mode(table, &format!("calls of `{function}`"), mode, default_asks);
        }
        for (calls, rule) in &rules {
            let then = &rule["then"];
            // A function that asks does so for an allowed one, too.
            self.of_mode(table, calls, then, something_asks && then != "ask");
        }
        let heard = "after untrusted words were heard";
        for (calls, said) in
            std::iter::once(("calls", policy)).chain(rules.iter().map(|(calls, rule)| (&**calls, *rule)))
        {
            match said["when_heard"].as_str() {
                Some("allow") => self.add(PowerKind::Wall, table, format!("lets {calls} pass {heard}")),
                Some("deny") => self.add_guard(table, format!("refuses {calls} {heard}")),
                Some("ask") if calls != "calls" => {
                    self.add_guard(table, format!("asks a person before {calls} {heard}"));
                }
                _ => {}
            }
        }
    }

    /// One mode of a policy; `asks_otherwise`: whether these calls ask by default.
    fn of_mode(&mut self, table: &str, calls: &str, mode: &Value, asks_otherwise: bool) {
        match mode.as_str() {
            Some("allow") if asks_otherwise => {
                self.add(PowerKind::Wall, table, format!("makes {calls} without a question"));
            }
            Some("ask") if !asks_otherwise => self.add_guard(table, format!("asks a person before {calls}")),
            Some("deny") => {
                // A policy that refuses lets no call pass that an approval would stop.
                self.add_guard(table, format!("asks a person before {calls}"));
                self.add_guard(table, format!("refuses {calls}"));
            }
            _ => {}
        }
    }

    /// The lowest sandbox level.
    fn of_level(&mut self, table: &str, key: &str, level: &Value) {
        if !is_whole(level) {
            self.add(PowerKind::Wall, table, format!("{key} = {level}"));
        } else if level == "runsc" {
            self.add_guard(table, format!("{key} = {level}"));
        }
    }

    /// Files of the project that words name, relative to it or to a directory of it. Files that those start or read
    /// themselves are not searched.
    fn of_own_files<'a>(
        &mut self,
        kind: PowerKind,
        table: &str,
        words: impl IntoIterator<Item = &'a str>,
        directory: Option<&str>,
    ) {
        let Some(project) = self.project.clone() else { return };
        let places = [Some(project.clone()), directory.map(|directory| project.join(directory))];
        let places: Vec<PathBuf> = places.into_iter().flatten().collect();
        let mut files = BTreeSet::new();
        for name in words.into_iter().flat_map(names_in).collect::<BTreeSet<&str>>() {
            files.extend(places.iter().filter_map(|place| own_file(&project, &place.join(name))));
        }
        for file in files {
            let digest =
                digest_of(&project.join(&file)).map_or_else(|error| error.to_string(), |digest| digest.to_string());
            self.add(kind, table, format!("uses {file} of the project, {digest}"));
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
            self.add(PowerKind::Command, table, format!("starts `{}`", quoted(program)));
        }
        self.of_others(table, settings, BROWSER_SETTINGS);
    }

    /// Models see the goal's text.
    fn of_goal(&mut self, goal: &Path) {
        if leads_out(goal) {
            self.add(PowerKind::Directory, "project", format!("reads {} as the goal", goal.display()));
        }
    }

    /// Values of a table under keys that are not reviewed.
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
        // With the links to it and its virtual environment.
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
        self.of_own_files(PowerKind::Command, table, texts(&server["command"]), server["directory"].as_str());
        if let Some(url) = server["url"].as_str() {
            self.add(PowerKind::Host, table, format!("sends calls to {}", address(url, false)));
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
        self.of_level(table, "sandbox", &server["sandbox"]);
        if let Some(digest) = server["tools"].as_str() {
            self.add(PowerKind::Wall, table, format!("takes the tools {digest} without a question"));
        }
        for function in texts(&server["read_only"]) {
            self.add(PowerKind::Wall, table, format!("takes `{function}` for one that only reads"));
        }
        self.of_approval(table, &server["approval"], false);
        self.of_others(table, server, SERVER);
    }

    fn of_model(&mut self, table: &str, model: &Value) {
        let base = model["base_url"].as_str().filter(|base| !is_usual_endpoint(base));
        let key = ["api_key_env", "api_key_file"].iter().find_map(|field| Some((*field, model[*field].as_str()?)));
        match base {
            Some(base) if key.is_none() && is_loopback(base) => {
                self.add_plain(PowerKind::Endpoint, table, format!("asks {} without a key", address(base, false)));
            }
            Some(base) => {
                self.add(PowerKind::Endpoint, table, format!("sends prompts to {}", address(base, false)));
            }
            None => {
                let provider = model["provider"].as_str().unwrap_or_default();
                self.add_plain(PowerKind::Endpoint, table, format!("asks {provider}"));
            }
        }
        match key {
            Some(("api_key_file", path)) => self.add(PowerKind::Secret, table, format!("reads a key from {path}")),
            Some((_, variable)) if base.is_some() || !is_usual_key(variable) => {
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
        self.of_own_files(PowerKind::Command, "notify", texts(&notify["command"]), None);
        if let Some(command) = words(&notify["email"]["sendmail"]) {
            self.add(PowerKind::Command, "notify.email", format!("starts `{command}` outside the sandbox"));
        }
        self.of_own_files(PowerKind::Command, "notify.email", texts(&notify["email"]["sendmail"]), None);
        if let Some(webhook) = notify["webhook"].as_str() {
            self.add(PowerKind::Host, "notify", format!("posts to {}", address(webhook, true)));
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
        for (table, endpoint) in endpoints {
            if let Some(endpoint) = endpoint.as_str() {
                self.add(PowerKind::Endpoint, table, format!("sends to {}", address(endpoint, false)));
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

    /// Restrictions that other tables lower or raise; a missing value changes nothing.
    fn of_walls(&mut self, whole: &Value) {
        self.of_level("run", "sandbox_min", &whole["run"]["sandbox_min"]);
        // Any other level than `none` has the same effect, and off Linux `none` is the only one.
        let compile = &whole["compile"]["sandbox_min"];
        if compile == "none" && IS_LINUX {
            self.add(PowerKind::Wall, "compile", format!("sandbox_min = {compile}"));
        }
        if whole["plan"]["accept"] == "ask" {
            self.add_guard("plan", "asks a person to agree to a plan");
        }
        for path in texts(&whole["protect"]["paths"]) {
            self.add_guard("protect", format!("protects `{path}`"));
        }
        for path in texts(&whole["protect"]["allow"]) {
            self.add(PowerKind::Wall, "protect", format!("lets agents change `{path}` without a question"));
        }
    }
}

/// The calls that a rule of a policy names.
fn calls_of(rule: &Value) -> String {
    match rule["function"].as_str() {
        Some(function) => format!("calls of `{function}` with {}", rule["where"]),
        None => format!("calls with {}", rule["where"]),
    }
}

/// Whether what a table grants reaches beyond the tree of a run.
fn reaches_on(part: &PluginConfig) -> bool {
    let is_beyond = |given: &DirectoryConfig| !given.is_tree();
    !part.hosts.is_empty() || !part.secrets.is_empty() || part.directories.iter().any(is_beyond)
}

/// Whether the path of a file names the plugin.
fn is_file(plugin: &str) -> bool {
    plugin.starts_with(['.', '/'])
}

/// Words of a command that may name a file: the whole word, and the parts that a shell would read.
fn names_in(word: &str) -> impl Iterator<Item = &str> {
    let ends = |char: char| char.is_whitespace() || "\"'`;&|()<>=,".contains(char);
    std::iter::once(word).chain(word.split(ends))
}

/// The path, from the top of a project, of a file that the project contains, or contains a link to.
fn own_file(project: &Path, place: &Path) -> Option<String> {
    let file = place.canonicalize().ok().filter(|file| file.is_file())?;
    let is_inside = |path: &&Path| path.starts_with(project) && !leads_out_of_itself(path);
    let inside = [file.as_path(), place].into_iter().find(is_inside)?.strip_prefix(project).ok()?;
    // Without a leading `.`.
    let inside: PathBuf = inside.components().filter(|part| *part != Component::CurDir).collect();
    Some(inside.to_str()?.to_owned())
}

fn digest_of(file: &Path) -> io::Result<Digest> {
    let (mut file, mut digester, mut buffer) = (File::open(file)?, Digester::default(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digester.finish()),
            length => digester.update(&buffer[..length]),
        }
    }
}

/// Whether a path may lead out of the project.
pub fn leads_out(path: &Path) -> bool {
    path.is_absolute() || leads_out_of_itself(path)
}

/// Whether the path of a program is not the system's.
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

/// Whether a sandbox level is not below the default.
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
        let told: Vec<String> = found.found.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["[tools.t] new = [\"x\"]", "[tools.t] newer = true"]);
    }
}
