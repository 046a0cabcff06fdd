//! The record of a run's start, and the configuration of its work.
//!
//! A record is written once. Only a move of the run to other bytes of a plugin changes it, and only its pins; all other
//! changes are in the run's state.

use crate::pins::PinnedPlugins;
use longhaul_config::{Config, FILE};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Table};
use longhaul_core::work::Plan;
use longhaul_core::{Digest, RunId};
use longhaul_harness::{Dispatch, HarnessLimits};
use longhaul_models::Provider;
use longhaul_models::set::ModelOptions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The record of a run's start, with the plugins that it has now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The id of the run.
    pub run: RunId,
    /// The project's name.
    pub project: String,
    /// The project's id, which the data directory keeps. Empty in runs of earlier versions, which find their project by
    /// its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The project's directory.
    pub directory: PathBuf,
    /// The branch that it commits to; empty for an ask, which commits nothing.
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    /// The text of `longhaul.toml` at the start.
    pub config: String,
    /// The text of the goal at the start.
    pub goal: String,
    /// The pinned plugins, by table.
    pub pins: PinnedPlugins,
    /// The options of its models.
    pub models: ModelOptions,
    /// The model that answers in the place of every other one, if the run is a fork that was told so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The plan that it follows; none: its planner makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The agent that answers, if the run is an ask: a run without a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Dispatch>,
    /// Features that passed in the previous run on this branch, by their ids, each with the digest of its spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passed_before: BTreeMap<String, Digest>,
    /// The time of the request, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
}

impl RunRecord {
    /// The caps for this kind of run in a configuration.
    pub fn limits_in(&self, config: &Config) -> HarnessLimits {
        if self.ask.is_some() { config.ask_limits() } else { config.run.limits.clone() }
    }

    /// The key under which data of the project is stored.
    pub fn scope(&self) -> &str {
        if self.id.is_empty() { &self.project } else { &self.id }
    }

    /// Refuses an operation that needs a run with a branch.
    pub fn expect_branch(&self) -> fault::Result<()> {
        if self.ask.is_some() {
            bail!(Fault::conflict(format!(
                "run {} is an ask, which has no branch; name a run of `longhaul run`",
                self.run
            )));
        }
        Ok(())
    }

    /// The configuration that the run was started with.
    pub fn config(&self) -> fault::Result<Config> {
        let pinned = Config::parse_pinned(&self.config).context("the configuration that the run was started with");
        pinned.map(|pinned| self.with_id(pinned))
    }

    /// The configuration in which one model answers in the place of every other one. Plugins know the models by their
    /// names as before, so that what they asked in the other run of a fork is what they ask here.
    fn with_model(&self, mut config: Config) -> fault::Result<Config> {
        let Some(name) = &self.model else { return Ok(config) };
        let known = || config.models.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let unknown = || format!("there is no [models.{name}] in longhaul.toml; there is: {}", known());
        let mut model = config.models.get(name).or_invalid(unknown)?.clone();
        if matches!(model.provider, Provider::Route(_)) {
            bail!("[models.{name}] is a route between models, and one model is to answer; name one of its members");
        }
        // They would be the model itself.
        model.fallback.clear();
        config.models.values_mut().for_each(|other| other.clone_from(&model));
        Ok(config)
    }

    fn with_id(&self, mut config: Config) -> Config {
        config.project.id.clone_from(&self.id);
        config
    }

    /// The configuration for the remaining work: the current file, so that a corrected grant or limit takes effect. A
    /// run pins two things of the file that it began with, since journals and verdicts depend on them: `[checks]`, and
    /// the `settings` of each plugin. If the file is gone, the original configuration applies without its powers,
    /// because no agreement covers them any more.
    ///
    /// # Errors
    /// The file is that of another project, or cannot be read.
    pub fn config_now(&self) -> fault::Result<Config> {
        let pinned = self.config()?;
        if !self.directory.join(FILE).exists() {
            return self.with_model(pinned.without_powers());
        }
        let mut now = self.with_model(self.with_id(Config::read(&self.directory)?))?;
        if now.project.name != self.project || pinned.project.name != self.project {
            let other = if now.project.name == self.project { pinned.project.name } else { now.project.name };
            bail!(Fault::conflict(format!(
                "run {} is of project `{}`, and longhaul.toml in `{}` is of `{}`; to go on with it, set [project] name back",
                self.run,
                self.project,
                self.directory.display(),
                longhaul_core::text::printable(&other, 80)
            )));
        }
        now.checks = pinned.checks.clone();
        now.keep_settings_of(&pinned);
        Ok(now)
    }

    /// The key of its row, which is the prefix of all its keys.
    pub fn key(run: &RunId) -> Key {
        Key::of(run.as_str())
    }

    /// Writes the record.
    pub fn insert(&self, batch: Batch) -> fault::Result<Batch> {
        Ok(batch.insert(Table::Runs, Self::key(&self.run), serde_json::to_vec(self)?))
    }

    /// Writes the record with other pins, if the stored one is still `before`, the bytes that the caller read.
    pub fn replace_pins(&self, batch: Batch, before: &[u8]) -> fault::Result<Batch> {
        Ok(batch.replace(Table::Runs, Self::key(&self.run), Some(before), serde_json::to_vec(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\nmodels = [\"a\"]\n\
                          [models.a]\nprovider = \"local\"\n\
                          [models.b]\nprovider = \"recorded\"\nfile = \"b.jsonl\"\nfallback = [\"a\"]\n\
                          [models.r]\nprovider = \"route\"\nmodels = [\"a\", \"b\"]\nby = \"cost\"\n";

    fn record(model: Option<&str>) -> RunRecord {
        RunRecord {
            run: RunId::from_text("r-1"),
            project: "p".into(),
            id: String::new(),
            // Without a file, so that the pinned text counts.
            directory: "/nowhere".into(),
            branch: "longhaul/p".into(),
            base: String::new(),
            config: CONFIG.into(),
            goal: String::new(),
            pins: PinnedPlugins::new(),
            models: ModelOptions::default(),
            model: model.map(str::to_owned),
            plan: None,
            ask: None,
            passed_before: BTreeMap::new(),
            created_ms: 1,
        }
    }

    #[test]
    fn one_model_answers_in_the_place_of_all_others_under_their_names() {
        let before = record(None).config_now().expect("a configuration");
        let now = record(Some("b")).config_now().expect("a configuration");
        assert!(now.models.keys().eq(before.models.keys()));
        assert!(now.models.values().all(|model| model.provider == before.models["b"].provider));
        assert!(now.models.values().all(|model| model.fallback.is_empty()), "they would be the same model");
        assert_eq!(now.agents["code"].models, ["a"]);
        assert_ne!(before.models["a"].provider, before.models["b"].provider);
    }

    #[test]
    fn a_model_that_cannot_answer_for_others_is_refused() {
        for (model, words) in [("gone", "there is: a, b, r"), ("r", "is a route between models")] {
            let why = record(Some(model)).config_now().expect_err("refused").to_string();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_record_of_an_earlier_release_names_no_model() {
        let mut stored = serde_json::to_value(record(Some("b"))).expect("JSON");
        stored.as_object_mut().expect("an object").remove("model");
        let read: RunRecord = serde_json::from_value(stored).expect("a record");
        assert_eq!(read.model, None);
    }
}
