//! The cache outside the tree: tools that take a minute to fetch and that every clone can share.
//!
//! A folder counts only when its marker is there, and the marker is renamed into place last, so an
//! interrupted fill is thrown away by the next one. Nothing is ever updated in place: what a folder
//! holds is said by its name. Deleting the whole cache is always safe.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use sha2::{Digest, Sha256};

/// Written last into a folder that is whole.
const MARKER: &str = ".whole";

pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache at `$LONGHAUL_CACHE`, `$XDG_CACHE_HOME/longhaul` or `~/.cache/longhaul`.
    pub(crate) fn open() -> Result<Self> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let root = set("LONGHAUL_CACHE")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|dir| Path::new(&dir).join("longhaul")))
            .or_else(|| set("HOME").map(|dir| Path::new(&dir).join(".cache/longhaul")))
            .ok_or_else(|| anyhow!("no place for the cache: set LONGHAUL_CACHE to a folder that may grow to 1 GB"))?;
        create_dir(&root)?;
        // Programs are started in other folders, so a relative `$LONGHAUL_CACHE` must not stay one.
        let root = fs::canonicalize(&root).with_context(|| format!("find the cache `{}`", root.display()))?;
        Ok(Self { root })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The folder `name`, filled by `fill` if it is not whole yet.
    ///
    /// Of several processes one fills and the others wait.
    pub(crate) fn folder(&self, name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let dir = self.path(name);
        if dir.join(MARKER).is_file() {
            return Ok(dir);
        }
        let _lock = lock(&self.path(&format!("{name}.lock")))?;
        if dir.join(MARKER).is_file() {
            return Ok(dir);
        }
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("remove the unfinished `{}`", dir.display()))?;
        }
        create_dir(&dir)?;
        fill(&dir)?;
        write_whole(&dir.join(MARKER), b"")?;
        Ok(dir)
    }
}

/// Holds the lock file `path` until dropped; says so when it must wait.
pub(crate) fn lock(path: &Path) -> Result<File> {
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    let name = path.display();
    let file = File::create(path).with_context(|| format!("open the lock `{name}`"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("waiting for another process, which holds `{name}`");
            file.lock().with_context(|| format!("lock `{name}`"))?;
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("lock `{name}`"));
        }
    }
    Ok(file)
}

/// Writes `path` so that a reader sees the old file or the new one, never a part.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let partial = path.with_file_name(name);
    fs::write(&partial, bytes).with_context(|| format!("write `{}`", partial.display()))?;
    fs::rename(&partial, path).with_context(|| format!("write `{}`", path.display()))
}

pub(crate) fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("create the folder `{}`", path.display()))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("read `{}`", path.display()))
}

/// A digest of parts that cannot run into one another: each goes in with its length.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A digest of all files below `dir`, names and contents, without what interpreters leave behind.
pub(crate) fn digest_tree(dir: &Path) -> Result<String> {
    let mut files = Vec::new();
    list_files(dir, &mut files)?;
    files.sort();
    let mut parts = Vec::new();
    for file in &files {
        let name = file.strip_prefix(dir).unwrap_or(file);
        parts.push(name.as_os_str().as_encoded_bytes().to_vec());
        parts.push(read(file)?);
    }
    Ok(digest(parts.iter().map(Vec::as_slice)))
}

fn list_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for path in entries(dir)? {
        let left_behind = path.ends_with("__pycache__") || path.extension() == Some("pyc".as_ref());
        if left_behind {
            continue;
        }
        if path.is_dir() {
            list_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The paths in `dir`, sorted.
pub(crate) fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let mut paths = list().with_context(|| format!("list the folder `{}`", dir.display()))?;
    paths.sort();
    Ok(paths)
}
