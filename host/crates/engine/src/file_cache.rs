//! The cache of inspected files: their inspection, by the system's metadata.
//!
//! Reading, checking and digesting an interpreter of 24 MB takes longer than everything else in a process that runs one
//! job. So the inspection is noted beside the compiled code, in the directory that no other user can write. A note is
//! valid while the file is the same one with the same size and times, of which the time of its last change cannot be
//! set back, and it is only written for a file that had rested: a change within one tick of the clock would not show.
//! Nothing is trusted more because of it: a wrong note could at most start an older version of the file, with the same
//! limits and grants.

use crate::inspect::Inspection;
use crate::unfinished;
use longhaul_core::Digest;
use longhaul_sandbox::CompileLimits;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time for which a file must be unchanged. Clocks of file systems tick every second at the coarsest, except FAT's
/// two.
const RESTED: Duration = Duration::from_secs(3);

/// Most bytes of a note. The plugin chooses its list of imports and exports.
const NOTE_BYTES_MAX: usize = 1 << 20;

/// Notes that a process remembers. Beyond them it begins anew, and reads notes again.
const REMEMBERED_MAX: usize = 256;

/// The system's metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// None when there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// True when every change from `now` on would show, if the stamp was taken by then. A clock that was set back makes
    /// it wait.
    pub(crate) fn has_rested(&self, now: Duration) -> bool {
        let latest = self.modified.max(self.changed).0;
        u64::try_from(latest).is_ok_and(|latest| Duration::from_secs(latest) + RESTED <= now)
    }
}

/// The time since 1970, as file systems count it.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The note about one file.
pub(crate) struct FileNote {
    path: PathBuf,
}

#[derive(Clone, Serialize, Deserialize)]
struct Written {
    stamp: FileStamp,
    inspection: Inspection,
}

/// The notes that this process has read, by their paths: it reads none of them again. What is remembered is valid as
/// long as the note itself, while the file has the stamp.
#[derive(Default)]
pub(crate) struct KnownFiles {
    read: Mutex<HashMap<PathBuf, Written>>,
}

