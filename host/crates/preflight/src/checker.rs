//! The order in which a project is examined: its text, trust in it, this machine, its plugins, its repository.
//!
//! A finding is no error: an examination returns all findings, and fails only when it could not be made.

use crate::finding::{Findings, of_diagnostic};
use crate::machine::EmbeddingsCheck;
use crate::overview::overview;
use crate::scope::CheckScope;
use crate::{machine, plugins};
use longhaul_api::checks::{Finding, Overview};
use longhaul_config::{Config, FILE};
use longhaul_core::fault;
use longhaul_core::ids;
use longhaul_models::set::{ModelOptions, ProgramEnvironment};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_security::{identity, trust};
use std::path::Path;
use std::sync::Arc;

/// Examines projects against the plugins, models and sentence models of this program.
#[derive(Clone)]
pub struct Checker {
    /// Loads plugins, and has them describe themselves.
    pub host: Arc<PluginHost>,
    /// Refuses an unavailable sentence model of `[memory]`.
    pub check_embeddings: Arc<EmbeddingsCheck>,
    /// The environment of models.
    pub environment: ProgramEnvironment,
}

impl Checker {
    /// The findings about the project in `directory` for a run, and the overview of that run. A project without a goal
    /// is examined for an ask.
    pub async fn examine(&self, directory: &Path, options: &ModelOptions) -> fault::Result<(Vec<Finding>, Overview)> {
        let text = match longhaul_config::of_config(directory) {
            Ok(text) => text,
            Err(error) => {
                let fix = format!("cannot be read: {error}; make a project with `longhaul new` or `longhaul init`");
                return Ok((vec![Finding::new(Some(FILE), None, &fix)], Overview::default()));
            }
        };
        let mut config = match Config::parse_all(&text) {
            Ok(config) => config,
            Err(faults) => {
                let mut findings: Vec<Finding> = faults.iter().map(of_diagnostic).collect();
                findings.extend(plugins::missing(&text, directory, &self.host.home));
                return Ok((findings, Overview::default()));
            }
        };
        let known = identity::known(&*self.host.store, directory, &config.project.name)?;
        config.project.id = known.map_or_else(|| ids::drawn(&self.host.fresh_seed()), |known| known.id);
        let trusted = trust::expect(&*self.host.store, directory, &config);
        if trusted.is_err() {
            // Tools are asked to describe themselves, and must not have the grants of an untrusted repository by then.
            config = config.without_powers();
        }
        let is_for_asks = machine::is_for_asks(directory, &config);
        let scope = if is_for_asks { CheckScope::Ask } else { CheckScope::Run };
        let (mut findings, mut overview) = self.examine_config(directory, &config, &text, options, &scope).await?;
        findings.extend(trusted.err().map(|error| Finding::new(Some(FILE), None, &format!("{error:#}"))));
        let (name, at) = (config.project.name.clone(), directory.to_owned());
        let repository = tokio::task::spawn_blocking(move || machine::repository(&name, &at)).await?;
        if is_for_asks {
            overview.run_needs = Some(machine::run_needs(directory, &config, repository));
        } else {
            findings.extend(repository.err().map(|error| Finding::new(None, None, &format!("{error:#}"))));
        }
        Ok((findings, overview))
    }

    /// As [`Checker::examine`], for a configuration that was parsed from `text`, and without a look at the repository.
    pub async fn examine_config(
        &self,
        directory: &Path,
        config: &Config,
        text: &str,
        options: &ModelOptions,
        scope: &CheckScope,
    ) -> fault::Result<(Vec<Finding>, Overview)> {
        let mut found = Findings::new(text.to_owned());
        // It reads files, some of which may be on a network.
        let (at, own, options, of) = (directory.to_owned(), config.clone(), options.clone(), scope.clone());
        let checker = self.clone();
        found = tokio::task::spawn_blocking(move || {
            let Self { host, check_embeddings, environment } = &checker;
            let program = machine::Program { home: &host.home, environment, check_embeddings: &**check_embeddings };
            machine::look(&mut found, &program, &own, &at, &options, &of);
            found
        })
        .await?;
        let mut overview = overview(config, scope);
        overview.features = plugins::look(&mut found, &self.host, config, directory, scope).await;
        Ok((found.into_findings(), overview))
    }
}
