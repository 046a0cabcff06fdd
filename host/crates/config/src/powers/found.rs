//! Collects the powers of a `longhaul.toml`, table by table.
//!
//! Each table has its list of reviewed keys: those that reach something are reported by a function here or in the files
//! below, the others reach nothing. A value under any other key is reported literally, so that a new setting is a power
//! until it is reviewed.

mod approval;
mod collected;
mod paths;
mod plugins;
mod values;

use self::collected::Powers;
use self::paths::is_elsewhere;
use self::values::{address, is_loopback, is_usual_endpoint, is_usual_key, tables, texts, words};
use super::power::{Power, PowerKind};
use crate::file::FILE;
use crate::tables::Config;
use longhaul_core::text::shell_word;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

pub use paths::leads_out;

/// All tables.
const TABLES: &str = "project run plan ask limits context compile planner evaluator agents tools mcp models checks telemetry \
     memory checkpoints protect notify";

/// Tables that occur once, each with its keys. Caps on spending reach nothing.
const ONCE: [(&str, &str); 10] = [
    ("project", "name goal"),
    ("run", "strategy contract_by sandbox_min limits needs labels_needed priority tree_history"),
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

/// All powers of a configuration, with the digests of a project's files if it is given.
pub(super) fn of(config: &Config, project: Option<&Path>) -> BTreeSet<Power> {
    let mut powers = Powers::none(project);
    powers.of_all(config);
    powers.into_found()
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

    /// Models see the goal's text.
    fn of_goal(&mut self, goal: &Path) {
        if leads_out(goal) {
            self.add(PowerKind::Directory, "project", format!("reads {} as the goal", goal.display()));
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
                self.add(PowerKind::Command, table, format!("starts with {variable}={}", shell_word(value)));
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
