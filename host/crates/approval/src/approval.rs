//! One approval: what it is bound to, and what became of it.
//!
//! It is good for one call: of this tool and function, of this component, with these arguments, at this entry of this
//! invocation. Anything else is another subject with another id.

use crate::answer::{Answer, NoAnswer};
use crate::rule::{NoRule, RunRule};
use longhaul_core::approval::Decision;
use longhaul_core::journal::EffectClass;
use longhaul_core::{Digest, InvocationId};
use serde::{Deserialize, Serialize};

/// Digits of an id: enough that nobody meets two in a run, and few enough to type.
const ID_DIGITS: usize = 12;

/// The one call that is approved of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Who would make the call; it names the run.
    pub invocation: InvocationId,
    /// The entry of its journal that will hold the decision.
    pub entry: u32,
    /// The tool, as it was granted.
    pub tool: String,
    /// Its function.
    pub function: String,
    /// The digest of the component, or the name of what is the host's own.
    pub component: String,
    /// The arguments, to the letter.
    pub arguments: String,
}

impl Subject {
    /// `a-` and 12 digits, of everything that the approval is bound to.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { invocation, entry, tool, function, component, arguments } = self;
        let entry = entry.to_be_bytes();
        let parts = [invocation.as_str().as_bytes(), &entry, tool.as_bytes(), function.as_bytes()];
        let parts = [&parts[..], &[component.as_bytes(), arguments.as_bytes()]].concat();
        format!("a-{}", &Digest::of_parts(&parts).to_string()[..ID_DIGITS])
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// Whether the call may be made.
    Call,
    /// The agent asks something of its own, and gets the words.
    Question,
    /// Whether a change of protected files may be committed. There is no rule for it.
    Change,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum Standing {
    /// Nobody has answered.
    Open,
    /// A person has, and the agent has not gone on yet.
    Answered {
        /// What it comes to.
        decision: Decision,
        /// When, in milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// It was used up.
    Used {
        /// What it came to.
        decision: Decision,
        /// When.
        at_ms: u64,
    },
    /// It is not needed any more.
    Withdrawn,
}

/// A question to a person, with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// That of its subject.
    pub id: String,
    /// What it is bound to.
    pub subject: Subject,
    /// What is asked.
    pub asks: Asks,
    /// The table of `longhaul.toml` that the agent plays in.
    pub agent: String,
    /// The agent's plugin.
    pub plugin: String,
    /// The class of the effect.
    pub effect: EffectClass,
    /// Whether the tool runs commands.
    pub runs_commands: bool,
    /// The sources of untrusted words that its agent had heard, where that is why it is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<String>,
    /// When it was asked, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What became of it.
    pub standing: Standing,
}

/// Why an approval did not take an answer, or is not good for a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// The line is no answer.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// `a` where no rule can be made.
    #[error("{0}, so it cannot be allowed by rule; answer `y` for this once, `n`, or what to do instead")]
    NoRule(#[from] NoRule),
    /// Somebody was first.
    #[error("approval `{id}` was answered before: {was}")]
    NotOpen {
        /// Which.
        id: String,
        /// What became of it.
        was: String,
    },
    /// It is for another call.
    #[error("approval `{0}` is for another call; ask anew")]
    OtherSubject(String),
}

impl Approval {
    /// Whether `a` is an answer to it: whether a rule can be made of the call.
    #[must_use]
    pub fn takes_rule(&self) -> bool {
        self.asks != Asks::Question && RunRule::of(self, 0).is_ok()
    }

    /// It with a person's answer, and the rule that comes with `a`.
    ///
    /// # Errors
    /// Every [`ApprovalError`] but the last; nothing has changed then.
    pub fn answered(&self, line: &str, at_ms: u64) -> Result<(Self, Option<RunRule>), ApprovalError> {
        if self.standing != Standing::Open {
            return Err(ApprovalError::NotOpen { id: self.id.clone(), was: self.words() });
        }
        let (decision, rule) = match self.asks {
            Asks::Question => (Decision::Replied(Answer::reply(line)?), None),
            Asks::Call | Asks::Change => match Answer::read(line)? {
                Answer::Once => (Decision::Allowed("a person, once".to_owned()), None),
                Answer::No { reason } => (Decision::Rejected(reason), None),
                Answer::Correction { text } => (Decision::Corrected(text), None),
                Answer::ByRule => {
                    let rule = RunRule::of(self, at_ms)?;
                    (Decision::Allowed(format!("a person, who made it rule {} of this run", rule.id)), Some(rule))
                }
            },
        };
        let standing = Standing::Answered { decision, at_ms };
        Ok((Self { standing, ..self.clone() }, rule))
    }

    /// It with the answer that a rule gives: none where the rule does not cover it, or somebody has answered.
    #[must_use]
    pub fn passed_by(&self, rule: &RunRule, at_ms: u64) -> Option<Self> {
        let is_heard = self.heard.iter().all(|source| rule.heard.contains(source));
        let open = self.standing == Standing::Open && self.asks == Asks::Call && is_heard;
        let decision = Decision::Allowed(format!("rule {} of this run", rule.id));
        (open && rule.covers(&self.subject, self.runs_commands))
            .then(|| Self { standing: Standing::Answered { decision, at_ms }, ..self.clone() })
    }

    /// The decision for `subject`, and the approval used up by it. None while nobody has answered.
    ///
    /// # Errors
    /// [`ApprovalError::OtherSubject`], and [`ApprovalError::NotOpen`] when it was used up before.
    pub fn used(&self, subject: &Subject, at_ms: u64) -> Result<Option<(Decision, Self)>, ApprovalError> {
        if self.subject != *subject {
            return Err(ApprovalError::OtherSubject(self.id.clone()));
        }
        match &self.standing {
            Standing::Open => Ok(None),
            Standing::Answered { decision, .. } => {
                let standing = Standing::Used { decision: decision.clone(), at_ms };
                Ok(Some((decision.clone(), Self { standing, ..self.clone() })))
            }
            Standing::Used { .. } | Standing::Withdrawn => {
                Err(ApprovalError::NotOpen { id: self.id.clone(), was: self.words() })
            }
        }
    }

    /// What became of it, in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        let of = |decision: &Decision| match decision {
            Decision::Allowed(by) => format!("allowed by {by}"),
            Decision::Denied(denial) => denial.to_string(),
            Decision::Rejected(None) => "rejected".to_owned(),
            Decision::Rejected(Some(reason)) => format!("rejected: {reason}"),
            Decision::Corrected(text) => format!("corrected: {text}"),
            Decision::Stopped => "stopped".to_owned(),
            Decision::Replied(text) => format!("replied: {text}"),
        };
        match &self.standing {
            Standing::Open => "open".to_owned(),
            Standing::Answered { decision, .. } | Standing::Used { decision, .. } => of(decision),
            Standing::Withdrawn => "taken back".to_owned(),
        }
    }
}
