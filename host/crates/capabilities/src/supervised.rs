//! An invocation's supervision: its budget, and people's corrections.
//!
//! A correction is an entry in front of the request that includes it, and a request without one has none. Spending is
//! written in the transaction of the answer that was paid for, so that no kill loses or repeats it.

mod watched;

pub(crate) use watched::UnreportedUsage;

use crate::ctx::Ctx;
use crate::setup::ConversationUpdate;
use crate::stop::Stop;
use longhaul_core::LimitHit;
use longhaul_core::journal::EffectClass;
use longhaul_core::model::{Message, MessageRole, Usage};
use longhaul_core::store::Batch;
use longhaul_core::supervisor::{InvocationTotals, UsageDelta};

/// The entry of a correction.
const STEERED: &str = "conversation.steered";

impl Ctx {
    /// Adds people's corrections since the last request to the conversation.
    pub(crate) async fn hear_corrections(&mut self, at: usize) -> Result<(), Stop> {
        let upcoming = self.journal()?.upcoming();
        if upcoming.as_ref().is_some_and(|(name, _)| name != STEERED) {
            return Ok(());
        }
        let (said, forgets) = self.services.supervisor.corrections(&self.invocation);
        if upcoming.is_none() && said.is_empty() {
            return Ok(());
        }
        let known = self.ask_repeatable(STEERED, said.join(" "), &at, EffectClass::ReadOnly).await?;
        let said: Vec<String> = match known {
            Ok(said) => said,
            Err(handle) => self.answer_with(handle, said, forgets).await?,
        };
        for text in said {
            let message = Message::text(MessageRole::User, format!("Human guidance: {text}"));
            self.services.watch.said(at, ConversationUpdate::Message(&message));
            self.guided(at, message)?;
        }
        Ok(())
    }

    /// Its totals since its start.
    #[must_use]
    pub fn done(&self) -> InvocationTotals {
        InvocationTotals {
            model_calls: self.used.model_calls,
            tool_calls: self.conversations.notes.tools_called,
            fuel: self.fuel_used,
            memory_bytes_peak: self.meter.memory_bytes_peak,
        }
    }

    /// Usage that was not reported yet.
    pub fn take_more(&mut self) -> UsageDelta {
        std::mem::take(&mut self.watched.more)
    }

    /// Checks that the run has budget for one more effect. An answer from the journal is no effect.
    pub(crate) fn may_go_on(&mut self) -> Result<(), Stop> {
        if self.watched.is_cleared || self.is_replaying() {
            return Ok(());
        }
        let (done, more) = (self.done(), self.take_more());
        self.services.supervisor.go_on(&self.invocation, done, more).map_err(Stop::Budget)
    }

    /// As [`Self::may_go_on`], for a batch of tool calls.
    pub(crate) fn may_call(&mut self, calls: usize) -> Result<(), Stop> {
        if self.is_replaying() {
            return Ok(());
        }
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let done = self.done();
        let done = InvocationTotals { tool_calls: done.tool_calls.saturating_add(calls), ..done };
        let more = self.take_more();
        self.services.supervisor.go_on(&self.invocation, done, more).map_err(Stop::Budget)
    }

    /// Starts or ends a section in which nothing is refused: see [`Self::may_call`].
    pub(crate) fn set_cleared(&mut self, is_cleared: bool) {
        self.watched.is_cleared = is_cleared;
    }

    /// Reserves the cost of a request until its answer is stored. `again`: it may have been made before.
    pub(crate) async fn reserve(&mut self, most: Usage, again: bool) -> Result<(), Stop> {
        let supervisor = self.services.supervisor.clone();
        let held = supervisor.reserve(&self.invocation, most, again).await.map_err(Stop::Budget)?;
        self.used.possibly_paid_twice += u32::from(held.was_cut_off());
        self.watched.held = Some(held);
        Ok(())
    }

    /// Releases the reservation of a request without a storable answer.
    pub(crate) fn let_go(&mut self) {
        if let Some(held) = self.watched.held.take() {
            held.settle();
        }
    }

    /// The spending for an answer, to be stored with it. Without usage there was no reply.
    pub(crate) fn spent_for(&mut self, usage: Option<Usage>) -> Batch {
        let mut more = self.take_more();
        more.usage = more.usage.plus(usage.unwrap_or_default());
        let done = self.done();
        let done =
            InvocationTotals { model_calls: done.model_calls.saturating_add(u32::from(usage.is_some())), ..done };
        let batch = self.services.supervisor.spent(&self.invocation, done, more);
        // It is counted now, so the reservation can go.
        self.let_go();
        batch
    }

    /// Counts the bytes of a stored answer.
    pub(crate) fn note_stored(&mut self, bytes: usize) {
        let more = &mut self.watched.more;
        more.stored_bytes = more.stored_bytes.saturating_add(bytes as u64);
    }

    /// The invocation's own caps on model calls and tokens.
    pub(crate) fn check_model_limits(&self) -> Result<(), LimitHit> {
        let (calls, calls_max) = (self.used.model_calls, self.limits.model_calls_max);
        if calls >= calls_max {
            return Err(LimitHit::new("model_calls_max", u64::from(calls) + 1, calls_max.into()));
        }
        let used = self.used.usage.plus(self.delegated.usage).plus(self.watched.wasted);
        let (tokens, tokens_max) = (used.tokens(), self.limits.tokens_max);
        if tokens >= tokens_max { Err(LimitHit::new("tokens_max", tokens, tokens_max)) } else { Ok(()) }
    }
}
