//! The journal of one invocation while it runs.
//!
//! The calls of a guest pass through [`Recorder::ask`](Journal::ask) in order. Recorded calls are answered from the
//! journal; the calls after its end are new, and their answers are durable before [`Recorder::answer`](Journal::answer)
//! returns.
//!
//! Records become durable in the order in which they were made: one commit at a time, each with all pending changes. So
//! a kill leaves a journal that ends somewhere and has no holes, and answers of parallel calls share commits. A commit
//! runs as a task of its own, so that an invocation which is cancelled in the middle of one can still be finished.
//!
//! After any error except one of `answer`, every further call gets that error: an invocation that should have ended
//! executes nothing more.
//!
//! Changes that are committed along may have conditions on rows that other processes write too. Where one does not
//! hold, nothing was written, and all is as before: the caller may look again, and answer or finish with other changes.
//! A condition on a row of a journal fails only when another process works on the run, which ends this one's work.
//!
//! An effect that has to be announced is announced, and begins, only while no other process may take the store over.

use crate::decide::{Known, decide};
use crate::load::{Loaded, Slot, check_bytes, check_entries, load};
use crate::record::{At, Content, FINISHED_AT, Kind, StoredAnswer, StoredFinish, append, bytes_of};
use crate::{messages, record};
use longhaul_core::journal::{
    Began, CallVerdict, EffectClass, EffectQuestion, EntryHandle, Finished, ImportCall, Journal, JournalError, NewCall,
};
use longhaul_core::store::{Batch, Op, Store, StoreError, Table};
use longhaul_core::{Clock, Digest, InvocationId, LimitHit, Limits};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Digits of an effect's key: 128 bits, which make collisions impossible in practice.
const KEY_DIGITS: usize = 32;

/// The least time, in milliseconds, for which the store must still be held where an effect is announced: a quarter of
/// the shortest lease, which is renewed in half of its time.
const LEASE_LEFT_MS_MIN: u64 = 500;

/// The journal of one invocation. Clones share it.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

/// The state of an invocation's journal when it is opened.
#[expect(clippy::large_enum_variant, reason = "one is made for each invocation, and matched at once")]
pub enum Opened {
    /// The invocation has not ended: run the component from its start.
    Running(Recorder),
    /// The invocation ended before; do not run it.
    Finished {
        /// Its beginning.
        began: Began,
        /// Its end.
        finished: Finished,
    },
}

struct Inner {
    store: Arc<dyn Store>,
    invocation: InvocationId,
    began: Began,
    limits: Limits,
    mode: Mode,
    /// True when a journal was found: calls at its end may have been made before.
    resumed: bool,
    state: Mutex<State>,
    /// Held during a commit, so that there is one at a time; the error of a failed one.
    committing: tokio::sync::Mutex<Option<StoreError>>,
    /// Changes up to this mark are durable.
    durable: AtomicU64,
}

enum Mode {
    Record(Arc<dyn Clock>),
    Replay { compare_fuel: bool },
}

#[derive(Default)]
struct State {
    /// The recorded entries, by entry - 1. Each is taken out when its call comes.
    slots: Vec<Slot>,
    /// Calls so far, so also the number of the latest.
    asked: u32,
    bytes: u64,
    time_ms: u64,
    /// Changes that no commit has taken.
    pending: Vec<Op>,
    /// Counts changes; the mark of the latest.
    mark: u64,
    /// Entries that wait for their answer.
    open: BTreeMap<u32, Open>,
    /// True when an answer was stored since the journal was opened.
    answered_live: bool,
    /// True when [`Recorder::finish_batch`] gave the pending changes to its caller: a later record would follow rows
    /// that the store may never get.
    handed_over: bool,
    ended: Option<JournalError>,
}

/// An entry that waits for its answer.
struct Open {
    handle: EntryHandle,
    /// The attempt that the handle stands for.
    asked: ImportCall,
    /// True when `asked` was handed to a commit or is in the store.
    asked_kept: bool,
    /// Start of the attempt with the unknown outcome, for a question.
    since_ms: u64,
}

/// An answer that was taken, and is not stored yet.
struct TakenAnswer {
    open: Open,
    /// The rows of the answer.
    ops: Vec<Op>,
    at_ms: u64,
    /// An error where the journal would pass its cap with this answer.
    within: Result<(), LimitHit>,
}

