//! An operator's operations on the whole store while it is in use: read all of it, find unreferenced content and
//! objects that are over.
//!
//! Both go through the store in pages, so that no statement takes long and little is in memory. The caller keeps
//! writers out while content is looked for: a writer that found content must still have it when it names it.

use crate::background::Background;
use crate::blob;
use crate::content::Contents;
use crate::outside::{ObjectChange, ObjectKey, ObjectState};
use crate::read::{Reader, Start, StoredContent};
use longhaul_core::Digest;
use longhaul_core::store::{CollectedContent, Names, ReadTotals, Row, StoreError, Table};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Rows of a page.
const PAGE_ROWS: usize = 256;

/// Digests of a page.
const PAGE_DIGESTS: i64 = 4_096;

/// The size of the contents that are read at once, in bytes. A larger one is read alone.
const PAGE_BYTES_MAX: usize = 8 << 20;

/// Contents whose lengths are asked for at once, before they are looked through for what they name.
const NAMING: usize = 256;

/// Reads every row and every content, and compares each content with its digest.
pub(crate) async fn read_all(contents: &Contents) -> Result<ReadTotals, StoreError> {
    let reader = &*contents.reader;
    let mut read = ReadTotals::default();
    for table in Table::ALL {
        let mut next = Some(Start::At(Vec::new()));
        while let Some(start) = next {
            let (rows, after) = page(reader, table, start).await?;
            rows.iter().for_each(|(key, value)| read.count(key.len() + value.len()));
            next = after;
        }
    }
    let mut after = None;
    loop {
        let digests = reader.digests(after, PAGE_DIGESTS).await?;
        let Some(last) = digests.last() else { return Ok(read) };
        after = Some(last.digest);
        for some in portions(&digests) {
            for (digest, value) in contents.get_all(some).await? {
                read.count(digest.as_bytes().len() + value.len());
                blob::decode(&digest, &value).map_err(|detail| contents.server.place.damaged(detail))?;
            }
        }
    }
}

/// The content that neither a row nor referenced content names, and the totals. Runs on the caller's task, where `names`
/// lives, and reads on the store's thread.
pub(crate) async fn unreferenced(
    background: &Background,
    contents: &Arc<Contents>,
    names: &Names,
) -> Result<(Vec<StoredContent>, CollectedContent), StoreError> {
    let reader = &contents.reader;
    let server = &contents.server;
    let ended = || server.place.failed("its thread ended");
    let mut living = Living { names, found: BTreeSet::new(), unread: Vec::new() };
    for table in Table::ALL {
        let mut next = Some(Start::At(Vec::new()));
        while let Some(start) = next {
            let reader = Arc::clone(reader);
            let read = there(background, async move { page(&reader, table, start).await }).await;
            let (rows, after) = read.ok_or_else(ended)??;
            for (key, value) in &rows {
                // A key may hold a digest too.
                living.name(key);
                living.name(value);
            }
            next = after;
        }
    }
    while !living.unread.is_empty() {
        let some = living.unread.split_off(living.unread.len().saturating_sub(NAMING));
        let asked = Arc::clone(reader);
        // Some texts look like a digest and are none of content here.
        let lengths = there(background, async move { asked.lengths(some).await }).await;
        for some in portions(&lengths.ok_or_else(ended)??) {
            let contents = Arc::clone(contents);
            let read = there(background, async move { contents.get_all(some).await }).await;
            for (digest, value) in read.ok_or_else(ended)?? {
                living.name(&blob::decode(&digest, &value).map_err(|detail| server.place.damaged(detail))?);
            }
        }
    }
    let (mut dead, mut collected, mut after) = (Vec::new(), CollectedContent::default(), None);
    loop {
        let reader = Arc::clone(reader);
        let read = there(background, async move { reader.digests(after, PAGE_DIGESTS).await }).await;
        let digests = read.ok_or_else(ended)??;
        let Some(last) = digests.last() else { return Ok((dead, collected)) };
        after = Some(last.digest);
        for content in digests {
            if living.found.contains(&content.digest) {
                collected.kept += 1;
            } else {
                collected.removed += 1;
                collected.bytes += content.bytes as u64;
                dead.push(content);
            }
        }
    }
}

