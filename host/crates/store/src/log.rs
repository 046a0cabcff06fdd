//! The log: committed batches, written one after the other, before they are sorted into the database.
//!
//! Rows of many callers lie in as many pages of the database, each of which a commit copies, sums up and writes. In a
//! log they lie side by side: one write and one `fdatasync` make a group durable. Two files are used by turns. While
//! one takes groups, the rows of the other are written into the database in one transaction, which also stores its
//! token; so the database tells which log comes next.
//!
//! A file begins with a page of 4 KiB: the text `longhaul log 1` and 0 bytes up to 16, the log's token and that of the
//! log before, 16 bytes each, and the SHA-256 of these 48 bytes. A token is random, so a log fits one database, and a
//! group one log. Groups follow, each from a multiple of 512 bytes on; numbers are little-endian:
//!
//! - the log's token, 16 bytes; the group's place in the file, 8; the number of its batches, 8; and the SHA-256 of
//!   these and of the list, 32;
//! - the list: the length of each batch, 8 bytes, and its SHA-256;
//! - the batches. Each is a list of changes: the number of the table, 1 byte; 1 for a value and 0 where the key was
//!   removed; the length of the key, 4 bytes, and the key; the same of the value, where there is one.
//!
//! A kill may leave the last group in part. Nobody was told that it is durable, so it is left out. A group that cannot
//! be read although a whole one follows was durable: that is damage, and this module refuses to leave it out. It checks
//! no conditions and knows neither the database nor the readers.

use crate::recent::Layer;
use crate::tables::{LOG_FILES, Place};
use longhaul_core::Digest;
use longhaul_core::digest::Digester;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A random value by which one log differs from every other.
pub(crate) type Token = [u8; 16];

const MAGIC: [u8; 16] = *b"longhaul log 1\0\0";

/// The length of the page before the first group.
const HEAD_BYTES: u64 = 4_096;

/// Groups begin at multiples of it, so that one that is written touches no sector of the one before.
const ALIGNMENT: u64 = 512;

const GROUP_HEAD_BYTES: usize = 64;
const ENTRY_BYTES: usize = 40;

/// The length to which a new file grows first. A write within the file leaves its metadata as it is, which halves the
/// time of an `fdatasync`; so it grows in advance, to the double each time.
const GROWN_BYTES_MIN: u64 = 256 << 10;

/// The longest file that is read. Its own maximum is far below; a longer one is not ours.
const READ_BYTES_MAX: u64 = 1 << 30;

/// A batch as a log stores it. Its caller makes it, so that this takes no time of the writer.
pub(crate) struct Record {
    bytes: Vec<u8>,
    digest: Digest,
}

impl Record {
    pub(crate) fn of<'a>(changes: impl Iterator<Item = (Place, &'a [u8], Option<&'a [u8]>)>) -> Self {
        let mut bytes = Vec::new();
        for (place, key, value) in changes {
            bytes.extend([place.code(), u8::from(value.is_some())]);
            for text in [Some(key), value].into_iter().flatten() {
                // Batches of more than a few hundred kilobytes do not come into a log.
                bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
                bytes.extend(text);
            }
        }
        let digest = Digest::of(&bytes);
        Self { bytes, digest }
    }

    fn entry(&self) -> [u8; ENTRY_BYTES] {
        let mut entry = [0; ENTRY_BYTES];
        entry[..8].copy_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        entry[8..].copy_from_slice(self.digest.as_bytes());
        entry
    }
}

/// The room that a group takes in a log, in bytes.
pub(crate) fn room(records: &[&Record]) -> u64 {
    let bytes: usize = records.iter().map(|record| ENTRY_BYTES + record.bytes.len()).sum();
    aligned((GROUP_HEAD_BYTES + bytes) as u64)
}

/// A log that takes groups.
pub(crate) struct Log {
    file: File,
    token: Token,
    /// The place of the next group.
    end: u64,
    /// The length of the file.
    length: u64,
    /// True while there may be a part of a group at the end that was not acknowledged.
    is_torn: bool,
}

