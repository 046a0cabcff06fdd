//! The approval gate's view of a tool: the operator's policy for its calls, and the tool's reach.

use longhaul_approval::{
    AllowedCommand, ApprovalKind, ApprovalPolicy, Arguments, PolicyMode, PolicyVerdict, allows, runs_commands,
};
use longhaul_config::tools::built_in;
use longhaul_config::{PluginConfig, toml_text};
use longhaul_core::Denial;
use longhaul_core::approval::Intent;
use longhaul_core::fault;
use longhaul_core::grant::{Access, HostPattern};
use longhaul_core::journal::EffectClass;
use longhaul_core::store::Store;
use longhaul_core::text::truncate;
use longhaul_core::tool::{ToolCall, ToolError, ToolInfo};
use longhaul_records::pins::PinnedPlugins;
use serde_json::Value;

/// Longest question of an agent, in characters: what fits on a screen.
const QUESTION_CHARS_MAX: usize = 2_000;

/// One tool at the gate.
pub struct ToolGate {
    /// The table in `longhaul.toml`, without brackets.
    table: String,
    policy: ApprovalPolicy,
    plugin: String,
    component: Component,
    /// The kind of question that its calls ask.
    pub asks: ApprovalKind,
    always_asks: bool,
    /// Commands that need no approval.
    allow: Vec<AllowedCommand>,
    reach: Reach,
}

/// The reach of a tool beyond the tree of its run.
#[derive(Clone, Debug, Default)]
struct Reach {
    /// True when it reaches a network.
    is_web: bool,
    /// The hosts that it is granted; none: any host.
    hosts: Option<Vec<HostPattern>>,
    /// True when it may change files outside of the tree.
    writes_beyond: bool,
    /// True when it sends a secret.
    has_secrets: bool,
}

/// The identity of the tool that a person's answer is bound to, beside the call.
enum Component {
    /// The digest of the pinned component, or the name of a host tool.
    Fixed(String),
    /// An MCP server's description of its tools: after a change a person is asked again.
    Server {
        /// The project whose pin of the server counts.
        project: String,
        /// The name of the server.
        name: String,
    },
}

impl ToolGate {
    /// The gate of the tool of that name.
    pub fn of(name: &str, part: &PluginConfig, pins: &PinnedPlugins, is_web: bool) -> Self {
        let table = format!("tools.{name}");
        let pinned = pins.get(&table).map(|pin| pin.digest.to_string());
        Self {
            component: Component::Fixed(pinned.unwrap_or_else(|| part.plugin.clone())),
            policy: built_in::policy(part),
            plugin: part.plugin.clone(),
            asks: if built_in::is_question(part) { ApprovalKind::Question } else { ApprovalKind::Call },
            always_asks: built_in::always_asks(part),
            // The configuration was checked when it was read; in doubt no command passes.
            allow: AllowedCommand::read_all(&part.allow).unwrap_or_default(),
            reach: Reach {
                is_web,
                hosts: (!part.hosts.is_empty()).then(|| part.hosts.clone()),
                writes_beyond: part.directories.iter().any(|one| !one.is_tree() && one.access == Access::Write),
                has_secrets: !part.secrets.is_empty(),
            },
            table,
        }
    }

    /// The gate of an MCP server of a project, known to agents as `tool`.
    pub fn of_server(project: &str, name: &str, tool: &str, policy: &ApprovalPolicy) -> Self {
        Self {
            table: format!("mcp.{name}"),
            policy: policy.clone(),
            plugin: tool.to_owned(),
            component: Component::Server { project: project.to_owned(), name: name.to_owned() },
            asks: ApprovalKind::Call,
            always_asks: false,
            allow: Vec::new(),
            reach: Reach { is_web: true, ..Reach::default() },
        }
    }

    /// The policy for a call after what its agent has read; `reached` says whether a destination was approved before in
    /// this run. Work in the tree is never outside: its files, its checks, its commits.
    pub fn when_untrusted(&self, intent: &Intent, reached: impl Fn(&str) -> bool) -> PolicyMode {
        if intent.heard.is_empty() || !self.reaches_out() {
            return PolicyMode::Allow;
        }
        // Two readers may parse these arguments differently, so the call may go elsewhere than it seems.
        let Ok(arguments) = Arguments::read(&intent.call.arguments) else { return PolicyMode::Ask };
        let is_new =
            self.reach.is_web && !self.destinations(&intent.call).iter().all(|destination| reached(destination));
        if self.only_reads(intent) && !is_new {
            return PolicyMode::Allow;
        }
        self.policy.when_untrusted(&intent.call.function, &arguments)
    }

