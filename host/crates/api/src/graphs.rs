//! What is asked of the graphs of a data directory. What is answered is the affair of `longhaul_core::graph`.

use longhaul_core::graph::{GraphFormat, GraphOperation, StepEnvironment};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Sources that one patch tries, unless it is told another number.
pub const TRIES_MAX: u32 = 8;

/// The language of the steps of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// CPython, in WebAssembly.
    Python,
}

impl Language {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
        }
    }
}

/// A model of a project that is asked, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// The project.
    pub directory: PathBuf,
    /// Its name there; none: the first that there is, and none at all is well.
    pub model: Option<String>,
}

/// Make a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateGraph {
    /// Its name.
    pub name: String,
    /// The language of its steps.
    pub language: Language,
    /// What its steps see.
    pub surroundings: StepEnvironment,
    /// A request that is repeated has the same token, so that it is carried out once.
    pub token: String,
}

/// List the graphs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListGraphs {}

/// Remove a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveGraph {
    /// Its name.
    pub name: String,
}

/// List what was changed in a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowHistory {
    /// Its name.
    pub name: String,
}

/// List the steps of a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListSteps {
    /// Its name.
    pub name: String,
}

/// Write a graph as a text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportGraph {
    /// Its name.
    pub name: String,
    /// The format.
    pub format: GraphFormat,
}

/// Draw the steps of a graph as lines for a terminal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DrawGraph {
    /// Its name.
    pub name: String,
    /// Columns of a line at most.
    pub width: u32,
}

/// Carry out what an agent can ask as well.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperateGraph {
    /// Its name.
    pub name: String,
    /// What is done.
    pub operation: GraphOperation,
    /// A request that is repeated has the same token, so that it is carried out once.
    pub token: String,
}

/// Add steps, all or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddSteps {
    /// The name of the graph.
    pub name: String,
    /// Names and sources.
    pub steps: Vec<(String, String)>,
    /// A request that is repeated has the same token, so that it is carried out once.
    pub token: String,
}

/// Run what is stale.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunGraph {
    /// Its name.
    pub name: String,
    /// Also what needs a failed step.
    pub keep_going: bool,
    /// And this step, which acts and was cut off.
    pub again: Option<String>,
    /// A request that is repeated has the same token, so that it is carried out once.
    pub token: String,
}

/// Say why a step failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiagnoseStep {
    /// The name of the graph.
    pub name: String,
    /// None: the first that failed.
    pub step: Option<String>,
    /// A model that is asked, too.
    pub model: Option<ModelChoice>,
    /// A request that is repeated has the same token, so that it is carried out once.
    pub token: String,
}

/// Find a source with which a failure is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PatchStep {
    /// The name of the graph.
    pub name: String,
    /// None: the first that failed.
    pub step: Option<String>,
    /// A model that is asked, too.
    pub model: Option<ModelChoice>,
    /// At most so many sources are tried.
    pub tries_max: u32,
    /// A request that is repeated has the same token, so that it is carried out once.
    pub token: String,
}

impl DiagnoseStep {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        self.model.iter().map(|model| model.directory.as_path()).collect()
    }
}

impl PatchStep {
    pub(crate) fn paths(&self) -> Vec<&Path> {
        self.model.iter().map(|model| model.directory.as_path()).collect()
    }
}
