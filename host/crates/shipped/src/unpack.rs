//! Unpacks components into a directory of the cache that is named by their digests.
//!
//! A directory is filled under another name and renamed, so it is there as a whole or not at all. One process unpacks
//! and others wait. A copy is used as it is while every file is older than its marker; a file that is not is read and
//! compared with its digest.

use crate::error::ShippedError;
use longhaul_core::Digest;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The start of the names of our directories in the cache.
const NAME: &str = "shipped";

/// The start of the names of unfinished and of replaced directories.
const UNFINISHED: &str = ".shipped-";

/// The marker, written last. Files that did not change before it are compared with their digests.
const MARKER: &str = ".whole";

/// A component as the program carries it.
pub(crate) struct Packed<'a> {
    /// The name of its file.
    pub(crate) name: &'a str,
    /// The SHA-256 digest of its bytes.
    pub(crate) digest: [u8; 32],
    /// The number of its bytes.
    pub(crate) length: usize,
    /// Its bytes, compressed.
    pub(crate) packed: &'a [u8],
}

/// The directory with the components, unpacked if it is missing or not whole.
pub(crate) fn directory(cache: &Path, components: &[Packed<'_>]) -> Result<PathBuf, ShippedError> {
    let id = id(components);
    let directory = cache.join(format!("{NAME}-{id}"));
    if is_whole(&directory, components) {
        return Ok(directory);
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(cache).at("create the directory", cache)?;
    let _lock = lock(&cache.join(format!("{NAME}.lock")))?;
    if is_whole(&directory, components) {
        return Ok(directory);
    }
    clear(cache)?;
    let unfinished = cache.join(format!("{UNFINISHED}{id}"));
    if let Err(error) = fill(&unfinished, components) {
        // The disk may be full, and a part of the components is of no use.
        let _ = fs::remove_dir_all(&unfinished);
        return Err(error);
    }
    if directory.symlink_metadata().is_ok() {
        let replaced = cache.join(format!("{UNFINISHED}{id}.old"));
        fs::rename(&directory, &replaced).at("replace", &directory)?;
    }
    fs::rename(&unfinished, &directory).at("create", &directory)?;
    clear(cache)?;
    Ok(directory)
}

/// A name that other components do not have.
fn id(components: &[Packed<'_>]) -> String {
    let parts: Vec<&[u8]> = components.iter().flat_map(|one| [one.name.as_bytes(), &one.digest[..]]).collect();
    Digest::of_parts(&parts).short()
}

/// Held until it is dropped.
fn lock(path: &Path) -> Result<File, ShippedError> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path).at("open", path)?;
    file.lock().at("lock", path)?;
    Ok(file)
}

/// Removes directories that an unpacking left behind when it was killed. We hold the lock, so none is in use.
fn clear(cache: &Path) -> Result<(), ShippedError> {
    for entry in fs::read_dir(cache).at("list", cache)? {
        let entry = entry.at("list", cache)?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let path = entry.path();
            let is_directory = entry.file_type().at("look at", &path)?.is_dir();
            let removed = if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.at("remove", &path)?;
        }
    }
    Ok(())
}

fn fill(directory: &Path, components: &[Packed<'_>]) -> Result<(), ShippedError> {
    fs::DirBuilder::new().mode(0o755).create(directory).at("create the directory", directory)?;
    for component in components {
        let damaged = || ShippedError::Damaged { name: component.name.to_owned() };
        let bytes = zstd::bulk::decompress(component.packed, component.length).map_err(|_| damaged())?;
        if Digest::of(&bytes) != Digest::from(component.digest) {
            return Err(damaged());
        }
        write(&directory.join(component.name), &bytes)?;
    }
    write(&directory.join(MARKER), b"")
}

/// Writes a new file to the disk itself: after a loss of power, a rename may be there without what was written before.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ShippedError> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).at("create", path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).at("write", path)
}

fn is_whole(directory: &Path, components: &[Packed<'_>]) -> bool {
    let look = |path: &Path| path.symlink_metadata().ok().filter(is_closed);
    let Some(marker) = look(&directory.join(MARKER)).filter(Metadata::is_file) else { return false };
    let is_unchanged = |component: &Packed<'_>| {
        let path = directory.join(component.name);
        let Some(found) = look(&path).filter(Metadata::is_file) else { return false };
        let changed = |found: &Metadata| (found.ctime(), found.ctime_nsec());
        found.len() == component.length as u64
            && (changed(&found) < changed(&marker)
                || fs::read(&path).is_ok_and(|bytes| Digest::of(&bytes) == Digest::from(component.digest)))
    };
    look(directory).is_some_and(|found| found.is_dir()) && components.iter().all(is_unchanged)
}

/// True when this user or root owns a file and no other user can write to it.
fn is_closed(found: &Metadata) -> bool {
    let us = rustix::process::geteuid().as_raw();
    found.mode() & 0o022 == 0 && (found.uid() == us || found.uid() == 0)
}

