//! What an invocation has to do with those who look after it: what it may spend, and what people say to it.
//!
//! A correction is an entry in front of the request that it is told with, and a request that nobody corrected has none.
//! What is spent is written in the transaction of the answer that it was spent for, so that no kill loses or repeats it.

use crate::ctx::{Ctx, Said};
use crate::gate::Stop;
use longhaul_core::journal::EffectClass;
use longhaul_core::model::{Message, Model, ModelRequest, Speaker, Usage};
use longhaul_core::store::Batch;
use longhaul_core::supervisor::{Reservation, Spent};
use std::sync::Arc;

/// The entry of a correction.
const STEERED: &str = "conversation.steered";

/// What is noted between two answers of models.
#[derive(Default)]
pub(crate) struct Watched {
    fuel: u64,
    tools_called: u32,
    request_bytes: u64,
    held: Option<Box<dyn Reservation>>,
}

impl Ctx {
    /// Tells the conversation what people said since its last request.
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
            Err(ticket) => self.answer_with(ticket, said, forgets).await?,
        };
        for text in said {
            let message = Message::text(Speaker::User, format!("Human guidance: {text}"));
            self.services.watch.said(at, Said::Message(&message));
            self.guided(at, message)?;
        }
        Ok(())
    }

    /// Holds what a request may cost until its answer is kept.
    pub(crate) async fn reserve(&mut self, model: &Arc<dyn Model>, request: &ModelRequest) -> Result<(), Stop> {
        let supervisor = Arc::clone(&self.services.supervisor);
        let held = supervisor.reserve(&self.invocation, model.cost_most(request)).await.map_err(Stop::Budget)?;
        self.watched.held = Some(held);
        self.watched.request_bytes = serde_json::to_vec(request).map_or(0, |bytes| bytes.len() as u64);
        Ok(())
    }

    /// What was spent for an answer of so many bytes, to be stored with it. Without usage there was no reply.
    pub(crate) fn spent_for(&mut self, usage: Option<Usage>, stored_bytes: usize) -> Batch {
        let tools_called = self.conversations.notes.tools_called;
        let spent = Spent {
            usage: usage.unwrap_or_default(),
            model_calls: u32::from(usage.is_some()),
            tool_calls: tools_called.saturating_sub(self.watched.tools_called),
            fuel: self.fuel_used.saturating_sub(self.watched.fuel),
            memory_bytes_peak: self.meter.memory_bytes_peak,
            egress_bytes: std::mem::take(&mut self.watched.request_bytes),
            stored_bytes: stored_bytes as u64,
        };
        let batch = self.services.supervisor.spent(&self.invocation, &spent);
        // It is counted now, so nothing has to be held for it.
        self.watched.held = None;
        batch
    }

    /// An answer of a model was kept, now or before.
    pub(crate) fn note_answer(&mut self) {
        self.watched.fuel = self.fuel_used;
        self.watched.tools_called = self.conversations.notes.tools_called;
    }
}
