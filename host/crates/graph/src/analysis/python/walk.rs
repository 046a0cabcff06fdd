//! The state of the walk over one module.
//!
//! Nothing here walks: the files for statements and expressions do.

use super::super::AnalysisMode;
use super::super::facts::{Facts, Range};
use super::super::flow::{Branch, Mark};
use super::scope::Scopes;
use ruff_text_size::TextRange;

/// The walk over one module.
pub(super) struct Walk {
    pub(super) mode: AnalysisMode,
    pub(super) facts: Facts,
    pub(super) scopes: Scopes,
    pub(super) loops: Vec<Loop>,
}

/// A loop that the walk is in.
pub(super) struct Loop {
    /// Where it began; without one, how its exits differ does not matter.
    pub(super) began: Option<Mark>,
    pub(super) breaks: Vec<Branch>,
    /// More exits than are told apart.
    pub(super) overflown: bool,
}

impl Walk {
    pub(super) fn new(mode: AnalysisMode) -> Self {
        Self { mode, facts: Facts::default(), scopes: Scopes::default(), loops: Vec::new() }
    }

    pub(super) fn sound(&self) -> bool {
        self.mode == AnalysisMode::Sound
    }
}

/// A place in numbers.
pub(super) fn bytes(range: TextRange) -> Range {
    (range.start().into(), range.end().into())
}
