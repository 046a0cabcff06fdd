//! The input and the output of a rule: facts of a failure, and proposed edits of one source with their reason.
//!
//! An edit is a place and a text. Nothing here applies an edit, or judges it.

use crate::analysis::VariableName;
use crate::diagnose::RaisedFailure;
use std::collections::BTreeSet;

/// The change of a rule, and its reason.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    /// Lower is likelier.
    pub(super) rank: usize,
    pub(super) rule: &'static str,
    pub(super) edits: Vec<Edit>,
    pub(super) reason: String,
}

/// A range of a source, and its replacement.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Edit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

/// The facts that rules know beside the source.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) failure: RaisedFailure,
    /// Names that earlier steps bind.
    pub(super) known: BTreeSet<VariableName>,
    /// The variable that should not be `None`, if the source is that of the step that produced it.
    pub(super) none: Option<VariableName>,
}

impl Proposal {
    pub(super) fn new(rank: usize, rule: &'static str, edits: Vec<Edit>, reason: impl Into<String>) -> Self {
        Self { rank, rule, edits, reason: reason.into() }
    }
}

impl Edit {
    pub(super) fn replace(range: ruff_text_size::TextRange, text: impl Into<String>) -> Self {
        Self { start: range.start().to_usize(), end: range.end().to_usize(), text: text.into() }
    }

    pub(super) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self { start: at, end: at, text: text.into() }
    }
}
