//! Beginnings that journals share: the record that names the other journal, and the entries of all of them in order.
//!
//! A fork's invocation has what another one asked and was answered, without a copy: its record `shared` names the
//! journal that holds the first entries, which may share its own beginning in turn. The shared entries are answered, so
//! their records never change. Where the other journal is deleted, its rows are handed over first (`hand_over.rs`), and
//! whoever reads meanwhile reads again.
//!
//! The record is stored, so hostile: a chain of journals is followed to a fixed depth, and one that promises entries
//! which are not there is damage. Without that a call would be recorded below its end, where no reader finds it.

use crate::record::{At, FINISHED_AT, Kind, key, parse, rows};
use longhaul_core::InvocationId;
use longhaul_core::journal::JournalError;
use longhaul_core::store::{Key, Store, Table};
use serde::{Deserialize, Serialize};

/// The version of the record. It grows when an earlier reader could misread one.
const VERSION: u32 = 1;

/// Journals that one follows to read its beginning. A deeper fork copies (`share.rs`).
pub(crate) const DEPTH_MAX: usize = 16;

/// Times that a journal is read while others hand its beginning over.
const READS_MAX: usize = 8;

/// The record `shared`: the first entries of a journal are those of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedBeginning {
    version: u32,
    /// The journal that holds them, or shares them itself.
    pub(crate) of: InvocationId,
    /// The last of them.
    pub(crate) through: u32,
}

impl SharedBeginning {
    pub(crate) fn new(of: InvocationId, through: u32) -> Self {
        Self { version: VERSION, of, through }
    }
}

/// Entries, one after the other, that one journal has in rows of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The invocation of the rows.
    pub(crate) holder: InvocationId,
    /// The first entry.
    pub(crate) from: u32,
    /// The last entry. None: it is the end of the journal that is read, which has rows without end.
    pub(crate) through: Option<u32>,
}

/// A record of an entry, or the end of an invocation.
pub(crate) struct Record {
    pub(crate) entry: u64,
    pub(crate) kind: Kind,
    pub(crate) value: Vec<u8>,
}

/// The bytes of the record, if the journal shares its beginning.
pub(crate) fn stored(store: &dyn Store, invocation: &InvocationId) -> Result<Option<Vec<u8>>, JournalError> {
    Ok(store.get(Table::Journal, &key(invocation, 0, Kind::Shared))?)
}

/// The record in these bytes.
pub(crate) fn decode(invocation: &InvocationId, bytes: &[u8]) -> Result<SharedBeginning, JournalError> {
    let at = At { invocation, entry: 0 };
    let shared: SharedBeginning = at.decode(bytes)?;
    if shared.version > VERSION {
        return Err(at.damaged("it shares entries in a form of a newer longhaul"));
    }
    if shared.through == 0 || shared.through == u32::MAX {
        return Err(at.damaged(format!("it shares {} entries of `{}`", shared.through, shared.of)));
    }
    Ok(shared)
}

/// The journals that are followed to read the beginning of one, from the one that it names to the oldest, each with its
/// last entry that counts.
pub(crate) fn links(store: &dyn Store, invocation: &InvocationId) -> Result<Vec<SharedBeginning>, JournalError> {
    let mut found: Vec<SharedBeginning> = Vec::new();
    loop {
        let last = found.last().map_or(invocation, |link| &link.of);
        let Some(bytes) = stored(store, last)? else { return Ok(found) };
        let mut next = decode(last, &bytes)?;
        if found.len() >= DEPTH_MAX {
            let why = format!("its beginning is shared over more than {DEPTH_MAX} journals");
            return Err(At { invocation, entry: 0 }.damaged(why));
        }
        if let Some(link) = found.last() {
            next.through = next.through.min(link.through);
        }
        found.push(next);
    }
}

/// Reads a journal by the segments that hold its entries, in order; the last one is its own. Where its beginning is
/// handed over meanwhile, it is read again.
pub(crate) fn read<T>(
    store: &dyn Store,
    invocation: &InvocationId,
    read: impl Fn(&[Segment]) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    let mut links = links(store, invocation)?;
    let mut reads = 1;
    loop {
        let outcome = segments(store, invocation, &links).and_then(|segments| read(&segments));
        if links.is_empty() || reads >= READS_MAX {
            return outcome;
        }
        let now = self::links(store, invocation)?;
        if now == links {
            return outcome;
        }
        links = now;
        reads += 1;
    }
}

