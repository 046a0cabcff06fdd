//! Models of a project for the host's own work: the summary of an output, advice about a failed step.
//!
//! An agent's own models are a [`Models`](crate::model::Models) of its run. Nothing here says how a project is
//! configured.

use crate::fault;
use crate::model::Model;
use std::path::Path;
use std::sync::Arc;

/// The models of projects, by the directory of the project and the name in its `longhaul.toml`.
pub trait ProjectModels: Send + Sync {
    /// The name of the project's default model; none if it has no models.
    ///
    /// # Errors
    /// When `longhaul.toml` cannot be read.
    fn default_name(&self, directory: &Path) -> fault::Result<Option<String>>;

    /// The model of a name; none if `longhaul.toml` has no such table.
    ///
    /// # Errors
    /// When `longhaul.toml` cannot be read or is not trusted, or a model that it uses cannot be set up.
    fn model(&self, directory: &Path, name: &str) -> fault::Result<Option<Arc<dyn Model>>>;
}
