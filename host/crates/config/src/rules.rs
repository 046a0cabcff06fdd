//! The rules of `longhaul.toml`, beyond the types of its fields.
//!
//! This module finds all faults that the text alone shows, each with the path of its key. Refuses to look at the
//! machine: whether a program, a directory or a key exists.

use crate::limits::overlaid;
use crate::notify::NotifyConfig;
use crate::part::PluginConfig;
use crate::tables::{Config, PRIORITY_MAX};
use crate::tools::mcp::tool_name;
use crate::tools::{approval, built_in};
use crate::{labels, quarantine, secrets, toml_text};
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::packages::PACKAGES_MAX;
use longhaul_harness::{HarnessLimits, Strategy, route};
use longhaul_mcp::McpConfig;
use std::collections::BTreeMap;

/// The faults of a configuration, each with the path of its key.
#[derive(Default)]
struct Found(Vec<(String, String)>);

impl Found {
    fn at(&mut self, path: &str, looked: fault::Result<()>) {
        if let Err(error) = looked {
            self.0.push((path.to_owned(), format!("{error:#}")));
        }
    }
}

impl Config {
    /// The faults, each with the path of its key.
    pub(crate) fn faults(&self) -> Vec<(String, String)> {
        let mut found = Found::default();
        found.at("project.name", self.check_name());
        self.check_project_caps(&mut found);
        found.at("agents", self.check_agents());
        found.at("ask", self.check_ask());
        found.at("run.contract_by", self.check_contract());
        found.at("run.labels_needed", labels::check("[run] labels_needed", &self.run.labels_needed));
        found.at("run.priority", self.check_priority());
        found.at("agents", self.check_categories());
        found.at("notify", self.notify.as_ref().map_or(Ok(()), NotifyConfig::check));
        // The environment is read when something is to be sent.
        found.at("telemetry", self.telemetry.settings(&|_| None).map(drop).map_err(Into::into));
        found.at("context", self.context.check().map_err(|wrong| Fault::invalid(format!("[context]: {wrong}"))));
        found.at("checkpoints", self.checkpoints.check());
        found.at("protect", self.protect.check());
        found.at("memory", self.memory.check(&self.models.keys().collect::<Vec<_>>()));
        for (name, server) in &self.mcp {
            found.at(&format!("mcp.{name}"), self.check_server(name, server));
        }
        for (table, part) in self.parts() {
            self.check_part(&table, part, &mut found);
        }
        self.check_cost_caps(&mut found);
        for (name, check) in &self.checks {
            found.at(&format!("checks.{name}"), check.validate(name).map_err(Into::into));
        }
        found.0
    }

