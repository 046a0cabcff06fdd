//! Decisions as journals hold them: in the arguments of `decisions.record`, and in the answers to `decisions.find`.
//!
//! The names of fields and cases are those of the first journals, whatever the contract calls them: another name would
//! change the digests of arguments, by which a replay finds its entries. Nothing here decides anything.

use longhaul_bindings::imports::decisions::{Decision, FoundDecision};
use longhaul_core::decision::{self, DecisionOutcome};
use serde::{Deserialize, Serialize, Serializer};

/// A decision as a guest records it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredDecision {
    pub(super) context: String,
    pub(super) decision: String,
    pub(super) reasoning: String,
    pub(super) tags: Vec<String>,
    #[serde(rename = "came_out", serialize_with = "capitalised")]
    pub(super) outcome: DecisionOutcome,
    pub(super) lesson: Option<String>,
}

/// A decision that was found. An answer of before says neither its id nor its time.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredFound {
    #[serde(default)]
    id: String,
    #[serde(default)]
    at_ms: u64,
    #[serde(flatten)]
    decision: StoredDecision,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn capitalised<S: Serializer>(outcome: &DecisionOutcome, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match outcome {
        DecisionOutcome::Open => "Open",
        DecisionOutcome::Success => "Success",
        DecisionOutcome::Partial => "Partial",
        DecisionOutcome::Failure => "Failure",
        DecisionOutcome::Reverted => "Reverted",
    })
}

impl From<Decision> for StoredDecision {
    fn from(bound: Decision) -> Self {
        let Decision { context, decision, reasoning, tags, outcome, lesson } = bound;
        Self { context, decision, reasoning, tags, outcome: outcome.into(), lesson }
    }
}

impl From<decision::Decision> for StoredFound {
    fn from(kept: decision::Decision) -> Self {
        let decision::Decision { id, at_ms, context, decision, reasoning, tags, outcome, lesson, .. } = kept;
        let decision = StoredDecision { context, decision, reasoning, tags, outcome, lesson };
        Self { id, at_ms, decision }
    }
}

impl From<StoredFound> for FoundDecision {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are below 2^53")]
    fn from(StoredFound { id, at_ms, decision: stored }: StoredFound) -> Self {
        let StoredDecision { context, decision, reasoning, tags, outcome, lesson } = stored;
        let decision = Decision { context, decision, reasoning, tags, outcome: outcome.into(), lesson };
        Self { id, at_ms: at_ms as f64, decision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECISION: &str =
        r#"{"context":"c","decision":"d","reasoning":"r","tags":["t"],"came_out":"Partial","lesson":null}"#;

    fn decision() -> StoredDecision {
        StoredDecision {
            context: "c".into(),
            decision: "d".into(),
            reasoning: "r".into(),
            tags: vec!["t".into()],
            outcome: DecisionOutcome::Partial,
            lesson: None,
        }
    }

    #[test]
    fn a_decision_is_written_as_in_the_first_journals() {
        assert_eq!(serde_json::to_string(&decision()).unwrap(), DECISION);
        assert_eq!(serde_json::from_str::<StoredDecision>(DECISION).unwrap(), decision());
    }

    #[test]
    fn an_answer_of_before_is_read_without_an_id() {
        let before: StoredFound = serde_json::from_str(DECISION).unwrap();
        assert_eq!(before, StoredFound { id: String::new(), at_ms: 0, decision: decision() });
        let now = StoredFound { id: "k".into(), at_ms: 7, decision: decision() };
        let text = serde_json::to_string(&now).unwrap();
        assert_eq!(serde_json::from_str::<StoredFound>(&text).unwrap(), now);
    }
}
