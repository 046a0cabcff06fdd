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

/// A loop around the walk's present place.
pub(super) struct Loop {
    /// The mark at its start; none if the differences of its exits do not matter.
    pub(super) began: Option<Mark>,
    pub(super) breaks: Vec<Branch>,
    /// True with more exits than are kept apart.
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

/// A range as numbers.
pub(super) fn bytes(range: TextRange) -> Range {
    (range.start().into(), range.end().into())
}
