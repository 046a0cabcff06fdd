//! One power, and its text for people.

use longhaul_core::text::printable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest text of one power, in bytes.
pub(super) const POWER_BYTES_MAX: usize = 400;

/// The kind of target that a power reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerKind {
    /// A program that is started outside the sandbox of checks, or without an approval.
    Command,
    /// A check: a program in the sandbox.
    Check,
    /// A host that a tool, a server or a notification reaches.
    Host,
    /// An address that the host itself sends to: models, telemetry, shared servers.
    Endpoint,
    /// A directory other than the tree of a run.
    Directory,
    /// The tree of a run.
    Tree,
    /// A secret, a key, or a variable of the environment.
    Secret,
    /// A tool, an agent or a model that a plugin may call, and the plugin itself.
    Tool,
    /// A restriction that is weaker than its default.
    Wall,
    /// A restriction that is stronger than its default.
    Guard,
}

/// One power.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Power {
    /// The kind of its target.
    pub kind: PowerKind,
    /// The table of `longhaul.toml`.
    pub table: String,
    /// Its text for people.
    pub what: String,
    /// True when a run without configuration could reach the same.
    pub is_plain: bool,
}

impl Power {
    /// True when an agreement records it: more of a power, and less of a guard, needs a new agreement.
    #[must_use]
    pub fn is_agreed_on(&self) -> bool {
        !self.is_plain || self.is_guard()
    }

    /// True when it restricts a run.
    #[must_use]
    pub fn is_guard(&self) -> bool {
        self.kind == PowerKind::Guard
    }
}

impl fmt::Display for Power {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and words come from a file that another person may have written.
        write!(formatter, "[{}] {}", printable(&self.table, 100), printable(&self.what, POWER_BYTES_MAX))
    }
}
