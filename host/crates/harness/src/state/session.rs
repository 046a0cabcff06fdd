//! One attempt at a feature, and the notes that planners and agents get of people.
//!
//! It knows nothing of the feature but its id.

use longhaul_core::work::Issue;
use serde::{Deserialize, Serialize};

/// One attempt at a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The id of the feature.
    pub feature: String,
    /// The tree that it works in, from 0. No two active sessions share one.
    #[serde(default)]
    pub slot: u32,
    /// The commit that its tree started from, or was last brought to; none before the preparation.
    #[serde(default)]
    pub base: Option<String>,
    /// The driver's orientation for it, an object: commits, progress, decisions, artifact.
    #[serde(default)]
    pub orientation: serde_json::Value,
    /// The number of times that a round continued in a fresh invocation, of `handoffs_max`.
    #[serde(default)]
    pub handoffs: u32,
    /// The number of times that commits of others were merged into its tree. No cap of its own: each is a commit.
    #[serde(default)]
    pub merges: u32,
    /// The number of times that a person refused its commit. No cap of its own: each uses up a round.
    #[serde(default)]
    pub refusals: u32,
    /// The number of the round, from 1.
    pub round: u32,
    /// The issues of the round before.
    pub feedback: Vec<Issue>,
    /// The agent's summaries of the earlier rounds.
    pub earlier: Vec<String>,
    /// True when its tree differs from `base` after the last round.
    #[serde(default = "yes")]
    pub is_changed: bool,
}

/// A note, with its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNote {
    /// The question, or the plan that was refused.
    pub about: String,
    /// The answer, or the reason.
    pub text: String,
}

impl Session {
    /// The first round of a session.
    #[must_use]
    pub fn of(feature: &str) -> Self {
        Self {
            feature: feature.to_owned(),
            slot: 0,
            base: None,
            orientation: serde_json::Value::Null,
            handoffs: 0,
            merges: 0,
            refusals: 0,
            round: 1,
            feedback: Vec::new(),
            earlier: Vec::new(),
            is_changed: true,
        }
    }
}

/// Sessions from before this field was stored count as changed.
fn yes() -> bool {
    true
}
