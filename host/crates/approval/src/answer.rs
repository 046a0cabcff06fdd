//! The meaning of a person's line, and its effect on an approval. An empty line has no meaning: it neither approves nor
//! refuses.

use crate::approval::{Approval, ApprovalKind, ApprovalStatus, ApprovalSubject};
use crate::rule::{NoRule, RunRule};
use longhaul_core::approval::CallDecision;
use serde::{Deserialize, Serialize};

/// Longest accepted answer, in bytes. A longer line is refused: a pasted file is not meant as an answer.
const ANSWER_BYTES_MAX: usize = 8_192;

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// `y`: this call, once.
    Once,
    /// `n`, with a reason or without.
    No {
        /// The reason, for the agent.
        reason: Option<String>,
    },
    /// `a`: this call, and similar calls by rule, for the rest of the run.
    ByRule,
    /// Any other text: an instruction for the agent.
    Correction {
        /// The text for the agent.
        text: String,
    },
}

/// The reason why a line is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The line has no visible character.
    #[error("an empty line is no answer; type `y`, `n`, `a`, or what to do instead")]
    Empty,
    /// The line is too long.
    #[error("the answer has {0} bytes of at most {ANSWER_BYTES_MAX}; say it shorter")]
    TooLong(usize),
}

/// The reason why an approval refused an answer, or does not hold for a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// The line is no answer.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// `a` for a call without a possible rule.
    #[error("{0}, so it cannot be allowed by rule; answer `y` for this once, `n`, or what to do instead")]
    NoRule(NoRule),
    /// Another answer came first.
    #[error("approval `{id}` was answered before: {was}")]
    NotOpen {
        /// The id of the approval.
        id: String,
        /// Its status.
        was: String,
    },
    /// The approval is for another call.
    #[error("approval `{0}` is for another call; ask anew")]
    OtherSubject(String),
}

// The text has the reason, and a source would tell it again.
impl From<NoRule> for ApprovalError {
    fn from(reason: NoRule) -> Self {
        Self::NoRule(reason)
    }
}

impl ApprovalAnswer {
    /// Reads a line.
    ///
    /// # Errors
    /// [`NoAnswer`]: ask again.
    pub fn read(line: &str) -> Result<Self, NoAnswer> {
        let line = cleaned(line)?;
        Ok(match line.to_lowercase().as_str() {
            "y" | "yes" => Self::Once,
            "n" | "no" => Self::No { reason: None },
            "a" | "allow" => Self::ByRule,
            _ => match line.split_once(char::is_whitespace) {
                Some(("n" | "N", reason)) => Self::No { reason: Some(reason.trim().to_owned()) },
                _ => Self::Correction { text: line },
            },
        })
    }

    /// Reads the answer to an agent's question: any text is one.
    ///
    /// # Errors
    /// [`NoAnswer`]: ask again.
    pub fn reply(line: &str) -> Result<String, NoAnswer> {
        cleaned(line)
    }
}

impl Approval {
    /// True when `a` is a valid answer, since a rule can be made of the call.
    #[must_use]
    pub fn takes_rule(&self) -> bool {
        self.asks != ApprovalKind::Question && RunRule::of(self, 0).is_ok()
    }

    /// The approval with a person's answer, and the rule that comes with `a`.
    ///
    /// # Errors
    /// Every [`ApprovalError`] but the last; nothing has changed then.
    pub fn answered(&self, line: &str, at_ms: u64) -> Result<(Self, Option<RunRule>), ApprovalError> {
        if self.standing != ApprovalStatus::Open {
            return Err(ApprovalError::NotOpen { id: self.id.clone(), was: self.words() });
        }
        let (decision, rule) = match self.asks {
            ApprovalKind::Question => (CallDecision::Replied(ApprovalAnswer::reply(line)?), None),
            ApprovalKind::Call | ApprovalKind::Change => match ApprovalAnswer::read(line)? {
                ApprovalAnswer::Once => (CallDecision::Allowed("a person, once".to_owned()), None),
                ApprovalAnswer::No { reason } => (CallDecision::Rejected(reason), None),
                ApprovalAnswer::Correction { text } => (CallDecision::Corrected(text), None),
                ApprovalAnswer::ByRule => {
                    let rule = RunRule::of(self, at_ms)?;
                    (CallDecision::Allowed(format!("a person, who made it rule {} of this run", rule.id)), Some(rule))
                }
            },
        };
        let standing = ApprovalStatus::Answered { decision, at_ms };
        Ok((Self { standing, ..self.clone() }, rule))
    }

