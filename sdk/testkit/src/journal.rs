//! The journal of one call, kept in memory: requests and their answers, in order, which a test can read.
//!
//! A guest that sleeps does not make a test wait: the clock is moved to the end of the sleep.

use crate::clock::HandClock;
use crate::done::Made;
use crate::store::MemoryStore;
use longhaul_core::journal::{Began, CallVerdict, EffectQuestion, EntryHandle, Journal, JournalError, NewCall};
use longhaul_core::store::{Batch, Store};
use longhaul_core::{Digest, InvocationId, Limits};
use longhaul_journal::{Opened, Recorder};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The entry with which a pure guest begins to sleep; its summary is `until MS`.
const SLEEP: &str = "timer.sleep";

pub(crate) struct Listening {
    recorder: Recorder,
    /// The store for everything that is kept beside an answer: the journal's own store ends with the call.
    kept: Arc<dyn Store>,
    clock: Arc<HandClock>,
    made: Mutex<Vec<Made>>,
}

impl Listening {
    pub(crate) fn begin(
        invocation: InvocationId,
        began: Began,
        clock: Arc<HandClock>,
        kept: Arc<dyn Store>,
        limits: &Limits,
    ) -> Result<Self, JournalError> {
        let store = Arc::new(MemoryStore::new());
        match Recorder::open(store, clock.clone(), invocation.clone(), began, limits)? {
            Opened::Running(recorder) => Ok(Self { recorder, kept, clock, made: Mutex::default() }),
            // The store is new, so there is nothing that could have ended.
            Opened::Finished { .. } => Err(JournalError::ReplayOnly(invocation)),
        }
    }

    pub(crate) fn made(&self) -> Vec<Made> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Journal for Listening {
    async fn ask(&self, call: NewCall) -> Result<CallVerdict, JournalError> {
        self.lock().push(Made {
            name: call.name.to_owned(),
            summary: call.summary.clone(),
            arguments: call.arguments,
            fuel_used: call.fuel_used,
            answer: None,
        });
        if let Some(until) = call.summary.strip_prefix("until ").filter(|_| call.name == SLEEP) {
            self.clock.move_to(until.parse().unwrap_or_default());
        }
        self.recorder.ask(call).await
    }

    async fn prepared(&self, handle: &EntryHandle, prepared: String) -> Result<(), JournalError> {
        self.recorder.prepared(handle, prepared).await
    }

    async fn answer_with(&self, handle: EntryHandle, answer: String, also: Batch) -> Result<(), JournalError> {
        if !also.is_empty() {
            self.kept.commit(also).await?;
        }
        // Entries count from 1.
        if let Some(made) = self.lock().get_mut((handle.entry as usize).wrapping_sub(1)) {
            made.answer = Some(answer.clone());
        }
        self.recorder.answer(handle, answer).await
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