impl Recorder {
    /// Opens the journal of `invocation`, or begins one with `began`.
    ///
    /// An existing journal's seed and time replace those of `began`. A new one becomes durable with its first call,
    /// before that call starts; an invocation that calls nothing leaves none until [`Recorder::finish`].
    ///
    /// # Errors
    /// [`JournalError::Diverged`] at entry 0 when it was another component, export or input;
    /// [`JournalError::Limit`] when the journal has more entries than `limits` allow;
    /// [`JournalError::Damaged`] or [`JournalError::Store`].
    pub fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        invocation: InvocationId,
        began: Began,
        limits: &Limits,
    ) -> Result<Opened, JournalError> {
        let Some(recorded) = record::began(&*store, &invocation)? else {
            return Ok(Opened::Running(Self::begin(store, clock, invocation, began, limits)));
        };
        check_same_start(&recorded, &began)?;
        if let Some(finished) = crate::finished(&*store, &invocation)? {
            return Ok(Opened::Finished { began: recorded, finished });
        }
        let loaded = load(&*store, &invocation, limits)?;
        let mode = Mode::Record(clock);
        Ok(Opened::Running(Self::over(store, invocation, recorded, limits, mode, Some(loaded))))
    }

    /// A recorder that answers from the journal of `invocation`, executes nothing and writes nothing.
    ///
    /// Any component may be run on it, which is how new bytes are rehearsed. Fuel is compared when `fingerprint` is
    /// that of the journal. The journal's end shows as [`JournalError::Unanswered`], or as [`JournalError::Diverged`]
    /// with [`Recorder::remaining`] 0. None when there is no journal.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn replay(
        store: Arc<dyn Store>,
        invocation: InvocationId,
        fingerprint: &str,
        limits: &Limits,
    ) -> Result<Option<Self>, JournalError> {
        let Some(began) = record::began(&*store, &invocation)? else {
            return Ok(None);
        };
        let loaded = load(&*store, &invocation, limits)?;
        let mode = Mode::Replay { compare_fuel: began.fingerprint == fingerprint };
        Ok(Some(Self::over(store, invocation, began, limits, mode, Some(loaded))))
    }

    /// The invocation of the journal.
    #[must_use]
    pub fn invocation(&self) -> &InvocationId {
        &self.inner.invocation
    }

    /// The beginning of the invocation: its seed and its time hold for every resume.
    #[must_use]
    pub fn began(&self) -> &Began {
        &self.inner.began
    }

    /// True when a journal was found.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.inner.resumed
    }

    /// Bytes of the journal so far, content included; compared with [`Limits::journal_bytes_max`].
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner.state().bytes
    }

    /// Entries so far; compared with [`Limits::journal_entries_max`].
    #[must_use]
    pub fn asked(&self) -> u32 {
        self.inner.state().asked
    }

    /// Recorded calls that the component has not made yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        let state = self.inner.state();
        state.slots.iter().skip(state.asked as usize).filter(|slot| slot.asked.is_some()).count()
    }

    /// Checks that a component which returned by itself has made every recorded call.
    ///
    /// # Errors
    /// [`JournalError::Diverged`] at the first call that it did not make.
    pub fn check_end(&self) -> Result<(), JournalError> {
        let state = self.inner.state();
        let next = state.slots.get(state.asked as usize).and_then(|slot| slot.asked.as_ref());
        next.map_or(Ok(()), |asked| Err(diverged(state.asked + 1, messages::recorded(asked), "to end".to_owned())))
    }

    /// Stores the end, in one transaction with `also`. Afterwards every call is refused.
    ///
    /// Calls that wait for an answer stay without one.
    ///
    /// # Errors
    /// [`JournalError::ReplayOnly`], or [`JournalError::Store`]: nothing of `also` was written. After a
    /// [`StoreError::Conflict`] of a condition in `also`, the invocation can still be finished, with another batch.
    pub async fn finish(&self, finished: Finished, also: Batch) -> Result<(), JournalError> {
        if !has_conditions(&also) {
            let mark = self.inner.take_finish(finished, also)?;
            return self.flush(mark).await;
        }
        let (ops, ended) = self.inner.finish_ops(finished)?;
        let inner = Arc::clone(&self.inner);
        let commit = tokio::spawn(async move {
            let kept = inner.commit_with(ops, also).await;
            if is_overtaken(&kept) {
                inner.state().ended = ended;
            }
            kept
        });
        commit.await.unwrap_or_else(|stopped| Err(lost(&stopped)))
    }

    /// The changes that [`Recorder::finish`] would make, to be committed by the caller with others: by
    /// [`Journal::answer_with`] of the parent. Afterwards every call is refused, and an answer that waits for its
    /// commit is not stored.
    ///
    /// # Errors
    /// As [`Recorder::finish`].
    pub async fn finish_batch(&self, finished: Finished) -> Result<Batch, JournalError> {
        let failed = self.inner.committing.lock().await;
        failed.clone().map_or(Ok(()), Err)?;
        self.inner.take_finish(finished, Batch::new())?;
        let mut state = self.inner.state();
        state.handed_over = true;
        Ok(Batch { ops: state.take_pending().0 })
    }

    fn begin(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        invocation: InvocationId,
        began: Began,
        limits: &Limits,
    ) -> Self {
        let first = append(&invocation, 0, Kind::Began, &began);
        let new = Self::over(store, invocation, began, limits, Mode::Record(clock), None);
        new.inner.state().push(first);
        new
    }

    fn over(
        store: Arc<dyn Store>,
        invocation: InvocationId,
        began: Began,
        limits: &Limits,
        mode: Mode,
        loaded: Option<Loaded>,
    ) -> Self {
        let resumed = loaded.is_some();
        let Loaded { slots, bytes } = loaded.unwrap_or_default();
        let state = Mutex::new(State { slots, bytes, time_ms: began.at_ms, ..State::default() });
        let limits = limits.clone();
        let committing = tokio::sync::Mutex::new(None);
        let durable = AtomicU64::new(0);
        Self { inner: Arc::new(Inner { store, invocation, began, limits, mode, resumed, state, committing, durable }) }
    }

    /// Commits an answer with changes that have conditions. Where one does not hold, the entry waits for its answer
    /// again.
    async fn commit_answer(&self, open: Open, ops: Vec<Op>, also: Batch) -> Result<(), JournalError> {
        let inner = Arc::clone(&self.inner);
        let commit = tokio::spawn(async move {
            let kept = inner.commit_with(ops, also).await;
            if is_overtaken(&kept) {
                inner.state().open.insert(open.handle.entry, open);
            }
            kept
        });
        commit.await.unwrap_or_else(|stopped| Err(lost(&stopped)))
    }

    /// Waits until the changes up to `mark` are durable.
    async fn flush(&self, mark: u64) -> Result<(), JournalError> {
        if self.inner.durable.load(Ordering::Acquire) >= mark {
            return Ok(());
        }
        let inner = Arc::clone(&self.inner);
        let commit = tokio::spawn(async move { inner.commit_pending(mark).await });
        commit.await.unwrap_or_else(|stopped| Err(lost(&stopped)))
    }
}

