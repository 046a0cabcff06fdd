//! A journal for people: its entries, the end of an invocation, and the resolution of questions.
//!
//! The caller's page limits a reading here, not an invocation's limits, so that a journal at its caps can still be
//! read.

use crate::load::Slot;
use crate::record::{At, FINISHED_AT, Kind, StoredFinish, append, key};
use crate::shared::{self, Segment, invocations, number, records};
use longhaul_core::InvocationId;
use longhaul_core::journal::{Began, Finished, JournalEntry, JournalError, Resolution};
use longhaul_core::store::{Key, Op, Store, Table};
use serde::de::IgnoredAny;

/// Errors of a resolution that was not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// There is no such entry.
    #[error("`{invocation}` has no entry {entry}; list its entries with `longhaul journal`")]
    Unknown {
        /// The invocation of the journal.
        invocation: InvocationId,
        /// The entry.
        entry: u32,
    },
    /// The entry has no open question: it was answered, is an effect that needs no person, or its invocation has ended.
    #[error("entry {entry} of `{invocation}` asks nothing: {why}")]
    NotOpen {
        /// The invocation of the journal.
        invocation: InvocationId,
        /// The entry.
        entry: u32,
        /// The reason.
        why: &'static str,
    },
    /// The output is not JSON.
    #[error("the output of entry {entry} is not JSON, {detail}; text goes in quotes")]
    NotJson {
        /// The entry.
        entry: u32,
        /// The fault.
        detail: String,
    },
    /// The journal could not be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The start of an invocation, if it has a journal.
///
/// # Errors
/// [`JournalError::Store`] or [`JournalError::Damaged`].
pub fn began(store: &dyn Store, invocation: &InvocationId) -> Result<Option<Began>, JournalError> {
    crate::record::began(store, invocation)
}

/// The end of an invocation; none if it has not ended.
///
/// # Errors
/// [`JournalError::Store`] or [`JournalError::Damaged`].
pub fn finished(store: &dyn Store, invocation: &InvocationId) -> Result<Option<Finished>, JournalError> {
    let at = At { invocation, entry: FINISHED_AT };
    let Some(value) = store.get(Table::Journal, &key(invocation, FINISHED_AT, Kind::Finished))? else {
        return Ok(None);
    };
    at.decode::<StoredFinish>(&value)?.read(store, &at).map(Some)
}

/// Lists at most `limit` entries after entry `after` (0 for all), with their numbers.
///
/// An entry of which nothing was durable when the host died is left out.
///
/// # Errors
/// [`JournalError::Store`] or [`JournalError::Damaged`].
pub fn entries(
    store: &dyn Store,
    invocation: &InvocationId,
    after: u32,
    limit: usize,
) -> Result<Vec<(u32, JournalEntry)>, JournalError> {
    let Some(first) = after.checked_add(1) else { return Ok(Vec::new()) };
    shared::read(store, invocation, |segments| page(store, invocation, segments, first, limit))
}

fn page(
    store: &dyn Store,
    invocation: &InvocationId,
    segments: &[Segment],
    first: u32,
    limit: usize,
) -> Result<Vec<(u32, JournalEntry)>, JournalError> {
    let mut found: Vec<(u32, Slot)> = Vec::new();
    for record in records(store, segments, first) {
        let record = record?;
        if record.entry == FINISHED_AT {
            break;
        }
        let at = At { invocation, entry: record.entry };
        let entry = number(&at)?;
        if found.last().is_none_or(|(last, _)| *last != entry) {
            if found.len() >= limit {
                break;
            }
            found.push((entry, Slot::default()));
        }
        if let Some((_, slot)) = found.last_mut() {
            slot.take(&at, record.kind, &record.value)?;
        }
    }
    let whole = found.into_iter().map(|(entry, slot)| Ok(listed(store, invocation, entry, slot)?.map(|e| (entry, e))));
    whole.filter_map(Result::transpose).collect()
}

/// The name of a call that starts an invocation, see [`InvocationId::child`].
const DELEGATION: &str = "delegate.run";