/// The segments of a journal that follows these links.
fn segments(
    store: &dyn Store,
    invocation: &InvocationId,
    links: &[SharedBeginning],
) -> Result<Vec<Segment>, JournalError> {
    let through = |at: usize| links.get(at).map_or(0, |link| link.through);
    let mut found = vec![Segment { holder: invocation.clone(), from: through(0) + 1, through: None }];
    for (at, link) in links.iter().enumerate() {
        // A link that ends where the one before it ends has no entry of its own journal.
        let from = through(at + 1) + 1;
        if from > link.through {
            continue;
        }
        let answered = key(&link.of, link.through.into(), Kind::Answered);
        if store.get(Table::Journal, &answered)?.is_none() {
            let why = format!("it shares entry {} of `{}`, which has no answer there", link.through, link.of);
            return Err(At { invocation, entry: link.through.into() }.damaged(why));
        }
        found.push(Segment { holder: link.of.clone(), from, through: Some(link.through) });
    }
    found.reverse();
    Ok(found)
}

/// The records of these segments from an entry on, and the end of the invocation after them.
pub(crate) fn records<'a>(
    store: &'a dyn Store,
    segments: &'a [Segment],
    from_entry: u32,
) -> impl Iterator<Item = Result<Record, JournalError>> + 'a {
    let wanted = segments.iter().filter(move |one| one.through.is_none_or(|through| through >= from_entry));
    wanted.flat_map(move |segment| {
        let read = rows(store, &segment.holder, segment.from.max(from_entry).into());
        let records = read.map(move |row| -> Result<Record, JournalError> {
            let (stored, value) = row?;
            let at = At { invocation: &segment.holder, entry: segment.from.into() };
            let (entry, kind) = parse(&segment.holder, &stored).ok_or_else(|| at.damaged("a key makes no sense"))?;
            Ok(Record { entry, kind, value })
        });
        let is_within = move |record: &Result<Record, JournalError>| match (record, segment.through) {
            (Ok(record), Some(through)) => record.entry <= through.into(),
            _ => true,
        };
        records.take_while(is_within)
    })
}

/// The number of an entry from a record.
pub(crate) fn number(at: &At<'_>) -> Result<u32, JournalError> {
    u32::try_from(at.entry).map_err(|_| at.damaged("its number is too large"))
}

/// The invocations with a journal whose names begin so, in the order of their keys, found by one read each.
pub(crate) fn invocations(store: &dyn Store, prefix: &Key) -> Result<Vec<InvocationId>, JournalError> {
    let (mut found, mut after) = (Vec::new(), None::<Vec<u8>>);
    while let Some((stored, _)) = store.scan(Table::Journal, prefix, after.as_deref(), 1)?.pop() {
        let invocation = invocation_of(&stored);
        // A key that makes no sense is passed over by itself.
        after = Some(match &invocation {
            Some(invocation) => behind(invocation).max(stored),
            None => stored,
        });
        found.extend(invocation);
    }
    // A key that makes no sense may stand behind the others of its invocation.
    found.dedup();
    Ok(found)
}

/// The invocation whose journal shares its beginning, in the key of the record that says so.
pub(crate) fn sharer_of(stored: &[u8]) -> Option<InvocationId> {
    let invocation = invocation_of(stored)?;
    let (_, kind) = parse(&invocation, stored)?;
    Some(invocation).filter(|_| kind == Kind::Shared)
}

/// A key behind all that [`key`] makes of an invocation.
fn behind(invocation: &InvocationId) -> Vec<u8> {
    let last = key(invocation, FINISHED_AT, Kind::Finished);
    [last.as_bytes(), &[u8::MAX]].concat()
}

/// The first part of a key.
pub(crate) fn invocation_of(stored: &[u8]) -> Option<InvocationId> {
    let end = stored.windows(2).position(|pair| pair == [0, 0])?;
    std::str::from_utf8(&stored[..end]).ok().map(InvocationId::from_text)
}
