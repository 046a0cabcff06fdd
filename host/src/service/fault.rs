//! Of which kind a refusal of the service is, for surfaces that tell kinds apart. Its text says what to do.

use std::fmt;

/// A refusal with its kind. What the service refuses without one is the fault of what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    /// Of which kind.
    pub kind: Kind,
    text: String,
}

/// The kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such thing.
    Unknown,
    /// Not as things stand now.
    Conflict,
    /// It could never be done.
    Invalid,
}

impl Fault {
    /// There is no such thing.
    pub fn unknown(text: impl fmt::Display) -> Self {
        Self { kind: Kind::Unknown, text: text.to_string() }
    }

    /// Not as things stand now.
    pub fn conflict(text: impl fmt::Display) -> Self {
        Self { kind: Kind::Conflict, text: text.to_string() }
    }

    /// It could never be done.
    pub fn invalid(text: impl fmt::Display) -> Self {
        Self { kind: Kind::Invalid, text: text.to_string() }
    }
}
