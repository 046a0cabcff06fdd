//! The content of the files that steps read, as digests.
//!
//! Paths are those of the guest, and a step chooses them: one that leads out of the granted directories, over a link or
//! otherwise, is a file that does not exist. Nothing here changes a file, or decides what a change of one means.

use longhaul_core::Digest;
use longhaul_core::digest::Digester;
use longhaul_core::grant::DirectoryGrant;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a file whose content is read: 256 MiB. Of a longer one, its length and its time stand for the content.
const CONTENT_BYTES_MAX: u64 = 256 << 20;

/// Names in a directory that are read. With more, the number stands for them.
const NAMES_MAX: usize = 100_000;

/// The age of a file from which its times tell whether it changed: file systems keep them to the second, at worst.
const SETTLED_SECONDS: i64 = 2;

/// Digests that are kept.
const KNOWN_MAX: usize = 10_000;

/// Digests of files, each as long as its file seems to be the same.
#[derive(Default)]
pub(super) struct FileDigests {
    known: Mutex<HashMap<PathBuf, (FileTimes, Digest)>>,
}

/// The mark of a file, which changes with it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileTimes {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
    written: (i64, i64),
}

impl FileDigests {
    /// The digests of files and directories now; none for one that does not exist or cannot be read.
    pub(super) fn of<'p>(
        &self,
        directories: &[DirectoryGrant],
        paths: impl IntoIterator<Item = &'p str>,
        now_ms: u64,
    ) -> BTreeMap<String, Option<Digest>> {
        let one = |path: &str| host_path(directories, path).and_then(|host| self.one(&host, now_ms));
        paths.into_iter().map(|path| (path.to_owned(), one(path))).collect()
    }

    fn one(&self, host: &Path, now_ms: u64) -> Option<Digest> {
        let metadata = fs::metadata(host).ok()?;
        if metadata.is_dir() {
            return names(host);
        }
        if !metadata.is_file() {
            return None;
        }
        let times = FileTimes::of(&metadata);
        let known = self.known().get(host).filter(|(then, _)| *then == times).map(|(_, digest)| *digest);
        if known.is_some() {
            return known;
        }
        let digest = content(host, &times)?;
        let now = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
        if times.changed.0.saturating_add(SETTLED_SECONDS) < now {
            let mut known = self.known();
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(host.to_owned(), (times, digest));
        }
        Some(digest)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, (FileTimes, Digest)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileTimes {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            written: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// The path on the host of a path in the guest, with all links followed; none if it is not in a granted directory, or
/// does not exist.
fn host_path(directories: &[DirectoryGrant], guest: &str) -> Option<PathBuf> {
    let guest = Path::new(guest);
    let within = |grant: &DirectoryGrant| guest.strip_prefix(&grant.guest).ok().map(|rest| (grant.host.clone(), rest));
    // The innermost of nested directories is the one that the guest sees.
    let (root, rest) = directories.iter().filter_map(within).min_by_key(|(_, rest)| rest.components().count())?;
    if !rest.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let (root, found) = (fs::canonicalize(&root).ok()?, fs::canonicalize(root.join(rest)).ok()?);
    found.starts_with(&root).then_some(found)
}

fn content(host: &Path, times: &FileTimes) -> Option<Digest> {
    if times.bytes > CONTENT_BYTES_MAX {
        let (seconds, nanoseconds) = times.written;
        let parts = [times.bytes.to_le_bytes(), seconds.to_le_bytes(), nanoseconds.to_le_bytes()];
        return Some(Digest::of_parts(&[b"long", &parts[0], &parts[1], &parts[2]]));
    }
    let mut file = File::open(host).ok()?.take(CONTENT_BYTES_MAX);
    let (mut digester, mut buffer) = (Digester::default(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(digester.finish()),
            count => digester.update(&buffer[..count]),
        }
    }
}

/// The digest of the names in a directory.
fn names(host: &Path) -> Option<Digest> {
    let mut names = Vec::new();
    for entry in fs::read_dir(host).ok()? {
        names.push(entry.ok()?.file_name());
        if names.len() > NAMES_MAX {
            return Some(Digest::of(b"too many names"));
        }
    }
    names.sort_unstable();
    Some(Digest::of_parts(&names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::grant::Access;

    /// A directory of a test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("longhaul-files-{}-{name}", std::process::id()));
            fs::create_dir_all(path.join("data")).expect("a directory");
            Self(path)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.0.join(name), text).expect("ours");
        }

        /// The digest of a path of the guest, which sees `data` as `/data`, long after all changes or right after them.
        fn digest(&self, digests: &FileDigests, path: &str, now_ms: u64) -> Option<Digest> {
            let host = self.0.join("data");
            let grants = [DirectoryGrant { guest: "/data".to_owned(), host, access: Access::Read }];
            digests.of(&grants, [path], now_ms).remove(path).expect("asked for")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_has_the_digest_of_its_content() {
        let (folder, digests) = (Folder::new("content"), FileDigests::default());
        assert_eq!(folder.digest(&digests, "/data/a.csv", 0), None);
        folder.write("data/a.csv", "one");
        for now_ms in [0, u64::MAX] {
            assert_eq!(folder.digest(&digests, "/data/a.csv", now_ms), Some(Digest::of(b"one")));
        }
        // A digest that is kept is not that of a file of another length.
        folder.write("data/a.csv", "three");
        assert_eq!(folder.digest(&digests, "/data/a.csv", 0), Some(Digest::of(b"three")));
    }

    #[test]
    fn a_directory_has_the_digest_of_its_names() {
        let (folder, digests) = (Folder::new("names"), FileDigests::default());
        let empty = folder.digest(&digests, "/data", 0);
        folder.write("data/a", "1");
        let one = folder.digest(&digests, "/data", 0);
        folder.write("data/a", "2");
        assert!(empty.is_some() && empty != one && one == folder.digest(&digests, "/data", 0));
    }

    #[test]
    fn a_path_that_leads_out_of_the_granted_directories_is_no_file() {
        let (folder, digests) = (Folder::new("outside"), FileDigests::default());
        folder.write("secret", "s");
        folder.write("data/inside", "i");
        std::os::unix::fs::symlink(folder.0.join("secret"), folder.0.join("data/out")).expect("a link");
        std::os::unix::fs::symlink("inside", folder.0.join("data/in")).expect("a link");
        for path in ["/data/../secret", "/secret", "/etc/passwd", "data/inside", "/data/out", "/database/x", ""] {
            assert_eq!(folder.digest(&digests, path, 0), None, "{path}");
        }
        assert_eq!(folder.digest(&digests, "/data/in", 0), Some(Digest::of(b"i")));
    }
}
