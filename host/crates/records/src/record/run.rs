//! What a run was started with, and the configuration that its work is done with.
//!
//! A record is written once and never changed. What became of the run since is its state.

use crate::pins::PinnedPlugins;
use longhaul_config::{Config, FILE};
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Table};
use longhaul_core::work::Plan;
use longhaul_core::{Digest, RunId};
use longhaul_harness::{Dispatch, HarnessLimits};
use longhaul_models::set::ModelOptions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a run was started with. Written once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub run: RunId,
    /// The project's name.
    pub project: String,
    /// The project's id, which the data directory keeps. Empty in runs of before, which know their project by its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The project's directory.
    pub directory: PathBuf,
    /// The branch that it commits to; empty for an ask, which commits nothing.
    pub branch: String,
    /// The commit that it started from.
    pub base: String,
    /// `longhaul.toml` as it was.
    pub config: String,
    /// The goal as it was.
    pub goal: String,
    /// The plugins, by table.
    pub pins: PinnedPlugins,
    /// What is done to its models.
    pub models: ModelOptions,
    /// The plan that it follows; none: a planner is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Who answers, if it is an ask: a run without a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Dispatch>,
    /// Features that pass in the run before on this branch, by their ids, each with the digest of what it asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passed_before: BTreeMap<String, Digest>,
    /// When it was asked for.
    pub created_ms: u64,
}

impl RunRecord {
    /// The caps of such a run in a configuration.
    pub fn limits_in(&self, config: &Config) -> HarnessLimits {
        if self.ask.is_some() { config.ask_limits() } else { config.run.limits.clone() }
    }

    /// What is kept of the project is found by this.
    pub fn scope(&self) -> &str {
        if self.id.is_empty() { &self.project } else { &self.id }
    }

    /// Refuses what only a run with a branch can do.
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

    fn with_id(&self, mut config: Config) -> Config {
        config.project.id.clone_from(&self.id);
        config
    }

    /// The configuration for the work that is still to be done: what the file says now, so that a grant
    /// or a limit that was mended holds. A run pins two things of the file that it began with, since journals and
    /// verdicts depend on them: `[checks]`, and the `settings` of each plugin. Where the file is gone, what the run
    /// began with is left without its powers, for nobody stands by them any more.
    ///
    /// # Errors
    /// The file is that of another project, or cannot be read.
    pub fn config_now(&self) -> fault::Result<Config> {
        let pinned = self.config()?;
        if !self.directory.join(FILE).exists() {
            return Ok(pinned.without_powers());
        }
        let mut now = self.with_id(Config::read(&self.directory)?);
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

    /// The key of its row, which begins the keys of all that is kept of it.
    pub fn key(run: &RunId) -> Key {
        Key::of(run.as_str())
    }

    /// Writes the record.
    pub fn insert(&self, batch: Batch) -> fault::Result<Batch> {
        Ok(batch.insert(Table::Runs, Self::key(&self.run), serde_json::to_vec(self)?))
    }
}
