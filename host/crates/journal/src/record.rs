//! The layout of a journal in the store: keys, records, and answers inline or by digest.
//!
//! All is in [`Table::Journal`]. A key is the invocation's text, the number of the entry, the kind of the record and,
//! where an effect may be started more than once, the attempt. So nothing is ever rewritten: a new attempt, an answer
//! or a resolution is a record of its own. Only a resolution that nothing has acted on can be withdrawn, and only
//! `shared` is replaced, where the journal that it names is deleted (see `hand_over.rs`).
//!
//! | entry | kind | attempt | value (JSON) |
//! |---|---|---|---|
//! | 0 | `began` | | [`Began`] |
//! | 0 | `shared` | | `SharedBeginning` of `shared.rs`, where another journal holds the first entries |
//! | n | `asked` | yes | [`ImportCall`], without `prepared` |
//! | n | `prepared` | yes | text |
//! | n | `resolution` | yes, of the attempt that it concerns | [`Resolution`] |
//! | n | `answered` | | [`StoredAnswer`] |
//! | 2^64-1 | `finished` | | [`StoredFinish`] |
//!
//! [`ImportCall`]: longhaul_core::journal::ImportCall
//! [`Resolution`]: longhaul_core::journal::Resolution

use longhaul_core::journal::{Began, Finished, ImportAnswer, JournalError};
use longhaul_core::store::{Batch, Key, Op, Row, Store, StoreError, Table};
use longhaul_core::{Digest, InvocationId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Answers above this are stored by digest, in bytes. Half a page of the store, so that a page holds at least one
/// record inline; repeated long answers, such as a file read again, then cost 100 bytes.
pub(crate) const INLINE_BYTES_MAX: usize = 2_048;

/// The number under which `finished` sorts behind every entry.
pub(crate) const FINISHED_AT: u64 = u64::MAX;

/// Kind of a record of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Began,
    Shared,
    Asked(u32),
    Prepared(u32),
    Resolution(u32),
    Answered,
    Finished,
}

/// A stored answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredAnswer {
    pub(crate) content: Content,
    pub(crate) at_ms: u64,
    /// True when a person wrote it for a fork, in the place of the answer that the call got.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) edited: bool,
}

/// A stored end; see [`Finished`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredFinish {
    pub(crate) content: Content,
    pub(crate) fuel_used: u64,
    pub(crate) interrupted: bool,
    pub(crate) at_ms: u64,
}

/// Text, inline or by digest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Content {
    Inline(String),
    Blob { digest: Digest, bytes: u64 },
}

impl Content {
    /// Stores `text`: the record's content and, for a long text, the change that stores it.
    pub(crate) fn of(text: String) -> (Self, Option<Op>) {
        if text.len() <= INLINE_BYTES_MAX {
            return (Self::Inline(text), None);
        }
        let mut batch = Batch::new();
        let bytes = text.len() as u64;
        let digest = batch.blob(text.into_bytes());
        (Self::Blob { digest, bytes }, batch.ops.pop())
    }

    /// Bytes outside the record.
    pub(crate) fn blob_bytes(&self) -> u64 {
        match self {
            Self::Inline(_) => 0,
            Self::Blob { bytes, .. } => *bytes,
        }
    }

    /// The text.
    pub(crate) fn read(self, store: &dyn Store, at: &At<'_>) -> Result<String, JournalError> {
        match self {
            Self::Inline(text) => Ok(text),
            Self::Blob { digest, .. } => {
                let bytes = store.blob(&digest)?.ok_or_else(|| at.damaged("its answer is missing"))?;
                String::from_utf8(bytes).map_err(|_| at.damaged("its answer is not text"))
            }
        }
    }
}

impl StoredAnswer {
    /// The answer with its text.
    pub(crate) fn read(self, store: &dyn Store, at: &At<'_>) -> Result<ImportAnswer, JournalError> {
        Ok(ImportAnswer { answer: self.content.read(store, at)?, at_ms: self.at_ms, edited: self.edited })
    }
}

impl StoredFinish {
    /// The record of `finished` and, for a long result, the change that stores it.
    pub(crate) fn of(finished: Finished) -> (Self, Option<Op>) {
        let Finished { result, fuel_used, interrupted, at_ms } = finished;
        let (content, blob) = Content::of(result);
        (Self { content, fuel_used, interrupted, at_ms }, blob)
    }

    /// The end with its result.
    pub(crate) fn read(self, store: &dyn Store, at: &At<'_>) -> Result<Finished, JournalError> {
        let Self { content, fuel_used, interrupted, at_ms } = self;
        Ok(Finished { result: content.read(store, at)?, fuel_used, interrupted, at_ms })
    }
}

/// The place of a record, for errors about damage.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) invocation: &'a InvocationId,
    pub(crate) entry: u64,
}

impl At<'_> {
    /// The error for stored bytes that are invalid.
    pub(crate) fn damaged(&self, detail: impl Into<String>) -> JournalError {
        JournalError::Damaged {
            invocation: self.invocation.clone(),
            entry: u32::try_from(self.entry).unwrap_or(u32::MAX),
            detail: detail.into(),
        }
    }

    /// A record from its bytes.
    pub(crate) fn decode<T: DeserializeOwned>(&self, value: &[u8]) -> Result<T, JournalError> {
        serde_json::from_slice(value).map_err(|why| self.damaged(format!("a record is not what it should be, {why}")))
    }
}

