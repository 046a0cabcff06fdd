//! Forks of a world's runs, and deletions: what the code under test makes of them, beside what has to come of them.

use super::guest::{Checked, text};
use super::past::{self, CutShape, Journals, SharedPart, Told};
use super::world::{KEYS, Planted, World};
use crate::cuts::{self, JournalCut};
use crate::effects::EffectsAfter;
use crate::points::PointInRun;
use longhaul_core::approval::ENTRY;
use longhaul_core::event::WorkUsage;
use longhaul_core::fault;
use longhaul_core::journal::{CallVerdict, EffectClass, Finished, Journal as _, JournalError, NewCall};
use longhaul_core::store::{Batch, Key, Op, Row, Store, Table};
use longhaul_core::{Digest, InvocationId, Limits, RunId};
use longhaul_harness::{RunState, Work, WorkKind};
use longhaul_journal::Recorder;
use longhaul_records::contended::change;
use longhaul_records::record::{self, ForkedFrom, RunRecord};
use longhaul_records::repeats::{self, RepeatedEffects};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The request for a fork.
struct Request {
    at: PointInRun,
    answer: Option<String>,
    repeat_effects: bool,
}

/// A fork that is to be stored.
struct Making {
    parent: RunId,
    fork: RunId,
    at_ms: u64,
    cuts: Vec<JournalCut>,
    repeats: RepeatedEffects,
    planted: Option<Planted>,
}

/// The answer of one call of a replay, its time, and the fuel before it.
type Heard = (String, u64, u64);

impl World {
    /// Forks a run at a point, unless that is one at which it is rightly refused.
    pub(super) async fn fork(&mut self, parent: &RunId) -> Checked<()> {
        let all = past::journals(&*self.kept, parent)?;
        let Some(request) = self.request(&all) else { return Ok(()) };
        let mut cuts = Vec::new();
        for key in KEYS {
            let (answer, repeat) = (request.answer.as_deref(), request.repeat_effects);
            match cuts::cut(&*self.kept, parent, &work(key), &request.at, answer, repeat) {
                Ok(cut) => cuts.extend(cut),
                Err(error) => return self.refused(&all, &text(error)),
            }
        }
        let mut expected = BTreeMap::new();
        for cut in &cuts {
            expected.extend(past::shared(&all, &cut.of, shape(&all, &request, cut)?));
        }
        let keys = KEYS.map(str::to_owned);
        let effects = EffectsAfter::read(&*self.kept, parent, &request.at, &keys, &cuts).map_err(text)?;
        self.check_repeats(parent, &all, &expected, &effects.repeats)?;
        let repeats = if request.repeat_effects { RepeatedEffects::default() } else { effects.repeats };
        self.counts.edited += u64::from(cuts.iter().any(JournalCut::is_edited));
        let (parent, fork, planted) = (parent.clone(), self.next_run(), self.planted);
        let making = Making { parent, fork, at_ms: request.at.at_ms, cuts, repeats, planted };
        self.store(&making).await?;
        self.check_fork(&all, &making.fork, &expected).await?;
        self.counts.forks += 1;
        let is_fork = record::forked(&*self.kept, &making.parent).map_err(text)?.is_some();
        self.counts.forks_of_forks += u64::from(is_fork);
        self.runs.push(making.fork);
        Ok(())
    }

    /// A point of a run: a time around something that happened, an entry, or an entry with another answer.
    fn request(&mut self, all: &Journals) -> Option<Request> {
        let repeat_effects = self.dice.one_in(6);
        let point = |at_ms, invocation| PointInRun { event: 0, at_ms, invocation, state: RunState::new() };
        if self.dice.one_in(3) {
            let answers = |told: &Told| -> Vec<u64> {
                told.entries.iter().filter_map(|(_, entry)| Some(entry.answered.as_ref()?.at_ms)).collect()
            };
            let times: Vec<u64> =
                all.values().flat_map(|told| [vec![told.began.at_ms], answers(told)].concat()).collect();
            let at_ms = self.dice.pick(&times)? + u64::from(self.dice.below(3)) - 1;
            return Some(Request { at: point(at_ms, None), answer: None, repeat_effects });
        }
        let named: Vec<&InvocationId> =
            all.iter().filter(|(_, told)| told.answered(u64::MAX) > 0).map(|(one, _)| one).collect();
        let named = self.dice.pick(&named)?;
        let told = all.get(named)?;
        let entry = 1 + self.dice.below(told.answered(u64::MAX));
        let found = told.entry(entry)?;
        let may_edit = ["tools.call", "conversation.complete"].contains(&found.asked.name.as_str());
        let answer = (may_edit && self.dice.one_in(2)).then(|| format!("\"edited {entry}\""));
        let at = point(found.answered.as_ref()?.at_ms, Some((named.clone(), entry)));
        Some(Request { at, answer, repeat_effects })
    }

