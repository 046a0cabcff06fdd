//! The three refusals of a capability; each is data for the guest and never a trap.

use serde::{Deserialize, Serialize};

/// A refusal by the configuration of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}; to allow it, {fix}")]
pub struct Denial {
    /// The refused action, with its name.
    pub reason: String,
    /// For example: add to longhaul.toml: `[agents.code] tools = ["files"]`.
    pub fix: String,
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("limit `{name}` reached: {used} of {max}")]
pub struct LimitHit {
    /// The name of the limit, mostly a field of [`crate::Limits`]. It contains the unit.
    pub name: String,
    /// The amount that was used or asked for.
    pub used: f64,
    /// The limit.
    pub max: f64,
}

impl LimitHit {
    /// A limit that was reached. `used` and `max` are in the unit that `name` contains; above 2^53 they are rounded.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people; caps are far below 2^53")]
    pub fn new(name: &str, used: u64, max: u64) -> Self {
        Self { name: name.to_owned(), used: used as f64, max: max as f64 }
    }
}

/// A service that is not available now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Outage {
    /// The service, and how its absence was noticed, in one line.
    pub reason: String,
    /// The wait in milliseconds that the service asked for. None: the service did not say.
    pub retry_after_ms: Option<u32>,
}