impl Log {
    /// Makes an empty log of a file, which may have been one before, to follow the log with the token `after`.
    pub(crate) fn start(path: &Path, after: Token) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let token = random()?;
        file.write_all_at(&head(token, after), 0)?;
        let length = file.metadata()?.len().max(HEAD_BYTES);
        file.sync_all()?;
        // The file may be new. A start comes once in thousands of groups, so this is done for every one.
        if let Some(dir) = path.parent() {
            File::open(dir)?.sync_all()?;
        }
        Ok(Self { file, token, end: HEAD_BYTES, length, is_torn: false })
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// The place of the next group, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Writes a group, and returns when it is durable. After an error there is nothing of it.
    pub(crate) fn append(&mut self, records: &[&Record]) -> io::Result<()> {
        if self.is_torn {
            self.cut()?;
        }
        let group = group(self.token, self.end, records);
        // The mark stays where something panics, too.
        self.is_torn = true;
        match self.write(&group) {
            Ok(()) => {
                self.is_torn = false;
                self.end += group.len() as u64;
                Ok(())
            }
            Err(why) => {
                if let Err(why) = self.cut() {
                    tracing::warn!(error = %why, "a failed write to the log could not be taken back yet");
                }
                Err(why)
            }
        }
    }

    fn write(&mut self, group: &[u8]) -> io::Result<()> {
        let end = self.end + group.len() as u64;
        if end > self.length {
            // The group may still fit where there is no room to grow.
            let grown = self.length.saturating_mul(2).clamp(GROWN_BYTES_MIN, 64 << 20).max(end);
            let zeros = vec![0; usize::try_from(grown - end).unwrap_or_default()];
            self.length = if self.file.write_all_at(&zeros, end).is_ok() { grown } else { end };
        }
        self.file.write_all_at(group, self.end)?;
        self.file.sync_data()
    }

    /// Cuts off everything after the last group.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.sync_all()?;
        self.length = self.end;
        self.is_torn = false;
        Ok(())
    }
}

/// A log that was found, and the rows of its groups.
pub(crate) struct Found {
    pub(crate) log: Log,
    pub(crate) layer: Layer,
    /// The index of its file.
    pub(crate) index: usize,
}

/// The reason why logs cannot be read.
pub(crate) enum Unreadable {
    Io(io::Error),
    Damaged(String),
}

