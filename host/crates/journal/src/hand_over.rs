//! Hands the rows of a run's journals over to the forks that share them, before the run is deleted.
//!
//! For each journal that forks share, the one that shares most of it gets its rows, and the others refer to that one.
//! So nothing is stored twice, and what a fork reads is the same before, between and after the pages of this. Each page
//! is a batch of its own that leaves all journals whole; the caller commits it, and asks for the next one until there
//! is none. Conditions on the replaced records make a page fail where a fork is deleted or handed over meanwhile.
//!
//! Deletes nothing of the run.

use crate::record::{Kind, bytes_of, encode, key};
use crate::share::copies;
use crate::shared::{self, SharedBeginning, invocations, sharer_of};
use longhaul_core::journal::JournalError;
use longhaul_core::store::{Key, Op, Store, Table};
use longhaul_core::{Digest, InvocationId, RunId};
use std::collections::BTreeMap;

/// Bytes of rows after which a page ends, at the end of a journal. One journal has some 10 MiB in rows at most: 1,000
/// entries of a few records, each of which has 2.5 KiB at most.
const PAGE_BYTES: u64 = 4 << 20;

/// A journal of a fork that shares its beginning.
struct Sharer {
    invocation: InvocationId,
    /// The bytes of its record.
    stored: Vec<u8>,
    through: u32,
}

/// The next changes by which journals of the runs `forks` stop sharing rows of the run `gone`; none where none of them
/// does.
///
/// # Errors
/// [`JournalError::Store`], or [`JournalError::Damaged`] for a journal that cannot be read whole.
pub fn hand_over(store: &dyn Store, gone: &RunId, forks: &[RunId]) -> Result<Vec<Op>, JournalError> {
    let (mut ops, mut bytes) = (Vec::new(), 0_u64);
    for (held, sharers) in sharers(store, gone, forks)? {
        if bytes > PAGE_BYTES {
            break;
        }
        let page = hand_over_one(store, gone, &held, sharers)?;
        bytes = page.iter().map(bytes_of).fold(bytes, u64::saturating_add);
        ops.extend(page);
    }
    Ok(ops)
}

/// The run that holds the beginning of a journal, and the run of that journal, for each such record that the changes
/// write.
#[must_use]
pub fn holders(ops: &[Op]) -> Vec<(RunId, RunId)> {
    let record = |op: &Op| {
        let (Op::Insert(table, key, value) | Op::Swap(table, key, _, value)) = op else { return None };
        let sharer = Some(key.as_bytes()).filter(|_| *table == Table::Journal).and_then(sharer_of)?;
        let shared = shared::decode(&sharer, value).ok()?;
        Some((shared.of.run(), sharer.run()))
    };
    let mut found: Vec<(RunId, RunId)> = ops.iter().filter_map(record).collect();
    found.sort();
    found.dedup();
    found
}

/// The journals of the forks that share rows of the run, by the journal that holds those.
fn sharers(
    store: &dyn Store,
    gone: &RunId,
    forks: &[RunId],
) -> Result<BTreeMap<InvocationId, Vec<Sharer>>, JournalError> {
    let mut found: BTreeMap<InvocationId, Vec<Sharer>> = BTreeMap::new();
    for fork in forks {
        // An invocation's name begins with its run's and a slash.
        for invocation in invocations(store, &Key::from_bytes(format!("{fork}/").into_bytes()))? {
            let Some(stored) = shared::stored(store, &invocation)? else { continue };
            let SharedBeginning { of, through, .. } = shared::decode(&invocation, &stored)?;
            if of.run() == *gone {
                found.entry(of).or_default().push(Sharer { invocation, stored, through });
            }
        }
    }
    Ok(found)
}

/// The changes after which no journal shares rows of `held`.
fn hand_over_one(
    store: &dyn Store,
    gone: &RunId,
    held: &InvocationId,
    mut sharers: Vec<Sharer>,
) -> Result<Vec<Op>, JournalError> {
    sharers.sort_by(|one, other| (other.through, &one.invocation).cmp(&(one.through, &other.invocation)));
    let Some((heir, others)) = sharers.split_first() else { return Ok(Vec::new()) };
    let (mut ops, base) = shared::read(store, held, |segments| {
        // Entries that the run shares with others stay theirs.
        let kept = segments.iter().rposition(|segment| segment.holder.run() != *gone).map_or(0, |last| last + 1);
        let (kept, own) = segments.split_at(kept);
        let base = kept.last().and_then(|last| Some(SharedBeginning::new(last.holder.clone(), last.through?)));
        Ok((copies(store, own, &heir.invocation, heir.through)?, base))
    })?;
    let below = |sharer: &Sharer| {
        base.clone()
            .filter(|base| sharer.through <= base.through)
            .map(|base| SharedBeginning::new(base.of, sharer.through))
    };
    ops.extend(replaced(heir, below(heir).or_else(|| base.clone())));
    for other in others {
        let of_heir = || SharedBeginning::new(heir.invocation.clone(), other.through);
        ops.extend(replaced(other, Some(below(other).unwrap_or_else(of_heir))));
    }
    Ok(ops)
}

/// The changes that replace the record of a journal, if it is still as it was read. None: the journal is whole, and the
/// record is emptied and deleted, since a deletion has no condition.
fn replaced(sharer: &Sharer, by: Option<SharedBeginning>) -> Vec<Op> {
    let key = key(&sharer.invocation, 0, Kind::Shared);
    let is_whole = by.is_none();
    let value = by.map_or_else(Vec::new, |by| encode(&by));
    let swap = Op::Swap(Table::Journal, key.clone(), Digest::of(&sharer.stored), value);
    let delete = is_whole.then_some(Op::Delete(Table::Journal, key));
    [swap].into_iter().chain(delete).collect()
}
