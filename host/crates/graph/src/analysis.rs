//! What a step's source reads, writes and mutates, found without running it.
//!
//! Names are those of the steps' one global namespace; locals of functions, classes and comprehensions never appear.
//! An analysis errs towards more: a name that may be written on one path is a write. What a source does through other
//! names (aliases, imported modules, text given to `exec`) is not seen here; [`Analysis::sees_all`] says when that is
//! certain to matter, and what steps do is observed when they run.

mod builtins;
mod facts;
mod flow;
mod javascript;
mod lines;
mod names;
mod nesting;
mod python;
mod stack;

pub(crate) use builtins::all as python_builtins;
pub(crate) use python::with_module as with_python;

pub use names::{ByName, Names};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A variable of the steps' namespace.
pub type Name = Arc<str>;

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

/// A language that steps are written in.
pub trait Language: Send + Sync {
    /// What the source reads, writes and mutates.
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
    /// How much is taken for a mutation.
    pub mode: Mode,
}

/// JavaScript as scripts and modules are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JavaScript {
    /// How much is taken for a mutation.
    pub mode: Mode,
}

/// How much is taken for a mutation of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Also a method called on a name, a name given to an unknown function, and an augmented assignment. Default.
    #[default]
    Sound,
    /// Only stores to attributes and items of a name.
    Precise,
}

/// What a source reads, writes and mutates in the steps' namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Analysis {
    /// Names read before the source has bound them on every path, with the first such place. Without builtins.
    pub reads: ByName<Span>,
    /// Builtins read as [`Analysis::reads`] are: they matter only when an earlier step binds the name.
    pub builtins: ByName<Span>,
    /// Names that may be bound or bound anew.
    pub writes: Names,
    /// Names that are bound when the source came to its end, whichever path it took.
    pub definite_writes: Names,
    /// Names whose value may be changed in place, with the first reason.
    pub mutates: ByName<Reason>,
    /// Names that may be unbound.
    pub deletes: Names,
    /// Names that every path to the end bound or unbound: what they were before cannot be seen after.
    pub settles: Names,
    /// Why the source may read and write any name at all, if it may.
    pub sees_all: Option<Reason>,
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

/// Why a step that does not bind a name may still change what later steps see under it.
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
        method: Name,
    },
    /// `function(name)`, with a function that is not known to leave its arguments alone.
    Argument {
        /// The function, as far as it has a name.
        function: Name,
    },
    /// `del name`
    Deleted,
    /// `from module import *`
    StarImport {
        /// The module.
        module: Name,
    },
    /// Code from text: `exec`, `eval`, `compile`.
    CodeFromText {
        /// What was called.
        function: Name,
    },
    /// The namespace itself in hand: `globals()`, `locals()`, `vars()`, `dir()`.
    Namespace {
        /// What was called.
        function: Name,
    },
    /// Not found by analysis, seen when the step ran.
    Observed,
    /// An edge that was asked for.
    Explicit,
}

/// A source that is not the language's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SyntaxError {
    /// What is wrong, in one line.
    pub message: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
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
