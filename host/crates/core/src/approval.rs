//! What is decided of a call of a tool before it is made, and by whom.
//!
//! A decision is an entry of the caller's journal, so that a replay never asks again. Who decides is behind
//! [`Approvals`]; how a person is asked, and what their words mean, is no affair of this crate.

use crate::journal::{EffectClass, EffectQuestion};
use crate::store::Batch;
use crate::tool::{ToolCall, ToolError};
use crate::{Denial, InvocationId, Outage};
use serde::{Deserialize, Serialize};

/// The name of the journal's entry that holds a decision.
pub const ENTRY: &str = "tools.approve";

/// A call that somebody is to decide about.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Who would make it.
    pub invocation: InvocationId,
    /// The entry of its journal that will hold the decision.
    pub entry: u32,
    /// The call.
    pub call: ToolCall,
    /// The class of its effect.
    pub effect: EffectClass,
    /// Whether its tool says that it only reads. Who decides looks at what else speaks for that.
    pub reads: bool,
    /// The sources of untrusted words that the agent has heard, sorted.
    pub heard: Vec<String>,
}

/// What was decided of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallDecision {
    /// It is made; by whose word, for people.
    Allowed(String),
    /// The operator's policy forbids it.
    Denied(Denial),
    /// A person said no, with a reason or without.
    Rejected(Option<String>),
    /// A person said what to do instead. Nothing of the batch that the call is in is made.
    Corrected(String),
    /// Another call of the batch was corrected.
    Stopped,
    /// The call was a question to a person, and this is the answer.
    Replied(String),
}

impl CallDecision {
    /// What the agent gets in place of the tool's answer. None: the call is made.
    ///
    /// A person's no, the operator's policy and a person's correction are errors that an agent can tell apart. That
    /// nobody could be asked is none of them: it ends the attempt ([`Undecided::Unavailable`]), which is made again.
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

/// Why there is no decision yet. The effect must not happen.
#[derive(Clone, Debug)]
pub enum Undecided {
    /// A person was asked, durably. The run waits.
    Asks(EffectQuestion),
    /// Nobody could be asked, or what they said could not be read: tried again later.
    Unavailable(Outage),
}

/// Who decides about calls of tools. That the tool was granted, the capability has checked before.
#[async_trait::async_trait]
pub trait Approvals: Send + Sync {
    /// Whether the operator lets this call pass without anybody being asked. Then it makes no entry. Nobody knows its
    /// entry yet, which is 0 here.
    fn is_free(&self, intent: &Intent) -> bool;

    /// Whether a person is asked about this call, or one of this run's rules stands for them. What is neither free nor
    /// asked about is refused.
    fn asks(&self, intent: &Intent) -> bool {
        !self.is_free(intent)
    }

    /// A call leaves: where it goes has been asked before from now on.
    fn leaves(&self, _call: &ToolCall) {}

    /// Decides, or asks a person. The changes are stored in one transaction with the journal's entry: they use the
    /// person's approval up.
    ///
    /// # Errors
    /// Every [`Undecided`].
    async fn decide(&self, intent: &Intent) -> Result<(CallDecision, Batch), Undecided>;

    /// What takes a question back that is not to be answered any more.
    fn withdraw(&self, intent: &Intent) -> Batch;
}

/// Lets every call pass. For surroundings in which no tool touches the world: a test kit's script.
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