/// The next steps of objects that nothing names, towards their end.
pub(crate) struct Steps {
    /// Objects that are deleted, each with the change that removes its row then.
    pub(crate) over: Vec<(ObjectKey, ObjectChange)>,
    /// Changes of other rows, each unless somebody else changes the row meanwhile.
    pub(crate) condemned: Vec<ObjectChange>,
    /// The row after which the next steps begin; none where there are none.
    pub(crate) next: Option<Vec<u8>>,
}

/// The next steps of objects that nothing names, after a row. Others may change rows meanwhile.
pub(crate) async fn object_steps(contents: &Contents, after: Vec<u8>, grace: Duration) -> Result<Steps, StoreError> {
    let now_ms = contents.reader.now_ms().await?;
    let rows = contents.reader.objects(after, PAGE_ROWS).await?;
    let next = rows.last().filter(|_| rows.len() == PAGE_ROWS).map(|(key, _)| key.clone());
    let states = rows.iter().map(|(key, value)| ObjectKey::of_row(key).zip(ObjectState::of_row(value)));
    let states: Option<Vec<(ObjectKey, ObjectState)>> = states.collect();
    let states = states.ok_or_else(|| contents.server.place.damaged("a row about an object makes no sense"))?;
    // Read after the states: a row that names an object came in the statement that keeps it.
    let digests = states.iter().map(|(object, _)| object.digest).collect();
    let stored = contents.reader.lengths(digests).await?;
    let is_named = |object: &ObjectKey| {
        let row = stored.iter().find(|content| content.digest == object.digest);
        row.is_some_and(|content| content.outside == Some(object.generation))
    };
    let mut steps = Steps { over: Vec::new(), condemned: Vec::new(), next };
    for (object, state) in states {
        let is_given_up = match state {
            ObjectState::Condemned(_) => {
                if state.is_over(now_ms, grace) {
                    steps.over.push((object, ObjectChange::forget(object, state)));
                }
                false
            }
            ObjectState::Uploading(_) => state.is_over(now_ms, grace),
            // Of two writers of the same content one came later, and the row names the other one's object.
            ObjectState::Kept => !is_named(&object),
        };
        if is_given_up {
            steps.condemned.push(ObjectChange::from_to(object, state, ObjectState::Condemned(now_ms)));
        }
    }
    Ok(steps)
}

/// The digests that rows and content name.
struct Living<'a> {
    names: &'a Names,
    found: BTreeSet<Digest>,
    /// The digests whose content was not looked through yet.
    unread: Vec<Digest>,
}

impl Living<'_> {
    fn name(&mut self, text: &[u8]) {
        for digest in (self.names)(text) {
            if self.found.insert(digest) {
                self.unread.push(digest);
            }
        }
    }
}

/// Rows of a table, and where the next ones begin, if there may be any.
async fn page(reader: &Reader, table: Table, start: Start) -> Result<(Vec<Row>, Option<Start>), StoreError> {
    let rows = reader.forward(table, start, None, PAGE_ROWS).await?;
    let after = rows.last().filter(|_| rows.len() == PAGE_ROWS).map(|(key, _)| Start::After(key.clone()));
    Ok((rows, after))
}

/// Digests in portions whose contents are read at once.
fn portions(contents: &[StoredContent]) -> Vec<Vec<Digest>> {
    let mut portions: Vec<Vec<Digest>> = Vec::new();
    let mut bytes = usize::MAX;
    for StoredContent { digest, bytes: length, .. } in contents {
        bytes = bytes.saturating_add(*length);
        match portions.last_mut() {
            Some(last) if bytes <= PAGE_BYTES_MAX => last.push(*digest),
            _ => {
                portions.push(vec![*digest]);
                bytes = *length;
            }
        }
    }
    portions
}

/// The result of what runs on the store's thread; none when it panicked.
async fn there<T: Send + 'static>(
    background: &Background,
    what: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    background.spawn(what).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_read_in_portions_and_a_large_one_alone() {
        let digests = [3, 4, PAGE_BYTES_MAX + 1, 5, PAGE_BYTES_MAX - 5, 1];
        let stored =
            |bytes: &usize| StoredContent { digest: Digest::of(&bytes.to_le_bytes()), bytes: *bytes, outside: None };
        let digests: Vec<StoredContent> = digests.iter().map(stored).collect();
        let found: Vec<usize> = portions(&digests).iter().map(Vec::len).collect();
        assert_eq!(found, [2, 1, 2, 1]);
        assert_eq!(portions(&digests).concat().len(), digests.len());
    }
}
