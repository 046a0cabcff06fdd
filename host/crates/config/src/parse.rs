//! Parses `longhaul.toml`.
//!
//! Parsing is strict: a misspelt field is an error with its line, and so is a broken rule. The text that a run was
//! begun with is parsed without the rules.

use crate::file::{FILE, of_config};
use crate::memory;
use crate::part::PluginConfig;
use crate::tables::Config;
use crate::toml_text;
use longhaul_core::fault::{self, Context, Fault};
use serde::Deserialize as _;
use std::path::Path;
use toml::de::{DeTable, Deserializer};

/// Faults of a text that cannot be parsed as a whole. Each is found by parsing all of the text again.
const FAULTS_MAX: usize = 50;

/// An invalid value in `longhaul.toml`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{text}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Diagnostic {
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// The fault and its remedy, in one line.
    pub text: String,
}

impl Config {
    /// Reads the file of a project.
    pub fn read(project: &Path) -> fault::Result<Self> {
        let path = project.join(FILE);
        let text = of_config(project).or_invalid(|| {
            format!("cannot read `{}`; make a project with `longhaul new` or `longhaul init`", path.display())
        })?;
        Self::parse(&text).with_context(|| format!("`{}`", path.display()))
    }

    /// Reads the text of a file; the first fault is the error.
    pub fn parse(text: &str) -> fault::Result<Self> {
        Self::parse_all(text).map_err(|faults| match faults.into_iter().next() {
            Some(fault) => fault.into(),
            None => Fault::invalid("it cannot be read"),
        })
    }