    /// Only a call that was permitted, or made together with others, and that is not shared, is a reason to refuse.
    fn refused(&mut self, all: &Journals, why: &str) -> Checked<()> {
        let mut asked = all.values().flat_map(|told| &told.entries).map(|(_, entry)| &entry.asked);
        let is_reason = asked.any(|asked| asked.name == ENTRY || asked.class == EffectClass::Acts);
        if !is_reason || !why.contains("name ") {
            return Err(format!("a fork is refused without a reason: {why}"));
        }
        self.counts.refused += 1;
        Ok(())
    }

    /// Every effect of the parent that acts and that the fork does not share is one that it is to ask about, and so is
    /// each one that the parent was to ask about as a fork.
    fn check_repeats(
        &self,
        parent: &RunId,
        all: &Journals,
        expected: &BTreeMap<InvocationId, SharedPart>,
        found: &RepeatedEffects,
    ) -> Checked<()> {
        let before = repeats::of_run(&*self.kept, parent).map_err(text)?;
        if let Some(call) = self.calls.values().find(|call| before.has(call) && !found.has(call)) {
            return Err(format!("{} is asked about in {parent}, and would not be in its fork", call.summary()));
        }
        for (invocation, told) in all {
            // A call with another answer is not made again either.
            let kept = expected.get(invocation).map_or(0, |part| part.edited.unwrap_or(part.through));
            let later =
                told.entries.iter().filter(|(number, _)| *number > kept).map(|(number, entry)| (number, &entry.asked));
            for (number, asked) in later.filter(|(_, asked)| asked.class == EffectClass::Acts) {
                let call = self.calls.get(&asked.arguments).ok_or("a call that nobody made")?;
                if !found.has(call) {
                    return Err(format!(
                        "entry {number} of `{invocation}` is not shared, and would be repeated unasked"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Stores a fork in a process that may die at it: then there is nothing of it, or all.
    async fn store(&mut self, making: &Making) -> Checked<()> {
        let (parent, fork) = (&making.parent, &making.fork);
        let others = self.all_own_rows()?;
        let before = self.everything();
        let dies = self.dice.one_in(2);
        let life = self.life(dies, 1);
        let stored = change(&*life, || Ok((making.rows(&*life)?, ()))).await;
        match stored {
            Ok(()) => {}
            Err(error) if !life.is_dead() => return Err(text(error)),
            Err(_) => {
                self.counts.kills_of_forking += 1;
                if self.kept.get(Table::Runs, &RunRecord::key(fork)).map_err(text)?.is_none() {
                    if self.everything() != before {
                        return Err(format!("half of {fork} was stored"));
                    }
                    change(&*self.kept, || Ok((making.rows(&*self.kept)?, ()))).await.map_err(text)?;
                }
            }
        }
        if self.all_own_rows()? != others {
            return Err(format!("fork {fork} changed rows of {parent}, or of others"));
        }
        Ok(())
    }

    fn all_own_rows(&self) -> Checked<Vec<Vec<Row>>> {
        self.runs.iter().map(|run| past::own_rows(&*self.kept, run)).collect()
    }

    fn everything(&self) -> Vec<Vec<Row>> {
        Table::ALL.map(|table| self.kept.rows(table)).into()
    }

    /// The journals of a fork are those of its parent up to the cut, and a replay cannot tell them apart there.
    async fn check_fork(
        &mut self,
        all: &Journals,
        fork: &RunId,
        expected: &BTreeMap<InvocationId, SharedPart>,
    ) -> Checked<()> {
        let found = past::journals(&*self.kept, fork)?;
        let names: Vec<InvocationId> = expected.keys().map(|one| cuts::in_fork(one, fork)).collect();
        if found.keys().ne(&names) {
            return Err(format!("{fork} has the journals {:?}, and should have {names:?}", found.keys()));
        }
        for (one, part) in expected {
            let (into, parent) = (cuts::in_fork(one, fork), &all[one]);
            check_shared(&into, &found[&into], parent, *part)?;
            let (mut theirs, _) = self.replayed(one).await?;
            let (mut ours, end) = self.replayed(&into).await?;
            if part.has_ended && end.is_none() {
                return Err(format!("a replay of `{into}` does not come to its end"));
            }
            theirs.truncate(part.through as usize);
            ours.truncate(part.through as usize);
            if ours != theirs || ours.len() != part.through as usize {
                return Err(format!("a replay of `{into}` heard {ours:?}, and of `{one}` {theirs:?}"));
            }
            self.counts.shared_entries += u64::from(part.through);
            self.shared.insert(into, part.edited.unwrap_or(part.through));
        }
        Ok(())
    }

    /// The calls of the guest in a replay: answer, time and fuel of each call; and its end, if it comes that far.
    async fn replayed(&self, invocation: &InvocationId) -> Checked<(Vec<Heard>, Option<(String, u64)>)> {
        let store = Arc::clone(&self.kept) as Arc<dyn Store>;
        let recorder = Recorder::replay(store, invocation.clone(), "engine 1", &Limits::default()).map_err(text)?;
        let recorder = recorder.ok_or_else(|| format!("`{invocation}` has no journal"))?;
        let mut guest = self.guest(invocation, recorder.began())?;
        let mut heard = Vec::new();
        while let Some(calls) = guest.calls() {
            let mut asked = Vec::new();
            let fuel = guest.fuel();
            for call in &calls {
                // Decisions come before all calls of a list.
                let is_decision = |(name, digest): (String, Digest)| name == ENTRY && digest == call.arguments();
                if recorder.upcoming().is_some_and(is_decision) {
                    let decision = NewCall { name: ENTRY, ..call.asked(EffectClass::ReadOnly, fuel) };
                    let Some(said) = again(&recorder, decision).await? else { return Ok((heard, None)) };
                    heard.push((said, recorder.time_ms(), fuel));
                }
                asked.push(call.asked(call.class(), fuel));
            }
            let mut answers = Vec::new();
            for call in asked {
                // But for the one that refuses a call of a fork amid a list.
                if recorder.upcoming().is_some_and(|(name, digest)| name == ENTRY && digest == call.arguments) {
                    let decision = NewCall { name: ENTRY, class: EffectClass::ReadOnly, ..call.clone() };
                    let Some(said) = again(&recorder, decision).await? else { return Ok((heard, None)) };
                    heard.push((said, recorder.time_ms(), fuel));
                }
                let Some(answer) = again(&recorder, call).await? else { return Ok((heard, None)) };
                heard.push((answer.clone(), recorder.time_ms(), fuel));
                answers.push(answer);
            }
            guest.hear(&answers, recorder.time_ms());
        }
        recorder.check_end().map_err(text)?;
        Ok((heard, Some((guest.result(), guest.fuel()))))
    }

    /// I3: a replay of what has ended gives its result with its fuel, whoever holds its beginning.
    pub(super) async fn check_ends(&self) -> Checked<()> {
        for run in &self.runs {
            for (invocation, told) in past::journals(&*self.kept, run)? {
                // An invocation that another answer made needless stays as it was shared.
                let Some(Finished { result, fuel_used, .. }) = told.finished else { continue };
                let ended = Some((result, fuel_used));
                let (heard, end) = self.replayed(&invocation).await?;
                if end != ended || heard.len() != told.entries.len() {
                    return Err(format!("I3: a replay of `{invocation}` ends with {end:?}, and it did with {ended:?}"));
                }
            }
        }
        Ok(())
    }

    /// Deletes a run in processes that may die at it; all others stay whole at each moment.
    pub(super) async fn delete(&mut self, run: &RunId) -> Checked<()> {
        let before = self.all_whole_rows(run)?;
        while self.planted != Some(Planted::HandOverLeftOut) {
            let dies = self.dice.one_in(2);
            let life = self.life(dies, 3);
            let handed_over = record::hand_over(&*life, run).await;
            self.expect_whole(run, &before)?;
            match handed_over {
                Ok(()) => break,
                Err(error) if !life.is_dead() => return Err(text(error)),
                Err(_) => self.counts.kills += 1,
            }
        }
        let mut removal = match self.planted {
            Some(Planted::HandOverLeftOut) => Batch::new(),
            _ => record::begin_removal(&*self.kept, run).map_err(text)?,
        };
        for table in [Table::Runs, Table::States, Table::Journal] {
            let rows = past::rows(&*self.kept, table, run)?;
            let deleted = rows.into_iter().map(|(key, _)| Op::Delete(table, Key::from_bytes(key)));
            removal.ops.extend(deleted);
        }
        self.kept.commit(removal).await.map_err(text)?;
        self.runs.retain(|other| other != run);
        self.counts.deleted += 1;
        self.expect_whole(run, &before)
    }

    fn expect_whole(&self, gone: &RunId, before: &[Vec<Row>]) -> Checked<()> {
        match self.all_whole_rows(gone)?.iter().zip(before).all(|(now, before)| now == before) {
            true => Ok(()),
            false => Err(format!("the journals of another run are others since {gone} is deleted")),
        }
    }

    fn all_whole_rows(&self, except: &RunId) -> Checked<Vec<Vec<Row>>> {
        self.runs.iter().filter(|run| *run != except).map(|run| past::whole_rows(&*self.kept, run)).collect()
    }
}

impl Making {
    /// All rows of the fork, as the crate makes those of a fork's journals.
    fn rows(&self, store: &dyn Store) -> fault::Result<Batch> {
        let mut batch = Batch::new().insert(Table::Runs, RunRecord::key(&self.fork), "{}");
        for cut in &self.cuts {
            batch.ops.extend(cut.rows(store, &self.fork)?.into_iter().filter_map(|op| self.damaged(op)));
        }
        let from = ForkedFrom {
            parent: self.parent.clone(),
            event: 0,
            at_ms: self.at_ms,
            point: "event:0".to_owned(),
            edited: None,
            inherited: WorkUsage::default(),
        };
        let batch = record::put_fork(store, batch, &from, &self.fork)?;
        repeats::put(batch, &self.fork, &self.repeats)
    }

    /// The change with the planted fault, if it is one about shared entries.
    fn damaged(&self, op: Op) -> Option<Op> {
        let is_shared = |key: &[u8]| key.windows(6).any(|part| part == b"shared");
        match (op, self.planted) {
            (Op::Insert(_, key, _), Some(Planted::ShareLeftOut)) if is_shared(key.as_bytes()) => None,
            (Op::Insert(table, key, value), Some(Planted::ShareTooFar)) if is_shared(key.as_bytes()) => {
                let mut shared: Value = serde_json::from_slice(&value).ok()?;
                shared["through"] = (shared["through"].as_u64()? + 1).into();
                Some(Op::Insert(table, key, serde_json::to_vec(&shared).ok()?))
            }
            (op, _) => Some(op),
        }
    }
}

/// A piece of work that goes on in the fork.
fn work(key: &str) -> Work {
    Work { name: key.to_owned(), attempt: 1, job: WorkKind::Discard { feature: "a".to_owned() } }
}

/// The cut that was asked for, or the earlier one that a call which is left out moved it to.
fn shape(all: &Journals, request: &Request, cut: &JournalCut) -> Checked<CutShape> {
    let told = &all[&cut.of];
    let (asked, shape) = match &request.at.invocation {
        Some((named, entry)) if *named == cut.of && cut.is_edited() => (*entry, CutShape::Answer(*entry)),
        Some((named, entry)) if *named == cut.of => (*entry, CutShape::Entry(*entry)),
        _ => (told.answered(request.at.at_ms), CutShape::Time(request.at.at_ms)),
    };
    if cut.through == asked {
        return Ok(shape);
    }
    if cut.through > asked || request.repeat_effects && has_acts(told, cut.through, asked) {
        return Err(format!("`{}` is cut after entry {} in the place of {asked}", cut.of, cut.through));
    }
    Ok(CutShape::Entry(cut.through))
}

/// True when an effect that acts was answered among these entries.
fn has_acts(told: &Told, after: u32, through: u32) -> bool {
    (after + 1..=through).filter_map(|number| told.entry(number)).any(|entry| entry.asked.class == EffectClass::Acts)
}

/// The answer of a call in a replay; none where the journal ends.
async fn again(recorder: &Recorder, call: NewCall) -> Checked<Option<String>> {
    match recorder.ask(call).await {
        Ok(CallVerdict::Answered(answer)) => Ok(Some(answer)),
        Err(JournalError::Unanswered { .. }) => Ok(None),
        Err(JournalError::Diverged { .. }) if recorder.remaining() == 0 => Ok(None),
        other => Err(format!("a replay of `{}`: {other:?}", recorder.invocation())),
    }
}

/// Compares a journal of a fork with the beginning of the one that it shares.
fn check_shared(into: &InvocationId, found: &Told, parent: &Told, part: SharedPart) -> Checked<()> {
    let last = part.edited.unwrap_or(part.through) as usize;
    if found.began != parent.began || found.finished.is_some() != part.has_ended || found.entries.len() != last {
        return Err(format!("`{into}` has {} entries, and should have {last}: {part:?}", found.entries.len()));
    }
    let through = part.through as usize;
    if found.entries[..through] != parent.entries[..through] {
        return Err(format!("`{into}` has {:?}, and should have {:?}", found.entries, &parent.entries[..through]));
    }
    if let Some(edited) = part.edited {
        let (number, entry) = &found.entries[last - 1];
        let answer = entry.answered.as_ref().filter(|answered| answered.edited && answered.answer.contains("edited"));
        if *number != edited || answer.is_none() || entry.asked.arguments != parent.entries[last - 1].1.asked.arguments
        {
            return Err(format!("entry {edited} of `{into}` should have another answer: {entry:?}"));
        }
    }
    if !part.has_ended && found.permits(part.edited.unwrap_or(part.through)) {
        return Err(format!("`{into}` takes a permission along: {:?}", found.entries));
    }
    Ok(())
}