/// Adds the operation and the path to an error of the system.
trait AtPath<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, ShippedError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, ShippedError> {
        self.map_err(|why| ShippedError::Io { doing, path: path.to_owned(), why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// A change of an unpacked directory.
    type Spoil = fn(&Path);

    const TEXTS: [(&str, &[u8]); 2] = [("one.wasm", b"the first component"), ("two.wasm", b"the second")];

    /// Calls `act` with the components of [`TEXTS`].
    fn with_components<T>(act: impl FnOnce(&[Packed<'_>]) -> T) -> T {
        let packed = TEXTS.map(|(_, bytes)| zstd::bulk::compress(bytes, 3).unwrap());
        let components: Vec<Packed<'_>> = TEXTS
            .iter()
            .zip(&packed)
            .map(|(&(name, bytes), packed)| Packed {
                name,
                digest: *Digest::of(bytes).as_bytes(),
                length: bytes.len(),
                packed,
            })
            .collect();
        act(&components)
    }

    fn unpacked(cache: &Path) -> PathBuf {
        with_components(|components| directory(cache, components)).unwrap()
    }

    #[track_caller]
    fn check_whole(directory: &Path) {
        for (name, bytes) in TEXTS {
            assert_eq!(fs::read(directory.join(name)).unwrap(), bytes, "{name}");
        }
        let mut names: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [MARKER, "one.wasm", "two.wasm"]);
    }

    #[test]
    fn components_are_unpacked_once_and_only_their_owner_can_write_them() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path().join("not/there/yet");
        let directory = unpacked(&cache);
        check_whole(&directory);
        let first = directory.join("one.wasm").metadata().unwrap();
        assert_eq!(first.mode() & 0o022, 0);
        assert_eq!(unpacked(&cache), directory);
        assert_eq!(directory.join("one.wasm").metadata().unwrap().ino(), first.ino(), "nothing is unpacked twice");
    }

    #[test]
    fn a_copy_that_is_not_whole_is_unpacked_anew() {
        let spoils: [(&str, Spoil); 8] = [
            ("a file is cut", |file| fs::write(file, "the").unwrap()),
            ("a file has other bytes of the same length", |file| fs::write(file, "the worst component").unwrap()),
            ("a file is missing", |file| fs::remove_file(file).unwrap()),
            ("a file is open to others", |file| {
                fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
            }),
            ("a file is a link", |file| {
                fs::rename(file, file.with_extension("moved")).unwrap();
                symlink(file.with_extension("moved"), file).unwrap();
            }),
            ("the marker is missing", |file| fs::remove_file(file.with_file_name(MARKER)).unwrap()),
            ("the directory is open to others", |file| {
                fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
            }),
            ("the directory is a file", |file| {
                fs::remove_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file.parent().unwrap(), "").unwrap();
            }),
        ];
        for (what, spoil) in spoils {
            let cache = tempfile::tempdir().unwrap();
            let directory = unpacked(cache.path());
            spoil(&directory.join("one.wasm"));
            assert_eq!(unpacked(cache.path()), directory, "{what}");
            check_whole(&directory);
        }
    }

    #[test]
    fn a_file_with_a_later_time_and_the_same_bytes_stays() {
        let cache = tempfile::tempdir().unwrap();
        let file = unpacked(cache.path()).join("one.wasm");
        fs::write(&file, TEXTS[0].1).unwrap();
        let before = file.metadata().unwrap().ino();
        unpacked(cache.path());
        assert_eq!(file.metadata().unwrap().ino(), before);
    }

    #[test]
    fn what_a_killed_unpacking_left_is_removed() {
        let cache = tempfile::tempdir().unwrap();
        let left = cache.path().join(".shipped-0123456789ab");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("one.wasm"), "half").unwrap();
        check_whole(&unpacked(cache.path()));
        assert!(!left.exists());
    }

    #[test]
    fn other_components_get_another_directory() {
        let cache = tempfile::tempdir().unwrap();
        let all = unpacked(cache.path());
        let first = with_components(|components| directory(cache.path(), &components[..1])).unwrap();
        assert_ne!(all, first);
        check_whole(&all);
    }

    #[test]
    fn a_damaged_program_and_a_cache_that_is_no_directory_are_told() {
        let cache = tempfile::tempdir().unwrap();
        let damaged = Packed { name: "one.wasm", digest: [0; 32], length: 4, packed: b"none" };
        let error = directory(cache.path(), &[damaged]).unwrap_err().to_string();
        assert_eq!(error, "this program is damaged: `one.wasm` in it is not what was built; install the program again");
        let left: Vec<_> = fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["shipped.lock"], "nothing unfinished takes up the disk");
        let file = cache.path().join("file");
        fs::write(&file, "").unwrap();
        let error = with_components(|components| directory(&file, components)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot create the directory `{}`", file.display())), "{error}");
        assert!(error.ends_with("name another cache with LONGHAUL_CACHE"), "{error}");
    }

    #[test]
    fn of_many_threads_one_unpacks_and_all_find_whole_components() {
        let cache = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| check_whole(&unpacked(cache.path())));
            }
        });
    }
}
