//! Files beneath a directory, reached one component at a time and never through a symbolic link.
//!
//! Guests wrote the files in the tree, and the tree may change during the reading: a path that was a directory a moment
//! ago may be a link to the user's home now. So nothing here resolves a path except the root's; every component is
//! opened relative to the one before, with `O_NOFOLLOW`.

use longhaul_sandbox::empty;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The prefix of partly written files; no scan sees them.
pub(crate) const TEMPORARY: &[u8] = b".longhaul-tmp-";

/// The mode of a new directory.
const DIR_MODE: u32 = 0o755;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    dir: PathBuf,
}

/// The type of a directory's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File {
        executable: bool,
    },
    Link,
    Dir,
    /// A socket, a pipe or a device: git has no such things.
    Other,
}

/// The `stat` data of an entry. Equal stamps mean equal content, once they are old enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryStamp {
    pub(crate) sort: EntryKind,
    pub(crate) len: u64,
    inode: u64,
    changed: (i64, i64),
}

impl EntryStamp {
    /// True when a later change would show in the stamp: file systems count time in ticks, and two
    /// changes in one tick look alike.
    pub(crate) fn is_settled(&self) -> bool {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.is_ok_and(|now| i64::try_from(now.as_secs()).is_ok_and(|now| self.is_settled_at(now)))
    }

    /// True when a change at `now_s`, seconds of the clock, or later would show.
    pub(crate) fn is_settled_at(&self, now_s: i64) -> bool {
        self.changed.0.saturating_add(2) < now_s
    }
}

impl Root {
    /// Opens `dir`, which must be a directory and no link to one.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let fd = rustix::fs::open(dir, directory(), Mode::empty())?;
        Ok(Self { fd, dir: dir.to_owned() })
    }

    pub(crate) fn path(&self, rel: &[u8]) -> PathBuf {
        self.dir.join(OsStr::from_bytes(rel))
    }

    /// The entries of the directory `rel`, sorted; `b""` is the root itself.
    pub(crate) fn list(&self, rel: &[u8]) -> io::Result<Vec<(Vec<u8>, EntryStamp)>> {
        let dir = self.open_dir(rel)?;
        let mut entries = Vec::new();
        for name in names(&dir)? {
            match stamp(&dir, &name) {
                Ok(stamp) => entries.push((name, stamp)),
                // Removed since it was listed: as if it had never been there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    /// The entry at `rel`, if there is one.
    pub(crate) fn stamp(&self, rel: &[u8]) -> io::Result<Option<EntryStamp>> {
        let found = self.parent(rel).and_then(|(parent, name)| stamp(&parent, name));
        match found {
            Ok(stamp) => Ok(Some(stamp)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The regular file at `rel`, opened.
    pub(crate) fn open_file(&self, rel: &[u8]) -> io::Result<std::fs::File> {
        let (parent, name) = self.parent(rel)?;
        // Without NONBLOCK, opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = std::fs::File::from(rustix::fs::openat(&parent, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
    }

    /// The content of a regular file. None: it has more than `bytes_max` bytes.
    pub(crate) fn read(&self, rel: &[u8], bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let read = self.open_file(rel)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok((u64::try_from(read).unwrap_or(u64::MAX) <= bytes_max).then_some(bytes))
    }

    /// The target of the link at `rel`.
    pub(crate) fn read_link(&self, rel: &[u8]) -> io::Result<Vec<u8>> {
        let (parent, name) = self.parent(rel)?;
        Ok(rustix::fs::readlinkat(&parent, name, Vec::new())?.into_bytes())
    }

    /// Writes a file at `rel`, complete or not at all, over anything there.
    pub(crate) fn write(&self, rel: &[u8], bytes: &[u8], executable: bool) -> io::Result<()> {
        let (parent, name) = self.make_parent(rel)?;
        let temporary = temporary_name();
        create(&parent, &temporary, bytes, executable)?;
        self.put(&parent, &temporary, name, rel)
    }

    /// Writes a link at `rel`, complete or not at all, over anything there.
    pub(crate) fn write_link(&self, rel: &[u8], target: &[u8]) -> io::Result<()> {
        let (parent, name) = self.make_parent(rel)?;
        let temporary = temporary_name();
        rustix::fs::symlinkat(target, &parent, temporary.as_slice())?;
        self.put(&parent, &temporary, name, rel)
    }

    /// Makes the directory `rel` and those above it, and removes obstacles.
    pub(crate) fn make_dir(&self, rel: &[u8]) -> io::Result<()> {
        let mut inside = rel.to_vec();
        inside.extend_from_slice(b"/.");
        self.make_parent(&inside).map(|_| ())
    }

    /// Removes the entry at `rel`, a directory with its content.
    pub(crate) fn remove(&self, rel: &[u8]) -> io::Result<()> {
        match self.stamp(rel)?.map(|stamp| stamp.sort) {
            None => Ok(()),
            Some(EntryKind::Dir) => self.remove_dir(rel),
            Some(_) => {
                let (parent, name) = self.parent(rel)?;
                Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?)
            }
        }
    }

    /// Removes the directories above `rel` that are empty now, up to the first that `keep` names.
    pub(crate) fn remove_empty_above(&self, rel: &[u8], keep: impl Fn(&[u8]) -> bool) {
        let mut rel = rel;
        while let Some(slash) = rel.iter().rposition(|byte| *byte == b'/') {
            rel = &rel[..slash];
            let removed = || {
                let (parent, name) = self.parent(rel).ok()?;
                rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).ok()
            };
            if keep(rel) || removed().is_none() {
                return;
            }
        }
    }

    /// Gives a directory the mode of a new one and the present time, so that neither shows its former value. Refuses
    /// one with attributes or special bits, or one that its owner cannot use.
    pub(crate) fn make_plain(&self, rel: &[u8]) -> io::Result<()> {
        let dir = self.open_dir(rel)?;
        let mode = rustix::fs::fstat(&dir)?.st_mode;
        let mut names = [0_u8; 4096];
        let len = match rustix::fs::flistxattr(&dir, &mut names) {
            Err(rustix::io::Errno::NOTSUP) => 0,
            other => other?,
        };
        // Labels are set by the system.
        let mut names = names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty());
        if mode & 0o7000 != 0 || mode & 0o700 != 0o700 || names.any(|name| !name.starts_with(b"security.")) {
            return Err(io::Error::other("it has attributes or a mode of its own"));
        }
        if mode & 0o777 != DIR_MODE {
            rustix::fs::fchmod(&dir, Mode::from_raw_mode(DIR_MODE))?;
        }
        let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        Ok(rustix::fs::futimens(&dir, &rustix::fs::Timestamps { last_access: now, last_modification: now })?)
    }

    /// Everything written so far is on the disk when this returns.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.fd)?)
    }

    fn put(&self, parent: &OwnedFd, temporary: &[u8], name: &[u8], rel: &[u8]) -> io::Result<()> {
        match rustix::fs::renameat(parent, temporary, parent, name) {
            // A directory is in the way: a rename replaces only files.
            Err(rustix::io::Errno::ISDIR | rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST) => {
                self.remove_dir(rel)?;
                Ok(rustix::fs::renameat(parent, temporary, parent, name)?)
            }
            other => Ok(other?),
        }
    }

    /// Moved aside first, so that it disappears at once, and so that a kill leaves a name which no scan sees.
    fn remove_dir(&self, rel: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(rel)?;
        let aside = temporary_name();
        rustix::fs::renameat(&parent, name, &self.fd, aside.as_slice())?;
        let dir = open_dir_at(&self.fd, &aside)?;
        empty(&dir)?;
        Ok(rustix::fs::unlinkat(&self.fd, aside.as_slice(), AtFlags::REMOVEDIR)?)
    }

    fn open_dir(&self, rel: &[u8]) -> io::Result<OwnedFd> {
        components(rel).try_fold(self.fd.try_clone()?, |dir, name| open_dir_at(&dir, name))
    }

    fn parent<'a>(&self, rel: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
        let (above, name) = split(rel);
        Ok((self.open_dir(above)?, name))
    }

    fn make_parent<'a>(&self, rel: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
        let (above, name) = split(rel);
        // The usual case first: the directories exist.
        if let Ok(dir) = self.open_dir(above) {
            return Ok((dir, name));
        }
        let dir = components(above).try_fold(self.fd.try_clone()?, |dir, name| {
            match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(DIR_MODE)) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) if stamp(&dir, name)?.sort == EntryKind::Dir => {}
                Err(rustix::io::Errno::EXIST) => {
                    rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
                    rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(DIR_MODE))?;
                }
                Err(error) => return Err(error.into()),
            }
            open_dir_at(&dir, name)
        })?;
        Ok((dir, name))
    }
}

