//! The journals of a fork: which rows it begins with, so that it shares what another run was answered.
//!
//! Only answered entries are shared. An entry in flight belongs to the run that made the call: a fork makes the call
//! itself, and its effect has another key. Delegations come along: one that had ended at the cut is shared as a whole,
//! one that was at work up to what it was answered by then. A fork costs two rows for each journal, however long those
//! are; only one that would follow too many journals copies entries.
//!
//! This module reads, and returns rows for the batch that begins the fork. Whether an answer that a person wrote fits
//! the call is for the caller to check.

use crate::list::delegations;
use crate::record::{At, Content, FINISHED_AT, Kind, StoredAnswer, StoredFinish, append, began, key, parse};
use crate::shared::{self, DEPTH_MAX, Segment, SharedBeginning, invocation_of, number, records};
use longhaul_core::InvocationId;
use longhaul_core::journal::JournalError;
use longhaul_core::store::{Op, Store, Table};
use std::collections::{BTreeMap, BTreeSet};

/// The last entry of an invocation such that it and all before it were answered at or before this time, in
/// milliseconds since 1970-01-01 UTC; 0 if there is none.
///
/// # Errors
/// [`JournalError::Store`] or [`JournalError::Damaged`].
pub fn answered_through(store: &dyn Store, invocation: &InvocationId, at_ms: u64) -> Result<u32, JournalError> {
    Ok(through(&answer_times(store, invocation)?, at_ms))
}

/// The rows by which `into` begins with the entries of `of` up to `through`.
///
/// `into` names the same work in the run of the fork. `of` may be a delegation; then the invocations that lead to it
/// are shared up to the call that is open there, and `into` is the delegation in the fork.
///
/// # Errors
/// [`JournalError::NotAnswered`] at the first entry without an answer; [`JournalError::Store`] or
/// [`JournalError::Damaged`].
pub fn share(store: &dyn Store, of: &InvocationId, into: &InvocationId, through: u32) -> Result<Vec<Op>, JournalError> {
    let entries = answer_times(store, of)?;
    check_answered(of, &entries, through)?;
    let began_ms = began(store, of)?.map_or(0, |began| began.at_ms);
    let at_ms = entries.iter().take(through as usize).flatten().copied().fold(began_ms, u64::max);
    Sharing { store, of, into, at_ms, exact: Some(through), edited: None }.rows()
}

/// The rows by which `into` begins with what `of`, and its delegations, were answered by this time, in milliseconds
/// since 1970-01-01 UTC. No rows where `of` began later.
///
/// # Errors
/// [`JournalError::Store`] or [`JournalError::Damaged`].
pub fn share_at(
    store: &dyn Store,
    of: &InvocationId,
    into: &InvocationId,
    at_ms: u64,
) -> Result<Vec<Op>, JournalError> {
    if began(store, of)?.is_none_or(|began| began.at_ms > at_ms) {
        return Ok(Vec::new());
    }
    Sharing { store, of, into, at_ms, exact: None, edited: None }.rows()
}

/// The rows by which `into` begins with the entries of `of` before `entry`, and with `entry` answered by this text,
/// which the journal shows as edited. The text is JSON of the type that the call returns.
///
/// # Errors
/// As [`share`], also where `entry` has no answer.
pub fn share_with_answer(
    store: &dyn Store,
    of: &InvocationId,
    into: &InvocationId,
    entry: u32,
    answer: &str,
) -> Result<Vec<Op>, JournalError> {
    let missing = || JournalError::NotAnswered { invocation: of.clone(), entry };
    let entries = answer_times(store, of)?;
    check_answered(of, &entries, entry)?;
    let before = entry.checked_sub(1).ok_or_else(missing)?;
    let at_ms = entries.get(before as usize).copied().flatten().ok_or_else(missing)?;
    let mut ops = Sharing { store, of, into, at_ms, exact: Some(before), edited: Some(entry) }.rows()?;
    ops.extend(edited(store, of, into, entry, answer, at_ms)?);
    Ok(ops)
}

/// The last entry that each journal begins with by the rows of [`share`], [`share_at`] or [`share_with_answer`];
/// [`u32::MAX`] for one that begins with its end.
#[must_use]
pub fn shared_through(ops: &[Op]) -> BTreeMap<InvocationId, u32> {
    let mut found: BTreeMap<InvocationId, u32> = BTreeMap::new();
    for op in ops {
        let Op::Insert(Table::Journal, key, value) = op else { continue };
        let Some(invocation) = invocation_of(key.as_bytes()) else { continue };
        let Some((entry, kind)) = parse(&invocation, key.as_bytes()) else { continue };
        let through = match kind {
            Kind::Shared => shared::decode(&invocation, value).map_or(0, |shared| shared.through),
            Kind::Answered => u32::try_from(entry).unwrap_or(u32::MAX),
            Kind::Finished => u32::MAX,
            Kind::Began | Kind::Asked(_) | Kind::Prepared(_) | Kind::Resolution(_) => 0,
        };
        let known = found.entry(invocation).or_default();
        *known = through.max(*known);
    }
    found
}

