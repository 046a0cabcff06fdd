//! Decisions of a project, and their outcomes.
//!
//! `log.rs` stores them, `rank.rs` finds those relevant to a question. This module decides nothing.

mod log;
mod rank;

pub use log::{LogError, get, newest, of_feature, put, replace};
pub use rank::relevant;

use serde::{Deserialize, Serialize};

/// A decision in the log of a project.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// The id, which stays the same when the decision is recorded again.
    pub id: String,
    /// The time at which the decision was recorded, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The id of the run that recorded it.
    pub run: String,
    /// The id of the feature that it was made for. None: for the run.
    pub feature: Option<String>,
    /// The author: the table of an agent or a planner, or `longhaul`.
    pub by: String,
    /// The situation in which the decision was made.
    pub context: String,
    /// The decision in words.
    pub decision: String,
    /// The reasons for it.
    pub reasoning: String,
    /// Words to find the decision by.
    pub tags: Vec<String>,
    /// The outcome of the decision.
    #[serde(alias = "came_out")]
    pub outcome: DecisionOutcome,
    /// A person's rating, from -1 to 1. None: not rated.
    pub score: Option<f64>,
    /// The lesson of the outcome. None: there is none yet.
    pub lesson: Option<String>,
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// The outcome is open.
    #[default]
    #[serde(alias = "Open")]
    Open,
    /// The decision was right.
    #[serde(alias = "Success")]
    Success,
    /// The decision was right in part.
    #[serde(alias = "Partial")]
    Partial,
    /// The decision was wrong.
    #[serde(alias = "Failure")]
    Failure,
    /// The decision was taken back.
    #[serde(alias = "Reverted")]
    Reverted,
}

/// A decision that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionHit {
    /// The found decision.
    pub decision: Decision,
    /// The score of its fit, above 0; comparable within one answer alone.
    pub relevance: f64,
    /// The reason for which it was found, in one line.
    pub why: String,
}

impl DecisionOutcome {
    /// The name in JSON and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Success => "success",
            Self::Partial => "partial",
            Self::Failure => "failure",
            Self::Reverted => "reverted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_before_is_still_read() {
        let old = r#"{"context":"c","decision":"d","reasoning":"r","tags":[],"came_out":"Success","lesson":null}"#;
        let read: Decision = serde_json::from_str(old).unwrap();
        assert_eq!((read.outcome, read.decision.as_str()), (DecisionOutcome::Success, "d"));
    }
}
