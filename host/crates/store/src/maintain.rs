//! An operator's operations on the whole store while it is in use: copy it, read all of it, remove unreferenced
//! content.
//!
//! A copy and a reading see the database at one moment, whatever is written meanwhile. They know nothing of logs, so
//! the caller has the rows of these brought into the database before. Refuses to remove content during a
//! write: a writer that found content must still have it when it names it.

use crate::blob;
use crate::disk::{database, private_new};
use crate::shared::Shared;
use crate::tables::{BLOBS, Bytes, FORMAT_CLOSED, META, META_FORMAT, META_LOG, definition};
use longhaul_core::Digest;
use longhaul_core::store::{CollectedContent, Names, ReadTotals, StoreError, Table};
use redb::{Database, Durability, ReadTransaction, ReadableDatabase as _, ReadableTable as _};
use std::collections::BTreeSet;
use std::path::Path;

/// Bytes that a copy writes in one transaction. redb holds them in memory.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// Blobs that are removed in one transaction.
const GROUP_BLOBS_MAX: usize = 4_096;

impl Shared {
    /// Copies the present state into a new file.
    pub(crate) fn copy_to(&self, file: &Path) -> Result<ReadTotals, StoreError> {
        let failed = |error: std::io::Error| self.home().failed(format!("cannot make `{}`: {error}", file.display()));
        let new = private_new(file).map_err(failed)?;
        self.with(|db| copy(&db.begin_read()?, &database(new)?))
    }

    /// Reads every row and every content, and compares each with its digest.
    pub(crate) fn read_all(&self) -> Result<ReadTotals, StoreError> {
        let mut damaged = None;
        let read = self.with(|db| {
            let (read, wrong) = read_all(&db.begin_read()?)?;
            damaged = wrong;
            Ok(read)
        })?;
        damaged.map_or(Ok(read), |detail| Err(self.home().damaged(detail)))
    }

    /// Removes content that neither a row nor referenced content names. The caller keeps writers out.
    pub(crate) fn collect(&self, names: &Names, dry_run: bool) -> Result<CollectedContent, StoreError> {
        let opening = self.database.ready()?;
        let mut damaged = None;
        let collected = self.with(|db| {
            let reader = db.begin_read()?;
            let living = match living(&reader, names)? {
                Ok(living) => living,
                Err(detail) => {
                    damaged = Some(detail);
                    return Ok(CollectedContent::default());
                }
            };
            let (dead, collected) = dead(&reader, &living)?;
            drop(reader);
            if !dry_run {
                remove(db, &dead)?;
            }
            Ok(collected)
        });
        // redb refuses every further commit after a failed one, until the file is opened again.
        let collected = collected.inspect_err(|_| self.recover(opening))?;
        damaged.map_or(Ok(collected), |detail| Err(self.home().damaged(detail)))
    }
}

fn tables() -> impl Iterator<Item = Bytes> {
    Table::ALL.into_iter().map(definition).chain([BLOBS])
}

fn copy(from: &ReadTransaction, to: &Database) -> Result<ReadTotals, redb::Error> {
    let mut read = ReadTotals::default();
    for definition in tables() {
        let source = from.open_table(definition)?;
        let mut rows = source.iter()?;
        while copy_group(&mut rows, definition, to, &mut read)? {}
    }
    let mut last = to.begin_write()?;
    last.set_quick_repair(true);
    {
        let mut meta = last.open_table(META)?;
        for row in from.open_table(META)?.iter()? {
            let (key, value) = row?;
            // The logs are not copied.
            if key.value() != META_LOG {
                meta.insert(key.value(), value.value())?;
            }
        }
        meta.insert(META_FORMAT, FORMAT_CLOSED.to_string().as_bytes())?;
    }
    last.commit()?;
    Ok(read)
}