/// The records of an entry with another answer, at the time of the one that it got: the clock of a guest goes on from
/// there.
fn edited(
    store: &dyn Store,
    of: &InvocationId,
    into: &InvocationId,
    entry: u32,
    answer: &str,
    at_ms: u64,
) -> Result<Vec<Op>, JournalError> {
    let asked = shared::read(store, of, |segments| {
        let mut asked = None;
        for record in records(store, segments, entry) {
            let record = record?;
            if record.entry != u64::from(entry) {
                break;
            }
            if matches!(record.kind, Kind::Asked(_)) {
                asked = Some((record.kind, record.value));
            }
        }
        asked.ok_or_else(|| At { invocation: of, entry: entry.into() }.damaged("an answer without its call"))
    })?;
    let (kind, value) = asked;
    let (content, blob) = Content::of(answer.to_owned());
    let answered = StoredAnswer { content, at_ms, edited: true };
    let asked = Op::Insert(Table::Journal, key(into, entry.into(), kind), value);
    Ok(blob.into_iter().chain([asked, append(into, entry.into(), Kind::Answered, &answered)]).collect())
}

/// The times of the answers of an invocation, from its first entry on.
fn answer_times(store: &dyn Store, invocation: &InvocationId) -> Result<Vec<Option<u64>>, JournalError> {
    shared::read(store, invocation, |segments| {
        let mut found: Vec<Option<u64>> = Vec::new();
        for record in records(store, segments, 1) {
            let record = record?;
            if record.entry == FINISHED_AT {
                break;
            }
            let at = At { invocation, entry: record.entry };
            let index = number(&at)? as usize - 1;
            if index > found.len().saturating_add(HOLES_MAX) {
                return Err(at.damaged("entries before it are missing"));
            }
            if found.len() <= index {
                found.resize(index + 1, None);
            }
            if matches!(record.kind, Kind::Answered) {
                let answered: StoredAnswer = at.decode(&record.value)?;
                found[index] = Some(answered.at_ms);
            }
        }
        Ok(found)
    })
}

/// Entries that may be missing in a row: parallel calls that were not announced when the host died.
const HOLES_MAX: usize = 10_000;

/// The last entry such that it and all before it were answered by then.
fn through(entries: &[Option<u64>], at_ms: u64) -> u32 {
    let is_answered = |entry: &&Option<u64>| entry.is_some_and(|answered_ms| answered_ms <= at_ms);
    // An entry has a number of 32 bits.
    u32::try_from(entries.iter().take_while(is_answered).count()).unwrap_or(u32::MAX)
}

fn check_answered(invocation: &InvocationId, entries: &[Option<u64>], wanted: u32) -> Result<(), JournalError> {
    let answered = through(entries, u64::MAX);
    if wanted > answered {
        return Err(JournalError::NotAnswered { invocation: invocation.clone(), entry: answered.saturating_add(1) });
    }
    Ok(())
}

/// The cut of a fork through the journals of one action.
struct Sharing<'a> {
    store: &'a dyn Store,
    of: &'a InvocationId,
    into: &'a InvocationId,
    /// The time of the cut.
    at_ms: u64,
    /// The last shared entry of `of`. None: what was answered by the time of the cut.
    exact: Option<u32>,
    /// The entry of `of` that gets another answer. Calls that followed the former one are not shared.
    edited: Option<u32>,
}

