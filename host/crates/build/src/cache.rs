//! The cache outside the tree: tools that take a minute to fetch and that every clone can share.
//!
//! A folder is valid only with its marker, and the marker is renamed into place last, so the next fill discards an
//! interrupted one. Nothing is ever updated in place: the name of a folder determines its content. Deleting the whole
//! cache is always safe.

use crate::error::{AtPath, BuildError};
use crate::say::ProgressLine;
use longhaul_core::Digest;
use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

type Result<T> = std::result::Result<T, BuildError>;

/// The marker, written last into a complete folder.
const MARKER: &str = ".whole";

/// The number of built components that stay in the cache, at up to 20 MB each: enough for a few clones.
const COMPONENTS_MAX: usize = 32;

/// Folders that an interpreter, a compiler or a package client leaves among the sources.
const LEFT_BEHIND: [&str; 3] = ["__pycache__", "node_modules", "target"];

/// The cache, and the callback for the progress of slow steps.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    say: ProgressLine,
}

impl Cache {
    /// The cache at `$LONGHAUL_CACHE`, `$XDG_CACHE_HOME/longhaul` or `~/.cache/longhaul`.
    ///
    /// # Errors
    /// When there is no home directory for it, or it cannot be made.
    pub fn open(say: ProgressLine) -> Result<Self> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let root = set("LONGHAUL_CACHE")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|dir| Path::new(&dir).join("longhaul")))
            .or_else(|| set("HOME").map(|dir| Path::new(&dir).join(".cache/longhaul")))
            .ok_or_else(|| {
                BuildError::toolchain("no place for the cache: set LONGHAUL_CACHE to a folder that may grow to 2 GB")
            })?;
        create_dir(&root)?;
        // Programs start in other folders, so a relative `$LONGHAUL_CACHE` must become absolute.
        let root = fs::canonicalize(&root).at("find the cache", &root)?;
        Ok(Self { root, say })
    }

    #[cfg(test)]
    pub(crate) fn at(root: PathBuf, say: ProgressLine) -> Self {
        Self { root, say }
    }

    /// The path of the entry `name`, whether it exists or not.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The folder `name`, filled by `fill` if it is incomplete.
    ///
    /// Of several processes one fills and the others wait.
    ///
    /// # Errors
    /// Those of `fill`, or when the folder cannot be made; the next call starts again.
    pub fn folder<E: From<BuildError>>(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> std::result::Result<(), E>,
    ) -> std::result::Result<PathBuf, E> {
        let dir = self.path(name);
        if dir.join(MARKER).is_file() {
            return Ok(dir);
        }
        let _lock = lock(&self.path(&format!("{name}.lock")), self.say)?;
        if dir.join(MARKER).is_file() {
            return Ok(dir);
        }
        if dir.exists() {
            fs::remove_dir_all(&dir).at("remove the unfinished", &dir)?;
        }
        create_dir(&dir)?;
        fill(&dir)?;
        write_whole(&dir.join(MARKER), b"")?;
        Ok(dir)
    }

    /// The component of `inputs`, from the cache, or made by `make`.
    ///
    /// Two builds of one source need not be equal byte for byte, and some take ten seconds; so the cache reuses a
    /// component that was built from the same sources, contract and tools.
    pub(crate) fn component(
        &self,
        name: &str,
        inputs: Digest,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let folder = self.path("components");
        let kept = folder.join(format!("{name}-{inputs}.wasm"));
        if !kept.is_file() {
            create_dir(&folder)?;
            let partial = kept.with_extension(format!("{}.tmp", std::process::id()));
            let made = make(&partial);
            if made.is_err() {
                // The file may not exist; the error is reported already.
                let _ = fs::remove_file(&partial);
            }
            made?;
            fs::rename(&partial, &kept).at("write", &kept)?;
            keep_youngest(&folder)?;
        }
        read(&kept)
    }

    pub(crate) fn say(&self, line: &str) {
        (self.say)(line);
    }
}

/// Removes all but the youngest [`COMPONENTS_MAX`] components.
fn keep_youngest(folder: &Path) -> Result<()> {
    let mut kept: Vec<(SystemTime, PathBuf)> = entries(folder)?
        .into_iter()
        .filter(|path| path.extension() == Some("wasm".as_ref()))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    kept.sort();
    for (_, path) in kept.iter().rev().skip(COMPONENTS_MAX) {
        // Another process may have removed it first, which is fine.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Holds the lock file `path` until dropped; reports when it must wait.
///
/// # Errors
/// When the file cannot be made or locked.
pub fn lock(path: &Path, say: ProgressLine) -> Result<File> {
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    let file = File::create(path).at("open the lock", path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(&format!("waiting for another process, which holds `{}`", path.display()));
            file.lock().at("lock", path)?;
        }
        Err(TryLockError::Error(error)) => return Err(error).at("lock", path),
    }
    Ok(file)
}

/// Writes `path` so that a reader sees the old file or the new one, never a part. Through no link: what bears the name
/// is replaced.
///
/// # Errors
/// When it cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let partial = path.with_file_name(name);
    // Left by a process of this number that was killed, or a link that a repository brings along.
    let _ = fs::remove_file(&partial);
    let written = File::create_new(&partial).and_then(|mut file| file.write_all(bytes));
    if written.is_err() {
        // The error is reported already; a disk that is full needs the room.
        let _ = fs::remove_file(&partial);
    }
    written.at("write", &partial)?;
    fs::rename(&partial, path).at("write", path)
}

