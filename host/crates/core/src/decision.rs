//! Decisions of a project, and their outcomes.
//!
//! `log.rs` stores them, `rank.rs` finds those relevant to a question. This module decides nothing.

mod log;
mod rank;

pub use log::{LogError, get, newest, of_feature, put};
pub use rank::relevant;

use serde::{Deserialize, Serialize};

/// A recorded decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// Its id; the same however often it is recorded.
    pub id: String,
    /// Its time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The run in which it was taken.
    pub run: String,
    /// The feature that it was taken for.
    pub feature: Option<String>,
    /// Its author: the table of an agent or a planner, or `longhaul`.
    pub by: String,
    /// Its subject.
    pub context: String,
    /// The decision.
    pub decision: String,
    /// The reason.
    pub reasoning: String,
    /// Tags for searches.
    pub tags: Vec<String>,
    /// Its outcome.
    #[serde(alias = "came_out")]
    pub outcome: DecisionOutcome,
    /// How good it was, from -1 to 1; none: not rated.
    pub score: Option<f64>,
    /// Its lesson.
    pub lesson: Option<String>,
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// Not known yet.
    #[default]
    #[serde(alias = "Open")]
    Open,
    /// It was right.
    #[serde(alias = "Success")]
    Success,
    /// It was partly right.
    #[serde(alias = "Partial")]
    Partial,
    /// It was wrong.
    #[serde(alias = "Failure")]
    Failure,
    /// It was reverted.
    #[serde(alias = "Reverted")]
    Reverted,
}

/// A decision relevant to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionHit {
    /// The decision.
    pub decision: Decision,
    /// The score of its fit, above 0; comparable within one answer alone.
    pub relevance: f64,
    /// The reason why it was found, in one line.
    pub why: String,
}

impl DecisionOutcome {
    /// Its name.
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