impl KnownFiles {
    /// The inspection of the file that a note is about, if it was made for this stamp.
    pub(crate) fn inspection(&self, note: &FileNote, stamp: &FileStamp) -> Option<Inspection> {
        if let Some(written) = self.lock().get(&note.path).filter(|written| written.stamp == *stamp) {
            return Some(written.inspection.clone());
        }
        let written = Written { stamp: stamp.clone(), inspection: note.read(stamp)? };
        let mut read = self.lock();
        if read.len() >= REMEMBERED_MAX {
            read.clear();
        }
        read.insert(note.path.clone(), written.clone());
        Some(written.inspection)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Written>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileNote {
    /// The note about `file` in `directory`. Other limits of loading, and other versions of this program, have notes of
    /// their own.
    pub(crate) fn about(file: &Path, directory: &Path, limits: &CompileLimits) -> Self {
        let caps = format!("{} {} {}", limits.bytes_max, limits.functions_max, limits.nesting_max);
        let version = env!("CARGO_PKG_VERSION").as_bytes();
        let key = Digest::of_parts(&[file.as_os_str().as_bytes(), caps.as_bytes(), version]);
        Self { path: directory.join(format!("{key}.known")) }
    }

    /// The inspection of the file, if it was made for its present stamp.
    pub(crate) fn read(&self, stamp: &FileStamp) -> Option<Inspection> {
        let bytes = fs::read(&self.path).ok()?;
        let written: Written = serde_json::from_slice(&bytes).ok()?;
        (written.stamp == *stamp).then_some(written.inspection)
    }

    /// Notes the inspection of a file that had this stamp before it was read, had rested by then, and has it still. A
    /// note that cannot be written is left out.
    pub(crate) fn write(&self, stamp: FileStamp, inspection: &Inspection) {
        let written = Written { stamp, inspection: inspection.clone() };
        if let Err(error) = self.replace(&written) {
            tracing::debug!("a note about a file could not be kept: {error}");
        }
    }

    /// Replaces by renaming: a concurrent reader sees all of the old or all of the new note.
    fn replace(&self, written: &Written) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(written)?;
        let directory = self.path.parent().filter(|_| bytes.len() <= NOTE_BYTES_MAX);
        let directory = directory.ok_or_else(|| std::io::Error::other("it is too long"))?;
        let mut unfinished = unfinished::create_in(directory)?;
        unfinished.write_all(&bytes)?;
        unfinished.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    fn inspection() -> Inspection {
        Inspection {
            role: Role::Tool,
            contract: "0.1.0".into(),
            digest: Digest::of(b"component"),
            bytes: 9,
            functions: 1,
            imports: vec!["longhaul:plugin/log@0.1.0".into()],
            exports: vec!["longhaul:plugin/tool@0.1.0".into()],
        }
    }

    /// A file, and the note about it in a directory beside it.
    fn file() -> (tempfile::TempDir, PathBuf, FileNote) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.wasm");
        fs::write(&path, b"component").unwrap();
        let note = FileNote::about(&path, place.path(), &CompileLimits::default());
        (place, path, note)
    }

    /// The stamp of the file as if it had rested for an hour.
    fn rested(path: &Path) -> FileStamp {
        let mut stamp = FileStamp::of(path).unwrap();
        (stamp.modified.0, stamp.changed.0) = (stamp.modified.0 - 3_600, stamp.changed.0 - 3_600);
        stamp
    }

    #[test]
    fn a_file_is_known_while_nothing_of_it_changes() {
        let (_place, path, note) = file();
        let stamp = rested(&path);
        assert!(note.read(&stamp).is_none(), "not yet");
        note.write(stamp.clone(), &inspection());
        let found = note.read(&stamp).unwrap();
        assert_eq!((found.digest, found.role, found.exports), (inspection().digest, Role::Tool, inspection().exports));
        for other in [
            FileStamp { device: stamp.device + 1, ..stamp.clone() },
            FileStamp { inode: stamp.inode + 1, ..stamp.clone() },
            FileStamp { bytes: stamp.bytes + 1, ..stamp.clone() },
            FileStamp { modified: (stamp.modified.0, stamp.modified.1 + 1), ..stamp.clone() },
            FileStamp { changed: (stamp.changed.0, stamp.changed.1 + 1), ..stamp.clone() },
        ] {
            assert!(note.read(&other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_note_is_read_once_and_what_it_says_ends_with_the_stamp() {
        let (_place, path, note) = file();
        let (known, stamp) = (KnownFiles::default(), rested(&path));
        assert!(known.inspection(&note, &stamp).is_none(), "there is no note");
        note.write(stamp.clone(), &inspection());
        assert!(known.inspection(&note, &stamp).is_some());
        fs::remove_file(&note.path).unwrap();
        assert_eq!(known.inspection(&note, &stamp).unwrap().digest, inspection().digest);
        let other = FileStamp { inode: stamp.inode + 1, ..stamp.clone() };
        assert!(known.inspection(&note, &other).is_none(), "another file has its name");
        assert!(known.inspection(&note, &stamp).is_some(), "the first one is there again");
    }

    #[test]
    fn a_change_with_its_time_set_back_shows() {
        let (_place, path, _note) = file();
        let before = FileStamp::of(&path).unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let change = || {
            fs::write(&path, b"otherwise").unwrap();
            fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
            FileStamp::of(&path).unwrap()
        };
        // Repeats until the clock of the file system ticks.
        let mut after = change();
        for _ in 0..100_000 {
            if after.changed != before.changed {
                break;
            }
            after = change();
        }
        assert_eq!((after.bytes, after.modified, after.inode), (before.bytes, before.modified, before.inode));
        assert_ne!(after, before);
    }

    #[test]
    fn a_file_that_changed_just_now_has_not_rested() {
        let (_place, path, _note) = file();
        let stamp = FileStamp::of(&path).unwrap();
        let changed = Duration::from_secs(stamp.changed.0.max(stamp.modified.0).try_into().unwrap());
        assert!(!stamp.has_rested(changed + RESTED - Duration::from_nanos(1)), "one below");
        assert!(stamp.has_rested(changed + RESTED), "the edge");
        assert!(!stamp.has_rested(Duration::ZERO), "a clock that was set back");
    }

    #[test]
    fn a_note_that_is_cut_off_or_of_other_caps_does_not_count() {
        let (place, path, note) = file();
        let stamp = rested(&path);
        note.write(stamp.clone(), &inspection());
        let lower = CompileLimits { bytes_max: 5, ..CompileLimits::default() };
        assert!(FileNote::about(&path, place.path(), &lower).read(&stamp).is_none());
        let whole = fs::read(&note.path).unwrap();
        for cut in [0, 1, whole.len() - 1] {
            fs::write(&note.path, &whole[..cut]).unwrap();
            assert!(note.read(&stamp).is_none(), "{cut}");
        }
    }
}