    fn check_name(&self) -> fault::Result<()> {
        let name = &self.project.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            bail!("[project] name `{name}`: take 1 to 64 letters, digits, `-` and `_`");
        }
        Ok(())
    }

    /// A cap of zero would let nothing ever begin.
    fn check_project_caps(&self, found: &mut Found) {
        let caps = &self.project;
        for (name, max) in [
            ("cost_microdollars_per_day_max", caps.cost_microdollars_per_day_max),
            ("tokens_per_day_max", caps.tokens_per_day_max),
            ("runs_at_once_max", caps.runs_at_once_max.map(u64::from)),
        ] {
            if max == Some(0) {
                let remedy = "write 1 or more, or remove it";
                let text = format!("[project] {name} is 0, so that no run could do anything; {remedy}");
                found.at(&format!("project.{name}"), Err(Fault::invalid(text)));
            }
        }
    }

    fn check_agents(&self) -> fault::Result<()> {
        if self.agents.is_empty() {
            bail!(
                "there is no agent `code`, which takes what no other agent does; add [agents.code] plugin = \"react\""
            );
        }
        Ok(())
    }

    fn check_contract(&self) -> fault::Result<()> {
        self.run.contract_by.as_ref().map_or(Ok(()), |name| named("[run] contract_by", "agents", name, &self.agents))
    }

    fn check_priority(&self) -> fault::Result<()> {
        match self.run.priority.filter(|priority| *priority > PRIORITY_MAX) {
            Some(priority) => bail!("[run] priority is {priority}; write a number from 0 to {PRIORITY_MAX}"),
            None => Ok(()),
        }
    }

    fn check_server(&self, name: &str, server: &McpConfig) -> fault::Result<()> {
        server.check(name)?;
        if self.tools.contains_key(&tool_name(name)) {
            bail!("[tools.{0}] has the name of [mcp.{name}]; give one another name", tool_name(name));
        }
        Ok(())
    }

    /// A cap on money that cannot be enforced is worse than none.
    fn check_cost_caps(&self, found: &mut Found) {
        let name = "cost_microdollars_max";
        let table = match self.run.limits.cost_microdollars_max {
            Some(_) => Some("[run.limits]"),
            None => self.ask.limits.contains_key(name).then_some("[ask.limits]"),
        };
        if let Some(table) = table {
            found.at("run.limits.cost_microdollars_max", self.check_prices(table, name));
        }
        if self.project.cost_microdollars_per_day_max.is_some() {
            let name = "cost_microdollars_per_day_max";
            found.at("project.cost_microdollars_per_day_max", self.check_prices("[project]", name));
        }
    }

    /// The cap of this name is there, and so must be the price of every model.
    fn check_prices(&self, table: &str, name: &str) -> fault::Result<()> {
        let used = self.used_models();
        if let Some(model) = longhaul_models::config::without_prices(&self.models, &used).first() {
            bail!(
                "{table} {name} cannot be held: nobody knows what model `{model}` costs; add to [models.{model}], in \
                 US dollars, 0.0 where it costs nothing: price_input_usd_per_million = 0.0 and \
                 price_output_usd_per_million = 0.0, or remove the cap"
            );
        }
        Ok(())
    }

    /// Checks the fields that only a run with a repository needs.
    pub fn check_run(&self) -> fault::Result<()> {
        if !self.agents.contains_key("code") {
            bail!(
                "there is no agent `code`, which takes what no other agent does; add [agents.code] plugin = \"react\""
            );
        }
        Ok(())
    }

    fn check_ask(&self) -> fault::Result<()> {
        if self.run.strategy == Strategy::Ask {
            bail!("[run] strategy is `session` or `pipeline`; an ask is started with `longhaul ask`");
        }
        self.ask.model.as_ref().map_or(Ok(()), |name| named("[ask] model", "models", name, &self.models))?;
        self.ask.agent.as_ref().map_or(Ok(()), |name| named("[ask] agent", "agents", name, &self.agents))?;
        overlaid(&HarnessLimits::of_ask(), &self.ask.limits).context("[ask.limits]")?;
        Ok(())
    }

    fn check_part(&self, table: &str, part: &PluginConfig, found: &mut Found) {
        if part.plugin.is_empty() {
            return found.at(table, Err(Fault::invalid(format!("[{table}] has no plugin; add: plugin = \"NAME\""))));
        }
        found.at(&format!("{table}.plugin"), built_in::check(table, part));
        found.at(&format!("{table}.approval"), approval::check(table, part));
        found.at(&format!("{table}.secrets"), secrets::check(table, &part.secrets));
        found.at(&format!("{table}.packages"), check_packages(table, part));
        found.at(&format!("{table}.quarantine"), quarantine::check(self, table, part));
        found.at(&format!("{table}.limits"), self.check_limits(table, part));
        found.at(&format!("{table}.context"), self.check_context(table, part));
        let servers: Vec<String> = self.mcp.keys().map(|name| tool_name(name)).collect();
        let known = [
            ("models", &part.models, self.models.keys().collect::<Vec<_>>()),
            ("tools", &part.tools, self.tools.keys().chain(&servers).collect()),
            ("agents", &part.agents, self.agents.keys().collect()),
        ];
        for (kind, wanted, known) in known {
            for missing in wanted.iter().filter(|name| !known.contains(name)) {
                let make = format!("add [{kind}.{missing}], or remove the name");
                let or = toml_text::or_make(missing, &known, &make);
                let wrong = Fault::invalid(format!(
                    "[{table}] {kind} names `{missing}`, and there is no [{kind}.{missing}]{or}"
                ));
                found.at(&format!("{table}.{kind}"), Err(wrong));
            }
        }
    }

    fn check_limits(&self, table: &str, part: &PluginConfig) -> fault::Result<()> {
        self.own_limits(part).map(drop).with_context(|| format!("[{table}.limits]"))
    }

    fn check_context(&self, table: &str, part: &PluginConfig) -> fault::Result<()> {
        let rules = self.own_context(part).with_context(|| format!("[{table}.context]"))?;
        rules.check().map_err(|wrong| Fault::invalid(format!("[{table}.context]: {wrong}")))
    }

    /// Each category is valid, and goes to one agent.
    fn check_categories(&self) -> fault::Result<()> {
        for (table, part) in self.parts().filter(|(_, part)| !part.categories.is_empty()) {
            if !table.starts_with("agents.") {
                bail!("[{table}] takes no categories: features go to agents; remove the line");
            }
            if let Some(unknown) = part.categories.iter().find(|category| !route::is_category(category)) {
                let or = toml_text::or_one_of(unknown, &route::ROUTES.map(|(category, _)| category));
                bail!("[{table}] categories names `{unknown}`{or}");
            }
        }
        let mut taken = BTreeMap::new();
        for (name, part) in &self.agents {
            for category in &part.categories {
                if let Some(other) = taken.insert(category, name) {
                    bail!("category `{category}` is given to [agents.{other}] and to [agents.{name}]; keep one");
                }
            }
        }
        Ok(())
    }
}

