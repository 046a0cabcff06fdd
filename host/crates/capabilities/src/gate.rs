//! The path of every capability to the journal.

use crate::ctx::Ctx;
use crate::stop::Stop;
use longhaul_core::journal::{CallVerdict, EffectClass, EntryHandle, Journal, NewCall};
use longhaul_core::store::Batch;
use longhaul_core::{Digest, LimitHit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The journal's verdict on a call, with the answer parsed.
pub(crate) enum JournalReply<T> {
    /// The answer is known.
    Answered(T),
    /// Execute the call, then record the answer.
    Go(EntryHandle),
    /// It was interrupted: call `verify` with the note of `prepare`.
    Verify(EntryHandle, String),
    /// A person said that it happened, with this output.
    Happened(EntryHandle, String),
    /// A person said to skip it.
    Skipped(EntryHandle),
}

impl Ctx {
    /// Announces a call to the journal.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        summary: String,
        arguments: &impl Serialize,
        class: EffectClass,
    ) -> Result<JournalReply<T>, Stop> {
        if self.in_flight.is_closing() {
            return Err(Stop::Cancelled);
        }
        let bytes = serde_json::to_vec(arguments).map_err(unreadable)?;
        self.check_moved(bytes.len())?;
        self.check_calls()?;
        // Checked before the announcement: an announced effect is one that may have happened.
        self.may_go_on()?;
        self.services.watch.called(name, &bytes);
        let call = NewCall { name, summary, arguments: Digest::of(&bytes), class, fuel_used: self.fuel_used };
        let next = self.journal()?.ask(call).await?;
        self.clock.entry_was_answered();
        Ok(match next {
            CallVerdict::Answered(answer) => JournalReply::Answered(serde_json::from_str(&answer).map_err(unreadable)?),
            CallVerdict::Go(handle) => JournalReply::Go(handle),
            CallVerdict::Verify(handle, prepared) => JournalReply::Verify(handle, prepared),
            CallVerdict::Happened(handle, output) => JournalReply::Happened(handle, output),
            CallVerdict::Skipped(handle) => JournalReply::Skipped(handle),
        })
    }

    /// Announces a call whose effect may simply be repeated, so that there is nothing to verify.
    pub(crate) async fn ask_repeatable<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        summary: String,
        arguments: &impl Serialize,
        class: EffectClass,
    ) -> Result<Result<T, EntryHandle>, Stop> {
        debug_assert!(!class.starts_durably(), "`{name}` needs verification");
        Ok(match self.ask(name, summary, arguments, class).await? {
            JournalReply::Answered(answer) => Ok(answer),
            JournalReply::Go(handle)
            | JournalReply::Verify(handle, _)
            | JournalReply::Happened(handle, _)
            | JournalReply::Skipped(handle) => Err(handle),
        })
    }

    /// Records the answer and returns it when it is durable.
    pub(crate) async fn answer<T: Serialize>(&mut self, handle: EntryHandle, answer: T) -> Result<T, Stop> {
        self.answer_with(handle, answer, Batch::new()).await
    }

    /// As [`Ctx::answer`], in one transaction with `also`.
    pub(crate) async fn answer_with<T: Serialize>(
        &mut self,
        handle: EntryHandle,
        answer: T,
        also: Batch,
    ) -> Result<T, Stop> {
        let text = serde_json::to_string(&answer).map_err(unreadable)?;
        self.check_moved(text.len())?;
        let bytes = text.len();
        self.journal()?.answer_with(handle, text, also).await?;
        self.note_stored(bytes);
        self.clock.entry_was_answered();
        Ok(answer)
    }

    pub(crate) fn journal(&self) -> Result<Arc<dyn Journal>, Stop> {
        self.journal.clone().ok_or_else(|| Stop::Broken("this world has no journal".into()))
    }

    /// Checks the bytes that one call moves, in either direction.
    fn check_moved(&self, bytes: usize) -> Result<(), LimitHit> {
        let (bytes, max) = (bytes as u64, self.limits.host_bytes_max);
        if bytes > max { Err(LimitHit::new("host_bytes_max", bytes, max)) } else { Ok(()) }
    }
}

fn unreadable(error: serde_json::Error) -> Stop {
    Stop::Broken(format!("an entry is not what this capability writes: {error}"))
}
