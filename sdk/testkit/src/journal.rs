//! The journal of one call, kept in memory: requests and their answers, in order, which a test can read.
//!
//! A guest that sleeps does not make a test wait: the clock is moved to the end of the sleep. Where the scenario has
//! recorded answers, they are given here, at their times; a call without one goes on to the script.

use crate::clock::HandClock;
use crate::cut::{Cutting, MadeCut};
use crate::done::Made;
use crate::recorded::{AnswerQueue, RecordedAnswer, RecordedPart, about};
use crate::store::MemoryStore;
use longhaul_core::journal::{Began, CallVerdict, EffectQuestion, EntryHandle, Journal, JournalError, NewCall};
use longhaul_core::store::{Batch, Store};
use longhaul_core::{Digest, InvocationId, Limits};
use longhaul_journal::{AskedCalls, Opened, Recorder};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The entry with which a pure guest begins to sleep; its summary is `until MS`.
const SLEEP: &str = "timer.sleep";

pub(crate) struct Listening {
    recorder: Recorder,
    /// The store for everything that is kept beside an answer: the journal's own store ends with the call and its
    /// resumes.
    kept: Arc<dyn Store>,
    clock: Arc<HandClock>,
    /// The arguments of the calls, which the journal gets as digests.
    asked: Arc<AskedCalls>,
    made: Mutex<Vec<Made>>,
    answers: Option<Mutex<AnswerQueue>>,
    /// The last entry; none: there is no such limit.
    entries_max: Option<usize>,
    cutting: Mutex<Cutting>,
}

/// The surroundings of a journal.
pub(crate) struct ListeningSetup<'a> {
    pub(crate) clock: Arc<HandClock>,
    pub(crate) stores: JournalStores,
    /// Hears the arguments of the calls.
    pub(crate) asked: Arc<AskedCalls>,
    /// The recorded answers; none: the script has them all.
    pub(crate) recorded: Option<&'a RecordedPart>,
    pub(crate) cutting: Cutting,
}

/// The stores of a journal.
pub(crate) struct JournalStores {
    /// Holds the journal.
    pub(crate) journal: Arc<MemoryStore>,
    /// Holds everything that is kept beside an answer.
    pub(crate) kept: Arc<dyn Store>,
}

impl Listening {
    /// Begins a journal, or goes on with the one that the store holds.
    pub(crate) fn begin(
        invocation: InvocationId,
        began: Began,
        limits: &Limits,
        setup: ListeningSetup<'_>,
    ) -> Result<Self, JournalError> {
        let ListeningSetup { clock, stores: JournalStores { journal, kept }, asked, recorded, cutting } = setup;
        let answers = recorded.map(|part| Mutex::new(AnswerQueue::new(Arc::clone(&part.answers))));
        let to = recorded.and_then(|part| part.table.to);
        let entries_max = to.map(|to| usize::try_from(to).unwrap_or(usize::MAX));
        let cutting = Mutex::new(cutting);
        match Recorder::open(journal, clock.clone(), invocation.clone(), began, limits)? {
            Opened::Running(recorder) => {
                Ok(Self { recorder, kept, clock, asked, made: Mutex::default(), answers, entries_max, cutting })
            }
            // Nothing here stores an end.
            Opened::Finished { .. } => Err(JournalError::ReplayOnly(invocation)),
        }
    }

    pub(crate) fn made(&self) -> Vec<Made> {
        self.lock().clone()
    }

    /// The cut, once it was made.
    pub(crate) fn take_cut(&self) -> Option<MadeCut> {
        self.cutting().take_made()
    }

    /// Entries whose effects were executed, and not answered from the journal.
    pub(crate) fn executed(&self) -> BTreeSet<u32> {
        self.cutting().executed()
    }

    fn cutting(&self) -> MutexGuard<'_, Cutting> {
        self.cutting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recorded answers that are left; none: the scenario has no recording.
    fn answers(&self) -> Option<MutexGuard<'_, AnswerQueue>> {
        self.answers.as_ref().map(|answers| answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a call, and gets its recorded answer.
    fn note(&self, call: &NewCall) -> Option<RecordedAnswer> {
        let in_full = self.asked.latest().filter(|asked| asked.name == call.name).map(|asked| asked.arguments);
        let in_full = in_full.unwrap_or(Value::Null);
        let answer = self.answers().and_then(|mut answers| answers.take(call.name, &about(call.name, &in_full)));
        self.lock().push(Made {
            name: call.name.to_owned(),
            summary: call.summary.clone(),
            arguments: call.arguments,
            in_full,
            fuel_used: call.fuel_used,
            answer: None,
        });
        answer
    }

    /// Notes that a call waits for its answer, unless the journal had it.
    fn waits(&self, verdict: &CallVerdict) {
        match verdict {
            CallVerdict::Go(handle) | CallVerdict::Verify(handle, _) => self.cutting().waits(handle, true),
            CallVerdict::Happened(handle, _) | CallVerdict::Skipped(handle) => self.cutting().waits(handle, false),
            CallVerdict::Answered(_) => {}
        }
    }
}

#[async_trait::async_trait]
impl Journal for Listening {
    async fn ask(&self, call: NewCall) -> Result<CallVerdict, JournalError> {
        if self.entries_max.is_some_and(|max| self.lock().len() >= max) {
            return Err(JournalError::ReplayOnly(self.recorder.invocation().clone()));
        }
        self.cutting().begins()?;
        let recorded = self.note(&call);
        if let Some(answer) = &recorded {
            self.clock.move_to(answer.asked_ms);
        }
        if let Some(until) = call.summary.strip_prefix("until ").filter(|_| call.name == SLEEP) {
            self.clock.move_to(until.parse().unwrap_or_default());
        }
        let verdict = self.recorder.ask(call).await?;
        self.waits(&verdict);
        match (verdict, recorded) {
            (CallVerdict::Go(handle), Some(recorded)) => {
                self.clock.move_to(recorded.answered_ms);
                let answer = recorded.answer.to_string();
                self.answer_with(handle, answer.clone(), Batch::new()).await?;
                Ok(CallVerdict::Answered(answer))
            }
            (verdict, _) => Ok(verdict),
        }
    }

    async fn prepared(&self, handle: &EntryHandle, prepared: String) -> Result<(), JournalError> {
        self.recorder.prepared(handle, prepared).await
    }

    async fn answer_with(&self, handle: EntryHandle, answer: String, also: Batch) -> Result<(), JournalError> {
        self.cutting().answers(&handle, &answer)?;
        let entry = handle.entry;
        if !also.is_empty() {
            self.kept.commit(also).await?;
        }
        // Entries count from 1.
        if let Some(made) = self.lock().get_mut((entry as usize).wrapping_sub(1)) {
            made.answer = Some(answer.clone());
        }
        self.recorder.answer(handle, answer).await?;
        self.cutting().answered(entry);
        Ok(())
    }

    fn question(&self, handle: &EntryHandle, why: &str) -> EffectQuestion {
        self.recorder.question(handle, why)
    }

    fn time_ms(&self) -> u64 {
        self.recorder.time_ms()
    }

    fn is_replaying(&self) -> bool {
        match self.answers() {
            Some(answers) => answers.upcoming().is_some(),
            None => self.recorder.is_replaying(),
        }
    }

    fn upcoming(&self) -> Option<(String, Digest)> {
        match self.answers() {
            Some(answers) => answers.upcoming(),
            None => self.recorder.upcoming(),
        }
    }
}
