//! The models of projects as their `longhaul.toml` says now, for work of the host itself.
//!
//! A run keeps the set that it began with, and does not ask here. It refuses a file whose powers have no agreement.

use longhaul_config::Config;
use longhaul_core::fault;
use longhaul_core::model::{Model, Models as _};
use longhaul_core::project_models::ProjectModels;
use longhaul_core::store::Store;
use longhaul_models::set::{ModelOptions, ModelSet, ProgramEnvironment};
use longhaul_security::trust;
use std::path::Path;
use std::sync::Arc;

/// Reads the configuration of a project each time that one of its models is asked for.
pub(crate) struct ConfiguredModels {
    /// Knows which files are trusted.
    pub(crate) store: Arc<dyn Store>,
    /// The environment that this program gives to models.
    pub(crate) environment: ProgramEnvironment,
}

impl ProjectModels for ConfiguredModels {
    fn default_name(&self, directory: &Path) -> fault::Result<Option<String>> {
        let config = Config::read(directory)?;
        Ok(config.chooser().or_else(|| config.models.keys().next().cloned()))
    }

    fn model(&self, directory: &Path, name: &str) -> fault::Result<Option<Arc<dyn Model>>> {
        let mut config = Config::read(directory)?;
        trust::expect(&*self.store, directory, &config)?;
        // A model is made at its first use, here by the host.
        config.ask.model = Some(name.to_owned());
        let (used, options) = (config.used_models(), ModelOptions::default());
        let models = ModelSet::build(&config.models, used, directory, &options, &self.environment)?;
        Ok(models.model(name))
    }
}