impl From<io::Error> for Unreadable {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

/// The logs whose batches are not in the database yet, in their order, when `last` is the last one that is.
pub(crate) fn find(dir: &Path, mut last: Token) -> Result<Vec<Found>, Unreadable> {
    let mut heads = Vec::new();
    for index in 0..LOG_FILES.len() {
        heads.extend(read_head(&path(dir, index))?.map(|(token, after)| (index, token, after)));
    }
    let mut found: Vec<Found> = Vec::new();
    while let Some((index, token, _)) = heads.iter().find(|(_, _, after)| *after == last) {
        if found.iter().any(|one| one.index == *index) {
            break;
        }
        found.push(read(&path(dir, *index), *index, *token)?);
        last = *token;
    }
    if found.is_empty() {
        return Err(Unreadable::Damaged(format!(
            "it was not closed in order, and neither {} nor {} has its last batches",
            LOG_FILES[0], LOG_FILES[1]
        )));
    }
    Ok(found)
}

/// Removes the logs of a database that has all of their batches.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    for index in 0..LOG_FILES.len() {
        match std::fs::remove_file(path(dir, index)) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn path(dir: &Path, index: usize) -> PathBuf {
    dir.join(LOG_FILES[index])
}

/// A token that no other log has.
pub(crate) fn random() -> io::Result<Token> {
    let mut token = Token::default();
    File::open("/dev/urandom")?.read_exact(&mut token)?;
    Ok(token)
}

fn head(token: Token, after: Token) -> Vec<u8> {
    let mut head = [MAGIC, token, after].concat();
    head.extend(Digest::of(&head).as_bytes());
    head.resize(4_096, 0);
    head
}

/// The tokens in the head of a file; none when there is no file or no whole head, which a kill may leave of an empty
/// log.
fn read_head(path: &Path) -> io::Result<Option<(Token, Token)>> {
    let mut found = [0; 48];
    let file = match File::open(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.read_exact_at(&mut found, 0) {
        Err(why) if why.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let (mut token, mut after) = (Token::default(), Token::default());
    token.copy_from_slice(&found[16..32]);
    after.copy_from_slice(&found[32..]);
    let mut digest = [0; 32];
    match file.read_exact_at(&mut digest, 48) {
        Err(why) if why.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let is_whole = found[..16] == MAGIC && Digest::of(&found) == Digest::from(digest);
    Ok(is_whole.then_some((token, after)))
}

fn read(path: &Path, index: usize, token: Token) -> Result<Found, Unreadable> {
    let damaged = |at: usize| Unreadable::Damaged(format!("{} cannot be read at byte {at}", LOG_FILES[index]));
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    if length > READ_BYTES_MAX {
        return Err(Unreadable::Damaged(format!("{} has {length} bytes", LOG_FILES[index])));
    }
    let mut bytes = Vec::new();
    (&file).read_to_end(&mut bytes)?;
    let mut layer = Layer::default();
    let mut at = 4_096;
    while let Some(group) = Group::at(&bytes, at, token) {
        let end = group.end;
        group.replay(&mut layer).ok_or_else(|| damaged(at))?;
        at = end;
    }
    let mut later = (at..bytes.len()).step_by(512).skip(1);
    if later.any(|later| Group::at(&bytes, later, token).is_some()) {
        return Err(damaged(at));
    }
    // Bytes that a killed process wrote may be in the memory of the system alone, and readers see them from now on.
    file.sync_all()?;
    let log = Log { file, token, end: at as u64, length: length.max(at as u64), is_torn: false };
    Ok(Found { log, layer, index })
}

/// The bytes of a group that begins at `place`.
fn group(token: Token, place: u64, records: &[&Record]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(usize::try_from(room(records)).unwrap_or_default());
    bytes.extend(token);
    bytes.extend(place.to_le_bytes());
    bytes.extend((records.len() as u64).to_le_bytes());
    bytes.extend([0; 32]);
    for record in records {
        bytes.extend(record.entry());
    }
    let digest = digest(&bytes[..32], &bytes[GROUP_HEAD_BYTES..]);
    bytes[32..GROUP_HEAD_BYTES].copy_from_slice(digest.as_bytes());
    for record in records {
        bytes.extend_from_slice(&record.bytes);
    }
    bytes.resize(usize::try_from(aligned(bytes.len() as u64)).unwrap_or(bytes.len()), 0);
    bytes
}

fn digest(head: &[u8], list: &[u8]) -> Digest {
    let mut digester = Digester::default();
    digester.update(head);
    digester.update(list);
    digester.finish()
}

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

/// A whole group in the bytes of a file.
struct Group<'a> {
    batches: Vec<&'a [u8]>,
    /// The place of the next group.
    end: usize,
}

impl<'a> Group<'a> {
    fn at(bytes: &'a [u8], place: usize, token: Token) -> Option<Self> {
        let rest = bytes.get(place..)?;
        let (head, rest) = rest.split_first_chunk::<GROUP_HEAD_BYTES>()?;
        if head[..16] != token || head[16..24] != (place as u64).to_le_bytes() {
            return None;
        }
        let count = usize::try_from(u64::from_le_bytes(head[24..32].try_into().ok()?)).ok()?;
        // The file has the number, so it is compared with the bytes that there are.
        let list = rest.get(..count.checked_mul(ENTRY_BYTES)?)?;
        if digest(&head[..32], list).as_bytes() != &head[32..] {
            return None;
        }
        let mut batches = Vec::with_capacity(count);
        let mut rest = &rest[list.len()..];
        for entry in list.chunks_exact(ENTRY_BYTES) {
            let length = usize::try_from(u64::from_le_bytes(entry[..8].try_into().ok()?)).ok()?;
            let (batch, after) = rest.split_at_checked(length)?;
            if Digest::of(batch).as_bytes() != &entry[8..] {
                return None;
            }
            batches.push(batch);
            rest = after;
        }
        let end = (bytes.len() - rest.len()).next_multiple_of(512);
        Some(Self { batches, end })
    }

    /// Puts all changes into a layer; none when they are not what [`Record::of`] writes.
    fn replay(self, layer: &mut Layer) -> Option<()> {
        for mut batch in self.batches {
            while let Some((&[place, has_value], rest)) = batch.split_first_chunk() {
                let (key, rest) = text(rest)?;
                let (value, rest) = match has_value {
                    0 => (None, rest),
                    _ => text(rest).map(|(value, rest)| (Some(value.to_vec()), rest))?,
                };
                layer.put(Place::of_code(place)?, key.to_vec(), value);
                batch = rest;
            }
            if !batch.is_empty() {
                return None;
            }
        }
        Some(())
    }
}

/// The text after its length, and the bytes after it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::store::Table;

    const PLACE: Place = Place::Table(Table::Journal);

    fn record(key: &str, value: Option<&str>) -> Record {
        Record::of([(PLACE, key.as_bytes(), value.map(str::as_bytes))].into_iter())
    }

    fn append(log: &mut Log, keys: &[&str]) {
        let records: Vec<Record> = keys.iter().map(|key| record(key, Some("value"))).collect();
        log.append(&records.iter().collect::<Vec<_>>()).unwrap();
    }

    /// The keys of the logs that are found after the token `last`.
    fn keys(dir: &Path, last: Token) -> Result<Vec<String>, String> {
        match find(dir, last) {
            Ok(found) => Ok(found.iter().map(|one| one.layer.keys(PLACE).join(" ")).collect()),
            Err(Unreadable::Io(why)) => Err(why.to_string()),
            Err(Unreadable::Damaged(why)) => Err(why),
        }
    }

    #[test]
    fn logs_are_found_in_their_order_and_those_of_another_database_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let base = random().unwrap();
        assert!(keys(dir, base).is_err_and(|why| why.contains("has its last batches")));
        let mut one = Log::start(&path(dir, 0), base).unwrap();
        assert_eq!(keys(dir, base), Ok(vec![String::new()]));
        append(&mut one, &["a", "b"]);
        append(&mut one, &["c"]);
        let mut two = Log::start(&path(dir, 1), one.token()).unwrap();
        append(&mut two, &["d"]);
        assert_eq!(keys(dir, base), Ok(vec!["a b c".to_owned(), "d".to_owned()]));
        assert_eq!(keys(dir, one.token()), Ok(vec!["d".to_owned()]));
        // The file of the first log is used again, and its old groups are none of the new log.
        let mut three = Log::start(&path(dir, 0), two.token()).unwrap();
        assert_eq!(keys(dir, one.token()), Ok(vec!["d".to_owned(), String::new()]));
        append(&mut three, &["e"]);
        assert_eq!(keys(dir, one.token()), Ok(vec!["d".to_owned(), "e".to_owned()]));
        assert!(keys(dir, base).is_err() && keys(dir, random().unwrap()).is_err());
    }

    #[test]
    fn a_part_of_the_last_group_is_left_out_and_a_damaged_one_before_others_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let base = random().unwrap();
        let mut log = Log::start(&path(dir, 0), base).unwrap();
        append(&mut log, &["a"]);
        let middle = usize::try_from(log.end()).unwrap();
        append(&mut log, &["b", "c"]);
        let end = usize::try_from(log.end()).unwrap();
        let whole = std::fs::read(path(dir, 0)).unwrap();
        let found = |bytes: &[u8]| {
            std::fs::write(path(dir, 0), bytes).unwrap();
            keys(dir, base)
        };
        // 64 bytes of the head, two entries, and the batches: the rest of the group is padding.
        let used = middle + 64 + 2 * 40 + 2 * (2 + 4 + 1 + 4 + 5);
        for cut in middle..end {
            let kept = if cut < used { "a" } else { "a b c" };
            assert_eq!(found(&whole[..cut]), Ok(vec![kept.to_owned()]), "cut at {cut}");
        }
        for at in (4_096..4_096 + 128).chain(middle..used) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            match found(&bytes) {
                Ok(found) => assert!(at >= middle && found == ["a"] || at >= 4_096 + 120, "{at}: {found:?}"),
                Err(why) => assert!(at < middle && why.contains("state.log.0 cannot be read at byte 4096"), "{why}"),
            }
        }
    }

    #[test]
    fn a_group_after_a_torn_one_takes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let base = random().unwrap();
        let mut log = Log::start(&path(dir, 0), base).unwrap();
        append(&mut log, &["a"]);
        let end = usize::try_from(log.end()).unwrap();
        append(&mut log, &["lost", "lost too"]);
        let mut bytes = std::fs::read(path(dir, 0)).unwrap();
        bytes[end + 70] ^= 1;
        std::fs::write(path(dir, 0), bytes).unwrap();
        let mut found = find(dir, base).ok().unwrap();
        append(&mut found[0].log, &["b"]);
        assert_eq!(keys(dir, base), Ok(vec!["a b".to_owned()]));
    }

    #[test]
    fn removed_keys_come_back_as_removed() {
        let mut layer = Layer::default();
        let token = random().unwrap();
        let records = [record("a", Some("1")), record("b", Some("2")), record("a", None)];
        let bytes = group(token, 0, &records.iter().collect::<Vec<_>>());
        assert_eq!(bytes.len() as u64, room(&records.iter().collect::<Vec<_>>()));
        Group::at(&bytes, 0, token).unwrap().replay(&mut layer).unwrap();
        assert_eq!(layer.find(PLACE, b"a"), Some(None));
        assert_eq!(layer.find(PLACE, b"b"), Some(Some(&b"2"[..])));
    }
}