    /// True when a call changes nothing: the operator vouches for its tool, or its hosts are granted for GET and HEAD
    /// alone. A plugin's own claim is not enough, since it could send what it read.
    fn only_reads(&self, intent: &Intent) -> bool {
        let Reach { hosts, writes_beyond, .. } = &self.reach;
        let is_held = !writes_beyond && hosts.as_ref().is_some_and(|hosts| hosts.iter().all(HostPattern::only_reads));
        intent.effect == EffectClass::ReadOnly || (intent.reads && is_held)
    }

    /// True when its calls can reach beyond the tree.
    pub fn reaches_out(&self) -> bool {
        let Reach { is_web, writes_beyond, has_secrets, .. } = self.reach;
        (is_web || writes_beyond || has_secrets) && self.asks != ApprovalKind::Question
    }

    /// The destinations of a call: the hosts that it names, or any destination of its tool. A secret goes where its
    /// tool goes. A host that is not granted is refused in any case, so no person is asked about it.
    pub fn destinations(&self, call: &ToolCall) -> Vec<String> {
        let covers = |host: &HostPattern, origin: &str| {
            origin.split_once("://").is_some_and(|(scheme, authority)| host.covers(scheme, authority))
        };
        let mut found = call.origins();
        let names_none = found.is_empty();
        if let Some(hosts) = &self.reach.hosts {
            // An origin that another reader could take for another host stays in the list, and equals none that was
            // approved.
            found.retain(|origin| !is_plain(origin) || hosts.iter().any(|host| covers(host, origin)));
        }
        if names_none || self.reach.has_secrets {
            found.push(itself(call));
        }
        found
    }

    /// The refusal of a call that may not follow untrusted text.
    pub fn refused_when_untrusted(&self, intent: &Intent) -> Denial {
        let call = format!("{}.{}", intent.call.tool, intent.call.function);
        Denial {
            reason: format!("`{call}` acts outwards, and untrusted words were heard from {}", intent.heard.join(", ")),
            fix: format!("write [{}.approval] when_untrusted = \"ask\" in longhaul.toml", self.table),
        }
    }

    /// The identity that an approval is bound to now.
    pub fn component(&self, store: &dyn Store) -> fault::Result<String> {
        match &self.component {
            Component::Fixed(text) => Ok(text.clone()),
            Component::Server { project, name } => {
                Ok(longhaul_mcp::pinned(store, project, name)?.unwrap_or_else(|| self.plugin.clone()))
            }
        }
    }

    /// True when this call needs no approval.
    pub fn is_free(&self, call: &ToolCall) -> bool {
        if self.asks == ApprovalKind::Question {
            return false;
        }
        self.policy.lets_all_pass(self.always_asks) || self.verdict(call) == PolicyVerdict::Allow
    }

    /// The operator's policy for a call. A call that no person could approve or answer is refused.
    pub fn verdict(&self, call: &ToolCall) -> PolicyVerdict {
        let refused = |reason: String, fix: &str| PolicyVerdict::Deny(Denial { reason, fix: fix.to_owned() });
        let arguments = match Arguments::read(&call.arguments) {
            Ok(arguments) => arguments,
            Err(wrong) => return refused(wrong.to_string(), "send one JSON object in which each name stands once"),
        };
        let always_asks = self.always_asks || self.asks == ApprovalKind::Question;
        let is_listed = allows(&self.allow, &arguments);
        match self.policy.verdict_with(&self.table, &call.function, &arguments, always_asks, is_listed) {
            PolicyVerdict::Ask if self.asks == ApprovalKind::Question && !is_question(&arguments) => refused(
                format!("a question has 1 to {QUESTION_CHARS_MAX} characters"),
                "send { \"question\": \"...\" } and nothing else",
            ),
            verdict => verdict,
        }
    }

    /// Refuses a policy that names a function which the tool does not have: with such a slip calls would pass.
    pub fn check_functions(&self, info: &ToolInfo) -> Result<(), ToolError> {
        let wrong = self.unknown_function(info);
        wrong.map_or(Ok(()), |wrong| Err(ToolError::Failed(format!("{wrong}; mend longhaul.toml, then resume"))))
    }

    /// The fault of a policy that names a function which the tool does not have.
    pub fn unknown_function(&self, info: &ToolInfo) -> Option<String> {
        // An unavailable MCP server lists no functions, which is no slip.
        if info.functions.is_empty() {
            return None;
        }
        let functions: Vec<&str> = info.functions.iter().map(|function| function.name.as_str()).collect();
        let unknown = self.policy.named().find(|name| !functions.contains(name))?;
        let or = truncate(&toml_text::or_one_of(unknown, &functions), 300);
        Some(format!("[{}.approval] names `{unknown}`, which the tool does not have{or}", self.table))
    }

