//! Makes a model of a project as the owner of the data directory makes it for a run.

use crate::wiring::model_environment;
use longhaul_config::Config;
use longhaul_core::fault;
use longhaul_core::model::Model;
use longhaul_models::set::ModelSet;
use std::path::Path;
use std::sync::Arc;

/// Makes the model with this name in the configuration. Nothing is sent yet.
pub fn configured(config: &Config, name: &str, project: &Path) -> fault::Result<Arc<dyn Model>> {
    Ok(ModelSet::one(&config.models, name, project, &model_environment()?)?)
}
