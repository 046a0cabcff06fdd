//! Bytes that are stored: journals, checkpoints, backups. They come back from other machines, and from damaged disks.

use longhaul_api::upkeep::RestoreOptions;
use longhaul_checkpoints::Snapshot;
use longhaul_core::store::{Batch, Key, Op, ReadTotals, Store, Table};
use longhaul_core::{InvocationId, Limits};
use longhaul_home::Home;
use longhaul_maintenance::backup::{self, PreparedStore};
use longhaul_security::signing::AcceptedRisks;
use longhaul_testkit::MemoryStore;
use std::fs;

/// Divides an input into records.
const BREAK: u8 = 0x1e;

/// Rows of an archive are not read here.
const NOTHING_READ: ReadTotals = ReadTotals { rows: u64::MAX, bytes: 0 };

/// Records of a journal: each begins with the number of its entry and its kind, and the rest is its value.
pub(crate) fn journal_records(bytes: &[u8]) {
    let invocation = InvocationId::from_text("r-1/f-a/1/generate");
    let prefix = Key::of(invocation.as_str());
    let mut rows = Vec::new();
    for record in bytes.split(|byte| *byte == BREAK).take(200) {
        let [entry, kind, value @ ..] = record else { continue };
        let key = prefix.clone().number(u64::from(*entry));
        let key = match kind % 9 {
            0 => prefix.clone().number(0).and("began"),
            1 => key.and("asked").number(1),
            2 => key.and("prepared").number(1),
            3 => key.and("resolution").number(1),
            4 => key.and("answered"),
            5 => prefix.clone().number(u64::MAX).and("finished"),
            6 => key.and("asked").number(2),
            // A key of the guest's own making.
            7 => Key::from_bytes([prefix.as_bytes(), value].concat()),
            _ => prefix.clone().number(0).and("shared"),
        };
        rows.push((key.as_bytes().to_vec(), value.to_vec()));
    }
    rows.sort();
    rows.dedup_by(|one, other| one.0 == other.0);
    if let Ok((kept, _)) = longhaul_journal::disowned(&invocation, rows.clone(), &|_| None) {
        assert!(kept.len() <= rows.len());
        // A disowned journal has nothing left to disown, and can be read.
        assert!(longhaul_journal::disowned(&invocation, kept, &|_| None).is_ok());
    }
    let store = MemoryStore::default();
    let mut batch = Batch::new();
    for (key, value) in rows {
        batch.push(Op::Put(Table::Journal, Key::from_bytes(key), value));
    }
    if runtime().block_on(store.commit(batch)).is_err() {
        return;
    }
    let _ = longhaul_journal::began(&store, &invocation);
    let _ = longhaul_journal::finished(&store, &invocation);
    let _ = longhaul_journal::entries(&store, &invocation, 0, 1_000);
    let _ = longhaul_journal::children(&store, &invocation);
    let _ = longhaul_journal::answered_through(&store, &invocation, u64::MAX);
    reopened(store, invocation);
}

/// A resume: the journal is read within its caps, before anything is answered of it.
fn reopened(store: MemoryStore, invocation: InvocationId) {
    use longhaul_core::journal::Began;
    use longhaul_journal::Recorder;
    use longhaul_testkit::HandClock;
    use std::sync::Arc;
    let Ok(Some(began)) = longhaul_journal::began(&store, &invocation) else { return };
    let limits = Limits { journal_entries_max: 100, journal_bytes_max: 1 << 20, ..Limits::default() };
    let again = Began { at_ms: 0, ..began };
    let _ = Recorder::open(Arc::new(store), Arc::new(HandClock::at(0)), invocation, again, &limits);
}

/// A checkpoint, as far as it is looked at before the machine is.
pub(crate) fn checkpoint(bytes: &[u8]) {
    let Ok(snapshot) = Snapshot::read(bytes) else { return };
    if snapshot.check().is_ok() {
        let text = snapshot.write().expect("what was read can be written");
        assert!(Snapshot::read(&text).is_ok_and(|again| again.check().is_ok()));
    }
}

/// A backup: an archive as it is, or what would be in one, compressed here so that a change of a byte is one of it. In
/// every other one the headers' checksums are mended, without which hardly a change would be read.
pub(crate) fn backup(bytes: &[u8]) {
    let folder = tempfile::tempdir_in(scratch()).expect("a folder");
    let file = folder.path().join("archive");
    let is_archive = bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let archive = if is_archive { bytes.to_vec() } else { compressed(bytes) };
    fs::write(&file, archive).expect("ours");
    let above = folder.path().join("above");
    fs::create_dir(&above).expect("ours");
    let home = Home::find(Some(above.join("home"))).expect("a path");
    // Nothing is imported: no archive of the fuzzer has a valid signature.
    let accepts = AcceptedRisks { unsigned: true, signer: None };
    let restored = backup::restore(&file, &home, &accepts, RestoreOptions::default(), |_, _, _, _| {
        Ok(PreparedStore { read: NOTHING_READ, ..PreparedStore::default() })
    });
    let left: Vec<_> = fs::read_dir(&above).expect("ours").map(|entry| entry.expect("readable").file_name()).collect();
    match restored {
        Ok(_) => assert_eq!(left, ["home"]),
        Err(_) => assert!(left.is_empty(), "{left:?} is left behind"),
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    const BLOCK_BYTES: usize = 512;
    let mut blocks = bytes.to_vec();
    if bytes.len().is_multiple_of(2) {
        blocks.chunks_exact_mut(BLOCK_BYTES).filter(|block| block[257..].starts_with(b"ustar")).for_each(mend);
    }
    zstd::encode_all(&blocks[..], 1).expect("memory takes it")
}

/// Makes the checksum of a header right: the sum of its bytes, the checksum's own counted as blanks.
fn mend(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    header[154] = 0;
}

/// A directory for scratch files, in memory where the system has one: every file of an archive is made durable.
fn scratch() -> std::path::PathBuf {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[cfg(test)]
mod tests {
    use super::compressed;

    #[test]
    fn a_change_in_a_header_is_read_behind_a_checksum_that_fits() {
        let written = crate::driver::kept("backup").into_iter().find(|(path, _)| path.ends_with("link"));
        let (_, written) = written.expect("a kept archive");
        let unpacked = |bytes: &[u8]| zstd::decode_all(&compressed(bytes)[..]).expect("a whole one");
        assert!(unpacked(&written) == written, "one that is right stays as it is");
        let mut changed = written;
        // A letter of the first name, which is `state.redb`.
        changed[0] ^= 1;
        assert_eq!((&changed[148..156], &unpacked(&changed)[148..156]), (&b"007645\0 "[..], &b"007644\0 "[..]));
        let odd = &changed[..999];
        assert!(unpacked(odd) == odd, "with a checksum that does not fit");
    }
}
