//! One approval: what it is bound to, and what became of it.
//!
//! It is good for one call: of this tool and function, of this component, with these arguments, at this entry of this
//! invocation. Anything else is another subject with another id.

use longhaul_core::approval::CallDecision;
use longhaul_core::journal::EffectClass;
use longhaul_core::{Digest, InvocationId};
use serde::{Deserialize, Serialize};

/// Digits of an id: enough that nobody meets two in a run, and few enough to type.
const ID_DIGITS: usize = 12;

/// The one call that is approved of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalSubject {
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

impl ApprovalSubject {
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
pub enum ApprovalKind {
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
pub enum ApprovalStatus {
    /// Nobody has answered.
    Open,
    /// A person has, and the agent has not gone on yet.
    Answered {
        /// What it comes to.
        decision: CallDecision,
        /// When, in milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
    /// It was used up.
    Used {
        /// What it came to.
        decision: CallDecision,
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
    pub subject: ApprovalSubject,
    /// What is asked.
    pub asks: ApprovalKind,
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
    pub standing: ApprovalStatus,
}

impl Approval {
    /// What became of it, in a few words.
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