#[async_trait::async_trait]
impl Journal for Recorder {
    async fn ask(&self, call: NewCall) -> Result<CallVerdict, JournalError> {
        let is_effect = call.class.starts_durably();
        if is_effect && !self.is_replaying() {
            // Before the announcement: an announced effect is one that may have happened.
            self.inner.expect_lease(LEASE_LEFT_MS_MIN)?;
        }
        let (next, mark) = self.inner.take_call(&call)?;
        self.flush(mark).await?;
        if is_effect && matches!(next, CallVerdict::Go(_)) {
            // This process may have slept since.
            self.inner.expect_lease(1)?;
        }
        Ok(next)
    }

    async fn prepared(&self, handle: &EntryHandle, prepared: String) -> Result<(), JournalError> {
        let mark = self.inner.take_prepared(handle, &prepared)?;
        self.flush(mark).await?;
        self.inner.expect_lease(1)
    }

    async fn answer_with(&self, handle: EntryHandle, answer: String, also: Batch) -> Result<(), JournalError> {
        let TakenAnswer { open, ops, at_ms, within } = self.inner.take_answer(&handle, answer)?;
        if has_conditions(&also) {
            self.commit_answer(open, ops, also).await?;
        } else {
            let mark = self.inner.push_all(ops, also);
            self.flush(mark).await?;
        }
        let mut state = self.inner.state();
        state.time_ms = state.time_ms.max(at_ms);
        state.answered_live = true;
        within.map_err(|hit| state.end(hit.into()))
    }