    /// The approval with the answer of a rule: none if the rule does not cover it, or it is answered already.
    #[must_use]
    pub fn passed_by(&self, rule: &RunRule, at_ms: u64) -> Option<Self> {
        let is_heard = self.heard.iter().all(|source| rule.heard.contains(source));
        let open = self.standing == ApprovalStatus::Open && self.asks == ApprovalKind::Call && is_heard;
        let decision = CallDecision::Allowed(format!("rule {} of this run", rule.id));
        (open && rule.covers(&self.subject, self.runs_commands))
            .then(|| Self { standing: ApprovalStatus::Answered { decision, at_ms }, ..self.clone() })
    }

    /// The decision for `subject`, and the used approval. None before the answer.
    ///
    /// # Errors
    /// [`ApprovalError::OtherSubject`], and [`ApprovalError::NotOpen`] when it was used before.
    pub fn used(&self, subject: &ApprovalSubject, at_ms: u64) -> Result<Option<(CallDecision, Self)>, ApprovalError> {
        if self.subject != *subject {
            return Err(ApprovalError::OtherSubject(self.id.clone()));
        }
        match &self.standing {
            ApprovalStatus::Open => Ok(None),
            ApprovalStatus::Answered { decision, .. } => {
                let standing = ApprovalStatus::Used { decision: decision.clone(), at_ms };
                Ok(Some((decision.clone(), Self { standing, ..self.clone() })))
            }
            ApprovalStatus::Used { .. } | ApprovalStatus::Withdrawn => {
                Err(ApprovalError::NotOpen { id: self.id.clone(), was: self.words() })
            }
        }
    }
}

/// The line without control sequences of a terminal.
fn cleaned(line: &str) -> Result<String, NoAnswer> {
    if line.len() > ANSWER_BYTES_MAX {
        return Err(NoAnswer::TooLong(line.len()));
    }
    let kept = |c: &char| matches!(c, '\n' | '\t') || !longhaul_core::text::is_hidden(*c);
    let line: String = line.chars().filter(kept).collect();
    let line = line.trim();
    if line.is_empty() { Err(NoAnswer::Empty) } else { Ok(line.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: &Result<ApprovalAnswer, NoAnswer>) {
        for line in lines {
            assert_eq!(&ApprovalAnswer::read(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_line_means_what_a_person_would_think() {
        check(&["y", "Y", "yes", " YES\n", "y\r\n"], &Ok(ApprovalAnswer::Once));
        check(&["n", "N", "no", "No \n"], &Ok(ApprovalAnswer::No { reason: None }));
        check(&["n too early", "N  too early"], &Ok(ApprovalAnswer::No { reason: Some("too early".into()) }));
        check(&["a", "A", "allow"], &Ok(ApprovalAnswer::ByRule));
        let correction = |text: &str| Ok(ApprovalAnswer::Correction { text: text.into() });
        check(&["no, use rm -i"], &correction("no, use rm -i"));
        check(&["yes please"], &correction("yes please"));
        check(&["a b"], &correction("a b"));
        // A fullwidth y is no y.
        check(&["ｙ"], &correction("ｙ"));
    }

    #[test]
    fn what_nobody_can_see_is_no_answer() {
        check(&["", " ", "\n", "\t \r\n", "\u{200b}", "\u{feff}\u{202e}", "\x1b", "\0"], &Err(NoAnswer::Empty));
        assert_eq!(ApprovalAnswer::read(&"y".repeat(8_193)), Err(NoAnswer::TooLong(8_193)));
        assert_eq!(ApprovalAnswer::reply(" "), Err(NoAnswer::Empty));
        assert_eq!(ApprovalAnswer::reply(" blue\n"), Ok("blue".into()));
    }
}