/// Makes a folder and its parents.
///
/// # Errors
/// When it cannot be made.
pub fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).at("create the folder", path)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).at("read", path)
}

/// A digest of parts, each with its length, so that no two lists of parts share one.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    Digest::of_parts(&parts.into_iter().collect::<Vec<_>>())
}

/// A digest of all files below `dir`, names and contents, without hidden files, without [`LEFT_BEHIND`], and without
/// the names of `left_out` at its top.
pub(crate) fn digest_tree(dir: &Path, left_out: &[&str]) -> Result<Digest> {
    let mut files = Vec::new();
    for path in sources(dir)? {
        if !left_out.iter().any(|name| path.ends_with(name)) {
            list_files(&path, &mut files)?;
        }
    }
    files.sort();
    let mut parts = Vec::new();
    for file in &files {
        let name = file.strip_prefix(dir).unwrap_or(file);
        parts.push(name.as_os_str().as_encoded_bytes().to_vec());
        parts.push(read(file)?);
    }
    Ok(digest(parts.iter().map(Vec::as_slice)))
}

fn list_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for path in sources(path)? {
        list_files(&path, files)?;
    }
    Ok(())
}

fn sources(dir: &Path) -> Result<Vec<PathBuf>> {
    let is_source = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let left_behind = LEFT_BEHIND.contains(&&*name) || path.extension() == Some("pyc".as_ref());
        !(left_behind || name.starts_with('.'))
    };
    Ok(entries(dir)?.into_iter().filter(is_source).collect())
}

/// The paths in `dir`, sorted.
///
/// # Errors
/// When the folder cannot be listed.
pub fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = list().at("list the folder", dir)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(_: &str) {}

    #[test]
    fn a_folder_is_filled_once_and_a_failed_fill_begins_anew() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache { root: place.path().to_owned(), say: quiet };
        let fail = |dir: &Path| {
            fs::write(dir.join("half"), "").unwrap();
            Err(BuildError::toolchain("no network"))
        };
        assert!(cache.folder("tool", fail).is_err());
        let filled = cache.folder("tool", |dir| {
            assert!(!dir.join("half").exists(), "of the unfinished one nothing is left");
            write_whole(&dir.join("tool"), b"x")
        });
        assert!(filled.unwrap().join("tool").is_file());
        cache.folder("tool", |_| -> Result<()> { panic!("it is there") }).unwrap();
    }

    #[test]
    fn a_file_is_written_through_no_link() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("other"), "theirs").unwrap();
        for link in ["lock".to_owned(), format!("lock.{}.tmp", std::process::id())] {
            std::os::unix::fs::symlink(at("other"), at(&link)).unwrap();
        }
        write_whole(&at("lock"), b"ours").unwrap();
        assert_eq!(
            (fs::read(at("lock")).unwrap(), fs::read(at("other")).unwrap()),
            (b"ours".to_vec(), b"theirs".to_vec())
        );
        assert!(!at("lock").is_symlink());
        assert_eq!(entries(place.path()).unwrap(), [at("lock"), at("other")]);
    }

    #[test]
    fn a_component_is_made_again_only_when_its_inputs_change() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache { root: place.path().to_owned(), say: quiet };
        let make = |text: &'static str| move |path: &Path| write_whole(path, text.as_bytes());
        assert_eq!(cache.component("a", Digest::of(b"1"), make("one")).unwrap(), b"one");
        assert_eq!(cache.component("a", Digest::of(b"1"), make("two")).unwrap(), b"one");
        assert_eq!(cache.component("a", Digest::of(b"2"), make("two")).unwrap(), b"two");
    }

    #[test]
    fn a_digest_of_a_tree_sees_names_and_contents_and_nothing_that_tools_leave() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        fs::create_dir_all(dir.join("package/__pycache__")).unwrap();
        fs::write(dir.join("package/a.py"), "1").unwrap();
        let first = digest_tree(dir, &["tests"]).unwrap();
        for noise in ["target", "tests", ".git"] {
            fs::create_dir(dir.join(noise)).unwrap();
            fs::write(dir.join(noise).join("x"), "noise").unwrap();
        }
        fs::write(dir.join("package/__pycache__/a.pyc"), "noise").unwrap();
        assert_eq!(digest_tree(dir, &["tests"]).unwrap(), first);
        fs::rename(dir.join("package/a.py"), dir.join("package/b.py")).unwrap();
        assert_ne!(digest_tree(dir, &["tests"]).unwrap(), first);
    }
}
