//! Looking for what is wrong with a project before a model is asked.

use super::Service;
use longhaul_api::projects::ProjectCheck;
use longhaul_config::Config;
use longhaul_core::fault::{self, Context as _};
use longhaul_models::set::ModelOptions;
use longhaul_preflight::{self as check, CheckScope, Checker};
use longhaul_records::record::RunRecord;
use std::path::Path;
use std::sync::Arc;

impl Service {
    /// Everything that `run` would refuse, and what it would run.
    pub(super) async fn check(&self, directory: &Path, models: &ModelOptions) -> fault::Result<ProjectCheck> {
        let directory =
            directory.canonicalize().or_invalid(|| format!("there is no directory `{}`", directory.display()))?;
        let (findings, overview) = self.checker().examine(&directory, models).await?;
        Ok(ProjectCheck { findings, overview })
    }

    fn checker(&self) -> Checker {
        let memories = Arc::clone(&self.memories);
        Checker {
            host: Arc::clone(&self.host),
            check_embeddings: Arc::new(move |model: Option<&str>| memories.check_embeddings(model)),
            environment: self.environment.clone(),
        }
    }

    /// Refuses what could not be carried out as it is configured.
    pub(super) async fn refuse_faults(
        &self,
        directory: &Path,
        config: &Config,
        text: Option<&str>,
        models: &ModelOptions,
        scope: &CheckScope,
    ) -> fault::Result<()> {
        let text = text.unwrap_or_default();
        let (findings, _) = self.checker().examine_config(directory, config, text, models, scope).await?;
        check::refuse(&findings)
    }

    /// Refuses faults like [`Service::refuse_faults`], before a run goes on.
    pub(super) async fn refuse_faults_of(&self, record: &RunRecord) -> fault::Result<()> {
        let mut config = record.config_now()?;
        if record.ask.is_some() {
            config.checks.clear();
        }
        let scope = CheckScope::Resume(record.pins.clone());
        let text = longhaul_config::of_config(&record.directory).ok();
        self.refuse_faults(&record.directory, &config, text.as_deref(), &record.models, &scope).await
    }
}
