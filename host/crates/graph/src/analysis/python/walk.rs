//! The state of the walk over one module.
//!
//! Nothing here walks: the files for statements and expressions do.

use super::super::AnalysisMode;
use super::super::facts::{Facts, Range, Symbol};
use super::super::flow::{Branch, Mark};
use super::super::proof::Obligation;
use super::purity::Draft;
use super::scope::Scopes;
use ruff_text_size::TextRange;

/// The walk over one module.
pub(super) struct Walk {
    pub(super) mode: AnalysisMode,
    pub(super) facts: Facts,
    pub(super) scopes: Scopes,
    pub(super) loops: Vec<Loop>,
    /// The proof about the function whose body the walk is in, if there is one.
    pub(super) draft: Option<Draft>,
    /// Names of the functions whose bodies the walk is in.
    pub(super) functions: Vec<Symbol>,
    /// The origins of the subjects of the `match` statements that the walk is in.
    pub(super) subjects: Vec<Vec<Origin>>,
    /// Expressions that searches for origins may still look at.
    pub(super) looks_left: u32,
}

/// A name whose value may be a value of an expression, or a part of one.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) name: Symbol,
    /// It is only a part.
    pub(super) is_held: bool,
    /// It is none if this holds.
    pub(super) unless: Option<Obligation>,
}

/// Most expressions that all searches for origins look at; with more, nothing is proved of the source.
const LOOKS_MAX: u32 = 200_000;

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
        Self {
            mode,
            facts: Facts::default(),
            scopes: Scopes::default(),
            loops: Vec::new(),
            draft: None,
            functions: Vec::new(),
            subjects: Vec::new(),
            looks_left: LOOKS_MAX,
        }
    }

    pub(super) fn sound(&self) -> bool {
        self.mode == AnalysisMode::Sound
    }
}

/// A range as numbers.
pub(super) fn bytes(range: TextRange) -> Range {
    (range.start().into(), range.end().into())
}
