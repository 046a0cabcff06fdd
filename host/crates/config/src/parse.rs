//! Parses `longhaul.toml`.
//!
//! Parsing is strict: a misspelt field is an error with its line, and so is a broken rule. The text that a run was
//! begun with is parsed without the rules.

use crate::file::{FILE, of_config};
use crate::part::PluginConfig;
use crate::tables::Config;
use crate::toml_text;
use longhaul_core::fault::{self, Context, Fault};
use std::path::Path;

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
    /// All faults that the text alone shows; if it cannot be parsed as a whole, the first one.
    pub fn parse_all(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let config = Self::read_text(text).map_err(|error| {
            let (line, said) = toml_text::of_toml(text, &error);
            vec![Diagnostic { line, text: one_line(&said) }]
        })?;
        let found = config.faults();
        if found.is_empty() {
            return Ok(config);
        }
        let placed = |(path, said): (String, String)| Diagnostic {
            line: toml_text::line_of(text, &path),
            text: one_line(&said),
        };
        Err(found.into_iter().map(placed).collect())
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
