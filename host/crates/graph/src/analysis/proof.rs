//! The obligations of one source, which prove that it leaves a value as it is once they are met.
//!
//! A source alone shows no such proof: `json.dumps(rows)` leaves `rows` as they are if `json` is the module, which
//! another step imports. So a source states obligations, and the graph looks whether all of its steps together meet
//! them. Nothing here decides that. An obligation that is not met keeps the dependency.

use std::sync::Arc;

/// A function, by the name that a source calls it by: `mean`, `json.dumps`, `os.path.join`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DottedName {
    /// The variable.
    pub root: Arc<str>,
    /// The attributes behind it, each after a dot; empty for the variable itself.
    pub path: Arc<str>,
}

/// A condition for the proof that a use leaves a value as it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Obligation {
    /// No step can change the value of this variable in place: it is a module, a number, a text.
    Inert(Arc<str>),
    /// The function changes none of its arguments and no variable.
    Leaves(DottedName),
    /// The function does so, and its result shares nothing with its arguments.
    Fresh(DottedName),
    /// No step defines a method of this name, so the called one is a method of the language or its library.
    Method(Arc<str>),
    /// At least one of these holds.
    Any(Box<[Obligation]>),
}

/// The kind of a value that a source binds a variable to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ValueKind {
    /// A number, a text, `None`, `True` or `False`.
    Plain,
    /// A module, by its name with dots.
    Module(Arc<str>),
    /// A member of a module, by its name with dots: `math.sqrt`.
    Member(Arc<str>),
    /// A function that changes none of its arguments and no variable, if it meets these obligations.
    Function(Arc<[Obligation]>),
}

/// A reason for which a use of a value leaves the value as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Doubt {
    /// It changes the value.
    None,
    /// It may leave the value as it is only if nothing can change such a value.
    Kind,
    /// It also leaves the value as it is if this holds.
    Unless(Obligation),
}

impl Doubt {
    /// The same use, through the result of a function that was given the value.
    pub(super) fn through(&self, function: Option<DottedName>) -> Self {
        match (self, function.map(Obligation::Fresh)) {
            (Self::Unless(known), Some(fresh)) => Self::Unless(Obligation::Any([known.clone(), fresh].into())),
            (_, Some(fresh)) => Self::Unless(fresh),
            (Self::Unless(known), None) => Self::Unless(known.clone()),
            (_, None) => Self::Kind,
        }
    }
}

impl DottedName {
    /// The name of a variable.
    pub(super) fn of(root: Arc<str>) -> Self {
        Self { root, path: "".into() }
    }
}
