//! Reads a journal into memory, within the caps of an invocation.
//!
//! Long answers stay in the store until they are used, so a journal of 64 MiB is resumed with a few hundred kilobytes.
//! This module trusts no record: numbers are checked against the caps before anything is sized by them.

use crate::record::{At, FINISHED_AT, Kind, StoredAnswer, parse, prefix};
use crate::shared::{self, Record, Segment, records};
use longhaul_core::journal::{ImportCall, JournalError, Resolution};
use longhaul_core::store::{Store, Table};
use longhaul_core::{InvocationId, LimitHit, Limits};

/// The records of one entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    /// The latest attempt. None when the entry is unknown, or was left behind by a later one.
    pub(crate) asked: Option<ImportCall>,
    /// Note of the latest attempt that prepared anything.
    pub(crate) prepared: Option<String>,
    /// The latest resolution and the attempt that it concerns.
    pub(crate) resolution: Option<(u32, Resolution)>,
    /// The answer.
    pub(crate) answered: Option<StoredAnswer>,
}

impl Slot {
    /// A person's resolution of the latest attempt; that of an earlier attempt is used up.
    pub(crate) fn resolution(&self) -> Option<&Resolution> {
        let attempt = self.asked.as_ref()?.attempt;
        self.resolution.as_ref().filter(|(of, _)| *of == attempt).map(|(_, resolution)| resolution)
    }

    /// Takes one record; answers its bytes, content included.
    pub(crate) fn take(&mut self, at: &At<'_>, kind: Kind, value: &[u8]) -> Result<u64, JournalError> {
        let mut bytes = value.len() as u64;
        match kind {
            // Keys sort by attempt, so the latest comes last.
            Kind::Asked(_) => self.asked = Some(at.decode(value)?),
            Kind::Prepared(_) => self.prepared = Some(at.decode(value)?),
            Kind::Resolution(attempt) => self.resolution = Some((attempt, at.decode(value)?)),
            Kind::Answered => {
                let answered: StoredAnswer = at.decode(value)?;
                bytes = bytes.saturating_add(answered.content.blob_bytes());
                self.answered = Some(answered);
            }
            Kind::Began | Kind::Shared | Kind::Finished => return Err(at.damaged("a record of another kind is there")),
        }
        Ok(bytes)
    }
}

/// The entries of a journal, from entry 1.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) slots: Vec<Slot>,
    /// Bytes of all records and their content, `began` included.
    pub(crate) bytes: u64,
}

/// Bytes by which records may exceed `journal_bytes_max`: answers that are stored although the cap was reached. There
/// are at most as many of them as parallel calls.
const RECORDS_SLACK_BYTES: u64 = 1 << 20;

/// Rows of entry 0 that are read: one more than there are.
const HEAD_ROWS: usize = 3;

/// Reads entries until a cap is reached: `journal_entries_max`, or more bytes of records than
/// `journal_bytes_max` can have let in. Entries that the journal shares count as its own.
///
/// A journal at its cap is read, since its recorded calls must be answered; the next new call then reaches it.
pub(crate) fn load(store: &dyn Store, invocation: &InvocationId, limits: &Limits) -> Result<Loaded, JournalError> {
    shared::read(store, invocation, |segments| load_segments(store, invocation, segments, limits))
}

fn load_segments(
    store: &dyn Store,
    invocation: &InvocationId,
    segments: &[Segment],
    limits: &Limits,
) -> Result<Loaded, JournalError> {
    let mut loaded = Loaded { bytes: head_bytes(store, invocation)?, ..Loaded::default() };
    let mut read = loaded.bytes;
    for record in records(store, segments, 1) {
        let record = record?;
        read = read.saturating_add(record.value.len() as u64);
        check_bytes(read.saturating_sub(RECORDS_SLACK_BYTES), limits)?;
        loaded.take(invocation, limits, &record)?;
    }
    check_shared(invocation, segments, &loaded.slots)?;
    Ok(loaded)
}

/// Bytes of the records of entry 0.
fn head_bytes(store: &dyn Store, invocation: &InvocationId) -> Result<u64, JournalError> {
    let at = At { invocation, entry: 0 };
    let head = store.scan(Table::Journal, &prefix(invocation).number(0), None, HEAD_ROWS)?;
    let mut bytes = 0_u64;
    for (stored, value) in head {
        parse(invocation, &stored).ok_or_else(|| at.damaged("a key makes no sense"))?;
        bytes = bytes.saturating_add(value.len() as u64);
    }
    Ok(bytes)
}

/// Refuses a shared beginning with an entry that is not answered: its call would be made again, below the end of the
/// journal's own rows.
fn check_shared(invocation: &InvocationId, segments: &[Segment], slots: &[Slot]) -> Result<(), JournalError> {
    let shared = segments.last().map_or(0, |own| own.from.saturating_sub(1));
    let is_answered =
        |entry: u32| slots.get(entry as usize - 1).is_some_and(|slot| slot.asked.is_some() && slot.answered.is_some());
    match (1..=shared).find(|entry| !is_answered(*entry)) {
        Some(entry) => Err(At { invocation, entry: entry.into() }.damaged("it is shared and has no answer")),
        None => Ok(()),
    }
}

/// The error for a journal of more than `journal_bytes_max`.
pub(crate) fn check_bytes(used: u64, limits: &Limits) -> Result<(), LimitHit> {
    if used > limits.journal_bytes_max {
        return Err(LimitHit::new("journal_bytes_max", used, limits.journal_bytes_max));
    }
    Ok(())
}

/// The error for an entry numbered above `journal_entries_max`.
pub(crate) fn check_entries(entry: u64, limits: &Limits) -> Result<(), LimitHit> {
    if entry > limits.journal_entries_max.into() {
        return Err(LimitHit::new("journal_entries_max", entry, limits.journal_entries_max.into()));
    }
    Ok(())
}

impl Loaded {
    fn take(&mut self, invocation: &InvocationId, limits: &Limits, record: &Record) -> Result<(), JournalError> {
        let entry = record.entry;
        let at = At { invocation, entry };
        if entry == FINISHED_AT {
            return Ok(());
        }
        check_entries(entry, limits)?;
        // Checked above: at most `journal_entries_max`, which is a u32.
        let index = usize::try_from(entry - 1).map_err(|_| at.damaged("its number is too large"))?;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        self.bytes = self.bytes.saturating_add(self.slots[index].take(&at, record.kind, &record.value)?);
        Ok(())
    }
}
