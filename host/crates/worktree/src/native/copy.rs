//! The copy for a check: exactly what would be committed, below the scratch directory.
//!
//! Installed dependencies of Node.js are not part of it; the checkout's are visible there, see
//! [`longhaul_sandbox::Program::node_modules`].

use super::check::NativeCheck;
use super::error::NativeError;
use super::pinned::{Pinned, PinnedFiles, Source};
use super::spare::{Spare, SpareSlot};
use crate::caps::TreeCaps;
use crate::git::UserRepository;
use crate::names::shown;
use crate::root::Root;
use crate::scan::{Base, Entry, Mode, ScanState, content};
use crate::tree::{Tree, put};
use crate::{Scan, TreeError};
use git2::{ObjectType, Oid, Repository};
use longhaul_judge::{CheckFiles, Launch};
use longhaul_sandbox::{SandboxHost, remove_all};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A copy of exactly what would be committed, for a check that another sandbox runs.
pub struct ExactCopy(Copy);

impl ExactCopy {
    /// Makes a copy. Blocks.
    ///
    /// # Errors
    /// When the tree cannot be read or the copy not be written.
    pub fn make(host: &SandboxHost, project: &UserRepository, tree: &Tree, parent: &str) -> Result<Self, NativeError> {
        Ok(Self(Copy::of(host, project, tree, parent, |_| {})?))
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.0.dir().join("work")
    }

    /// Returns it for the next check. Blocks.
    pub fn done(self) {
        self.0.done();
    }
}

/// Bytes that are read of a file that a program left.
const LEFT_BYTES_MAX: u64 = 128 << 20;

/// The copy for a check.
pub(super) struct Copy {
    held: Spare,
    spare: SpareSlot,
    files: BTreeMap<Vec<u8>, Source>,
    pub(super) scan: Scan,
    /// Files of a test runner whose changes the check does not see.
    pub(super) unseen: Vec<String>,
    /// Files that were taken from the base commit.
    pub(super) pinned: Vec<String>,
}

impl Copy {
    pub(super) fn make(
        host: &SandboxHost,
        project: &UserRepository,
        tree: &Tree,
        parent: &str,
        name: &str,
        check: &NativeCheck,
        pins: &PinnedFiles,
    ) -> Result<Self, NativeError> {
        let repo = project.repo()?;
        let base = Base::read(&repo, &pins.base, tree.caps())?;
        let pinned = Pinned::of(&base, check);
        let found = pinned.digest(check);
        if found != pins.digest {
            let (expected, found) = (pins.digest.short(), found.short());
            return Err(NativeError::NotPinned { name: name.to_owned(), expected, found });
        }
        let mut unseen = Vec::new();
        let mut copy = Self::of(host, project, tree, parent, |files| unseen = pinned.put_over(files))?;
        copy.unseen = unseen;
        copy.pinned = pinned.files.keys().map(|path| shown(path)).collect();
        Ok(copy)
    }

    fn of(
        host: &SandboxHost,
        project: &UserRepository,
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
        let entries = files.iter().map(|(path, source)| (path.clone(), source.entry())).collect();
        let write = |copy: &Root, path: &[u8]| write_source(&repo, &root, copy, path, &files[path], tree.caps());
        let spare = tree.spare().clone();
        if let Some(mut held) = spare.take(&host.scratch)
            && held.bring_to(&entries, write).is_ok()
        {
            return Ok(Self { held, spare, files, scan, unseen: Vec::new(), pinned: Vec::new() });
        }
        let mut held = Spare::fresh(&host.scratch)?;
        held.bring_to(&entries, write)?;
        Ok(Self { held, spare, files, scan, unseen: Vec::new(), pinned: Vec::new() })
    }

