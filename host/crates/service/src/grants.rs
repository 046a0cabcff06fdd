//! Grants against what runs did of them: which ones no run of a project used, and what each run could do and did.
//!
//! Read from what is recorded: calls of tools, of agents and of models are events, with the addresses that a call
//! names; secrets that a tool or a server was handed are in the audit log. A server is started to list its tools, too:
//! that alone is no use of it. What a called tool did with its directories, its settings and hosts that no call names
//! is not recorded, so its use is unknown. Refuses to guess: such a grant is neither used nor unused.

use super::Service;
use longhaul_api::security::{GrantUsage, RunGrants};
use longhaul_config::Config;
use longhaul_config::powers::{self, Power, PowerKind};
use longhaul_core::event::Event;
use longhaul_core::fault;
use longhaul_core::grant::HostPattern;
use longhaul_core::store::{Batch, Table};
use longhaul_core::tool::ToolCall;
use longhaul_core::{InvocationId, RunId};
use longhaul_records::record::{self, RunRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Runs of a project that are looked at, the newest.
const RUNS_MAX: usize = 100;

/// Events that are read at once.
const PAGE: usize = 1_000;

/// The use of a power in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PowerUsage {
    Unused,
    Unknown,
    Used,
}

/// The parts of a run's records that show the use of powers.
#[derive(Default)]
struct Recorded {
    /// Tables that something was carried out for, such as `agents.code`, by invocation.
    at_work: BTreeMap<InvocationId, String>,
    /// Tools that a table called.
    calls: BTreeSet<(String, String)>,
    /// Tables that a table delegated to.
    delegations: BTreeSet<(String, String)>,
    /// Addresses that calls name which have no answer yet, by the step of the call.
    open: BTreeMap<(InvocationId, u32), Vec<String>>,
    /// Addresses that calls of a tool went to.
    reached: BTreeSet<(String, String)>,
    models: BTreeSet<String>,
    /// Secrets that a table was handed.
    secrets: BTreeSet<(String, String)>,
    has_told: bool,
    reads_goal: bool,
}

impl Recorded {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Action { invocation, agent, step, tool, function, arguments, .. } => {
                let call = ToolCall { tool, function, arguments };
                // Arguments that were cut short name no origin.
                self.open.insert((invocation.clone(), step), call.origins());
                self.at_work.insert(invocation, agent.clone());
                self.calls.insert((agent, call.tool));
            }
            Event::Observation { invocation, of, tool, ok, .. } => {
                let named = self.open.remove(&(invocation, of)).unwrap_or_default();
                self.reached.extend(named.into_iter().filter(|_| ok).map(|origin| (tool.clone(), origin)));
            }
            Event::Thought { invocation, agent, model, .. } => {
                self.models.insert(model);
                self.at_work.insert(invocation, agent);
            }
            Event::InvocationStarted { invocation, agent, .. } => {
                self.at_work.insert(invocation, agent);
            }
            Event::Delegated { invocation, agent, .. } => {
                let asked = invocation.as_str().rsplit_once('#').map(|(asker, _)| InvocationId::from_text(asker));
                let asker = asked.and_then(|asker| self.at_work.get(&asker).cloned()).unwrap_or_default();
                self.delegations.insert((asker, agent.clone()));
                self.at_work.insert(invocation, agent);
            }
            Event::ApprovalAsked { .. } | Event::Parked { .. } | Event::RunEnded { .. } => self.has_told = true,
            _ => {}
        }
    }

    fn use_of(&self, power: &Power) -> PowerUsage {
        let (kind, name) = power.table.split_once('.').unwrap_or((&power.table, ""));
        let certain = |is_used: bool| if is_used { PowerUsage::Used } else { PowerUsage::Unused };
        match (kind, name) {
            ("tools", name) => self.use_of_tool(name, power),
            ("mcp", name) => self.use_of_tool(&format!("mcp-{name}"), power),
            ("models", name) => certain(self.models.contains(name)),
            ("agents", _) | ("planner" | "evaluator", "") => match granted(&power.what) {
                Some(("tool", tool)) => certain(self.calls.contains(&(power.table.clone(), tool.to_owned()))),
                Some((_, agent)) => {
                    certain(self.delegations.contains(&(power.table.clone(), format!("agents.{agent}"))))
                }
                None if self.at_work.values().any(|table| *table == power.table) => PowerUsage::Unknown,
                None => PowerUsage::Unused,
            },
            ("project", "") => certain(self.reads_goal),
            ("notify", _) if !self.has_told => PowerUsage::Unused,
            // Sent notifications are deleted, and no event records checks, memory, telemetry and walls.
            _ => PowerUsage::Unknown,
        }
    }

    /// The use of a power of a tool's table.
    fn use_of_tool(&self, tool: &str, power: &Power) -> PowerUsage {
        let secret = secret_of(&power.what).map(|secret| (power.table.clone(), secret.to_owned()));
        let was_handed = secret.is_some_and(|secret| self.secrets.contains(&secret));
        let was_called = self.calls.iter().any(|(_, called)| called == tool);
        if !was_called {
            // A server is started to list its tools, and handed what it needs for that.
            return if was_handed { PowerUsage::Used } else { PowerUsage::Unused };
        }
        let is_there = was_handed || secret_of(&power.what).is_none();
        match (power.kind, host_of(&power.what)) {
            (PowerKind::Host | PowerKind::Secret, Some(host)) if is_there && self.has_reached(tool, &host) => {
                PowerUsage::Used
            }
            (PowerKind::Host | PowerKind::Secret, Some(_)) => PowerUsage::Unknown,
            // The address of a server, a variable and a program are there with the first call.
            (PowerKind::Host, None) if power.what.starts_with("sends calls to ") => PowerUsage::Used,
            (PowerKind::Command, None) if power.what.starts_with("starts ") => PowerUsage::Used,
            (PowerKind::Secret, None) if is_there => PowerUsage::Used,
            (PowerKind::Secret, None) => PowerUsage::Unused,
            _ => PowerUsage::Unknown,
        }
    }

    fn has_reached(&self, tool: &str, host: &HostPattern) -> bool {
        let mut reached = self.reached.iter().filter(|(by, _)| by == tool);
        reached.any(|(_, origin)| {
            origin.split_once("://").is_some_and(|(scheme, authority)| host.covers(scheme, authority))
        })
    }
}

