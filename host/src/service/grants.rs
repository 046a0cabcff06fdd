//! Grants against what runs did of them: which ones no run of a project ever used, and what each run could do and did.
//!
//! Read from the events of runs, so it knows of calls of tools, of agents and of models. What a called tool did with its
//! hosts, directories and secrets is not an event: they count as used once their tool was called, and never before.

use super::Service;
use crate::config::Config;
use crate::powers::{self, Power, PowerKind};
use crate::run::{self, RunRecord};
use longhaul_core::RunId;
use longhaul_core::event::Event;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// Runs of a project that are looked at, the newest.
const RUNS_MAX: usize = 100;

/// Events that are read at once.
const PAGE: usize = 1_000;

/// Grants of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// What longhaul.toml gives and no run of those that are listed used.
    pub unused: Vec<String>,
    /// Runs, oldest first.
    pub runs: Vec<RunGrants>,
}

/// What a run could do, and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunGrants {
    /// The run.
    pub run: RunId,
    /// Powers that it used.
    pub used: Vec<String>,
    /// Powers that it had and did not use.
    pub unused: Vec<String>,
}

/// What was called in a run.
#[derive(Default)]
struct Called {
    tools: BTreeSet<String>,
    /// Tables that something was carried out for, such as `agents.code`.
    tables: BTreeSet<String>,
    models: BTreeSet<String>,
    has_told: bool,
}

impl Called {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Action { tool, agent, .. } => {
                self.tools.insert(tool);
                self.tables.insert(agent);
            }
            Event::Thought { agent, model, .. } => {
                self.models.insert(model);
                self.tables.insert(agent);
            }
            Event::InvocationStarted { agent, .. } | Event::Delegated { agent, .. } => {
                self.tables.insert(agent);
            }
            Event::ApprovalAsked { .. } | Event::Parked { .. } | Event::RunEnded { .. } => self.has_told = true,
            _ => {}
        }
    }

    fn has_used(&self, power: &Power) -> bool {
        let (kind, name) = power.table.split_once('.').unwrap_or((&power.table, ""));
        match (kind, name) {
            ("tools", name) => self.tools.contains(name),
            ("mcp", name) => self.tools.contains(&format!("mcp-{name}")),
            ("models", name) => self.models.contains(name),
            ("agents", _) | ("planner" | "evaluator", "") => match granted(&power.what) {
                Some(("tool", tool)) => self.tables.contains(&power.table) && self.tools.contains(tool),
                Some((_, agent)) => self.tables.contains(&format!("agents.{agent}")),
                None => self.tables.contains(&power.table),
            },
            ("notify", _) => self.has_told,
            // Every run may judge by checks, and is sent to and remembered where that is switched on.
            _ => true,
        }
    }
}

/// What `calls the tool `NAME`` names.
fn granted(what: &str) -> Option<(&str, &str)> {
    let (kind, rest) = what.strip_prefix("calls the ")?.split_once(" `")?;
    Some((kind, rest.strip_suffix('`')?))
}

impl Service {
    /// Grants of the project in a directory against what its runs did.
    pub(super) fn grants_of(&self, directory: &Path) -> anyhow::Result<Grants> {
        let mut records: Vec<RunRecord> = run::records(&*self.world.store)?;
        records.retain(|record| record.directory == directory);
        records.drain(..records.len().saturating_sub(RUNS_MAX));
        let mut never: BTreeSet<Power> = countable(&Config::read(directory)?);
        let mut runs = Vec::new();
        for record in records {
            let called = self.called(&record.run)?;
            never.retain(|power| !called.has_used(power));
            // A run whose own file cannot be read any more had powers that nobody can name.
            let able = record.config().map(|config| countable(&config)).unwrap_or_default();
            let (used, unused): (Vec<Power>, Vec<Power>) = able.into_iter().partition(|power| called.has_used(power));
            runs.push(RunGrants { run: record.run, used: words(used), unused: words(unused) });
        }
        Ok(Grants { unused: words(never), runs })
    }

    fn called(&self, run: &RunId) -> anyhow::Result<Called> {
        let (mut called, mut after) = (Called::default(), 0);
        loop {
            let page = run::events_after(&*self.world.store, run, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(called) };
            after = last.number;
            page.into_iter().for_each(|event| called.hear(event.event));
        }
    }
}

/// Powers that somebody gave: which plugin a part is, and the run's own tree, are none.
fn countable(config: &Config) -> BTreeSet<Power> {
    let is_grant = |power: &Power| match power.kind {
        PowerKind::Tool => granted(&power.what).is_some(),
        PowerKind::Tree | PowerKind::Check | PowerKind::Guard => false,
        _ => true,
    };
    powers::of(config).into_iter().filter(is_grant).collect()
}

fn words(powers: impl IntoIterator<Item = Power>) -> Vec<String> {
    powers.into_iter().map(|power| power.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_used_once_its_tool_was_called() {
        let text = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\ntools = [\"a\", \"b\"]\n\
                    [tools.a]\nplugin = \"a\"\nhosts = [\"https://a.example\"]\n\
                    [tools.b]\nplugin = \"b\"\nhosts = [\"https://b.example\"]\n";
        let config = Config::parse(text).expect("it is read");
        let called =
            Called { tools: ["a".to_owned()].into(), tables: ["agents.code".to_owned()].into(), ..Called::default() };
        let unused: Vec<String> = words(countable(&config).into_iter().filter(|power| !called.has_used(power)));
        assert_eq!(unused, ["[tools.b] reaches https://b.example:443", "[agents.code] calls the tool `b`"]);
    }
}
