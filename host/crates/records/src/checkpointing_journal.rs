//! A journal that reports checkpoints: one before every `checkpoint_every`th step, and one before each approval.
//!
//! A checkpoint writes nothing: it is a position of the journal. It is reported like a step of the work, under the
//! number of its entry, so that an invocation that continues after a kill reports none twice, even if
//! `checkpoint_every` has changed since.

use crate::bus::{EventBus, PendingStep};
use crate::invocation::{APPROVAL, STEP};
use longhaul_core::event::{CheckpointCause, Event};
use longhaul_core::journal::{CallVerdict, EffectQuestion, EntryHandle, Journal, JournalError, NewCall};
use longhaul_core::store::Batch;
use longhaul_core::{Digest, InvocationId};
use longhaul_journal::Recorder;
use std::sync::atomic::{AtomicU32, Ordering};

/// Distinguishes the mark of an invocation's checkpoints from that of its steps, which have numbers of their own.
const LANE: &str = "!checkpoints";

/// A journal that reports its checkpoints; see the module.
pub struct CheckpointingJournal {
    recorder: Recorder,
    bus: EventBus,
    agent: String,
    /// Steps between two checkpoints; 0: only those before approvals.
    every: u32,
    steps: AtomicU32,
}

impl CheckpointingJournal {
    /// The journal of a part's invocation, which reports its checkpoints on this bus.
    pub fn new(recorder: Recorder, bus: EventBus, agent: &str, every: u32) -> Self {
        Self { recorder, bus, agent: agent.to_owned(), every, steps: AtomicU32::new(0) }
    }

    /// Reports a checkpoint before the entry exists.
    fn pass(&self, name: &str) {
        let step = self.steps.load(Ordering::Relaxed);
        let cause = match name {
            APPROVAL => CheckpointCause::Approval,
            STEP => {
                self.steps.store(step.saturating_add(1), Ordering::Relaxed);
                if self.every == 0 || !step.is_multiple_of(self.every) {
                    return;
                }
                CheckpointCause::Step
            }
            _ => return,
        };
        let (invocation, entries) = (self.recorder.invocation().clone(), self.recorder.asked());
        let event =
            Event::Checkpoint { invocation: invocation.clone(), agent: self.agent.clone(), step, entries, cause };
        let invocation = InvocationId::from_text(format!("{invocation}{LANE}"));
        self.bus.note(PendingStep { invocation, number: entries.saturating_add(1), event });
    }
}

#[async_trait::async_trait]
impl Journal for CheckpointingJournal {
    async fn ask(&self, call: NewCall) -> Result<CallVerdict, JournalError> {
        self.pass(call.name);
        self.recorder.ask(call).await
    }

    async fn prepared(&self, handle: &EntryHandle, prepared: String) -> Result<(), JournalError> {
        self.recorder.prepared(handle, prepared).await
    }

    async fn answer_with(&self, handle: EntryHandle, answer: String, also: Batch) -> Result<(), JournalError> {
        self.recorder.answer_with(handle, answer, also).await
    }

    fn question(&self, handle: &EntryHandle, why: &str) -> EffectQuestion {
        self.recorder.question(handle, why)
    }

    fn time_ms(&self) -> u64 {
        self.recorder.time_ms()
    }

    fn is_replaying(&self) -> bool {
        self.recorder.is_replaying()
    }

    fn upcoming(&self) -> Option<(String, Digest)> {
        self.recorder.upcoming()
    }
}
