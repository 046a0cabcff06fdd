//! One step of a graph: its name, its source, and what its analysis and its runs found. A step does not know which
//! others depend on it.

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

/// One step, as the graph knows it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub id: StepId,
    /// Its source.
    pub source: String,
    /// Its place in insertion order; places of removed steps are not given again.
    pub position: u64,
    /// Whether its source parses.
    pub state: NodeState,
    /// Its last source that parsed, where that is another. Who makes the graph anew adds the step with this one first
    /// and then changes it.
    pub last_good: Option<Arc<str>>,
    /// What its source does, or what its last source that parsed did.
    pub analysis: Analysis,
    /// What its runs were seen to do, where there is something that analysis missed.
    pub(super) seen: Option<Arc<Observed>>,
}

/// Whether a step's source parses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeState {
    /// It does.
    Parsed,
    /// It does not; nothing is read, and what the last good source wrote may be written.
    Broken(Box<SyntaxError>),
}

/// What a run of a step was seen to do, or what several were.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Names that it looked up, also absent ones, and not those that it had bound itself by then.
    pub reads: BTreeSet<VariableName>,
    /// Names that it bound, changed in place or unbound.
    pub writes: BTreeSet<VariableName>,
    /// True when it raised, the last of several: nothing that it writes is certain then.
    pub failed: bool,
}

/// A source, and what was found in it.
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

    /// What its runs were seen to do, of which names those that analysis missed.
    #[must_use]
    pub fn observed(&self) -> &Observed {
        static NOTHING: Observed = Observed { reads: BTreeSet::new(), writes: BTreeSet::new(), failed: false };
        self.seen.as_deref().unwrap_or(&NOTHING)
    }
}

impl Analysed {
    /// Of a source that does not parse, what is known is what was `last_good`.
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
