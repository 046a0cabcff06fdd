//! Decisions of a project, and what came of them.
//!
//! `log.rs` is how they lie in a store, `rank.rs` which of them bear on a question. Nothing here decides anything.

mod log;
mod rank;

pub use log::{LogError, get, newest, of_feature, put};
pub use rank::relevant;

use serde::{Deserialize, Serialize};

/// A decision that somebody took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// Its name; the same however often it is recorded.
    pub id: String,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The run in which it was taken.
    pub run: String,
    /// The feature that it was taken for.
    pub feature: Option<String>,
    /// Who took it: the table of an agent or a planner, or `longhaul`.
    pub by: String,
    /// What it was about.
    pub context: String,
    /// What was decided.
    pub decision: String,
    /// Why.
    pub reasoning: String,
    /// To find it by.
    pub tags: Vec<String>,
    /// What came of it.
    #[serde(alias = "came_out")]
    pub outcome: DecisionOutcome,
    /// How good it was, from -1 to 1; none where nobody said.
    pub score: Option<f64>,
    /// What is to be learnt from it.
    pub lesson: Option<String>,
}

/// What came of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// Nobody knows yet.
    #[default]
    #[serde(alias = "Open")]
    Open,
    /// It was right.
    #[serde(alias = "Success")]
    Success,
    /// In part.
    #[serde(alias = "Partial")]
    Partial,
    /// It was wrong.
    #[serde(alias = "Failure")]
    Failure,
    /// It was taken back.
    #[serde(alias = "Reverted")]
    Reverted,
}

/// A decision that bears on a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionHit {
    /// The decision.
    pub decision: Decision,
    /// How well it fits, above 0; comparable within one answer alone.
    pub relevance: f64,
    /// Why it was chosen, in one line.
    pub why: String,
}

impl DecisionOutcome {
    /// Its word.
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