/// The kind and the name in `calls the tool `NAME``.
fn granted(what: &str) -> Option<(&str, &str)> {
    let (kind, rest) = what.strip_prefix("calls the ")?.split_once(" `")?;
    Some((kind, rest.strip_suffix('`')?))
}

/// The secret that is sent or handed.
fn secret_of(what: &str) -> Option<&str> {
    let rest = what.strip_prefix("sends the secret `").or_else(|| what.strip_prefix("is handed the secret `"))?;
    Some(rest.split_once('`')?.0)
}

/// The host that is reached, or that a secret is sent to.
fn host_of(what: &str) -> Option<HostPattern> {
    let sent = || Some(what.strip_prefix("sends the secret `")?.split_once("` to ")?.1.split_once(" in `")?.0);
    let host = what.strip_prefix("reaches ").or_else(sent)?;
    HostPattern::try_from(host.to_owned()).ok()
}

impl Service {
    /// Grants of the project in a directory against what its runs did.
    pub(super) fn grants_of(&self, directory: &Path) -> fault::Result<GrantUsage> {
        let mut records: Vec<RunRecord> = record::records(&*self.host.store)?;
        records.retain(|record| record.directory == directory);
        records.drain(..records.len().saturating_sub(RUNS_MAX));
        let secrets = self.host.audit.secrets_used()?;
        let mut now: BTreeMap<Power, PowerUsage> =
            countable(powers::of(&Config::read(directory)?)).map(|power| (power, PowerUsage::Unused)).collect();
        let mut runs = Vec::new();
        for record in records {
            let recorded = self.recorded(&record, &secrets)?;
            let (mut used, mut unknown, mut unused) = (Vec::new(), Vec::new(), Vec::new());
            for power in countable(self.able(&record)?) {
                let done = recorded.use_of(&power);
                match done {
                    PowerUsage::Used => used.push(power.to_string()),
                    PowerUsage::Unknown => unknown.push(power.to_string()),
                    PowerUsage::Unused => unused.push(power.to_string()),
                }
                if let Some(known) = now.get_mut(&power) {
                    *known = done.max(*known);
                }
            }
            runs.push(RunGrants { run: record.run, used, unknown, unused });
        }
        let of = |wanted: PowerUsage| {
            now.iter().filter(move |(_, done)| **done == wanted).map(|(power, _)| power.to_string())
        };
        Ok(GrantUsage { unused: of(PowerUsage::Unused).collect(), unknown: of(PowerUsage::Unknown).collect(), runs })
    }

