//! The approval gate: each tool call is decided about before any of it is announced.
//!
//! A decision is an entry of its own in front of the call's, and a replay reads it from there. A call that the operator
//! allows without an approval has none. This module knows no policy and no person; see
//! [`longhaul_core::approval::Approvals`].

use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_core::approval::{CallDecision, ENTRY, Intent, Undecided};
use longhaul_core::journal::{EffectClass, EffectQuestion, EntryHandle, JournalError};
use longhaul_core::store::Batch;
use longhaul_core::tool::{FunctionInfo, ToolCall, ToolError, ToolInfo, ToolOutput};
use longhaul_core::{Denial, Digest};
use std::sync::Arc;

/// The outcome of the gate for one call of a batch.
pub(crate) enum Settled {
    /// It is made without a decision.
    Free,
    /// It is made, as was decided.
    Allowed,
    /// It is not made, and this is its answer.
    Answered(Result<ToolOutput, ToolError>),
}

/// A call whose approval is still open.
struct Waiting {
    handle: EntryHandle,
    intent: Intent,
    question: EffectQuestion,
}

/// The decision about one call.
enum Weighed {
    Free,
    Decided(CallDecision),
    Waits(Box<Waiting>),
}

/// The pass over a batch.
#[derive(Clone, Copy)]
enum Look {
    /// The pass over calls that need an approval.
    First,
    /// The pass over all other calls, once no approval is open.
    Last,
}

impl Ctx {
    /// Decides about the calls of one batch, in order. None of them has started when this ends the invocation.
    ///
    /// A correction stops the whole batch; a refusal stops its own call and keeps its place.
    pub(crate) async fn approve_each(&mut self, calls: &[ToolCall]) -> Result<Vec<Settled>, Stop> {
        let infos = self.granted_tools().await?;
        let mut weighed = Vec::with_capacity(calls.len());
        for call in calls {
            weighed.push(self.weigh(call, &infos, Look::First).await?);
        }
        // While an approval is open, the invocation ends here and is resumed later.
        let is_waiting = weighed.iter().any(|one| matches!(one, Weighed::Waits(_)));
        if !is_waiting && !is_corrected(&weighed) {
            self.weigh_again(calls, &mut weighed, &infos).await?;
        }
        let corrected = is_corrected(&weighed);
        let mut settled = Vec::with_capacity(calls.len());
        for one in weighed {
            settled.push(self.settle(one, corrected).await?);
        }
        Ok(settled)
    }

    /// Calls without an approval are decided last: the operator may change the policy while a batch waits for an
    /// answer, and the question must then stand at the same place of the journal, or it would be asked again. A call
    /// that passed before may not have started yet. If it has, the journal holds the call, and nothing is decided.
    async fn weigh_again(
        &mut self,
        calls: &[ToolCall],
        weighed: &mut [Weighed],
        infos: &[ToolInfo],
    ) -> Result<(), Stop> {
        for (call, one) in calls.iter().zip(weighed) {
            if matches!(one, Weighed::Free) {
                *one = self.weigh(call, infos, Look::Last).await?;
            }
        }
        Ok(())
    }

    async fn weigh(&mut self, call: &ToolCall, infos: &[ToolInfo], look: Look) -> Result<Weighed, Stop> {
        let Some(function) = self.gated(call, infos) else { return Ok(Weighed::Free) };
        let intent = self.intent(call, function);
        let bytes = serde_json::to_vec(call).map_err(|error| Stop::Broken(error.to_string()))?;
        let passes = match (self.journal()?.upcoming(), look) {
            // The recorded decision holds: an entry of another call shows that this one has no decision here.
            (Some((name, arguments)), _) => name != ENTRY || arguments != Digest::of(&bytes),
            (None, Look::First) => !self.services.approvals.asks(&intent),
            (None, Look::Last) => self.services.approvals.is_free(&intent),
        };
        if passes {
            return Ok(Weighed::Free);
        }
        match self.ask_repeatable(ENTRY, call.summary(), call, EffectClass::ReadOnly).await? {
            Ok(decision) => Ok(Weighed::Decided(decision)),
            Err(handle) => self.decide(handle, intent).await,
        }
    }

