//! The trait of a store: ordered tables, content by digest, and atomic batches.

mod metrics;
mod seats;

pub use metrics::{DurationCounts, StoreMetrics};
pub use seats::{Seat, Seats};

use crate::Digest;
use std::path::Path;

/// The tables of a store. `tables.rs` of `longhaul-store` documents their keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// The record of each run's start.
    Runs,
    /// The state of each run, and its notes: proposals, approvals, notifications, tokens, the audit log.
    States,
    /// The events of each run.
    Events,
    /// The journal of each invocation.
    Journal,
    /// The key-value space of each plugin.
    KeyValue,
    /// The entries of memory, by namespace.
    Memory,
    /// The decisions of each project.
    Decisions,
    /// The progress log of each project.
    Progress,
    /// The last artifact of each plugin.
    Artifacts,
    /// Graphs and their steps.
    Graphs,
    /// Registered agents and their artifacts.
    Agents,
    /// Schedules, their tasks, and the results of attempts.
    Schedules,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 12] = [
        Self::Runs,
        Self::States,
        Self::Events,
        Self::Journal,
        Self::KeyValue,
        Self::Memory,
        Self::Decisions,
        Self::Progress,
        Self::Artifacts,
        Self::Graphs,
        Self::Agents,
        Self::Schedules,
    ];
}

/// A key of several parts that sorts as its parts do.
///
/// Text is escaped and ended, so that no part can reach into the next and a prefix of parts is a
/// prefix of bytes; numbers are big-endian.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<u8>);

impl Key {
    /// The key that a store returned as bytes.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// A key whose first part is `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::default().and(text)
    }

    /// Appends a text part.
    #[must_use]
    pub fn and(mut self, text: &str) -> Self {
        for byte in text.bytes() {
            // 0 ends a part, so a 0 within one becomes 0 255, which sorts after the end.
            self.0.push(byte);
            if byte == 0 {
                self.0.push(255);
            }
        }
        self.0.extend([0, 0]);
        self
    }

    /// Appends a number part.
    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// The key as bytes, in the form that a store compares.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The first bytes after every key with this prefix; none when there are none.
    #[must_use]
    pub fn end(&self) -> Option<Vec<u8>> {
        let last = self.0.iter().rposition(|byte| *byte != u8::MAX)?;
        let mut end = self.0[..=last].to_vec();
        end[last] += 1;
        Some(end)
    }

    /// The number at the end of a key.
    #[must_use]
    pub fn last_number(bytes: &[u8]) -> Option<u64> {
        let start = bytes.len().checked_sub(8)?;
        Some(u64::from_be_bytes(bytes[start..].try_into().ok()?))
    }
}

/// A key as bytes, and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// One change of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes a value, in place of any other.
    Put(Table, Key, Vec<u8>),
    /// Writes a value if there is none: append at an expected position.
    Insert(Table, Key, Vec<u8>),
    /// Writes a value if the old one has this digest: compare and swap.
    Swap(Table, Key, Digest, Vec<u8>),
    /// Removes a value, if it exists.
    Delete(Table, Key),
    /// Stores content under its digest.
    Blob(Digest, Vec<u8>),
}

impl Op {
    /// Writes a value if the stored one is still `before`, the bytes that its writer read. None: if there is none.
    #[must_use]
    pub fn replace(table: Table, key: Key, before: Option<&[u8]>, value: Vec<u8>) -> Self {
        match before {
            Some(before) => Self::Swap(table, key, Digest::of(before), value),
            None => Self::Insert(table, key, value),
        }
    }
}

/// Changes that become durable together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The changes, in the order in which they are applied.
    pub ops: Vec<Op>,
}

impl Batch {
    /// A batch without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a change.
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// Adds a change that writes a value, in place of any other.
    #[must_use]
    pub fn put(mut self, table: Table, key: Key, value: impl Into<Vec<u8>>) -> Self {
        self.push(Op::Put(table, key, value.into()));
        self
    }

    /// Adds a change that writes a value if there is none.
    #[must_use]
    pub fn insert(mut self, table: Table, key: Key, value: impl Into<Vec<u8>>) -> Self {
        self.push(Op::Insert(table, key, value.into()));
        self
    }