    fn recorded(&self, record: &RunRecord, secrets: &BTreeSet<(RunId, String, String)>) -> fault::Result<Recorded> {
        let own = secrets.iter().filter(|(run, ..)| *run == record.run);
        let mut recorded = Recorded {
            secrets: own.map(|(_, table, secret)| (table.clone(), secret.clone())).collect(),
            reads_goal: record.ask.is_none(),
            ..Recorded::default()
        };
        let mut after = 0;
        loop {
            let page = record::events_after(&*self.host.store, &record.run, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(recorded) };
            after = last.number;
            page.into_iter().for_each(|event| recorded.hear(event.event));
        }
    }

    /// Powers that a run had, at its beginning or when it went on.
    fn able(&self, record: &RunRecord) -> fault::Result<BTreeSet<Power>> {
        // The powers of a run whose own file cannot be read any more are unknown.
        let mut able = record.config().map(|config| powers::of(&config)).unwrap_or_default();
        if let Some(bytes) = self.host.store.get(Table::States, &powers::key_of_run(&record.run))? {
            able.extend(serde_json::from_slice::<BTreeSet<Power>>(&bytes)?);
        }
        Ok(able)
    }

    /// Keeps what a run may do that goes on by a file which gives more than before, and says so in the audit log.
    pub(super) async fn note_went_on(&self, record: &RunRecord, config: &Config) -> fault::Result<()> {
        let (before, now) = (self.able(record)?, powers::of(config));
        let more: Vec<&Power> = now.difference(&before).collect();
        if more.is_empty() {
            return Ok(());
        }
        let told: Vec<String> = more.iter().filter(|power| !power.is_plain).map(ToString::to_string).collect();
        let all: BTreeSet<&Power> = before.union(&now).collect();
        let key = powers::key_of_run(&record.run);
        self.host.store.commit(Batch::new().put(Table::States, key, serde_json::to_vec(&all)?)).await?;
        self.note_more(record, told).await
    }
}