impl Sharing<'_> {
    fn rows(&self) -> Result<Vec<Op>, JournalError> {
        // Without an exact cut nothing above `of` has to be open at it.
        let first = if self.exact.is_some() { action_of(self.of) } else { self.of.clone() };
        let mut ops = self.journal(&first)?;
        // A delegation that is at work need not be in the journal of its caller yet, so it is found by its name.
        let below = delegations(self.store, &first)?;
        let mut known = BTreeSet::from([first]);
        for one in below {
            let Some((caller, call)) = caller_of(&one).filter(|(caller, _)| known.contains(caller)) else { continue };
            if self.comes_along(&caller, call, &one)? {
                ops.extend(self.journal(&one)?);
                known.insert(one);
            }
        }
        Ok(ops)
    }

    /// True for a delegation that had begun at the cut, and begins in the fork in the same way.
    fn comes_along(&self, caller: &InvocationId, call: u32, one: &InvocationId) -> Result<bool, JournalError> {
        let Some(began) = began(self.store, one)? else { return Ok(false) };
        // A call after the cut may depend on what the fork does anew. It was made beside the cut, and does not, if it
        // began before the last answer that is shared; what began in the millisecond of that answer is not known to.
        let (by_then, beside) = (began.at_ms <= self.at_ms, began.at_ms < self.at_ms);
        Ok(match (self.exact, self.open_call(caller)) {
            (Some(last), _) if caller == self.of => call <= last || (self.edited != Some(call) && beside),
            (_, Some(open)) => call == open || if call < open { by_then } else { beside },
            _ => by_then,
        })
    }

    /// The rows of one journal.
    fn journal(&self, one: &InvocationId) -> Result<Vec<Op>, JournalError> {
        let (store, entries) = (self.store, answer_times(self.store, one)?);
        let Some(began) = store.get(Table::Journal, &key(one, 0, Kind::Began))? else {
            return Err(JournalError::NotAnswered { invocation: one.clone(), entry: 0 });
        };
        let into = self.fork_of(one);
        let end = if self.is_cut(one) { None } else { self.end(one)? };
        let through = match (self.exact, self.open_call(one)) {
            (Some(exact), _) if one == self.of => exact,
            (_, Some(call)) => through(&entries, self.at_ms).min(call.saturating_sub(1)),
            (_, None) => through(&entries, if end.is_some() { u64::MAX } else { self.at_ms }),
        };
        let mut ops = vec![Op::Insert(Table::Journal, key(&into, 0, Kind::Began), began)];
        if through > 0 {
            ops.extend(beginning(store, one, &into, through)?);
        }
        ops.extend(end.map(|end| Op::Insert(Table::Journal, key(&into, FINISHED_AT, Kind::Finished), end)));
        Ok(ops)
    }

    /// True for an invocation that goes on in the fork, whatever became of it later.
    fn is_cut(&self, one: &InvocationId) -> bool {
        (self.exact.is_some() && one == self.of) || self.open_call(one).is_some()
    }

    /// The call of a delegation that leads from this invocation to the one that is cut.
    fn open_call(&self, one: &InvocationId) -> Option<u32> {
        let rest = self.of.as_str().strip_prefix(one.as_str())?.strip_prefix('#')?;
        rest.split('#').next()?.parse().ok()
    }

    /// The end of an invocation, if it had ended at the cut.
    fn end(&self, one: &InvocationId) -> Result<Option<Vec<u8>>, JournalError> {
        let at = At { invocation: one, entry: FINISHED_AT };
        let Some(end) = self.store.get(Table::Journal, &key(one, FINISHED_AT, Kind::Finished))? else {
            return Ok(None);
        };
        let finish: StoredFinish = at.decode(&end)?;
        Ok(Some(end).filter(|_| finish.at_ms <= self.at_ms))
    }

    /// The same work in the fork.
    fn fork_of(&self, one: &InvocationId) -> InvocationId {
        let (of, into) = (action_of(self.of), action_of(self.into));
        let below = one.as_str().strip_prefix(of.as_str()).unwrap_or_default();
        InvocationId::from_text(format!("{into}{below}"))
    }
}

/// The invocation that made a delegation, and the number of the call.
fn caller_of(delegation: &InvocationId) -> Option<(InvocationId, u32)> {
    let (caller, call) = delegation.as_str().rsplit_once('#')?;
    Some((InvocationId::from_text(caller), call.parse().ok()?))
}

/// The invocation of the harness that a delegation works for.
fn action_of(invocation: &InvocationId) -> InvocationId {
    InvocationId::from_text(invocation.as_str().split('#').next().unwrap_or_default())
}

/// The rows by which `into` begins with the entries of `of` up to `through`, which is not 0.
///
/// It refers to the oldest journal that holds all of them, or follows those from there. Where that would be too many,
/// it has the newer entries itself.
fn beginning(store: &dyn Store, of: &InvocationId, into: &InvocationId, through: u32) -> Result<Vec<Op>, JournalError> {
    let links = shared::links(store, of)?;
    let passed = links.iter().take_while(|link| link.through >= through).count();
    let refer = |of: InvocationId, through: u32| append(into, 0, Kind::Shared, &SharedBeginning::new(of, through));
    if links.len() - passed < DEPTH_MAX {
        let holder = if passed == 0 { of.clone() } else { links[passed - 1].of.clone() };
        return Ok(vec![refer(holder, through)]);
    }
    shared::read(store, of, |segments| {
        let Some((oldest, newer)) = segments.split_first() else { return Ok(Vec::new()) };
        let mut ops: Vec<Op> =
            oldest.through.into_iter().map(|last| refer(oldest.holder.clone(), last.min(through))).collect();
        ops.extend(copies(store, newer, into, through)?);
        Ok(ops)
    })
}

/// The records of these segments up to an entry, as rows of another journal.
///
/// # Errors
/// [`JournalError::Damaged`] where an entry has no answer: the other journal would have it in flight.
pub(crate) fn copies(
    store: &dyn Store,
    segments: &[Segment],
    into: &InvocationId,
    through: u32,
) -> Result<Vec<Op>, JournalError> {
    let mut ops = Vec::new();
    let mut unanswered = segments.first().map_or(u32::MAX, |first| first.from);
    for record in records(store, segments, 1) {
        let record = record?;
        if record.entry > through.into() {
            break;
        }
        if record.kind == Kind::Answered && record.entry == u64::from(unanswered) {
            unanswered = unanswered.saturating_add(1);
        }
        ops.push(Op::Insert(Table::Journal, key(into, record.entry, record.kind), record.value));
    }
    if unanswered <= through {
        return Err(At { invocation: into, entry: unanswered.into() }.damaged("it is shared and has no answer"));
    }
    Ok(ops)
}