    fn question(&self, handle: &EntryHandle, why: &str) -> EffectQuestion {
        let state = self.inner.state();
        let Inner { invocation, began, .. } = &*self.inner;
        match state.open.get(&handle.entry) {
            Some(Open { asked, since_ms, .. }) => {
                let asked = ImportCall { at_ms: *since_ms, ..asked.clone() };
                messages::question(invocation, began, handle.entry, &asked, Some(why))
            }
            None => {
                let (entry, attempt) = (handle.entry, handle.attempt);
                EffectQuestion { invocation: invocation.clone(), entry, text: why.to_owned(), approval: None, attempt }
            }
        }
    }

    fn time_ms(&self) -> u64 {
        self.inner.state().time_ms
    }

    fn is_replaying(&self) -> bool {
        let state = self.inner.state();
        let next = state.slots.get(state.asked as usize);
        state.ended.is_none() && next.is_some_and(|slot| slot.answered.is_some())
    }

    fn upcoming(&self) -> Option<(String, Digest)> {
        let state = self.inner.state();
        let asked = state.slots.get(state.asked as usize)?.asked.as_ref()?;
        Some((asked.name.clone(), asked.arguments))
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves a state that at worst holds less than was done; the store decides.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses to begin an effect while another process may take the store over, and with it this effect.
    fn expect_lease(&self, left_ms_min: u64) -> Result<(), JournalError> {
        match (&self.mode, self.store.lease_left_ms()) {
            (Mode::Record(_), Some(left_ms)) if left_ms < left_ms_min => {
                Err(self.state().end(StoreError::LeaseEnds { left_ms }.into()))
            }
            _ => Ok(()),
        }
    }

    /// Takes the next call; returns the verdict that holds once the changes up to the mark are durable.
    fn take_call(&self, call: &NewCall) -> Result<(CallVerdict, u64), JournalError> {
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        self.next(&mut state, call).map_err(|why| state.end(why))
    }

    fn next(&self, state: &mut State, call: &NewCall) -> Result<(CallVerdict, u64), JournalError> {
        let entry = state.asked.saturating_add(1);
        let slot = state.slots.get_mut(entry as usize - 1).map(std::mem::take).unwrap_or_default();
        if let Some(asked) = &slot.asked {
            self.check_same_call(entry, asked, call)?;
        }
        let next = match (slot.asked.is_some(), slot.answered.is_some()) {
            (true, true) => (self.recorded_answer(state, entry, slot)?, 0),
            (true, false) => self.in_flight(state, entry, &slot, call)?,
            (false, false) => self.unknown(state, entry, call)?,
            (false, true) => return Err(self.at(entry).damaged("an answer without its call")),
        };
        state.asked = entry;
        Ok(next)
    }

    fn recorded_answer(&self, state: &mut State, entry: u32, slot: Slot) -> Result<CallVerdict, JournalError> {
        let stored = slot.answered.ok_or_else(|| self.at(entry).damaged("its answer is missing"))?;
        let answered = stored.read(&*self.store, &self.at(entry))?;
        state.time_ms = state.time_ms.max(answered.at_ms);
        Ok(CallVerdict::Answered(answered.answer))
    }

    /// A call whose announcement is in the journal and whose answer is not.
    fn in_flight(
        &self,
        state: &mut State,
        entry: u32,
        slot: &Slot,
        call: &NewCall,
    ) -> Result<(CallVerdict, u64), JournalError> {
        let asked = slot.asked.as_ref().ok_or_else(|| self.at(entry).damaged("its call is missing"))?;
        let clock = self.clock(|| JournalError::Unanswered { entry, recorded: messages::recorded(asked) })?;
        let again = asked.attempt.saturating_add(1);
        let next = match decide(slot, asked, call.class) {
            Known::NeverLeft => {
                CallVerdict::Go(state.wait(self.handle(entry, asked.attempt, false), asked, asked.at_ms))
            }
            Known::Happened(output) => {
                CallVerdict::Happened(state.wait(self.handle(entry, asked.attempt, true), asked, asked.at_ms), output)
            }
            Known::Skipped => {
                CallVerdict::Skipped(state.wait(self.handle(entry, asked.attempt, true), asked, asked.at_ms))
            }
            Known::Verify(prepared) => {
                let attempt = attempt(call, again, clock);
                let handle = state.wait(self.handle(entry, again, true), &attempt, asked.at_ms);
                state.open.entry(entry).and_modify(|open| open.asked_kept = false);
                CallVerdict::Verify(handle, prepared)
            }
            Known::Repeat => {
                if slot.resolution().is_some() {
                    self.ask_about_others(state, entry)?;
                }
                return self.go(state, entry, call, again);
            }
            Known::Nobody => return Err(self.parked(entry, asked)),
        };
        Ok((next, 0))
    }

    /// Parallel calls are announced before the first of them starts. If a person has to be asked about a later one,
    /// this happens before the resolution of this one is used: an attempt that is announced and ends with that question
    /// has not started, and would be asked about all the same.
    fn ask_about_others(&self, state: &State, entry: u32) -> Result<(), JournalError> {
        let is_open = |slot: &Slot, asked: &ImportCall| {
            slot.answered.is_none() && decide(slot, asked, asked.class) == Known::Nobody
        };
        for (number, slot) in (1..).zip(&state.slots).skip(entry as usize) {
            if let Some(asked) = slot.asked.as_ref().filter(|asked| is_open(slot, asked)) {
                return Err(self.parked(number, asked));
            }
        }
        Ok(())
    }

    fn parked(&self, entry: u32, asked: &ImportCall) -> JournalError {
        JournalError::Parked(messages::question(&self.invocation, &self.began, entry, asked, None))
    }

    /// A call that the journal does not have.
    ///
    /// At the end of an existing journal, a call that needs no announcement may have been made before. After an answer
    /// was stored since, it cannot: the guest had not come that far.
    fn unknown(&self, state: &mut State, entry: u32, call: &NewCall) -> Result<(CallVerdict, u64), JournalError> {
        let maybe_made = self.resumed && !state.answered_live && !call.class.starts_durably();
        self.go(state, entry, call, if maybe_made { 2 } else { 1 })
    }

    /// Announces an attempt.
    fn go(
        &self,
        state: &mut State,
        entry: u32,
        call: &NewCall,
        number: u32,
    ) -> Result<(CallVerdict, u64), JournalError> {
        let clock = self.clock(|| diverged(entry, messages::END.to_owned(), messages::asked(call)))?;
        check_entries(entry.into(), &self.limits)?;
        let asked = attempt(call, number, clock);
        self.push_within(state, self.asked_op(entry, &asked))?;
        let mark = if call.class.starts_durably() { state.mark } else { self.began_mark() };
        let handle = state.wait(self.handle(entry, number, number > 1), &asked, asked.at_ms);
        Ok((CallVerdict::Go(handle), mark))
    }

    fn take_prepared(&self, handle: &EntryHandle, prepared: &str) -> Result<u64, JournalError> {
        let mut state = self.state();
        let open = state.open.remove(&handle.entry).ok_or_else(|| self.not_waiting(handle))?;
        let note = append(&self.invocation, handle.entry.into(), Kind::Prepared(handle.attempt), &prepared);
        let kept = if open.asked_kept {
            Ok(())
        } else {
            self.push_within(&mut state, self.asked_op(handle.entry, &open.asked))
        };
        let kept = kept.and_then(|()| self.push_within(&mut state, note));
        state.open.insert(handle.entry, Open { asked_kept: true, ..open });
        kept.map_err(|hit| state.end(hit.into()))?;
        Ok(state.mark)
    }

    /// Takes an answer, whose entry no longer waits.
    fn take_answer(&self, handle: &EntryHandle, answer: String) -> Result<TakenAnswer, JournalError> {
        let clock = self.clock(|| JournalError::ReplayOnly(self.invocation.clone()))?;
        let mut state = self.state();
        let open = state.open.remove(&handle.entry).filter(|open| open.handle == *handle);
        let open = open.ok_or_else(|| self.not_waiting(handle))?;
        let at_ms = clock.now_ms();
        let (content, blob) = Content::of(answer);
        let answer = StoredAnswer { content, at_ms, edited: false };
        let record = append(&self.invocation, handle.entry.into(), Kind::Answered, &answer);
        let ops = blob.into_iter().chain([record]);
        let ops: Vec<Op> = ops.collect();
        let within = check_bytes(state.bytes.saturating_add(ops.iter().map(bytes_of).sum()), &self.limits);
        if let (Err(hit), EffectClass::ReadOnly) = (&within, open.asked.class) {
            return Err(state.end(hit.clone().into()));
        }
        // The answer of an effect that happened is stored even beyond the cap, or a resume would repeat the effect.
        Ok(TakenAnswer { open, ops, at_ms, within })
    }

    fn take_finish(&self, finished: Finished, also: Batch) -> Result<u64, JournalError> {
        let (ops, _) = self.finish_ops(finished)?;
        Ok(self.push_all(ops, also))
    }

    /// The rows of the end, after which every call is refused; with the error that every call got before, if any.
    fn finish_ops(&self, finished: Finished) -> Result<(Vec<Op>, Option<JournalError>), JournalError> {
        self.clock(|| JournalError::ReplayOnly(self.invocation.clone()))?;
        let (record, blob) = StoredFinish::of(finished);
        let record = append(&self.invocation, FINISHED_AT, Kind::Finished, &record);
        let mut state = self.state();
        let ended = state.ended.clone();
        state.end(JournalError::ReplayOnly(self.invocation.clone()));
        Ok((blob.into_iter().chain([record]).collect(), ended))
    }

    /// Adds rows of this journal, and changes beside it, to the next commit; returns their mark.
    fn push_all(&self, ops: Vec<Op>, also: Batch) -> u64 {
        let mut state = self.state();
        ops.into_iter().for_each(|op| state.push(op));
        also.ops.into_iter().for_each(|op| state.push_foreign(op));
        state.mark
    }

    /// Commits all pending changes, unless another commit took the changes up to `mark` along.
    async fn commit_pending(&self, mark: u64) -> Result<(), JournalError> {
        let mut failed = self.committing.lock().await;
        if let Some(why) = &*failed {
            return Err(why.clone().into());
        }
        if self.durable.load(Ordering::Acquire) >= mark {
            return Ok(());
        }
        self.refuse_handed_over()?;
        // Later records must not become durable without these, also where the commit ends in a panic.
        *failed = Some(cut_off());
        let (ops, upto) = self.state().take_pending();
        if let Err(why) = self.store.commit(Batch { ops }).await {
            *failed = Some(why.clone());
            return Err(self.state().end(why.into()));
        }
        *failed = None;
        self.durable.store(upto, Ordering::Release);
        Ok(())
    }

    /// Commits all pending changes with rows of this journal and changes that have conditions. Where one does not hold,
    /// the pending changes wait for the next commit, and the others are dropped.
    async fn commit_with(&self, ops: Vec<Op>, also: Batch) -> Result<(), JournalError> {
        let mut failed = self.committing.lock().await;
        if let Some(why) = &*failed {
            return Err(why.clone().into());
        }
        self.refuse_handed_over()?;
        // As in `commit_pending`.
        *failed = Some(cut_off());
        let (pending, upto) = self.state().take_pending();
        let bytes: u64 = ops.iter().map(bytes_of).sum();
        let all = pending.iter().cloned().chain(ops).chain(also.ops).collect();
        match self.store.commit(Batch { ops: all }).await {
            Ok(()) => {
                *failed = None;
                self.durable.store(upto, Ordering::Release);
                self.state().count(bytes);
                Ok(())
            }
            Err(why) if is_of_others(&why) => {
                *failed = None;
                self.state().put_back(pending);
                Err(why.into())
            }
            Err(why) => {
                *failed = Some(why.clone());
                Err(self.state().end(why.into()))
            }
        }
    }

    /// Refuses to commit more after the caller of [`Recorder::finish_batch`] got the pending changes.
    fn refuse_handed_over(&self) -> Result<(), JournalError> {
        if self.state().handed_over { Err(JournalError::ReplayOnly(self.invocation.clone())) } else { Ok(()) }
    }

    /// The mark of entry 0: seed and time must be durable before any effect, since later attempts would make other
    /// calls without them.
    fn began_mark(&self) -> u64 {
        u64::from(!self.resumed)
    }

    fn push_within(&self, state: &mut State, op: Op) -> Result<(), LimitHit> {
        check_bytes(state.bytes.saturating_add(bytes_of(&op)), &self.limits)?;
        state.push(op);
        Ok(())
    }

    fn asked_op(&self, entry: u32, asked: &ImportCall) -> Op {
        append(&self.invocation, entry.into(), Kind::Asked(asked.attempt), asked)
    }

    /// The clock of a recorder that records; `otherwise` when it only replays.
    fn clock(&self, otherwise: impl FnOnce() -> JournalError) -> Result<&dyn Clock, JournalError> {
        match &self.mode {
            Mode::Record(clock) => Ok(&**clock),
            Mode::Replay { .. } => Err(otherwise()),
        }
    }

    fn check_same_call(&self, entry: u32, asked: &ImportCall, call: &NewCall) -> Result<(), JournalError> {
        if asked.name != call.name || asked.arguments != call.arguments {
            return Err(diverged(entry, messages::recorded(asked), messages::asked(call)));
        }
        match self.mode {
            Mode::Replay { compare_fuel: true } if asked.fuel_used != call.fuel_used => Err(diverged(
                entry,
                format!("{} at {} fuel", messages::recorded(asked), asked.fuel_used),
                format!("the same at {} fuel", call.fuel_used),
            )),
            _ => Ok(()),
        }
    }

    fn handle(&self, entry: u32, attempt: u32, repeated: bool) -> EntryHandle {
        let digest = Digest::of(self.invocation.child(entry).as_str().as_bytes());
        let key = digest.to_string()[..KEY_DIGITS].to_owned();
        EntryHandle { entry, key, attempt, repeated }
    }

    fn at(&self, entry: u32) -> At<'_> {
        At { invocation: &self.invocation, entry: entry.into() }
    }

