//! Copies all state of one store into another one of any kind, compares the two, and marks both while that lasts.
//!
//! The rows of all tables are copied, and content that a row or other content names; the rest is what `gc` would
//! delete. Everything is read and written in bounded pieces, and read once more of both stores for the comparison.
//! Nothing is written over: a row that is there ends the copy. The caller keeps all writers away from both stores.

use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Op, ReadTotals, Row, Store, StoreError, Table};
use longhaul_records::commit_loss;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Rows that one read returns. Most have less than 10 KB.
const PAGE_ROWS: usize = 128;

/// Bytes of a batch, beyond which it is committed. A single larger row or content is a batch of its own.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// The word of a store about a migration that it is an end of. A store with one is opened by nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum MigrationMark {
    /// A copy into this store began and has not ended.
    Unfinished {
        /// The origin of the state, for people.
        from: String,
    },
    /// The state is in another store now.
    Moved {
        /// Its place, for people.
        to: String,
    },
}

impl MigrationMark {
    /// The mark of a store, if it has one.
    ///
    /// # Errors
    /// When the store cannot be read, or the mark.
    pub fn of(store: &dyn Store) -> fault::Result<Option<Self>> {
        let bytes = store.get(Table::States, &mark_key())?;
        bytes
            .map(|bytes| serde_json::from_slice(&bytes).or_internal(|| "the mark of a migration is damaged"))
            .transpose()
    }

    /// Writes the mark, in place of any other.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put(&self, store: &dyn Store) -> fault::Result<()> {
        let batch = Batch::new().put(Table::States, mark_key(), serde_json::to_vec(self)?);
        Ok(store.commit(batch).await?)
    }

    /// Deletes the mark of a store.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn clear(store: &dyn Store) -> fault::Result<()> {
        let mut batch = Batch::new();
        batch.push(Op::Delete(Table::States, mark_key()));
        Ok(store.commit(batch).await?)
    }
}

fn mark_key() -> Key {
    Key::of("migration")
}

/// True when a store has no row but a mark, the timeline of its server and its history.
///
/// # Errors
/// When the store cannot be read.
pub fn is_empty(store: &dyn Store) -> fault::Result<bool> {
    for table in Table::ALL {
        if Rows::of(store, table).read()?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Copies everything of `from` into the empty store `to`, then reads both and compares them. The marks of both stay as
/// they are.
///
/// # Errors
/// The first row that `to` has already, a difference, or an error of a store. `to` may have a part of the copy then.
pub async fn copy(from: &dyn Store, to: &dyn Store) -> fault::Result<ReadTotals> {
    let mut writer = Writer { to, batch: Batch::new(), bytes: 0, written: ReadTotals::default() };
    let mut contents = Contents::default();
    for table in Table::ALL {
        let mut rows = Rows::of(from, table);
        while let Some((key, value)) = rows.read()? {
            contents.name(&key);
            contents.name(&value);
            let bytes = key.len() + value.len();
            writer.push(Op::Insert(table, Key::from_bytes(key), value), bytes).await?;
        }
    }
    while let Some(digest) = contents.unread.pop() {
        // Some texts look like a digest and are none of content here.
        let Some(content) = from.blob(&digest)? else { continue };
        contents.name(&content);
        contents.found.insert(digest);
        let bytes = digest.as_bytes().len() + content.len();
        writer.push(Op::Blob(digest, content), bytes).await?;
    }
    writer.flush().await?;
    compare(from, to, &contents.found)?;
    Ok(writer.written)
}

/// Compares every row of both stores, and the content of `to` with its digests.
fn compare(from: &dyn Store, to: &dyn Store, contents: &BTreeSet<Digest>) -> fault::Result<()> {
    for table in Table::ALL {
        let (mut expected, mut found) = (Rows::of(from, table), Rows::of(to, table));
        loop {
            let row = expected.read()?;
            if row != found.read()? {
                bail!(Fault::internal(format!(
                    "the copy of {table:?} differs from what was copied; nothing was moved"
                )));
            }
            if row.is_none() {
                break;
            }
        }
    }
    for digest in contents {
        if to.blob(digest)?.map(|content| Digest::of(&content)) != Some(*digest) {
            bail!(Fault::internal(format!("the copy of content {digest} differs from it; nothing was moved")));
        }
    }
    Ok(())
}

/// The rows of a table in order, without a mark, and without the timeline of a server.
struct Rows<'a> {
    store: &'a dyn Store,
    table: Table,
    page: std::vec::IntoIter<Row>,
    /// The last key of the page.
    after: Option<Vec<u8>>,
    /// True when no page follows.
    is_last: bool,
}

impl<'a> Rows<'a> {
    fn of(store: &'a dyn Store, table: Table) -> Self {
        Self { store, table, page: Vec::new().into_iter(), after: None, is_last: false }
    }

    /// The next row; none after the last one.
    fn read(&mut self) -> Result<Option<Row>, StoreError> {
        loop {
            for row in self.page.by_ref() {
                let is_mark = self.table == Table::States && row.0 == mark_key().as_bytes();
                if !is_mark && !commit_loss::is_of_one_store(self.table, &row.0) {
                    return Ok(Some(row));
                }
            }
            if self.is_last {
                return Ok(None);
            }
            let page = self.store.scan(self.table, &Key::default(), self.after.as_deref(), PAGE_ROWS)?;
            self.is_last = page.len() < PAGE_ROWS;
            self.after = page.last().map(|(key, _)| key.clone()).or(self.after.take());
            self.page = page.into_iter();
        }
    }
}

/// The content that rows name.
#[derive(Default)]
struct Contents {
    /// Digests that were seen, of content or not.
    seen: BTreeSet<Digest>,
    /// Those of them that were not looked up yet.
    unread: Vec<Digest>,
    /// Those of content.
    found: BTreeSet<Digest>,
}

impl Contents {
    fn name(&mut self, text: &[u8]) {
        let Self { seen, unread, .. } = self;
        unread.extend(longhaul_checkpoints::digests(text).into_iter().filter(|digest| seen.insert(*digest)));
    }
}

/// Collects changes into batches of a bounded size.
struct Writer<'a> {
    to: &'a dyn Store,
    batch: Batch,
    /// Bytes of the batch.
    bytes: usize,
    written: ReadTotals,
}

