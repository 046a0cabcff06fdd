//! One approval: its subject and its status.
//!
//! It holds for one call: of this tool and function, of this component, with these arguments, at this entry of this
//! invocation. Any other call is another subject with another id.

use longhaul_core::approval::CallDecision;
use longhaul_core::journal::EffectClass;
use longhaul_core::{Digest, InvocationId};
use serde::{Deserialize, Serialize};

/// Digits of an id: enough that no two in a run are equal, and few enough to type.
const ID_DIGITS: usize = 12;

/// The one call of the approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalSubject {
    /// The invocation that makes the call; it names the run.
    pub invocation: InvocationId,
    /// The entry of its journal that will hold the decision.
    pub entry: u32,
    /// The granted name of the tool.
    pub tool: String,
    /// Its function.
    pub function: String,
    /// The digest of the component, or the name of a built-in one.
    pub component: String,
    /// The arguments, byte for byte.
    pub arguments: String,
}

impl ApprovalSubject {
    /// `a-` and 12 digits, of every field of the subject.
    #[must_use]
    pub fn id(&self) -> String {
        let Self { invocation, entry, tool, function, component, arguments } = self;
        let entry = entry.to_be_bytes();
        let parts = [invocation.as_str().as_bytes(), &entry, tool.as_bytes(), function.as_bytes()];
        let parts = [&parts[..], &[component.as_bytes(), arguments.as_bytes()]].concat();
        format!("a-{}", &Digest::of_parts(&parts).to_string()[..ID_DIGITS])
    }
}

/// The kind of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// The agent's call needs an approval before it is made.
    Call,
    /// The agent asks a question of its own, and gets the answer as text.
    Question,
    /// A change of protected files needs an approval before it is committed. There is no rule for it.
    Change,
}

/// The status of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// Not answered yet.
    Open,
    /// Answered by a person; the agent has not continued yet.
    Answered {
        /// The decision.
        decision: CallDecision,
        /// The time, in milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// The decision was used for the call.
    Used {
        /// The decision.
        decision: CallDecision,
        /// The time.
        at_ms: u64,
    },
    /// Not needed any more.
    Withdrawn,
}

/// A question to a person, with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The id of its subject.
    pub id: String,
    /// The call that it holds for.
    pub subject: ApprovalSubject,
    /// The kind of the question.
    pub asks: ApprovalKind,
    /// The agent's table of `longhaul.toml`.
    pub agent: String,
    /// The agent's plugin.
    pub plugin: String,
    /// The class of the effect.
    pub effect: EffectClass,
    /// True when the tool runs commands.
    pub runs_commands: bool,
    /// The sources of untrusted text in the agent's context, if that is the reason for the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<String>,
    /// True when the run that this one was forked from made the same call after the point of the fork.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// The time of the question, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The status.
    pub standing: ApprovalStatus,
}

impl Approval {
    /// The status in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        let of = |decision: &CallDecision| match decision {
            CallDecision::Allowed(by) => format!("allowed by {by}"),
            CallDecision::Denied(denial) => denial.to_string(),
            CallDecision::Rejected(None) => "rejected".to_owned(),
            CallDecision::Rejected(Some(reason)) => format!("rejected: {reason}"),
            CallDecision::Corrected(text) => format!("corrected: {text}"),
            CallDecision::Stopped => "stopped".to_owned(),
            CallDecision::Replied(text) => format!("replied: {text}"),
        };
        match &self.standing {
            ApprovalStatus::Open => "open".to_owned(),
            ApprovalStatus::Answered { decision, .. } | ApprovalStatus::Used { decision, .. } => of(decision),
            ApprovalStatus::Withdrawn => "taken back".to_owned(),
        }
    }
}