/// Writes a small file of the host, complete or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let mut file = std::fs::File::create(&temporary)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Makes renamed and created files in `dir` durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    std::fs::File::open(dir)?.sync_all()
}

fn create(parent: &OwnedFd, name: &[u8], bytes: &[u8], executable: bool) -> io::Result<()> {
    let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(rustix::fs::openat(parent, name, flags, mode)?);
    file.write_all(bytes)
}

fn names(dir: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the fields of `stat` differ between systems")]
fn stamp(dir: &OwnedFd, name: &[u8]) -> io::Result<EntryStamp> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let sort = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File { executable: stat.st_mode & 0o100 != 0 },
        FileType::Symlink => EntryKind::Link,
        FileType::Directory => EntryKind::Dir,
        _ => EntryKind::Other,
    };
    let changed = (stat.st_ctime as i64, i64::try_from(stat.st_ctime_nsec).unwrap_or(0));
    Ok(EntryStamp { sort, len: u64::try_from(stat.st_size).unwrap_or(0), inode: stat.st_ino as u64, changed })
}

fn open_dir_at(dir: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, directory(), Mode::empty())?)
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn components(rel: &[u8]) -> impl Iterator<Item = &[u8]> {
    rel.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

/// The directory of a path, and the name in it.
pub(crate) fn split(rel: &[u8]) -> (&[u8], &[u8]) {
    match rel.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&rel[..slash], &rel[slash + 1..]),
        None => (b"", rel),
    }
}

/// There is no file, or a file or link is in the place of a directory.
fn is_absent(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    error.kind() == io::ErrorKind::NotFound
        || code == Some(rustix::io::Errno::NOTDIR.raw_os_error())
        || code == Some(rustix::io::Errno::LOOP.raw_os_error())
}

fn temporary_name() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // The time too: another process may have had the same number, and have been killed.
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let name = format!("{}-{nanos}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    [TEMPORARY, name.as_bytes()].concat()
}