    fn not_waiting(&self, handle: &EntryHandle) -> JournalError {
        diverged(handle.entry, "no call that waits for an answer".to_owned(), "to answer it".to_owned())
    }
}

impl State {
    fn push(&mut self, op: Op) {
        self.count(bytes_of(&op));
        self.push_foreign(op);
    }

    /// Counts bytes of the journal.
    fn count(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// A change that is committed along and is not part of the journal.
    fn push_foreign(&mut self, op: Op) {
        self.mark += 1;
        self.pending.push(op);
    }

    fn take_pending(&mut self) -> (Vec<Op>, u64) {
        (std::mem::take(&mut self.pending), self.mark)
    }

    /// Puts changes back before those that were made since they were taken.
    fn put_back(&mut self, mut taken: Vec<Op>) {
        taken.append(&mut self.pending);
        self.pending = taken;
    }

    /// Ends all further calls with `why`, unless they ended before.
    fn end(&mut self, why: JournalError) -> JournalError {
        self.ended.get_or_insert_with(|| why.clone());
        why
    }

    fn wait(&mut self, handle: EntryHandle, asked: &ImportCall, since_ms: u64) -> EntryHandle {
        let open = Open { handle: handle.clone(), asked: asked.clone(), asked_kept: true, since_ms };
        self.open.insert(handle.entry, open);
        handle
    }
}

fn attempt(call: &NewCall, attempt: u32, clock: &dyn Clock) -> ImportCall {
    ImportCall {
        name: call.name.to_owned(),
        summary: messages::summary(&call.summary),
        arguments: call.arguments,
        class: call.class,
        prepared: None,
        fuel_used: call.fuel_used,
        at_ms: clock.now_ms(),
        attempt,
    }
}

fn check_same_start(recorded: &Began, now: &Began) -> Result<(), JournalError> {
    let what = |began: &Began| (began.component, began.export.clone(), began.input);
    if what(recorded) == what(now) {
        return Ok(());
    }
    Err(diverged(0, messages::began(recorded), messages::began(now)))
}

/// True when a batch has a condition on a row that is not of a journal, and so may be written by other processes.
fn has_conditions(also: &Batch) -> bool {
    also.ops.iter().any(|op| matches!(op, Op::Insert(table, ..) | Op::Swap(table, ..) if *table != Table::Journal))
}

/// True when such a condition did not hold.
fn is_of_others(why: &StoreError) -> bool {
    matches!(why, StoreError::Conflict { table, .. } if *table != Table::Journal)
}

fn is_overtaken(kept: &Result<(), JournalError>) -> bool {
    matches!(kept, Err(JournalError::Store(why)) if is_of_others(why))
}

fn diverged(entry: u32, recorded: String, asked: String) -> JournalError {
    JournalError::Diverged { entry, recorded, asked }
}

/// The error after a commit that never returned.
fn cut_off() -> StoreError {
    StoreError::Failed { path: "the data directory".to_owned(), detail: "a commit was cut off".to_owned() }
}

/// The error when the runtime stopped in a commit: the next resume finds out whether it became durable.
fn lost(stopped: &tokio::task::JoinError) -> JournalError {
    StoreError::Failed { path: "the data directory".to_owned(), detail: stopped.to_string() }.into()
}
