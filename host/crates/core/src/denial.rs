//! The three refusals of a capability; each is data for the guest and never a trap.

use serde::{Deserialize, Serialize};

/// Not allowed. `fix` is the line that would allow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}; to allow it, {fix}")]
pub struct Denial {
    /// The refused action, with its name.
    pub reason: String,
    /// For example: add to longhaul.toml: `[agents.code] tools = ["files"]`.
    pub fix: String,
}

/// A cap was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("limit `{name}` reached: {used} of {max}")]
pub struct LimitHit {
    /// The field of [`crate::Limits`], which carries the unit.
    pub name: String,
    /// The used or requested amount.
    pub used: f64,
    /// The cap.
    pub max: f64,
}

impl LimitHit {
    /// `used` and `max` are in the unit that `name` ends in. Past 2^53 they are rounded.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people; caps are far below 2^53")]
    pub fn new(name: &str, used: u64, max: u64) -> Self {
        Self { name: name.to_owned(), used: used as f64, max: max as f64 }
    }
}

/// A service is unavailable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Outage {
    /// The service, and the symptom.
    pub reason: String,
    /// When to retry, in milliseconds, if it is known.
    pub retry_after_ms: Option<u32>,
}