impl Writer<'_> {
    async fn push(&mut self, op: Op, bytes: usize) -> Result<(), StoreError> {
        if self.bytes + bytes > BATCH_BYTES_MAX {
            self.flush().await?;
        }
        self.batch.push(op);
        self.bytes += bytes;
        self.written.count(bytes);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        self.bytes = 0;
        self.to.commit(std::mem::take(&mut self.batch)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_records::commit_loss::OpenedStore;
    use longhaul_testkit::MemoryStore;

    /// A store with rows of two tables, and content of which two are named, one of them by the other.
    async fn filled() -> (MemoryStore, [Digest; 3]) {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        let inner = batch.blob(b"named by content".to_vec());
        let outer = batch.blob(format!("{{\"inner\": \"{inner}\"}}").into_bytes());
        let lost = batch.blob(b"named by nothing".to_vec());
        for number in 0..300 {
            batch = batch.put(Table::Events, Key::of("r-1").number(number), vec![7_u8; 40]);
        }
        batch = batch.put(Table::Runs, Key::of("r-1"), format!("\"{outer}\""));
        store.commit(batch).await.unwrap();
        (store, [inner, outer, lost])
    }

    #[tokio::test]
    async fn a_copy_has_all_rows_and_named_content_and_no_mark() {
        let (from, [inner, outer, lost]) = filled().await;
        let to = MemoryStore::new();
        assert!(is_empty(&to).unwrap() && !is_empty(&from).unwrap());
        let mark = MigrationMark::Unfinished { from: "here".to_owned() };
        mark.put(&to).await.unwrap();
        assert!(is_empty(&to).unwrap(), "a mark is no state");
        let copied = copy(&from, &to).await.unwrap();
        assert_eq!(copied.rows, 303, "300 events, a run, two contents");
        assert_eq!(to.scan(Table::Events, &Key::default(), None, usize::MAX).unwrap().len(), 300);
        assert_eq!(to.blob(&inner).unwrap().as_deref(), Some(&b"named by content"[..]));
        assert!(to.blob(&outer).unwrap().is_some() && to.blob(&lost).unwrap().is_none());
        assert_eq!(MigrationMark::of(&to).unwrap(), Some(mark));
        MigrationMark::clear(&to).await.unwrap();
        assert_eq!(MigrationMark::of(&to).unwrap(), None);
    }

    #[tokio::test]
    async fn the_timeline_and_the_history_of_a_store_are_no_state_and_stay_where_they_are() {
        let (from, to) = (MemoryStore::new(), MemoryStore::new());
        let opened = |timeline| OpenedStore { timeline, fresh_id: timeline.to_string(), ..OpenedStore::default() };
        commit_loss::note(&from, &opened(7)).await.unwrap();
        let own = commit_loss::note(&to, &opened(1)).await.unwrap();
        assert!(is_empty(&from).unwrap() && is_empty(&to).unwrap());
        assert_eq!(copy(&from, &to).await.unwrap().rows, 0);
        let again = OpenedStore { timeline: 1, fresh_id: "another".to_owned(), ..OpenedStore::default() };
        assert_eq!(commit_loss::note(&to, &again).await.unwrap(), own, "its own timeline and history are still there");
    }

    #[tokio::test]
    async fn nothing_is_written_over_and_a_difference_is_found() {
        let (from, _) = filled().await;
        let to = MemoryStore::new();
        let other = Batch::new().put(Table::Runs, Key::of("r-1"), "another run");
        to.commit(other).await.unwrap();
        assert!(copy(&from, &to).await.is_err());
        assert_eq!(to.get(Table::Runs, &Key::of("r-1")).unwrap().as_deref(), Some(&b"another run"[..]));
        let to = MemoryStore::new();
        copy(&from, &to).await.unwrap();
        to.commit(Batch::new().put(Table::Events, Key::of("r-1").number(299), "x")).await.unwrap();
        let told = compare(&from, &to, &BTreeSet::new()).unwrap_err().to_string();
        assert!(told.contains("the copy of Events differs"), "{told}");
    }
}