/// Powers that somebody gave: which plugin a part is, the run's own tree, and what holds it back, are none.
fn countable(powers: BTreeSet<Power>) -> impl Iterator<Item = Power> {
    powers.into_iter().filter(|power| match power.kind {
        PowerKind::Tool => granted(&power.what).is_some(),
        PowerKind::Tree | PowerKind::Check | PowerKind::Guard => false,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> InvocationId {
        InvocationId::from_text(text)
    }

    fn called(agent: &str, step: u32, tool: &str, arguments: &str, ok: bool) -> [Event; 2] {
        let (invocation, agent) = (id("r-1/f-a/1/generate"), agent.to_owned());
        let (tool, function) = (tool.to_owned(), "f".to_owned());
        [
            Event::Action {
                invocation: invocation.clone(),
                agent: agent.clone(),
                step,
                tool: tool.clone(),
                function: function.clone(),
                arguments: arguments.to_owned(),
                line: String::new(),
            },
            Event::Observation {
                invocation,
                agent,
                step: step + 1,
                of: step,
                tool,
                function,
                ok,
                output: String::new(),
                line: String::new(),
                took_ms: None,
            },
        ]
    }

    /// One call of a tool used to count as a use of all that its table gives.
    #[test]
    fn a_grant_is_used_where_a_record_says_so_and_otherwise_nobody_can_tell() {
        let text = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\ntools = [\"a\", \"b\", \"mcp-m\"]\n\
                    agents = [\"other\"]\n[agents.other]\nplugin = \"react\"\ntools = [\"b\"]\n\
                    [tools.a]\nplugin = \"a\"\nhosts = [\"https://a.example\", \"https://never.example\"]\n\
                    secrets = [{ name = \"g\", hosts = [\"https://a.example\"] }, { name = \"h\", hosts = [\"https://x.example\"] }]\n\
                    directories = [{ guest = \"/k\", host = \"../keys\", access = \"read\" }]\n\
                    [tools.b]\nplugin = \"b\"\nhosts = [\"https://b.example\"]\n\
                    [mcp.m]\ncommand = [\"server\"]\nenv = { T = { secret = \"s\" }, U = { from = \"V\" } }\n\
                    [telemetry]\notlp_endpoint = \"https://t.example\"\n[run]\nsandbox_min = \"none\"\n";
        let config = Config::parse(text).expect("it is read");
        let mut recorded = Recorded::default();
        let url = |host: &str| format!("{{\"url\":\"https://{host}/x\"}}");
        let events = [
            called("agents.code", 1, "a", &url("a.example"), true),
            called("agents.code", 3, "a", &url("never.example"), false),
        ];
        events.into_iter().flatten().for_each(|event| recorded.hear(event));
        recorded.secrets = ["g", "h"].map(|secret| ("tools.a".to_owned(), secret.to_owned())).into();
        let mut told: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for power in countable(powers::of(&config)) {
            let word = match recorded.use_of(&power) {
                PowerUsage::Used => "used",
                PowerUsage::Unknown => "unknown",
                PowerUsage::Unused => "unused",
            };
            told.entry(word).or_default().push(power.to_string());
        }
        assert_eq!(
            told["used"],
            [
                "[tools.a] reaches https://a.example:443",
                "[tools.a] sends the secret `g` to https://a.example:443 in `authorization`",
                "[agents.code] calls the tool `a`",
            ]
        );
        assert_eq!(
            told["unknown"],
            [
                "[tools.a] reaches https://never.example:443",
                "[telemetry] sends to https://t.example",
                "[tools.a] reads the directory ../keys as /k",
                "[tools.a] sends the secret `h` to https://x.example:443 in `authorization`",
                "[run] sandbox_min = \"none\"",
            ]
        );
        assert_eq!(
            told["unused"],
            [
                "[mcp.m] starts `server` in tree",
                "[tools.b] reaches https://b.example:443",
                "[mcp.m] is handed the secret `s` as T",
                "[mcp.m] is handed the variable `V` as U",
                "[agents.code] calls the agent `other`",
                "[agents.code] calls the tool `b`",
                "[agents.code] calls the tool `mcp-m`",
                "[agents.other] calls the tool `b`",
            ]
        );
    }

    #[test]
    fn who_delegated_and_what_a_server_was_handed_is_told() {
        let text = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\ntools = [\"mcp-m\"]\nagents = [\"other\"]\n\
                    [agents.other]\nplugin = \"react\"\nagents = [\"code\"]\n\
                    [mcp.m]\ncommand = [\"server\"]\nenv = { T = { secret = \"s\" }, U = { secret = \"t\" } }\n";
        let config = Config::parse(text).expect("it is read");
        let mut recorded = Recorded::default();
        recorded.hear(Event::InvocationStarted {
            invocation: id("r-1/f-a/1/generate"),
            plugin: "react".into(),
            export: "agent.run".into(),
            feature: None,
            round: 1,
            agent: "agents.code".into(),
        });
        recorded.hear(Event::Delegated {
            invocation: id("r-1/f-a/1/generate#7"),
            agent: "agents.other".into(),
            plugin: "react".into(),
            instruction: String::new(),
        });
        let used = |recorded: &Recorded| -> Vec<String> {
            let used = countable(powers::of(&config)).filter(|power| recorded.use_of(power) == PowerUsage::Used);
            used.map(|power| power.to_string()).collect()
        };
        assert_eq!(used(&recorded), ["[agents.code] calls the agent `other`"]);
        // Started to list its tools.
        recorded.secrets = [("mcp.m".to_owned(), "s".to_owned())].into();
        let handed = "[mcp.m] is handed the secret `s` as T";
        assert_eq!(used(&recorded), [handed, "[agents.code] calls the agent `other`"]);
        called("agents.code", 1, "mcp-m", "{}", true).into_iter().for_each(|event| recorded.hear(event));
        assert_eq!(
            used(&recorded),
            [
                "[mcp.m] starts `server` in tree",
                handed,
                "[agents.code] calls the agent `other`",
                "[agents.code] calls the tool `mcp-m`",
            ]
        );
    }
}