    /// Adds a change that writes a value if the stored one is still `before`, the bytes that its writer read. None: if
    /// there is none.
    #[must_use]
    pub fn replace(mut self, table: Table, key: Key, before: Option<&[u8]>, value: impl Into<Vec<u8>>) -> Self {
        self.push(Op::replace(table, key, before, value.into()));
        self
    }

    /// Adds content and returns its digest.
    pub fn blob(&mut self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::of(&bytes);
        self.push(Op::Blob(digest, bytes));
        digest
    }

    /// True when nothing would change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// The totals of a reading or a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReadTotals {
    /// The number of rows, of all tables and of content.
    pub rows: u64,
    /// The length of their keys and values, in bytes.
    pub bytes: u64,
}

impl ReadTotals {
    /// Counts one more row of this length, in bytes.
    pub fn count(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes as u64;
    }
}

/// The result of deleting unreferenced content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CollectedContent {
    /// The number of referenced contents.
    pub kept: u64,
    /// The number of unreferenced contents.
    pub removed: u64,
    /// The length of the unreferenced contents, in bytes. The file keeps its length, and reuses the space.
    pub bytes: u64,
}

/// Finds the digests that a key, a value or a content names.
pub type Names = dyn Fn(&[u8]) -> Vec<Digest> + Sync;

/// The reason why an operation of a store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An [`Op::Insert`] or [`Op::Swap`] found another value. Nothing of the batch was written.
    #[error("`{key}` in {table:?} was changed by another writer; read it again and retry")]
    Conflict {
        /// The table of the change.
        table: Table,
        /// The key, as far as it is text.
        key: String,
    },
    /// Another process holds the store.
    #[error("the store in `{path}` is held by another longhaul; attach to it, or wait until it ends")]
    Held {
        /// The path of the data directory.
        path: String,
    },
    /// The disk is full. Nothing of the batch was written.
    #[error("no space left for the store in `{path}`; free some and resume, nothing is lost")]
    Full {
        /// The path of the data directory.
        path: String,
    },
    /// The store was written by another version.
    #[error("the store in `{path}` has format {found}, this longhaul reads {expected}; {remedy}")]
    Format {
        /// The path of the data directory.
        path: String,
        /// The version of the file's format.
        found: u64,
        /// The supported version of the format.
        expected: u64,
        /// The remedy, for people.
        remedy: String,
    },
    /// The stored bytes differ from those written.
    #[error("the store in `{path}` is damaged: {detail}; restore it from a backup, or move it away to start anew")]
    Damaged {
        /// The path of the data directory.
        path: String,
        /// The fault, for people.
        detail: String,
    },
    /// Another process took the store over, or the server is no longer the one that this process claimed it on. Nothing
    /// of the batch was written, and nothing more will be by this process.
    #[error("this process lost the store in `{path}`: {detail}; start it again, and it waits for its turn")]
    Fenced {
        /// The address of the database.
        path: String,
        /// The successor, or the change of the server, for people.
        detail: String,
    },
    /// The server of the store does not answer. Nothing of the batch was written.
    #[error("the store in `{path}` cannot be reached: {detail}; it is used again once the server is back")]
    Unreachable {
        /// The address of the database, without a password.
        path: String,
        /// The error of the connection.
        detail: String,
    },
    /// The server or its settings are unfit for a store: no rights, too old, a replica, commits that are not durable.
    #[error("{detail}; {remedy}")]
    Refused {
        /// The fault, with the address or the setting.
        detail: String,
        /// The remedy, for people.
        remedy: String,
    },
    /// The lease on the store ends before an effect could begin. Nothing was announced or begun.
    #[error(
        "the lease on the store ends in {left_ms} ms unless it is renewed, so no effect begins; it is tried again once \
         the store is held for longer"
    )]
    LeaseEnds {
        /// The time that is left, in milliseconds.
        left_ms: u64,
    },
    /// The key is longer than this store can index. Nothing of the batch was written.
    #[error("a key of {bytes} bytes in {table:?} is above the {bytes_max} that this store takes; use a shorter name")]
    KeyTooLong {
        /// The table of the change.
        table: Table,
        /// The length of the key, in bytes.
        bytes: usize,
        /// The longest key, in bytes.
        bytes_max: usize,
    },
    /// Any other error of the system.
    #[error("the store in `{path}` failed: {detail}")]
    Failed {
        /// The path of the data directory.
        path: String,
        /// The error of the system.
        detail: String,
    },
}

