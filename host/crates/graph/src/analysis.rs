//! The names that a step's source reads, writes and mutates, found without running it.
//!
//! Names are those of the steps' one global namespace; locals of functions, classes and comprehensions never appear. An
//! analysis errs towards more: a name that may be written on one path is a write. Accesses through other names
//! (aliases, imported modules, text given to `exec`) are not seen here; [`Analysis::sees_all`] reports the certain
//! cases, and every run of a step is observed.

mod builtins;
mod facts;
mod flow;
mod flows;
mod library;
mod lines;
mod nesting;
mod proof;
mod python;
mod stack;

pub(crate) use builtins::all as python_builtins;
pub(crate) use library::{is_fresh, is_inert, leaves};
pub use proof::{DottedName, Obligation, ValueKind};
pub(crate) use python::with_module as with_python;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A variable of the steps' namespace.
pub type VariableName = Arc<str>;

/// Longest source of one step, in bytes of UTF-8: 1,000,000.
///
/// A longer one is a [`SyntaxError`] that says so, and is not parsed.
pub const SOURCE_BYTES_MAX: usize = 1_000_000;

/// Most brackets and blocks that may be open at once: 200, as in CPython, whose own cap is 200 brackets and 100 blocks.
///
/// Scanned before the parser sees the source; a deeper one is a [`SyntaxError`] at the place that is too deep.
pub const NESTING_MAX: usize = 200;

/// Most operators of one expression that may lean on each other, as in `a + b + c` or `a.b.c`: 10,000.
///
/// Scanned as [`NESTING_MAX`] is. CPython ends such an expression with a `RecursionError` sooner.
pub const LEANING_MAX: usize = 10_000;

/// In place of the names of the methods that a source defines: it may define one of any name.
pub(crate) const ANY_METHOD: &str = "*";

/// A language that steps are written in.
pub trait StepLanguage: Send + Sync {
    /// Finds the names that the source reads, writes and mutates.
    ///
    /// # Errors
    /// [`SyntaxError`] when it does not parse, is longer than [`SOURCE_BYTES_MAX`], or nests deeper than
    /// [`NESTING_MAX`] and [`LEANING_MAX`] allow.
    fn analyse(&self, source: &str) -> Result<Analysis, SyntaxError>;

    /// The language's name in small letters, for example `python`.
    fn name(&self) -> &'static str;
}

/// Python 3, parsed as CPython 3.14 would.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Python {
    /// The mode that decides what counts as a mutation.
    pub mode: AnalysisMode,
}

/// The accesses that count as a mutation of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnalysisMode {
    /// Also a method called on a name, a name given to an unknown function, and an augmented assignment, as long as
    /// the steps together do not prove that such a use leaves the value as it is. Default.
    #[default]
    Sound,
    /// Only stores to attributes and items of a name.
    Precise,
}

/// The names of the steps' namespace that a source reads, writes and mutates.
///
/// One entry holds all facts of a name: a graph keeps an analysis for each of its steps, most of which use two or three
/// names, and looks up each of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Analysis {
    /// In the order of the names, each once.
    names: Arc<[NameUse]>,
    sees_all: Option<Box<Reason>>,
    /// In the order of the names, each once.
    methods: Box<[VariableName]>,
}

/// The uses of one name in a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameUse {
    /// The name.
    pub name: VariableName,
    /// The first place that reads it before the source has bound it on every path.
    pub read: Option<Span>,
    /// True when it is read and a builtin: the read matters only when an earlier step binds the name.
    pub builtin: bool,
    /// True when it may be bound or rebound.
    pub written: bool,
    /// True when it may be unbound.
    pub deleted: bool,
    /// The certain fact of the name at the end, on every path.
    pub settled: Option<Settled>,
    /// The first reason why its value may be changed in place; none if it may not.
    pub mutated: Option<Box<Reason>>,
    /// The proof that no use changes its value in place after all, if the graph meets all of these obligations. Empty
    /// if only the kind of its value can show that, and none if a use changes it.
    pub proof: Option<Box<[Obligation]>>,
    /// The kind of the values that the source binds it to, if all are of one kind that is known.
    pub bound: Option<ValueKind>,
}

/// The certain fact of a name: later steps cannot see its earlier value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Settled {
    /// It is bound on every path.
    Bound,
    /// On every path it is bound or unbound.
    Either,
}

/// A place in a source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
    /// Line of the first byte, from 1.
    pub line: u32,
    /// Column of the first byte, from 1, in characters.
    pub column: u32,
}