/// Refuses the name of a table that is not there.
fn named<T>(what: &str, kind: &str, name: &str, tables: &BTreeMap<String, T>) -> fault::Result<()> {
    if tables.contains_key(name) {
        return Ok(());
    }
    let known: Vec<&String> = tables.keys().collect();
    let or = toml_text::or_make(name, &known, &format!("add [{kind}.{name}], or remove the line"));
    bail!("{what} names `{name}`, and there is no [{kind}.{name}]{or}")
}

/// Only a tool may be given something to import, and not more than a lock holds.
fn check_packages(table: &str, part: &PluginConfig) -> fault::Result<()> {
    if !part.packages.is_empty() && !table.starts_with("tools.") {
        bail!("[{table}] takes no packages; write them under the tool that runs code, such as [tools.python]");
    }
    if part.packages.len() > PACKAGES_MAX {
        bail!("[{table}] names {} packages, and at most {PACKAGES_MAX} are taken; name fewer", part.packages.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n";

    #[track_caller]
    fn check(more: &str, expected: &str) {
        let error = Config::parse(&format!("{SMALL}{more}")).expect_err(more);
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    }

    #[test]
    fn what_is_wrong_in_the_file_is_said_with_its_place() {
        check("tols = [\"files\"]", "line 5: [agents.code] unknown field `tols`; did you mean `tools`?");
        check("tools = [\"files\"]", "line 5: [agents.code] tools names `files`, and there is no [tools.files]; add");
        check(
            "tools = [\"flies\"]\n[tools.files]\nplugin = \"files\"",
            "line 5: [agents.code] tools names `flies`, and there is no [tools.flies]; did you mean `files`?",
        );
        check("[tools.files]\n", "[tools.files] has no plugin");
        check("categories = [\"poetry\"]", "[agents.code] categories names `poetry`; there are `functional`");
        check("categories = [\"test\"]", "[agents.code] categories names `test`; did you mean `testing`?");
        check(
            "categories = [\"ui\"]\n[agents.b]\nplugin = \"react\"\ncategories = [\"ui\"]",
            "category `ui` is given to [agents.b] and to [agents.code]; keep one",
        );
        check("[evaluator]\nplugin = \"x\"\ncategories = [\"ui\"]", "[evaluator] takes no categories");
        check("[limits]\nfuel = 1", "line 6: [limits] unknown field `fuel`; did you mean `fuel_max`?");
        check("[agents.code.limits]\nfuel = 1", "[agents.code.limits]: unknown field `fuel`; did you mean `fuel_max`?");
        check("[context]\npolicy = \"forget\"", "unknown variant `forget`");
        check("[context]\nfull_percent_max = 0", "[context]: full_percent_max is 0; take 1 to 100");
        check("[agents.code.context]\nfull = 1", "[agents.code.context]: unknown field `full`");
        check("[agents.code.context]\nreset_percent_max = 80", "[agents.code.context]: compact_percent_max is 40");
    }

    #[test]
    fn a_run_names_labels_a_priority_and_a_history_or_has_the_usual_ones() {
        let run = |more: &str| Config::parse(&format!("{SMALL}{more}")).expect(more).run;
        assert_eq!((run("").labels_needed(), run("").priority()), (&[][..], 4));
        let named = run("[run]\nlabels_needed = [\"gpu\", \"eu\"]\npriority = 9\nneeds = { memory_mb = 1.0 }");
        assert_eq!((named.labels_needed(), named.priority()), (&["gpu".to_owned(), "eu".to_owned()][..], 9));
        assert_eq!(run("[run]\npriority = 0").priority(), 0);
        assert!(!run("").tree_history && run("[run]\ntree_history = true").tree_history);
        let other = "line 6: [run] invalid type: string \"yes\", expected a boolean";
        check("[run]\ntree_history = \"yes\"", other);
        check("[run]\nlabels_needed = [\"GPU\"]", "line 6: [run] labels_needed has `GPU`; a label has 1 to 63 of a-z");
        check("[run]\nlabels_needed = [\"a\", \"a\"]", "line 6: [run] labels_needed has `a` twice; keep one");
        let many = (0..33).map(|number| format!("\"l{number}\"")).collect::<Vec<_>>().join(", ");
        check(&format!("[run]\nlabels_needed = [{many}]"), "line 6: [run] labels_needed has 33 labels");
        check("[run]\nlabels_needed = \"gpu\"", "line 6: [run] invalid type: string \"gpu\", expected a sequence");
        check("[run]\npriority = 10", "line 6: [run] priority is 10; write a number from 0 to 9");
        check("[run]\npriority = 256", "line 6: [run] invalid value: integer `256`, expected u8");
        check("[run]\npriority = -1", "line 6: [run] invalid value: integer `-1`, expected u8");
        check("[run]\npriority = \"high\"", "line 6: [run] invalid type: string \"high\", expected u8");
        check("[run]\nneeds = [\"gpu\"]", "line 6: [run] ");
    }

    #[test]
    fn caps_of_a_project_are_one_or_more_and_none_by_default() {
        let start = "[project]\nname = \"p\"\n";
        let parse = |caps: &str| Config::parse(&format!("{start}{caps}\n[agents.code]\nplugin = \"react\""));
        let none = parse("").expect("no caps").project;
        let caps =
            |of: &crate::ProjectConfig| (of.cost_microdollars_per_day_max, of.tokens_per_day_max, of.runs_at_once_max);
        assert_eq!(caps(&none), (None, None, None));
        let all = "cost_microdollars_per_day_max = 1\ntokens_per_day_max = 5_000_000\nruns_at_once_max = 2";
        assert_eq!(caps(&parse(all).expect(all).project), (Some(1), Some(5_000_000), Some(2)));
        for name in ["cost_microdollars_per_day_max", "tokens_per_day_max", "runs_at_once_max"] {
            let told = format!("{:#}", parse(&format!("{name} = 0")).expect_err(name));
            let expected = format!(
                "line 3: [project] {name} is 0, so that no run could do anything; write 1 or more, or remove it"
            );
            assert_eq!(told.lines().count(), 1, "{told}");
            assert!(told.contains(&expected), "{told}");
            parse(&format!("{name} = -1")).expect_err(name);
        }
    }

    #[test]
    fn a_cap_on_money_needs_prices() {
        let model = |id: &str, more: &str| {
            format!("models = [\"m\"]\n[models.m]\nprovider = \"openai\"\nid = \"{id}\"\n{more}")
        };
        let cap = "[run.limits]\ncost_microdollars_max = 5";
        let unknown = "[run.limits] cost_microdollars_max cannot be held: nobody knows what model `m` costs; add to \
                       [models.m], in US dollars, 0.0 where it costs nothing: price_input_usd_per_million = 0.0";
        check(&format!("{}{cap}", model("mine", "")), unknown);
        check(
            &format!("{}[ask.limits]\ncost_microdollars_max = 5", model("mine", "")),
            "[ask.limits] cost_microdollars_max",
        );
        // Another host may have another price for the same name.
        check(&format!("{}{cap}", model("gpt-5-mini", "base_url = \"http://127.0.0.1:1/v1\"\n")), unknown);
        let prices = "price_input_usd_per_million = 0.0\nprice_output_usd_per_million = 0.0\n";
        for known in [model("mine", prices), model("gpt-5-mini", "")] {
            Config::parse(&format!("{SMALL}{known}{cap}")).expect(&known);
        }
        let of_day = format!("{SMALL}{}", model("mine", "")).replacen(
            "name = \"p\"\n",
            "name = \"p\"\ncost_microdollars_per_day_max = 5\n",
            1,
        );
        let told = format!("{:#}", Config::parse(&of_day).expect_err(&of_day));
        assert!(told.contains("line 3: [project] cost_microdollars_per_day_max cannot be held"), "{told}");
        // A model that no part asks costs nothing.
        let unused = model("mine", "").replacen("models = [\"m\"]\n", "", 1);
        Config::parse(&format!("{SMALL}{unused}{cap}")).expect("unused");
        Config::parse(&format!("{SMALL}{}", model("mine", ""))).expect("no cap");
    }
}