impl StoreError {
    /// The error for a condition on a key that does not hold.
    #[must_use]
    pub fn conflict(table: Table, key: &[u8]) -> Self {
        Self::Conflict { table, key: readable(key) }
    }
}

/// A key for a person: its text, with every other byte as a space between the parts.
fn readable(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    let parts = text.split(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Ordered tables, content by digest, durable batches.
#[async_trait::async_trait]
pub trait Store: Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`].
    fn get(&self, table: Table, key: &Key) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keys that start with `prefix`, in order, after the key `after`, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`].
    fn scan(&self, table: Table, prefix: &Key, after: Option<&[u8]>, limit: usize) -> Result<Vec<Row>, StoreError>;

    /// Keys that start with `prefix`, from the last one back, at most `limit`.
    ///
    /// A store that can only go forward reads all of them.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`].
    fn last(&self, table: Table, prefix: &Key, limit: usize) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.scan(table, prefix, None, usize::MAX)?;
        rows.drain(..rows.len().saturating_sub(limit));
        rows.reverse();
        Ok(rows)
    }

    /// Content by its digest.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the bytes do not have the digest, or [`StoreError::Failed`].
    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Copies the present state into a new file, from which this store can be opened. Blocks as long as that takes,
    /// while others read and write.
    ///
    /// # Errors
    /// [`StoreError::Failed`], also for a store without a file; the file may exist in part.
    fn copy_to(&self, _file: &Path) -> Result<ReadTotals, StoreError> {
        Err(StoreError::Failed { path: String::new(), detail: "this store cannot be copied into a file".into() })
    }

    /// Reads everything, and compares content with its digests. Blocks as long as that takes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first damage.
    fn read_all(&self) -> Result<ReadTotals, StoreError> {
        Err(StoreError::Failed { path: String::new(), detail: "this store cannot be read as a whole".into() })
    }

    /// Removes unreferenced content: `names` finds the digests in a key, a value or a content. Nothing is written
    /// meanwhile, so writers wait as long as it takes to read everything.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`]; removed content was unreferenced.
    async fn collect(&self, _names: &Names, _dry_run: bool) -> Result<CollectedContent, StoreError> {
        Err(StoreError::Failed { path: String::new(), detail: "this store keeps all content".into() })
    }

    /// Makes a batch durable. When this returns `Ok`, all of it survives a kill.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::Full`] or [`StoreError::Failed`]; nothing was written. A store on a
    /// server also returns [`StoreError::Fenced`], [`StoreError::Unreachable`] and [`StoreError::KeyTooLong`].
    async fn commit(&self, batch: Batch) -> Result<(), StoreError>;

    /// The time for which no other process may take the store over, in milliseconds. None for a store that is never
    /// taken over while this process lives.
    fn lease_left_ms(&self) -> Option<u64> {
        None
    }

    /// True when processes with other data directories have this state, too. A store that passes calls on to another
    /// one answers as that does.
    fn is_shared(&self) -> bool {
        false
    }

    /// The figures of a store on a server. None for a store that has no lease.
    fn metrics(&self) -> Option<StoreMetrics> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_parts_and_no_part_reaches_into_the_next() {
        let keys = [
            Key::of("a").number(2),
            Key::of("a").number(10),
            Key::of("a\0b").number(1),
            Key::of("ab").number(1),
            Key::of("b").number(0),
        ];
        assert!(keys.is_sorted());
        assert!(!Key::of("ab").as_bytes().starts_with(Key::of("a").as_bytes()));
        assert_eq!(Key::last_number(keys[1].as_bytes()), Some(10));
    }

    #[test]
    fn what_starts_with_a_key_sorts_before_its_end() {
        let key = Key::of("a").number(u64::MAX);
        let end = key.end().expect("an end");
        assert!(key.clone().number(u64::MAX).as_bytes() < &end[..] && Key::of("b").as_bytes() > &end[..]);
        assert_eq!(end, b"a\0\x01");
        assert_eq!(Key::default().end(), None);
        assert_eq!(Key::default().number(u64::MAX).end(), None);
    }
}
