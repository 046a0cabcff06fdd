//! The graph: steps in insertion order, what depends on what, what is stale.
//!
//! Inferred edges are not stored. An index holds, for each name, the positions of the steps that read, write or settle
//! it; edges, ancestors, descendants and what a change makes stale are walks over it, which cost in proportion to what
//! they meet. So a change of one step of many touches the names of that step and nothing else.

use crate::analysis::{Analysis, Language, Name, Reason, SyntaxError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Most steps of one graph.
pub const STEPS_MAX: usize = 100_000;

/// A step's name within its graph.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(Arc<str>);

impl StepId {
    /// The step of this name.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for StepId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// One step, as the graph knows it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub id: StepId,
    /// Its source.
    pub source: Arc<str>,
    /// Its place in insertion order; places of removed steps are not given again.
    pub position: u64,
    /// Whether its source parses.
    pub state: NodeState,
    /// What its source does, or what its last source that parsed did.
    pub analysis: Arc<Analysis>,
    /// Names that its runs were seen to read, which analysis missed.
    pub observed_reads: BTreeSet<Name>,
    /// Names that its runs were seen to change, which analysis missed.
    pub observed_writes: BTreeSet<Name>,
    /// True when its last run raised, so that nothing that it writes is certain.
    pub failed: bool,
}

/// Whether a step's source parses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeState {
    /// It does.
    Parsed,
    /// It does not; nothing is read, and what the last good source wrote may be written.
    Broken(SyntaxError),
}

/// A dependency of one step on another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// The step that is depended on.
    pub from: StepId,
    /// The step that depends.
    pub to: StepId,
    /// The names that it is about, with why `from` matters to each. Empty for an edge that was asked for without names.
    pub variables: BTreeMap<Name, Reason>,
    /// True when some name of it was not predicted and seen when a step ran.
    pub observed: bool,
    /// True when it was asked for.
    pub explicit: bool,
}

/// What a run of a step was seen to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Names that it looked up, also absent ones.
    pub reads: BTreeSet<Name>,
    /// Names that it bound, changed in place or unbound.
    pub writes: BTreeSet<Name>,
    /// True when it raised.
    pub failed: bool,
}

/// A dependency that analysis missed and a run showed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MissedEdge {
    /// The step that is depended on.
    pub from: StepId,
    /// The step that depends.
    pub to: StepId,
    /// The name.
    pub variable: Name,
}

/// Why a graph was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The name is taken.
    #[error("there is a step `{id}` already; change it, or choose another name")]
    DuplicateStep {
        /// The name.
        id: StepId,
    },
    /// No step has the name.
    #[error("there is no step `{id}`")]
    UnknownStep {
        /// The name.
        id: StepId,
    },
    /// The edge would make a step depend on itself.
    #[error("an edge from `{from}` to `{to}` would close a cycle; the graph is unchanged")]
    Cycle {
        /// Where the edge would start.
        from: StepId,
        /// Where it would end.
        to: StepId,
    },
    /// The graph is full.
    #[error("the graph has {steps_max} steps already, which is the most; begin another graph")]
    TooManySteps {
        /// The cap.
        steps_max: usize,
    },
}

/// Steps in insertion order and what depends on what.
#[derive(Clone)]
pub struct Graph {
    language: Arc<dyn Language>,
}

impl Graph {
    /// An empty graph of steps in this language.
    #[must_use]
    pub fn new(language: Arc<dyn Language>) -> Self {
        Self { language }
    }

    /// The language of its steps.
    #[must_use]
    pub fn language(&self) -> &Arc<dyn Language> {
        &self.language
    }

    /// Adds a step at the end. It is stale, since it never ran.
    ///
    /// # Errors
    /// [`GraphError::DuplicateStep`] and [`GraphError::TooManySteps`]; nothing is changed then.
    pub fn add_step(&mut self, _id: StepId, _source: String) -> Result<(), GraphError> {
        unimplemented!()
    }