    /// Parses the text that a run was begun with: it was checked then, by the rules of that version.
    pub fn parse_pinned(text: &str) -> fault::Result<Self> {
        Self::read_text(text).map_err(|error| Fault::invalid(toml_text::of_toml(text, &error).1))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// All faults that the text alone shows; if it cannot be parsed as a whole, the unknown fields, the first other
    /// fault, and the broken rules that have nothing to do with an unknown field.
    pub fn parse_all(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let config = Self::read_text(text).map_err(|error| Self::faults_of_unparsed(text, error))?;
        let found = config.faults();
        if found.is_empty() {
            return Ok(config);
        }
        Err(found.into_iter().map(|fault| placed(text, fault)).collect())
    }

    /// Takes one unknown field after the other out of a text that cannot be parsed, until the rest can be.
    fn faults_of_unparsed(text: &str, mut error: toml::de::Error) -> Vec<Diagnostic> {
        let mut found = vec![unparsed(text, &error)];
        let Ok(mut document) = DeTable::parse(text) else { return found };
        let mut places: Vec<String> = Vec::new();
        while found.len() < FAULTS_MAX
            && let Some(place) = toml_text::take_unknown(document.get_mut(), &error)
        {
            places.push(place);
            match Self::deserialize(Deserializer::from(document.clone())) {
                Ok(mut config) => {
                    config.fill_in(&toml::from_str(text).unwrap_or_default());
                    // A rule may be broken because the field is unknown.
                    let is_apart =
                        |path: &str| !places.iter().any(|one| path.starts_with(one) || one.starts_with(path));
                    let rules = config.faults().into_iter().filter(|(path, _)| is_apart(path));
                    found.extend(rules.map(|fault| placed(text, fault)));
                    break;
                }
                Err(next) => {
                    found.push(unparsed(text, &next));
                    error = next;
                }
            }
        }
        found.sort_by_key(|one| one.line);
        found
    }

    fn read_text(text: &str) -> Result<Self, toml::de::Error> {
        let mut config: Self = toml::from_str(text)?;
        config.fill_in(&toml::from_str(text)?);
        Ok(config)
    }

    /// Adds a planner and an evaluator where the file has no such table: with the models that the operator gave to the
    /// agents, so that a goal in free text can be planned and judged.
    fn fill_in(&mut self, written: &toml::Table) {
        // The table with a missing model reports that fault.
        let is_there = |name: &&String| self.models.contains_key(*name);
        let models = self.agents.get("code").map_or(&[][..], |part| &part.models);
        let models: Vec<String> = models.iter().filter(is_there).cloned().collect();
        if !written.contains_key("planner") {
            self.planner = default_part("initializer", &models);
        }
        if !written.contains_key("evaluator") {
            let plugin = if models.is_empty() { "check-evaluator" } else { "rubric-evaluator" };
            self.evaluator = default_part(plugin, &models);
        }
    }
}

/// The table that is added.
fn default_part(plugin: &str, models: &[String]) -> PluginConfig {
    PluginConfig { plugin: plugin.into(), models: models.to_vec(), ..PluginConfig::default() }
}

/// The plugins that a text names, with their tables, even if the text has faults. Built-in tools are left out.
#[must_use]
pub fn named_plugins(text: &str) -> Vec<(String, String)> {
    let document: toml::Table = toml::from_str(text).unwrap_or_default();
    let mut tables: Vec<(String, &toml::Value)> = Vec::new();
    for name in ["planner", "evaluator"] {
        tables.extend(document.get(name).map(|table| (name.to_owned(), table)));
    }
    for kind in ["agents", "tools"] {
        let named = document.get(kind).and_then(toml::Value::as_table).into_iter().flatten();
        tables.extend(named.map(|(name, table)| (format!("{kind}.{name}"), table)));
    }
    tables.extend(document.get("memory").and_then(|it| it.get("plugin")).map(|it| (memory::PLUGIN.to_owned(), it)));
    let plugin = |(table, value): (String, &toml::Value)| {
        let plugin = value.get("plugin")?.as_str()?;
        let is_native = value.get("runtime").and_then(toml::Value::as_str) == Some("native");
        let is_looked_for = !plugin.is_empty() && !plugin.starts_with("builtin:") && !is_native;
        is_looked_for.then(|| (table, plugin.to_owned()))
    };
    tables.into_iter().filter_map(plugin).collect()
}

/// A parser's error.
fn unparsed(text: &str, error: &toml::de::Error) -> Diagnostic {
    let (line, said) = toml_text::of_toml(text, error);
    Diagnostic { line, text: one_line(&said) }
}

/// A broken rule, with the line of its key.
fn placed(text: &str, (path, said): (String, String)) -> Diagnostic {
    Diagnostic { line: toml_text::line_of(text, &path), text: one_line(&said) }
}

/// An error text in one line.
fn one_line(said: &str) -> String {
    longhaul_core::text::printable(said, usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asks::RequestedGrants;

    const SMALL: &str = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n";

    #[test]
    fn each_unknown_field_is_told_and_what_has_nothing_to_do_with_one() {
        let told = |text: &str| -> Vec<String> {
            Config::parse_all(text).expect_err("it has faults").iter().map(ToString::to_string).collect()
        };
        let two = format!(
            "{SMALL}tols = []\n[tools.search]\nplugn = \"x\"\n[run]\nstrategie = 1\n[agents.b]\nplugin = \"react\"\ntools = [\"gone\"]\n"
        );
        assert_eq!(
            told(&two),
            [
                "line 5: [agents.code] unknown field `tols`; did you mean `tools`?",
                "line 7: [tools.search] unknown field `plugn`; did you mean `plugin`?",
                "line 9: [run] unknown field `strategie`; did you mean `strategy`?",
                "line 12: [agents.b] tools names `gone`, and there is no [tools.gone]; add [tools.gone], or remove the name",
            ]
        );
        // A table that is misspelt may be the one that a rule misses.
        let table = format!("{SMALL}tools = [\"search\"]\n[tool.search]\nplugin = \"builtin:search\"\n");
        assert_eq!(told(&table), ["line 6: [tool.search] unknown field `tool`; did you mean `tools`?"]);
        assert_eq!(told("[project"), ["line 1: [project] unclosed table, expected `]`"]);
    }

    #[test]
    fn plugins_are_found_in_a_text_with_faults() {
        let text =
            format!("{SMALL}tols = []\n[tools.a]\nplugin = \"builtin:search\"\n[tools.b]\nplugin = \"./b.wasm\"\n");
        let expected = [("agents.code", "react"), ("tools.b", "./b.wasm")];
        let expected = expected.map(|(table, plugin)| (table.to_owned(), plugin.to_owned()));
        assert_eq!(named_plugins(&text), expected);
        assert!(named_plugins("[project").is_empty());
    }

    #[test]
    fn who_plans_and_judges_without_a_table_has_the_models_of_whoever_works() {
        let parts = |more: &str| {
            let config = Config::parse(&format!("{SMALL}{more}")).expect("it is read");
            let asks = RequestedGrants { models: true, ..RequestedGrants::default() };
            let told = |part: &PluginConfig| format!("{} {}", part.plugin, part.models.join(","));
            (told(&config.planner), told(&config.evaluator), config.checks_only(Some(&asks)))
        };
        let none = ("initializer ".into(), "check-evaluator ".into(), Some("check-evaluator".to_owned()));
        assert_eq!(parts(""), none);
        let model = "models = [\"m\"]\n[models.m]\nprovider = \"local\"\n";
        assert_eq!(parts(model), ("initializer m".into(), "rubric-evaluator m".into(), None));
        let (_, evaluator, only) = parts(&format!("{model}[evaluator]\nplugin = \"rubric-evaluator\"\n"));
        assert_eq!((evaluator.as_str(), only.as_deref()), ("rubric-evaluator ", Some("rubric-evaluator")));
    }
}