/// The invocations that this one started and that have a journal, in the order of its entries.
///
/// # Errors
/// [`JournalError::Store`] or [`JournalError::Damaged`].
pub fn children(store: &dyn Store, invocation: &InvocationId) -> Result<Vec<InvocationId>, JournalError> {
    shared::read(store, invocation, |segments| {
        let mut found = Vec::new();
        for record in records(store, segments, 1) {
            let record = record?;
            if !matches!(record.kind, Kind::Asked(_)) {
                continue;
            }
            let at = At { invocation, entry: record.entry };
            let asked: longhaul_core::journal::ImportCall = at.decode(&record.value)?;
            let child = invocation.child(number(&at)?);
            if asked.name == DELEGATION && found.last() != Some(&child) && began(store, &child)?.is_some() {
                found.push(child);
            }
        }
        Ok(found)
    })
}

/// The invocations with a journal that work for this one: those that it started, those that these started, and so on.
///
/// They are found by their names: the call of one that is at work, or that a kill cut off, need not be in the journal
/// of its caller. By their names, callers come before what they called.
///
/// # Errors
/// [`JournalError::Store`].
pub fn delegations(store: &dyn Store, invocation: &InvocationId) -> Result<Vec<InvocationId>, JournalError> {
    invocations(store, &Key::from_bytes(format!("{invocation}#").into_bytes()))
}

/// The change that stores the resolution of an effect with an unknown outcome, by a person or the operator's policy.
/// Its committer adds the consequences for the run.
///
/// It concerns the interrupted attempt; if another attempt is interrupted too, that is a new question.
///
/// # Errors
/// Every [`ResolveError`].
pub fn resolution(
    store: &dyn Store,
    invocation: &InvocationId,
    entry: u32,
    resolution: &Resolution,
) -> Result<Op, ResolveError> {
    let found = in_flight(store, invocation, entry)?;
    if found.resolution.is_some() {
        return Err(not_open(invocation, entry, "it was resolved before"));
    }
    if let Resolution::Happened(output) = resolution {
        serde_json::from_str::<IgnoredAny>(output)
            .map_err(|why| ResolveError::NotJson { entry, detail: why.to_string() })?;
    }
    Ok(append(invocation, entry.into(), Kind::Resolution(found.asked.attempt), resolution))
}

/// The change that withdraws a person's resolution of an effect, as long as nothing acted on it: no attempt was begun
/// since, and no answer was stored. The invocation must not be running, since it would have read it.
///
/// # Errors
/// Every [`ResolveError`].
pub fn unresolved(store: &dyn Store, invocation: &InvocationId, entry: u32) -> Result<Op, ResolveError> {
    let found = in_flight(store, invocation, entry)?;
    if found.resolution.is_none() {
        return Err(not_open(invocation, entry, "nothing was said about it that is still to be used"));
    }
    Ok(Op::Delete(Table::Journal, key(invocation, entry.into(), Kind::Resolution(found.asked.attempt))))
}

/// The entry, if it is an effect whose outcome only a person can know.
fn in_flight(store: &dyn Store, invocation: &InvocationId, entry: u32) -> Result<JournalEntry, ResolveError> {
    let unknown = || ResolveError::Unknown { invocation: invocation.clone(), entry };
    let before = entry.checked_sub(1).ok_or_else(unknown)?;
    let (_, found) =
        entries(store, invocation, before, 1)?.into_iter().find(|(number, _)| *number == entry).ok_or_else(unknown)?;
    if found.answered.is_some() {
        return Err(not_open(invocation, entry, "it was answered"));
    }
    if !found.asked.class.starts_durably() {
        return Err(not_open(invocation, entry, "it may be repeated without a person"));
    }
    if finished(store, invocation)?.is_some() {
        return Err(not_open(invocation, entry, "its invocation has ended"));
    }
    Ok(found)
}

fn not_open(invocation: &InvocationId, entry: u32, why: &'static str) -> ResolveError {
    ResolveError::NotOpen { invocation: invocation.clone(), entry, why }
}

fn listed(
    store: &dyn Store,
    invocation: &InvocationId,
    entry: u32,
    slot: Slot,
) -> Result<Option<JournalEntry>, JournalError> {
    let at = At { invocation, entry: entry.into() };
    let resolution = slot.resolution().cloned();
    let Some(asked) = slot.asked else {
        return Ok(None);
    };
    let answered = slot.answered.map(|stored| stored.read(store, &at)).transpose()?;
    Ok(Some(JournalEntry {
        asked: longhaul_core::journal::ImportCall { prepared: slot.prepared, ..asked },
        answered,
        resolution,
    }))
}