    /// True when the call runs a command, so that the answer `a` covers a program.
    pub fn runs_commands(&self, call: &ToolCall) -> bool {
        self.always_asks || runs_commands(&call.tool, &call.function, &self.plugin)
    }
}

/// The destination of calls that name no address.
pub fn itself(call: &ToolCall) -> String {
    format!("the tool `{}`", call.tool)
}

/// True when every reader sees the same host in an origin.
fn is_plain(origin: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    authority.is_some_and(|authority| !authority.is_empty() && authority.chars().all(plain))
}

/// True when a person can be asked this.
fn is_question(arguments: &Arguments) -> bool {
    let text = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
    let chars = text.chars().count();
    arguments.0.len() == 1 && !text.trim().is_empty() && chars <= QUESTION_CHARS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_config::tools::approval::check;

    fn gate(text: &str) -> ToolGate {
        let part: PluginConfig = toml::from_str(text).expect("a table");
        check("tools.shell", &part).expect("a policy");
        ToolGate::of("shell", &part, &PinnedPlugins::new(), false)
    }

    #[track_caller]
    fn says(gate: &ToolGate, command: &str, expected: &str) {
        let arguments = serde_json::json!({ "command": command }).to_string();
        let call = ToolCall { tool: "shell".into(), function: "run".into(), arguments };
        let found = match gate.verdict(&call) {
            PolicyVerdict::Allow => "allow",
            PolicyVerdict::Ask => "ask",
            PolicyVerdict::Deny(_) => "deny",
        };
        assert_eq!(found, expected, "{command}");
        assert_eq!(gate.is_free(&call), expected == "allow", "{command}");
    }

    #[test]
    fn a_listed_command_needs_no_person_and_a_stricter_rule_still_counts() {
        let text = r#"
            plugin = "builtin:shell"
            allow = ["pytest -q", "cargo test *"]
            settings = { programs = ["ls"] }
        "#;
        let plain = gate(text);
        says(&plain, "pytest -q", "allow");
        says(&plain, "cargo test --lib", "allow");
        says(&plain, "ls", "ask");
        says(&plain, "pytest -q; id", "ask");
        let rules = "[approval]\ndefault = \"deny\"\nrules = [{ where = { command = \"*--lib*\" }, then = \"ask\" }]";
        let stricter = gate(&format!("{text}\n{rules}"));
        says(&stricter, "pytest -q", "allow");
        says(&stricter, "cargo test --lib", "ask");
        says(&stricter, "ls", "deny");
    }

    #[test]
    fn that_a_tool_only_reads_is_believed_where_the_operator_or_its_hosts_say_so() {
        let check = |text: &str, effect: EffectClass, reads: bool, arguments: &str, expected: PolicyMode| {
            let part: PluginConfig = toml::from_str(&format!("plugin = \"reader\"\n{text}")).expect("a table");
            let call = ToolCall { tool: "reader".into(), function: "look".into(), arguments: arguments.into() };
            let invocation = longhaul_core::InvocationId::from_text("r-000000000001/f-one/1/generate");
            let intent = Intent { invocation, entry: 0, call, effect, reads, heard: vec!["web".into()] };
            let gate = ToolGate::of("reader", &part, &PinnedPlugins::new(), true);
            let reached = |destination: &str| ["https://a.example", "the tool `reader`"].contains(&destination);
            assert_eq!(gate.when_untrusted(&intent, reached), expected, "{text} {effect:?} {reads} {arguments}");
        };
        let (acts, read) = (EffectClass::Acts, EffectClass::ReadOnly);
        let (any, get) = ("hosts = [\"https://a.example\"]", "hosts = [\"GET,HEAD https://a.example\"]");
        // The plugin's own claim, for hosts that accept more than GET: it may send what it read.
        check(any, acts, true, "{}", PolicyMode::Ask);
        check("", acts, true, "{}", PolicyMode::Ask);
        check(any, read, true, "{}", PolicyMode::Allow);
        check(get, acts, true, "{}", PolicyMode::Allow);
        check(get, acts, false, "{}", PolicyMode::Ask);
        let beyond = "directories = [{ guest = \"/x\", host = \"/srv/x\", access = \"write\" }]";
        check(&format!("{get}\n{beyond}"), acts, true, "{}", PolicyMode::Ask);
        // Any field may hold the destination, and it is the same for every reader.
        check("", read, true, r#"{"target":"https://a.example/x"}"#, PolicyMode::Allow);
        check("", read, true, r#"{"target":"https://b.example/x"}"#, PolicyMode::Ask);
        check("", read, true, r#"{"base_url":"b.example"}"#, PolicyMode::Ask);
        check("", read, true, r#"{"url":"https://b.example","url":"https://a.example"}"#, PolicyMode::Ask);
    }
}
