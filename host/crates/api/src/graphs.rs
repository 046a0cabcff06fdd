//! Requests about the graphs of a data directory. `longhaul_core::graph` has the types of the responses.

use longhaul_core::graph::{GraphFormat, GraphOperation, GraphSummary, StepEnvironment, StepView};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The default number of sources that one patch tries.
pub const TRIES_MAX: u32 = 8;

/// The language of the steps of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python, run by CPython in WebAssembly.
    #[default]
    Python,
}

impl Language {
    /// The name in JSON: `python`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
        }
    }
}

/// A model that is asked for advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// The directory of the project that configures the model.
    pub directory: PathBuf,
    /// The name of the model in its `longhaul.toml`. None: the first one; without any model none is asked.
    pub model: Option<String>,
}

/// Make a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateGraph {
    /// The name of the graph, which must not be in use.
    pub name: String,
    /// The language of its steps.
    pub language: Language,
    /// The environment of the steps.
    pub surroundings: StepEnvironment,
    /// The name and the source of each first step, in order: all are added, or the graph is not made. Default none.
    #[serde(default)]
    pub steps: Vec<(String, String)>,
    /// An identifier of the request. A repeated request has the same token and takes effect once.
    pub token: String,
}

/// List the graphs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListGraphs {}

/// Remove a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveGraph {
    /// The name of the graph.
    pub name: String,
}

/// List the changes of a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowHistory {
    /// The name of the graph.
    pub name: String,
}

/// List the steps of a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListSteps {
    /// The name of the graph.
    pub name: String,
}

/// Show a graph and a page of its steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowGraph {
    /// The name of the graph.
    pub name: String,
    /// The most steps of the page.
    pub limit: usize,
    /// The number of steps before the page.
    pub offset: usize,
}

/// A graph and a page of its steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphPage {
    /// The graph. Its stale steps are counted with those whose files changed.
    pub graph: GraphSummary,
    /// The steps of the page, in the order of the graph.
    pub steps: Vec<StepView>,
    /// The number of all steps.
    pub total: usize,
    /// The number of steps before the page.
    pub offset: usize,
}

/// Export a graph as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportGraph {
    /// The name of the graph.
    pub name: String,
    /// The format of the text.
    pub format: GraphFormat,
}

/// Draw the steps of a graph as lines for a terminal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DrawGraph {
    /// The name of the graph.
    pub name: String,
    /// The most columns of a line.
    pub width: u32,
}

/// Carry out an operation that agents have, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperateGraph {
    /// The name of the graph.
    pub name: String,
    /// The operation.
    pub operation: GraphOperation,
    /// An identifier of the request. A repeated request has the same token and takes effect once.
    pub token: String,
}

/// Add several steps: all of them, or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddSteps {
    /// The name of the graph.
    pub name: String,
    /// The name and the source of each step, in order.
    pub steps: Vec<(String, String)>,
    /// An identifier of the request. A repeated request has the same token and takes effect once.
    pub token: String,
}

/// Run the stale steps of a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunGraph {
    /// The name of the graph.
    pub name: String,
    /// True when steps that need a failed step run, too.
    pub keep_going: bool,
    /// The name of a step that was cut off and whose effect is unknown: it runs again. None: no such step runs.
    pub again: Option<String>,
    /// An identifier of the request. A repeated request has the same token and takes effect once.
    pub token: String,
}

/// Diagnose the failure of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiagnoseStep {
    /// The name of the graph.
    pub name: String,
    /// The name of the step. None: the first step that failed.
    pub step: Option<String>,
    /// The model to ask. None: no model is asked.
    pub model: Option<ModelChoice>,
    /// An identifier of the request. A repeated request has the same token and takes effect once.
    pub token: String,
}

/// Repair the failure of a step by another source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PatchStep {
    /// The name of the graph.
    pub name: String,
    /// The name of the step. None: the first step that failed.
    pub step: Option<String>,
    /// The model to ask. None: no model is asked.
    pub model: Option<ModelChoice>,
    /// The most sources to try; [`TRIES_MAX`] is usual.
    pub tries_max: u32,
    /// An identifier of the request. A repeated request has the same token and takes effect once.
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
