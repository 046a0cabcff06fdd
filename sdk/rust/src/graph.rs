//! Code in steps: change one, and only what it touches runs again. For agents.
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
//! A graph belongs to the invocation that made it. Its steps are Python, and see nothing but each other's values.

use crate::bindings::graph as host;
pub use crate::bindings::graph::{
    GraphChanges, GraphDiagnosis, GraphError, GraphFailure, GraphFormat, GraphPatch, GraphReplay, GraphState,
    GraphStep, GraphValue,
};

/// A graph of this invocation, by its name. It is there once a step was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    name: String,
}

impl Graph {
    /// The graph of this name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Adds a step behind the others. A source that cannot be read is kept, and said in the answer.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when there is a step of this name; [`GraphError::Limit`].
    pub fn add(&self, step: &str, source: &str) -> Result<GraphChanges, GraphError> {
        host::add_step(&self.name, step, source)
    }

    /// Gives a step another source.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`]; [`GraphError::Limit`].
    pub fn change(&self, step: &str, source: &str) -> Result<GraphChanges, GraphError> {
        host::change_step(&self.name, step, source)
    }

    /// Takes a step out.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn remove(&self, step: &str) -> Result<GraphChanges, GraphError> {
        host::remove_step(&self.name, step)
    }

    /// Runs what is stale, but for what needs a step that failed. That a step fails is no error.
    ///
    /// # Errors
    /// [`GraphError::Denied`] when no Python is installed.
    pub fn run(&self) -> Result<GraphReplay, GraphError> {
        host::run(&self.name, false)
    }

    /// Runs what is stale as a notebook would, past steps that failed.
    ///
    /// # Errors
    /// As [`Graph::run`].
    pub fn run_on(&self) -> Result<GraphReplay, GraphError> {
        host::run(&self.name, true)
    }

    /// Runs a step again, and what its new values touch.
    ///
    /// # Errors
    /// As [`Graph::run`], and [`GraphError::UnknownStep`].
    pub fn replay(&self, step: &str) -> Result<GraphReplay, GraphError> {
        host::replay(&self.name, step)
    }

    /// The steps that would run, in their order.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when there is no such graph.
    pub fn stale(&self) -> Result<Vec<String>, GraphError> {
        host::stale(&self.name)
    }

    /// All steps as they stand.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when there is no such graph.
    pub fn show(&self) -> Result<Vec<GraphStep>, GraphError> {
        host::show(&self.name)
    }

    /// The cause of a step's failure; without a step, of the first that failed.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when none did.
    pub fn diagnose(&self, step: Option<&str>) -> Result<GraphDiagnosis, GraphError> {
        host::diagnose(&self.name, step)
    }

    /// Finds a source with which a failure is gone, and keeps it.
    ///
    /// # Errors
    /// [`GraphError::Failed`] when none was found, with how many were tried.
    pub fn patch(&self, step: Option<&str>) -> Result<GraphPatch, GraphError> {
        host::patch(&self.name, step)
    }

    /// The graph as JSON or for Graphviz.
    ///
    /// # Errors
    /// [`GraphError::Invalid`] when there is no such graph.
    pub fn export(&self, format: GraphFormat) -> Result<String, GraphError> {
        host::export_graph(&self.name, format)
    }
}