    async fn decide(&mut self, handle: EntryHandle, intent: Intent) -> Result<Weighed, Stop> {
        let intent = Intent { entry: handle.entry, ..intent };
        let approvals = Arc::clone(&self.services.approvals);
        match approvals.decide(&intent).await {
            Ok((decision, used_up)) => Ok(Weighed::Decided(self.answer_with(handle, decision, used_up).await?)),
            Err(Undecided::Asks(question)) => Ok(Weighed::Waits(Box::new(Waiting { handle, intent, question }))),
            Err(Undecided::Unavailable(outage)) => Err(outage.into()),
        }
    }

    async fn settle(&mut self, weighed: Weighed, corrected: bool) -> Result<Settled, Stop> {
        let decision = match weighed {
            Weighed::Free if corrected => CallDecision::Stopped,
            Weighed::Free => return Ok(Settled::Free),
            Weighed::Decided(decision) => decision,
            Weighed::Waits(waiting) if corrected => {
                let taken_back = self.services.approvals.withdraw(&waiting.intent);
                self.answer_with(waiting.handle, CallDecision::Stopped, taken_back).await?
            }
            Weighed::Waits(waiting) => return Err(JournalError::Parked(waiting.question).into()),
        };
        let decision = match decision {
            CallDecision::Allowed(_) | CallDecision::Replied(_) if corrected => CallDecision::Stopped,
            decision => decision,
        };
        Ok(match &decision {
            CallDecision::Replied(text) => Settled::Answered(Ok(reply(text))),
            other => other.refusal().map_or(Settled::Allowed, |error| Settled::Answered(Err(error))),
        })
    }

    /// The refusal of a call of a fork that nobody decided about, though the other run made it after the point. The
    /// journal had a call of the same batch when the batch was weighed, so that a question had no place in front of it.
    /// The refusal is a decision in the journal, so a later attempt finds it.
    pub(crate) async fn undecided_repeat(&mut self, call: &ToolCall) -> Result<Option<ToolError>, Stop> {
        let bytes = serde_json::to_vec(call).map_err(|error| Stop::Broken(error.to_string()))?;
        let is_refused = match self.journal()?.upcoming() {
            Some((name, arguments)) => name == ENTRY && arguments == Digest::of(&bytes),
            None => self.is_repeated(call),
        };
        if !is_refused {
            return Ok(None);
        }
        let decision = match self.ask_repeatable(ENTRY, call.summary(), call, EffectClass::ReadOnly).await? {
            Ok(decision) => decision,
            Err(handle) => self.answer_with(handle, undecided(call), Batch::new()).await?,
        };
        Ok(CallDecision::refusal(&decision))
    }

    fn is_repeated(&self, call: &ToolCall) -> bool {
        let infos = self.tool_infos.as_deref().unwrap_or_default();
        let function = self.gated(call, infos);
        function.is_some_and(|function| self.services.approvals.is_repeated(&self.intent(call, function)))
    }

    fn intent(&self, call: &ToolCall, function: &FunctionInfo) -> Intent {
        Intent {
            invocation: self.invocation.clone(),
            entry: 0,
            call: call.clone(),
            effect: function.effect,
            reads: function.says_it_reads(),
            heard: self.untrusted.iter().cloned().collect(),
        }
    }

    /// The function of a call that goes through the gate. A call that is not granted, or unknown, is refused later.
    fn gated<'a>(&self, call: &ToolCall, infos: &'a [ToolInfo]) -> Option<&'a FunctionInfo> {
        if self.is_own_call(call, infos) || self.grants.check_tool(&call.tool).is_err() {
            return None;
        }
        let tool = infos.iter().find(|info| info.id == call.tool)?;
        tool.functions.iter().find(|function| function.name == call.function)
    }
}

fn is_corrected(weighed: &[Weighed]) -> bool {
    weighed.iter().any(|one| matches!(one, Weighed::Decided(CallDecision::Corrected(_))))
}

/// The decision about a call that the other run made, where nobody could be asked.
fn undecided(ToolCall { tool, function, .. }: &ToolCall) -> CallDecision {
    CallDecision::Denied(Denial {
        reason: format!(
            "the run that this one was forked from made the call `{tool}.{function}`, and in the middle of a list of \
             calls nobody can be asked about it"
        ),
        fix: "make the call again".to_owned(),
    })
}

/// A person's answer, as the output of the tool that asked.
fn reply(text: &str) -> ToolOutput {
    ToolOutput { output: serde_json::json!({ "answer": text }).to_string(), truncated: false }
}

#[cfg(test)]
mod tests;
