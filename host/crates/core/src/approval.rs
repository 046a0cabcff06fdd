//! Decisions about tool calls before they are made, and the trait of their maker.
//!
//! A decision is an entry of the caller's journal, so that a replay never asks again. An implementation of
//! [`Approvals`] decides; this crate does not know how a person is asked, and what their answers mean.

use crate::journal::{EffectClass, EffectQuestion};
use crate::store::Batch;
use crate::tool::{ToolCall, ToolError};
use crate::{Denial, InvocationId, Outage};
use serde::{Deserialize, Serialize};

/// The name of the journal's entry that holds a decision.
pub const ENTRY: &str = "tools.approve";

/// A call that needs a decision.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The invocation that would make it.
    pub invocation: InvocationId,
    /// The entry of its journal that will hold the decision.
    pub entry: u32,
    /// The call with its arguments.
    pub call: ToolCall,
    /// The class of its effect.
    pub effect: EffectClass,
    /// True when its tool claims only to read. The implementation checks further evidence for that.
    pub reads: bool,
    /// The sources of untrusted text that the agent has read, sorted.
    pub heard: Vec<String>,
}

/// The decision about one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallDecision {
    /// The call is made. The text is the reason, for people.
    Allowed(String),
    /// The operator's policy forbids it.
    Denied(Denial),
    /// A person refused it, with a reason or without.
    Rejected(Option<String>),
    /// A person gave another instruction. No call of the batch is made.
    Corrected(String),
    /// Another call of the batch was corrected.
    Stopped,
    /// The call was a question to a person, and this is their answer.
    Replied(String),
}

impl CallDecision {
    /// The agent's error in place of the tool's answer. None: the call is made.
    ///
    /// A person's refusal, the operator's policy and a person's correction are errors that an agent can tell apart. A
    /// question that could not be asked is none of them: it ends the attempt ([`Undecided::Unavailable`]), which is
    /// made again.
    #[must_use]
    pub fn refusal(&self) -> Option<ToolError> {
        Some(match self {
            Self::Allowed(_) | Self::Replied(_) => return None,
            Self::Denied(denial) => ToolError::Denied(denial.clone()),
            Self::Rejected(reason) => {
                let reason = reason.as_deref().unwrap_or("no reason given");
                ToolError::Failed(format!("rejected by a person: {reason}"))
            }
            Self::Corrected(text) => ToolError::Failed(format!("not done. Human guidance: {text}")),
            Self::Stopped => {
                ToolError::Failed("not done: a person corrected another call of this batch, and none of it ran".into())
            }
        })
    }
}

/// The reason why there is no decision yet. The effect must not happen.
#[derive(Clone, Debug)]
pub enum Undecided {
    /// A person was asked, durably. The run waits.
    Asks(EffectQuestion),
    /// The question could not be asked, or the answer could not be read: tried again later.
    Unavailable(Outage),
}

/// Decides about tool calls. The capability has checked the tool's grant before.
#[async_trait::async_trait]
pub trait Approvals: Send + Sync {
    /// True when the operator lets this call pass without a question. Then it makes no entry. Its entry is not known
    /// yet, and is 0 here.
    fn is_free(&self, intent: &Intent) -> bool;

    /// True when this call needs a person's answer, or one of this run's rules stands for it. A call that neither is
    /// free nor asks is refused.
    fn asks(&self, intent: &Intent) -> bool {
        !self.is_free(intent)
    }

    /// True for a call that acts and that the run from which this one was forked made after the point.
    fn is_repeated(&self, _intent: &Intent) -> bool {
        false
    }

    /// A call is made: its destination counts as approved from now on.
    fn leaves(&self, _call: &ToolCall) {}

    /// Decides, or asks a person. The changes are stored in one transaction with the journal's entry: they consume the
    /// person's approval.
    ///
    /// # Errors
    /// Every [`Undecided`].
    async fn decide(&self, intent: &Intent) -> Result<(CallDecision, Batch), Undecided>;

    /// The rows that withdraw a question which needs no answer any more.
    fn withdraw(&self, intent: &Intent) -> Batch;
}

/// Lets every call pass. For environments in which no tool touches the world: a test kit's script.
pub struct AllFree;

#[async_trait::async_trait]
impl Approvals for AllFree {
    fn is_free(&self, _intent: &Intent) -> bool {
        true
    }

    async fn decide(&self, _intent: &Intent) -> Result<(CallDecision, Batch), Undecided> {
        Ok((CallDecision::Allowed("nothing is asked here".to_owned()), Batch::new()))
    }

    fn withdraw(&self, _intent: &Intent) -> Batch {
        Batch::new()
    }
}
