//! What a check runs on: a fresh copy of exactly what would be committed, below the scratch directory.

use super::pinned::Pinned;
use super::{CheckHost, NativeCheck, NativeError, Pins};
use crate::at::{Root, remove_all};
use crate::git::Project;
use crate::scan::{Base, Entry, Mode, Seen, content, shown};
use crate::tree::{Tree, TreeCaps, put};
use crate::{Scan, TreeError};
use git2::{ObjectType, Oid, Repository};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A copy of exactly what would be committed, for a check that another sandbox runs.
pub struct ExactCopy(Copy);

impl ExactCopy {
    /// Makes one. Blocks.
    ///
    /// # Errors
    /// When the tree cannot be read or the copy not be written.
    pub fn make(host: &CheckHost, project: &Project, tree: &Tree, parent: &str) -> Result<Self, NativeError> {
        Ok(Self(Copy::of(host, project, tree, parent, |_| {})?))
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.0.scratch.path().join("work")
    }

    /// Removes it. Blocks.
    pub fn remove(self) {
        self.0.remove();
    }
}

/// Where a file of the copy comes from.
pub(super) enum Source {
    Base(Entry),
    Tree(Entry),
}

/// What a check runs on.
pub(super) struct Copy {
    pub(super) scratch: tempfile::TempDir,
    pub(super) scan: Scan,
}

impl Copy {
    pub(super) fn make(
        host: &CheckHost,
        project: &Project,
        tree: &Tree,
        parent: &str,
        name: &str,
        check: &NativeCheck,
        pins: &Pins,
    ) -> Result<Self, NativeError> {
        let repo = project.repo()?;
        let base = Base::read(&repo, &pins.base, tree.caps())?;
        let pinned = Pinned::of(&base, check);
        let found = pinned.digest(check);
        if found != pins.digest {
            let (expected, found) = (pins.digest.short(), found.short());
            return Err(NativeError::NotPinned { name: name.to_owned(), expected, found });
        }
        Self::of(host, project, tree, parent, |files| pinned.put_over(files))
    }

    fn of(
        host: &CheckHost,
        project: &Project,
        tree: &Tree,
        parent: &str,
        put_over: impl FnOnce(&mut BTreeMap<Vec<u8>, Source>),
    ) -> Result<Self, NativeError> {
        let repo = project.repo()?;
        let root = tree.root()?;
        let seen = tree.look(project, &root, parent)?;
        let scan = seen.judged(&root)?;
        let mut files = sources(&seen);
        put_over(&mut files);
        remove_left_over(&host.scratch);
        let prefix = format!("check-{}-", std::process::id());
        let scratch = tempfile::Builder::new().prefix(&prefix).tempdir_in(&host.scratch);
        let scratch = scratch.map_err(TreeError::io("make a copy in", &host.scratch))?;
        for dir in ["work", "home", "tmp", "dev"] {
            let dir = scratch.path().join(dir);
            std::fs::create_dir(&dir).map_err(TreeError::io("make", &dir))?;
        }
        let work = scratch.path().join("work");
        let copy = Root::open(&work).map_err(TreeError::io("open", &work))?;
        for (path, source) in &files {
            write_source(&repo, &root, &copy, path, source, tree.caps())?;
        }
        Ok(Self { scratch, scan })
    }

    pub(super) fn remove(self) {
        let path = self.scratch.keep();
        if let Err(error) = remove_all(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove the copy of a check");
        }
    }
}

fn sources(seen: &Seen) -> BTreeMap<Vec<u8>, Source> {
    let base = seen.base.files.iter().map(|(path, entry)| (path.clone(), Source::Base(*entry)));
    let mut files: BTreeMap<Vec<u8>, Source> = base.collect();
    for item in seen.to_commit() {
        match item.now {
            Some(now) => files.insert(item.raw.clone(), Source::Tree(now)),
            None => files.remove(&item.raw),
        };
    }
    files
}

/// What comes from the tree is compared with the scan once more, so that the check sees what was scanned.
fn write_source(
    repo: &Repository,
    tree: &Root,
    copy: &Root,
    path: &[u8],
    source: &Source,
    caps: &TreeCaps,
) -> Result<(), TreeError> {
    let entry = match source {
        Source::Base(entry) => return put(repo, copy, path, *entry),
        Source::Tree(entry) => *entry,
    };
    let bytes = content(tree, path, entry.mode == Mode::Link, caps.file_bytes_max)?;
    let id = Oid::hash_object(ObjectType::Blob, &bytes).map_err(TreeError::git("hash a file"))?;
    if id != entry.id {
        return Err(TreeError::Raced { path: shown(path) });
    }
    let written = match entry.mode {
        Mode::Link => copy.write_link(path, &bytes),
        mode => copy.write(path, &bytes, mode == Mode::Executable),
    };
    written.map_err(TreeError::io("write", copy.path(path)))
}

/// Removes every copy in `scratch`. Only for the owner of the directory, before its first check: a host
/// that was killed may have had the same process id.
pub fn clear_scratch(scratch: &Path) {
    for entry in std::fs::read_dir(scratch).into_iter().flatten().filter_map(Result::ok) {
        if let Err(error) = remove_all(&entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove the copy of a check");
        }
    }
}

/// Copies of hosts that were killed.
fn remove_left_over(scratch: &Path) {
    let Ok(entries) = std::fs::read_dir(scratch) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("check-")?.split('-').next()?.parse::<i32>().ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let is_dead = |pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
        if pid.is_some_and(is_dead) {
            let _ = remove_all(&entry.path());
        }
    }
}
