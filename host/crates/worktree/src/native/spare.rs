//! A directory for checks, kept from one to the next.
//!
//! Writing thousands of files for each check, and deleting them again, costs more than most checks do. So a copy is
//! kept, and only the differences are written. Files that a check left are not trusted: everything that was not written
//! here is removed, and a file stays only with the stamp it was written with. Refuses to repair a directory in which a
//! check changed a written file, or which it gave attributes: then another one is made, since new files would show the
//! next check what this one saw.

use crate::TreeError;
use crate::names::{join, shown};
use crate::root::{EntryKind, EntryStamp, Root};
use crate::scan::{Entry, Mode, content};
use git2::{ObjectType, Oid};
use longhaul_sandbox::remove_all;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// Empty directories beside a check's work.
const BESIDE: [&str; 3] = ["home", "tmp", "dev"];

/// The slot of a tree for its unused copy. Clones share the slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpareSlot(Arc<Mutex<Option<Spare>>>);

impl SpareSlot {
    /// The copy that was returned last, if it is below `scratch`.
    pub(super) fn take(&self, scratch: &Path) -> Option<Spare> {
        let spare = self.0.lock().ok()?.take()?;
        (spare.dir.path().parent() == Some(scratch)).then_some(spare)
    }

    /// Keeps a copy for the next check, without the files that the last one left. One is enough: if there is another,
    /// or if this one cannot be cleaned, it is removed.
    pub(super) fn put(&self, mut spare: Spare) {
        if let Err(error) = spare.tidy() {
            tracing::debug!(path = %spare.dir.path().display(), %error, "a check's copy is not kept");
            return;
        }
        if let Ok(mut place) = self.0.lock() {
            place.get_or_insert(spare);
        }
    }
}

/// A scratch directory with `work` in it, and the stamps of the written files.
#[derive(Debug)]
pub(super) struct Spare {
    dir: tempfile::TempDir,
    written: HashMap<Vec<u8>, (Entry, EntryStamp)>,
    /// Seconds of the clock when a check last got it.
    given_s: i64,
}

impl Spare {
    /// An empty directory. Its name begins with this process's id.
    pub(super) fn fresh(scratch: &Path) -> Result<Self, TreeError> {
        let prefix = format!("check-{}-", std::process::id());
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir_in(scratch);
        let dir = dir.map_err(TreeError::io("make a copy in", scratch))?;
        make_dir(&dir.path().join("work"))?;
        Ok(Self { dir, written: HashMap::new(), given_s: 0 })
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Makes `work` hold exactly `files`; `write` writes one there.
    pub(super) fn bring_to(
        &mut self,
        files: &BTreeMap<Vec<u8>, Entry>,
        write: impl Fn(&Root, &[u8]) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        self.empty_beside()?;
        let root = self.root()?;
        let mut kept = self.clear(&root, files)?;
        self.written.clear();
        for (path, entry) in files {
            let stamp = match kept.remove(path) {
                Some(stamp) => stamp,
                None => {
                    write(&root, path)?;
                    let found = root.stamp(path).map_err(TreeError::io("look at", root.path(path)))?;
                    found.ok_or_else(|| TreeError::Raced { path: shown(path) })?
                }
            };
            self.written.insert(path.clone(), (*entry, stamp));
        }
        self.given_s = now_s();
        Ok(())
    }

    /// Removes everything that changed since it was written.
    fn tidy(&mut self) -> Result<(), TreeError> {
        self.empty_beside()?;
        let files = self.written.iter().map(|(path, (entry, _))| (path.clone(), *entry)).collect();
        let root = self.root()?;
        let kept = self.clear(&root, &files)?;
        self.written.retain(|path, _| kept.contains_key(path));
        Ok(())
    }

    fn root(&self) -> Result<Root, TreeError> {
        let work = self.dir.path().join("work");
        Root::open(&work).map_err(TreeError::io("open", &work))
    }

    /// A check may write beside `work` too.
    fn empty_beside(&self) -> Result<(), TreeError> {
        let top = self.dir.path();
        let entries = std::fs::read_dir(top).map_err(TreeError::io("list", top))?;
        for entry in entries {
            let path = entry.map_err(TreeError::io("list", top))?.path();
            let is_dir = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
            let removed = match is_dir {
                true if path == top.join("work") => Ok(()),
                true => remove_all(&path),
                false => std::fs::remove_file(&path),
            };
            removed.map_err(TreeError::io("remove", &path))?;
        }
        BESIDE.iter().try_for_each(|name| make_dir(&top.join(name)))
    }

    /// Removes files that are unwanted or changed since they were written; returns the others, with their stamps.
    fn clear(&self, root: &Root, files: &BTreeMap<Vec<u8>, Entry>) -> Result<HashMap<Vec<u8>, EntryStamp>, TreeError> {
        let dirs = directories(files);
        let mut kept = HashMap::new();
        let mut waiting = vec![Vec::new()];
        while let Some(dir) = waiting.pop() {
            // Further attributes of a new directory are inherited; it works once, and is not kept.
            if self.given_s != 0 {
                root.make_plain(&dir).map_err(TreeError::io("keep", root.path(&dir)))?;
            }
            for (name, stamp) in root.list(&dir).map_err(TreeError::io("list", root.path(&dir)))? {
                let path = join(&dir, &name);
                if stamp.sort == EntryKind::Dir && dirs.contains(&*path) {
                    waiting.push(path);
                } else if files.get(&path).is_some_and(|entry| self.is_as_written(root, &path, stamp, *entry)) {
                    kept.insert(path, stamp);
                } else {
                    root.remove(&path).map_err(TreeError::io("remove", root.path(&path)))?;
                }
            }
        }
        let is_wanted_still = |path: &Vec<u8>, (was, _): &(Entry, EntryStamp)| files.get(path) == Some(was);
        match self.written.iter().find(|(path, was)| is_wanted_still(path, was) && !kept.contains_key(*path)) {
            Some((path, _)) => Err(TreeError::Raced { path: shown(path) }),
            None => Ok(kept),
        }
    }

    /// A stamp is proof once it is older than the time when a check got the file; until then the content is compared.
    fn is_as_written(&self, root: &Root, path: &[u8], stamp: EntryStamp, wanted: Entry) -> bool {
        if self.written.get(path) != Some(&(wanted, stamp)) {
            return false;
        }
        stamp.is_settled_at(self.given_s) || {
            let bytes = content(root, path, wanted.mode == Mode::Link, stamp.len).ok();
            bytes.and_then(|bytes| Oid::hash_object(ObjectType::Blob, &bytes).ok()) == Some(wanted.id)
        }
    }
}

impl Drop for Spare {
    /// Checks nest directories deeper than the library removes, and take permissions away.
    fn drop(&mut self) {
        self.dir.disable_cleanup(true);
        let path: PathBuf = self.dir.path().to_owned();
        if let Err(error) = remove_all(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove the copy of a check");
        }
    }
}

/// The directories of `files`. A submodule is an empty one.
fn directories(files: &BTreeMap<Vec<u8>, Entry>) -> HashSet<&[u8]> {
    let mut dirs = HashSet::new();
    for (path, entry) in files {
        let mut path: &[u8] = path;
        if entry.mode == Mode::Module {
            dirs.insert(path);
        }
        while let Some(slash) = path.iter().rposition(|byte| *byte == b'/') {
            path = &path[..slash];
            if !dirs.insert(path) {
                break;
            }
        }
    }
    dirs
}

fn make_dir(dir: &Path) -> Result<(), TreeError> {
    std::fs::create_dir(dir).map_err(TreeError::io("make", dir))
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}