/// The key under which all of an invocation's journal starts.
pub(crate) fn prefix(invocation: &InvocationId) -> Key {
    Key::of(invocation.as_str())
}

/// The key of one record.
pub(crate) fn key(invocation: &InvocationId, entry: u64, kind: Kind) -> Key {
    let key = prefix(invocation).number(entry);
    match kind {
        Kind::Began => key.and("began"),
        Kind::Shared => key.and("shared"),
        Kind::Asked(attempt) => key.and("asked").number(attempt.into()),
        Kind::Prepared(attempt) => key.and("prepared").number(attempt.into()),
        Kind::Resolution(attempt) => key.and("resolution").number(attempt.into()),
        Kind::Answered => key.and("answered"),
        Kind::Finished => key.and("finished"),
    }
}

/// Entry and kind in a stored key, after the prefix; none when [`key`] did not make it.
pub(crate) fn parse(invocation: &InvocationId, stored: &[u8]) -> Option<(u64, Kind)> {
    let rest = stored.strip_prefix(prefix(invocation).as_bytes())?;
    let (entry, rest) = rest.split_first_chunk::<8>()?;
    let end = rest.windows(2).position(|pair| pair == [0, 0])?;
    let (name, tail) = (&rest[..end], &rest[end + 2..]);
    let attempt = || u32::try_from(u64::from_be_bytes(tail.try_into().ok()?)).ok();
    let kind = match (name, tail.len()) {
        (b"began", 0) => Kind::Began,
        (b"shared", 0) => Kind::Shared,
        (b"answered", 0) => Kind::Answered,
        (b"finished", 0) => Kind::Finished,
        (b"asked", 8) => Kind::Asked(attempt()?),
        (b"prepared", 8) => Kind::Prepared(attempt()?),
        (b"resolution", 8) => Kind::Resolution(attempt()?),
        _ => return None,
    };
    Some((u64::from_be_bytes(*entry), kind))
}

/// The change that appends one record: its key must be free, so that two hosts which both believe to own an invocation
/// cannot both continue.
pub(crate) fn append(invocation: &InvocationId, entry: u64, kind: Kind, record: &impl Serialize) -> Op {
    Op::Insert(Table::Journal, key(invocation, entry, kind), encode(record))
}

/// The first record, if the invocation has a journal.
pub(crate) fn began(store: &dyn Store, invocation: &InvocationId) -> Result<Option<Began>, JournalError> {
    let at = At { invocation, entry: 0 };
    let stored = store.get(Table::Journal, &key(invocation, 0, Kind::Began))?;
    stored.map(|value| at.decode(&value)).transpose()
}

/// Bytes that a change adds to the journal, content included.
pub(crate) fn bytes_of(op: &Op) -> u64 {
    match op {
        Op::Put(_, _, value) | Op::Insert(_, _, value) | Op::Swap(_, _, _, value) | Op::Blob(_, value) => {
            value.len() as u64
        }
        Op::Delete(..) => 0,
    }
}

/// The rows that an invocation has itself, from an entry on, read by the page so that no read stays open.
pub(crate) fn rows<'a>(
    store: &'a dyn Store,
    invocation: &InvocationId,
    from_entry: u64,
) -> impl Iterator<Item = Result<Row, StoreError>> + 'a {
    Rows {
        store,
        prefix: prefix(invocation),
        after: prefix(invocation).number(from_entry).as_bytes().to_vec(),
        page: Vec::new().into_iter(),
        ended: false,
    }
}

/// Rows a page. At most 256 x 2.5 KiB are held at once.
const PAGE_ROWS: usize = 256;

struct Rows<'a> {
    store: &'a dyn Store,
    prefix: Key,
    after: Vec<u8>,
    page: std::vec::IntoIter<Row>,
    ended: bool,
}

impl Rows<'_> {
    fn turn_page(&mut self) -> Result<(), StoreError> {
        let page = self.store.scan(Table::Journal, &self.prefix, Some(&self.after), PAGE_ROWS)?;
        self.ended = page.len() < PAGE_ROWS;
        if let Some((key, _)) = page.last() {
            self.after.clone_from(key);
        }
        self.page = page.into_iter();
        Ok(())
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0
            && !self.ended
            && let Err(why) = self.turn_page()
        {
            self.ended = true;
            return Some(Err(why));
        }
        self.page.next().map(Ok)
    }
}

/// The bytes of a record.
pub(crate) fn encode(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("records are made of text, numbers and lists, which JSON always holds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_what_it_was_made_of_and_other_bytes_say_nothing() {
        let invocation = InvocationId::from_text("r-1/f1/1/generate#7");
        let kinds = [
            Kind::Began,
            Kind::Shared,
            Kind::Asked(1),
            Kind::Prepared(2),
            Kind::Resolution(u32::MAX),
            Kind::Answered,
            Kind::Finished,
        ];
        for kind in kinds {
            let stored = key(&invocation, 9, kind);
            assert_eq!(parse(&invocation, stored.as_bytes()), Some((9, kind)));
            for cut in 0..stored.as_bytes().len() {
                assert_eq!(parse(&invocation, &stored.as_bytes()[..cut]), None, "{kind:?} cut at {cut}");
            }
        }
        assert_eq!(parse(&invocation, key(&invocation.child(1), 9, Kind::Began).as_bytes()), None);
    }
}