/// Copies some rows; true: there may be more.
fn copy_group(
    rows: &mut redb::Range<'_, &'static [u8], &'static [u8]>,
    definition: Bytes,
    to: &Database,
    read: &mut ReadTotals,
) -> Result<bool, redb::Error> {
    let mut writer = to.begin_write()?;
    // Only the last commit has to be durable: an interrupted copy is discarded.
    writer.set_durability(Durability::None)?;
    let mut waiting = 0;
    {
        let mut table = writer.open_table(definition)?;
        for row in rows {
            let (key, value) = row?;
            table.insert(key.value(), value.value())?;
            let bytes = key.value().len() + value.value().len();
            read.count(bytes);
            waiting += bytes;
            if waiting > GROUP_BYTES_MAX {
                break;
            }
        }
    }
    writer.commit()?;
    Ok(waiting > GROUP_BYTES_MAX)
}

fn read_all(from: &ReadTransaction) -> Result<(ReadTotals, Option<String>), redb::Error> {
    let mut read = ReadTotals::default();
    for table in Table::ALL {
        for row in from.open_table(definition(table))?.iter()? {
            let (key, value) = row?;
            read.count(key.value().len() + value.value().len());
        }
    }
    for row in from.open_table(BLOBS)?.iter()? {
        let (key, value) = row?;
        read.count(key.value().len() + value.value().len());
        if let Err(detail) = content_of(key.value(), value.value()) {
            return Ok((read, Some(detail)));
        }
    }
    Ok((read, None))
}

fn content_of(key: &[u8], value: &[u8]) -> Result<Vec<u8>, String> {
    let digest = <[u8; 32]>::try_from(key).map_err(|_| "content under a key that is no digest".to_owned())?;
    blob::decode(&Digest::from(digest), value)
}

/// Digests of referenced content.
fn living(from: &ReadTransaction, names: &Names) -> Result<Result<BTreeSet<Digest>, String>, redb::Error> {
    let mut found = BTreeSet::new();
    let mut unread = Vec::new();
    let mut name = |text: &[u8], unread: &mut Vec<Digest>| {
        unread.extend(names(text).into_iter().filter(|digest| found.insert(*digest)));
    };
    for table in Table::ALL {
        for row in from.open_table(definition(table))?.iter()? {
            let (key, value) = row?;
            // A key may hold a digest too.
            name(key.value(), &mut unread);
            name(value.value(), &mut unread);
        }
    }
    let blobs = from.open_table(BLOBS)?;
    while let Some(digest) = unread.pop() {
        // Some texts look like a digest and are none of content here.
        let Some(stored) = blobs.get(&digest.as_bytes()[..])? else { continue };
        match blob::decode(&digest, stored.value()) {
            Ok(content) => name(&content, &mut unread),
            Err(detail) => return Ok(Err(detail)),
        }
    }
    Ok(Ok(found))
}

fn dead(from: &ReadTransaction, living: &BTreeSet<Digest>) -> Result<(Vec<Vec<u8>>, CollectedContent), redb::Error> {
    let (mut dead, mut collected) = (Vec::new(), CollectedContent::default());
    for row in from.open_table(BLOBS)?.iter()? {
        let (key, value) = row?;
        let digest = <[u8; 32]>::try_from(key.value()).ok().map(Digest::from);
        if digest.is_some_and(|digest| living.contains(&digest)) {
            collected.kept += 1;
        } else {
            collected.removed += 1;
            collected.bytes += value.value().len() as u64;
            dead.push(key.value().to_vec());
        }
    }
    Ok((dead, collected))
}

fn remove(db: &Database, dead: &[Vec<u8>]) -> Result<(), redb::Error> {
    for group in dead.chunks(GROUP_BLOBS_MAX) {
        let mut writer = db.begin_write()?;
        writer.set_quick_repair(true);
        {
            let mut blobs = writer.open_table(BLOBS)?;
            for key in group {
                blobs.remove(key.as_slice())?;
            }
        }
        writer.commit()?;
    }
    Ok(())
}