    /// Prepares it for a program: restored to its original state, in another directory if needed, with the program's
    /// own files over the work and beside it.
    pub(super) fn make_ready(
        &mut self,
        project: &UserRepository,
        tree: &Tree,
        launch: &Launch,
    ) -> Result<(), TreeError> {
        let repo = project.repo()?;
        let root = tree.root()?;
        let is_over = |path: &Vec<u8>| std::str::from_utf8(path).is_ok_and(|path| launch.over.contains_key(path));
        let rest = self.files.iter().filter(|(path, _)| !is_over(path));
        let entries = rest.map(|(path, source)| (path.clone(), source.entry())).collect();
        let files = &self.files;
        let write = |copy: &Root, path: &[u8]| write_source(&repo, &root, copy, path, &files[path], tree.caps());
        if let Err(error) = self.held.bring_to(&entries, write) {
            tracing::debug!(path = %self.dir().display(), %error, "a program's copy is not used again");
            let scratch = self.dir().parent().unwrap_or(self.dir()).to_owned();
            self.held = Spare::fresh(&scratch)?;
            self.held.bring_to(&entries, write)?;
        }
        let work = self.work()?;
        for (path, bytes) in &launch.over {
            work.write(path.as_bytes(), bytes, false).map_err(TreeError::io("write", work.path(path.as_bytes())))?;
        }
        let top = Root::open(self.dir()).map_err(TreeError::io("open", self.dir()))?;
        for (name, bytes) in &launch.beside {
            let path = format!("{}/{name}", longhaul_judge::BESIDE);
            top.write(path.as_bytes(), bytes, false).map_err(TreeError::io("write", top.path(path.as_bytes())))?;
        }
        Ok(())
    }

    /// True when it is a project with Node.js whose dependencies are elsewhere: installed ones are ignored, and so not
    /// in the copy.
    pub(super) fn is_without_modules(&self) -> bool {
        let is_of_modules = |path: &[u8]| path.split(|byte| *byte == b'/').next() == Some(b"node_modules");
        self.files.contains_key(&b"package.json"[..]) && !self.files.keys().any(|path| is_of_modules(path))
    }

    /// True when a module of Go is at its top.
    pub(super) fn is_go_module(&self) -> bool {
        self.files.contains_key(&b"go.mod"[..])
    }

    /// The file that a program left at `path`, from the scratch directory.
    pub(super) fn left(&self, path: &str) -> Option<Vec<u8>> {
        let top = Root::open(self.dir()).ok()?;
        content(&top, path.as_bytes(), false, LEFT_BYTES_MAX).ok()
    }

    fn work(&self) -> Result<Root, TreeError> {
        let work = self.dir().join("work");
        Root::open(&work).map_err(TreeError::io("open", &work))
    }

    pub(super) fn dir(&self) -> &Path {
        self.held.dir()
    }

    /// Returns the directory for the next check.
    pub(super) fn done(self) {
        self.spare.put(self.held);
    }
}

fn sources(seen: &ScanState) -> BTreeMap<Vec<u8>, Source> {
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

/// Files of the tree are compared with the scan once more, so that the check sees the scanned content.
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

/// Removes every copy in `scratch`. Only for the owner of the directory, before its first check: a killed host may have
/// had the same process id.
pub fn clear_scratch(scratch: &Path) {
    for entry in std::fs::read_dir(scratch).into_iter().flatten().filter_map(Result::ok) {
        if let Err(error) = remove_all(&entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove the copy of a check");
        }
    }
}

/// Removes copies of killed hosts.
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

/// The files of a copy and of its base commit, for the judge.
pub(super) struct CopyFiles<'a> {
    copy: &'a Copy,
    work: Root,
    repo: Repository,
    base: Base,
}

impl<'a> CopyFiles<'a> {
    pub(super) fn of(copy: &'a Copy, project: &UserRepository, base: &str, caps: &TreeCaps) -> Result<Self, TreeError> {
        let repo = project.repo()?;
        let base = Base::read(&repo, base, caps)?;
        Ok(Self { copy, work: copy.work()?, repo, base })
    }
}

/// A test file, which is read whole.
const READ_BYTES_MAX: u64 = 4 << 20;

impl CheckFiles for CopyFiles<'_> {
    fn paths(&self) -> Vec<String> {
        plain(self.copy.files.iter().map(|(path, source)| (path, source.entry())))
    }

    fn read(&self, path: &str) -> Option<String> {
        String::from_utf8(content(&self.work, path.as_bytes(), false, READ_BYTES_MAX).ok()?).ok()
    }

    fn base_paths(&self) -> Vec<String> {
        plain(self.base.files.iter().map(|(path, entry)| (path, *entry)))
    }

    fn read_base(&self, path: &str) -> Option<String> {
        let blob = self.repo.find_blob(self.base.files.get(path.as_bytes())?.id).ok()?;
        String::from_utf8(blob.content().to_vec()).ok()
    }

    fn pinned(&self) -> Vec<String> {
        self.copy.pinned.clone()
    }
}

/// Plain files whose names are text.
fn plain<'a>(files: impl Iterator<Item = (&'a Vec<u8>, Entry)>) -> Vec<String> {
    let files = files.filter(|(_, entry)| matches!(entry.mode, Mode::File | Mode::Executable));
    files.filter_map(|(path, _)| String::from_utf8(path.clone()).ok()).collect()
}