/// The reason why a step may change the value that later steps see under a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// Bound: assigned, imported, defined.
    Written,
    /// `name.attribute = ...`
    AttributeStore,
    /// `name[...] = ...`
    SubscriptStore,
    /// `name += ...`, which changes a list in place.
    Augmented,
    /// `name.method()`
    MethodCall {
        /// The method.
        method: VariableName,
    },
    /// `function(name)`, with a function that is not known to leave its arguments alone.
    Argument {
        /// The function, as far as it has a name.
        function: VariableName,
    },
    /// `del name`
    Deleted,
    /// `from module import *`
    StarImport {
        /// The module.
        module: VariableName,
    },
    /// Code from text: `exec`, `eval`, `compile`.
    CodeFromText {
        /// The called function.
        function: VariableName,
    },
    /// The namespace itself in hand: `globals()`, `locals()`, `vars()`, `dir()`.
    Namespace {
        /// The called function.
        function: VariableName,
    },
    /// Seen when the step ran, and not found by analysis.
    Observed,
    /// A requested edge.
    Explicit,
}

/// A syntax error of a source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SyntaxError {
    /// The error, in one line.
    pub message: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
}

impl Analysis {
    /// An analysis of names in any order; of several entries of one name, the first.
    #[must_use]
    pub fn new(mut names: Vec<NameUse>, sees_all: Option<Reason>) -> Self {
        names.sort_by(|one, other| one.name.cmp(&other.name));
        names.dedup_by(|later, first| later.name == first.name);
        Self { names: names.into(), sees_all: sees_all.map(Box::new), methods: Box::default() }
    }

    /// The same, of a source that defines methods of these names.
    #[must_use]
    pub fn with_methods(mut self, names: impl IntoIterator<Item = VariableName>) -> Self {
        let mut methods: Vec<VariableName> = names.into_iter().collect();
        methods.sort_unstable();
        methods.dedup();
        self.methods = methods.into();
        self
    }

    /// Names of the methods that the source defines, or may give to a value.
    #[must_use]
    pub fn methods(&self) -> &[VariableName] {
        &self.methods
    }

    /// The reason why the source may read and write any name; none if it may not.
    #[must_use]
    pub fn sees_all(&self) -> Option<&Reason> {
        self.sees_all.as_deref()
    }

    /// Every name that the source uses, in their order.
    #[must_use]
    pub fn names(&self) -> &[NameUse] {
        &self.names
    }

    /// The use of a name in the source, if there is one.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<&NameUse> {
        let at = self.names.binary_search_by(|one| (*one.name).cmp(name)).ok()?;
        Some(&self.names[at])
    }

    /// Names read before the source has bound them on every path. Without builtins.
    pub fn reads(&self) -> impl Iterator<Item = &VariableName> {
        self.that(|one| one.read.is_some() && !one.builtin)
    }

    /// Builtins that are read before they are bound on every path.
    pub fn builtins(&self) -> impl Iterator<Item = &VariableName> {
        self.that(|one| one.builtin)
    }

    /// Names that may be bound or rebound.
    pub fn writes(&self) -> impl Iterator<Item = &VariableName> {
        self.that(|one| one.written)
    }

    /// Names that are bound at the end of the source, on every path.
    pub fn definite_writes(&self) -> impl Iterator<Item = &VariableName> {
        self.that(|one| one.settled == Some(Settled::Bound))
    }

    /// Names whose value may be changed in place.
    pub fn mutates(&self) -> impl Iterator<Item = &VariableName> {
        self.that(|one| one.mutated.is_some())
    }

    /// Names that may be unbound.
    pub fn deletes(&self) -> impl Iterator<Item = &VariableName> {
        self.that(|one| one.deleted)
    }

    fn that(&self, wanted: fn(&NameUse) -> bool) -> impl Iterator<Item = &VariableName> {
        self.names.iter().filter(move |one| wanted(one)).map(|one| &one.name)
    }
}

impl NameUse {
    /// A name without any use yet.
    #[must_use]
    pub fn new(name: VariableName) -> Self {
        Self {
            name,
            read: None,
            builtin: false,
            written: false,
            deleted: false,
            settled: None,
            mutated: None,
            proof: None,
            bound: None,
        }
    }

    /// True when it may be bound, unbound or changed in place.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.written || self.deleted || self.mutated.is_some()
    }

    /// True when that is so whatever the other steps are.
    #[must_use]
    pub fn is_changed_for_certain(&self) -> bool {
        self.written || self.deleted || (self.mutated.is_some() && self.proof.is_none())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written => f.write_str("written"),
            Self::AttributeStore => f.write_str("an attribute is stored"),
            Self::SubscriptStore => f.write_str("an item is stored"),
            Self::Augmented => f.write_str("an augmented assignment"),
            Self::MethodCall { method } => write!(f, "method `{method}` is called"),
            Self::Argument { function } => write!(f, "given to `{function}`"),
            Self::Deleted => f.write_str("deleted"),
            Self::StarImport { module } => write!(f, "`from {module} import *`"),
            Self::CodeFromText { function } => write!(f, "`{function}` runs text"),
            Self::Namespace { function } => write!(f, "`{function}` gives the namespace"),
            Self::Observed => f.write_str("observed"),
            Self::Explicit => f.write_str("asked for"),
        }
    }
}
