//! One step of a graph: its name, its source, and the findings of its analysis and its runs. A step does not know its
//! dependents.

use crate::analysis::{Analysis, StepLanguage, SyntaxError, VariableName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

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

/// One step of the graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub id: StepId,
    /// Its source.
    pub source: String,
    /// Its place in insertion order; places of removed steps are not reused.
    pub position: u64,
    /// The result of parsing its source.
    pub state: NodeState,
    /// Its last source that parsed, if it differs. A caller that rebuilds the graph adds the step with this one first
    /// and then changes it.
    pub last_good: Option<Arc<str>>,
    /// The analysis of its source, or of its last source that parsed.
    pub analysis: Analysis,
    /// The observations of its runs, if analysis missed something.
    pub(super) seen: Option<Arc<Observed>>,
}

/// The result of parsing a step's source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeState {
    /// The source parses.
    Parsed,
    /// The source does not parse; then nothing is read, and the writes of the last good source remain possible writes.
    Broken(Box<SyntaxError>),
}

/// The observations of one run of a step, or of several.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Names that it looked up, including absent ones, and without those that it had already bound itself.
    pub reads: BTreeSet<VariableName>,
    /// Names that it bound, changed in place or unbound.
    pub writes: BTreeSet<VariableName>,
    /// True when it raised, or the last of several did: then none of its writes is certain.
    pub failed: bool,
}

/// A source, and its analysis.
pub(super) struct Analysed {
    pub(super) source: String,
    pub(super) state: NodeState,
    pub(super) analysis: Analysis,
}

impl Node {
    /// A step that never ran.
    pub(super) fn new(id: StepId, position: u64, Analysed { source, state, analysis }: Analysed) -> Self {
        Self { id, source, position, state, last_good: None, analysis, seen: None }
    }

    /// The observations of its runs, limited to names that analysis missed.
    #[must_use]
    pub fn observed(&self) -> &Observed {
        static NOTHING: Observed = Observed { reads: BTreeSet::new(), writes: BTreeSet::new(), failed: false };
        self.seen.as_deref().unwrap_or(&NOTHING)
    }
}

impl Analysed {
    /// The analysis of a source that does not parse is that of `last_good`.
    pub(super) fn new(language: &dyn StepLanguage, source: String, last_good: Option<&Analysis>) -> Self {
        match language.analyse(&source) {
            Ok(analysis) => Self { source, state: NodeState::Parsed, analysis },
            Err(error) => Self {
                source,
                state: NodeState::Broken(Box::new(error)),
                analysis: last_good.cloned().unwrap_or_default(),
            },
        }
    }
}
