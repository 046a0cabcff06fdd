//! Graphs of steps of Python code, for agents. After a change only the steps that it affects run again.
//!
//! ```ignore
//! let graph = Graph::named("figures");
//! graph.add("load", "rows = [1, 2, 3]")?;
//! graph.add("sum", "total = sum(rows)\ntotal")?;
//! graph.run()?;
//! graph.change("load", "rows = [1, 2, 4]")?;
//! assert_eq!(graph.run()?.ran, ["load", "sum"]);
//! ```
//!
//! A graph belongs to the invocation that made it. Its steps see each other's values, and no directories, hosts or tools.

use crate::bindings::graph as host;
pub use crate::bindings::graph::{
    GraphChanges, GraphDiagnosis, GraphError, GraphFailure, GraphFormat, GraphPatch, GraphReplay, GraphState,
    GraphStep, GraphValue,
};

/// A graph of this invocation. It exists from its first step on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    name: String,
}

impl Graph {
    /// Names a graph. Creates nothing.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Adds a step after the last one. A source that is not valid Python is kept, and reported in the result.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when a step has this name already; [`GraphError::Limit`].
    pub fn add(&self, step: &str, source: &str) -> Result<GraphChanges, GraphError> {
        host::add_step(&self.name, step, source)
    }

    /// Replaces the source of a step.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`]; [`GraphError::Limit`].
    pub fn change(&self, step: &str, source: &str) -> Result<GraphChanges, GraphError> {
        host::change_step(&self.name, step, source)
    }

    /// Removes a step.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn remove(&self, step: &str) -> Result<GraphChanges, GraphError> {
        host::remove_step(&self.name, step)
    }

    /// Runs the stale steps, except those that need a failed step. A failing step is not an error.
    ///
    /// # Errors
    /// [`GraphError::Denied`] when no Python is installed.
    pub fn run(&self) -> Result<GraphReplay, GraphError> {
        host::run(&self.name, false)
    }

    /// Runs the stale steps, and those that need a failed step, too, as a notebook does.
    ///
    /// # Errors
    /// The errors of [`Graph::run`].
    pub fn run_on(&self) -> Result<GraphReplay, GraphError> {
        host::run(&self.name, true)
    }

    /// Runs a step again, and then the steps that its new values affect.
    ///
    /// # Errors
    /// The errors of [`Graph::run`]; [`GraphError::UnknownStep`].
    pub fn replay(&self, step: &str) -> Result<GraphReplay, GraphError> {
        host::replay(&self.name, step)
    }

    /// Lists the stale steps, in the order in which they will run.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when there is no such graph.
    pub fn stale(&self) -> Result<Vec<String>, GraphError> {
        host::stale(&self.name)
    }

    /// Lists the steps, in the order in which they were added.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when there is no such graph.
    pub fn show(&self) -> Result<Vec<GraphStep>, GraphError> {
        host::show(&self.name)
    }

    /// Diagnoses the failure of a step. None: of the first step that failed.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when no step failed.
    pub fn diagnose(&self, step: Option<&str>) -> Result<GraphDiagnosis, GraphError> {
        host::diagnose(&self.name, step)
    }

    /// Repairs the failure of a step by another source. None: of the first step that failed.
    ///
    /// # Errors
    /// [`GraphError::Failed`] when no source repairs it, with the number of sources that were tried.
    pub fn patch(&self, step: Option<&str>) -> Result<GraphPatch, GraphError> {
        host::patch(&self.name, step)
    }

    /// Exports the graph as text: as JSON or for Graphviz.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when there is no such graph.
    pub fn export(&self, format: GraphFormat) -> Result<String, GraphError> {
        host::export_graph(&self.name, format)
    }
}