    /// Gives a step another source. Answers what is stale now because of it, in replay order, the step first.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`]; [`GraphError::Cycle`] when a name that it now reads or writes closes one with an
    /// edge that was asked for. Nothing is changed then.
    pub fn change_step(&mut self, _id: &StepId, _source: String) -> Result<Vec<StepId>, GraphError> {
        unimplemented!()
    }

    /// Takes a step out. Answers what is stale now because of it, in replay order.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`] and, as for [`Graph::change_step`], [`GraphError::Cycle`].
    pub fn remove_step(&mut self, _id: &StepId) -> Result<Vec<StepId>, GraphError> {
        unimplemented!()
    }

    /// Adds an edge that was asked for; `variables` may be empty. An edge that is there already gains the names.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`] and [`GraphError::Cycle`]; nothing is changed then.
    pub fn add_edge(&mut self, _from: &StepId, _to: &StepId, _variables: BTreeSet<Name>) -> Result<(), GraphError> {
        unimplemented!()
    }

    /// Takes in what a run of a step was seen to do, and answers the dependencies that analysis missed.
    ///
    /// A run that raised makes what the step writes uncertain, until one does not.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`]; nothing is changed then.
    pub fn observe(&mut self, _id: &StepId, _observed: &Observed) -> Result<Vec<MissedEdge>, GraphError> {
        unimplemented!()
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        unimplemented!()
    }

    /// True without steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The steps in insertion order.
    pub fn steps(&self) -> impl Iterator<Item = &Node> {
        std::iter::empty()
    }

    /// One step.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn node(&self, _id: &StepId) -> Result<&Node, GraphError> {
        unimplemented!()
    }

    /// All edges, made as they are asked for: by the step that depends, in insertion order.
    ///
    /// A list that every step appends to has as many edges as pairs of steps, so take no more than is needed.
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        std::iter::empty()
    }

    /// The edges that end at a step, by position of where they start.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn edges_into(&self, _id: &StepId) -> Result<Vec<Edge>, GraphError> {
        unimplemented!()
    }

    /// The edges that start at a step, by position of where they end.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn edges_out(&self, _id: &StepId) -> Result<Vec<Edge>, GraphError> {
        unimplemented!()
    }

    /// The steps whose read or written names hold this one, in insertion order: (reads it, may change it).
    pub fn users_of(&self, _name: &str) -> Vec<(StepId, bool, bool)> {
        unimplemented!()
    }

    /// What a step depends on, directly or not, in insertion order; with `variables`, only what these names of it
    /// depend on.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn ancestors(&self, _id: &StepId, _variables: Option<&BTreeSet<Name>>) -> Result<Vec<StepId>, GraphError> {
        unimplemented!()
    }

    /// What depends on a step, directly or not, in insertion order, without the step.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn descendants(&self, _id: &StepId) -> Result<Vec<StepId>, GraphError> {
        unimplemented!()
    }

    /// A step and what depends on it, in insertion order.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn subgraph_from(&self, _id: &StepId) -> Result<Vec<StepId>, GraphError> {
        unimplemented!()
    }

    /// A step and what depends on it, in the order in which they are run again: dependencies first, ties in insertion
    /// order.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn replay_from(&self, _id: &StepId) -> Result<Vec<StepId>, GraphError> {
        unimplemented!()
    }

    /// Marks a step and what depends on it stale, and answers them in insertion order.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn mark_stale(&mut self, _id: &StepId) -> Result<Vec<StepId>, GraphError> {
        unimplemented!()
    }

    /// Marks one step stale, and nothing that depends on it.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn mark_stale_alone(&mut self, _id: &StepId) -> Result<(), GraphError> {
        unimplemented!()
    }

    /// Marks one step fresh.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn mark_fresh(&mut self, _id: &StepId) -> Result<(), GraphError> {
        unimplemented!()
    }

    /// The stale steps in replay order.
    #[must_use]
    pub fn stale(&self) -> Vec<StepId> {
        unimplemented!()
    }

    /// Whether a step is stale.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn is_stale(&self, _id: &StepId) -> Result<bool, GraphError> {
        unimplemented!()
    }
}
