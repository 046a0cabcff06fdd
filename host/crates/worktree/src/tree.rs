//! The directory that agents work in.
//!
//! A checkout appears complete or not at all; discarding may be killed anywhere and repeated. Refuses commits that are
//! too large to check out; writes through no link, and nothing outside its directory except `DIR.tmp-*`,
//! `DIR.ref-move`, `DIR.merge` and `DIR.at` beside it.

use crate::caps::{TreeCaps, cap};
use crate::git::{CommitOrder, Committed, UserRepository};
use crate::names::shown;
use crate::native::SpareSlot;
use crate::root::{Root, sync_dir, write_whole};
use crate::scan::{Base, ChangeKind, Entry, FileChange, Item, Known, Mode, Scan, ScanState, Stamped, content, count};
use crate::write::Writer;
use crate::{Hook, TreeError};
use base64::Engine as _;
use git2::Repository;
use longhaul_core::Digest;
use longhaul_sandbox::remove_all;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A plain directory made from a commit. Cheap to clone; clones share their known blob ids and digests, and the copy
/// that checks run on.
#[derive(Clone, Debug)]
pub struct Tree {
    dir: PathBuf,
    caps: TreeCaps,
    known: Arc<Known>,
    digests: Arc<Stamped<Digest>>,
    spare: SpareSlot,
}

/// A tree, with notes for a person.
#[derive(Clone, Debug)]
pub struct PreparedTree {
    /// The tree.
    pub tree: Tree,
    /// False when it existed before and nothing was written.
    pub fresh: bool,
    /// Notes for the operator, for example submodules that were left empty.
    pub notes: Vec<String>,
}

impl Tree {
    /// Writes the files of `commit` into `dir`, which appears complete or not at all. An existing `dir` is used
    /// unchanged: it is the tree of a resumed run.
    ///
    /// # Errors
    /// When the commit is too large or does not exist, or the file system refuses.
    pub fn checkout(
        project: &UserRepository,
        dir: &Path,
        commit: &str,
        caps: &TreeCaps,
        hook: Hook<'_>,
    ) -> Result<PreparedTree, TreeError> {
        let dir = std::path::absolute(dir).map_err(TreeError::io("find", dir))?;
        remove_left_over(&dir)?;
        let is_there = std::fs::symlink_metadata(&dir).is_ok();
        let tree = Self { caps: caps.clone(), ..Self::in_dir(&dir) };
        if is_there {
            // Refuses anything but a directory.
            tree.root()?;
            return Ok(PreparedTree { tree, fresh: false, notes: Vec::new() });
        }
        let notes = tree.write_fresh(project, commit, |_| Ok(()), hook)?;
        tree.note_at(commit)?;
        Ok(PreparedTree { tree, fresh: true, notes })
    }

    /// The tree in `dir`, now or once it is checked out.
    #[must_use]
    pub fn in_dir(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            caps: TreeCaps::default(),
            known: Arc::default(),
            digests: Arc::default(),
            spare: SpareSlot::default(),
        }
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The slot of the copy for its checks.
    pub(crate) fn spare(&self) -> &SpareSlot {
        &self.spare
    }

    /// All differences to the commit `parent`.
    ///
    /// # Errors
    /// A link that leaves the tree, a cap, or the file system.
    pub fn scan(&self, project: &UserRepository, parent: &str) -> Result<Scan, TreeError> {
        let root = self.root()?;
        self.look(project, &root, parent)?.judged(&root)
    }

    /// The files that differ from the commit `parent`.
    ///
    /// # Errors
    /// As [`Tree::scan`].
    pub fn changes(&self, project: &UserRepository, parent: &str) -> Result<Vec<FileChange>, TreeError> {
        Ok(self.scan(project, parent)?.changes)
    }

    /// Paths and texts of the changed files, at most `bytes_max` bytes of text together. Each file may use an equal
    /// share, or an eighth if that is more, so that one large file hides no other.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn evidence(&self, changes: &[FileChange], bytes_max: u64) -> Result<Vec<(String, String)>, TreeError> {
        let root = self.root()?;
        let share = (bytes_max / count(changes.len()).max(1)).max(bytes_max / 8);
        let mut left = bytes_max;
        let mut evidence = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            let text = self.text_of(&root, change, share.min(left))?;
            let used = count(change.path.len() + text.len());
            if used > left {
                evidence.push(("...".to_owned(), format!("[{} more files, over the limit]", changes.len() - at)));
                break;
            }
            left -= used;
            evidence.push((change.path.clone(), text));
        }
        Ok(evidence)
    }

    /// The differences as JSON, to be stored before they are discarded. Refuses nothing: files beyond `bytes_max` are
    /// named, and so is the reason why a tree cannot be read.
    ///
    /// # Errors
    /// When the file system or git refuses.
    pub fn best_effort(&self, project: &UserRepository, parent: &str, bytes_max: u64) -> Result<Vec<u8>, TreeError> {
        let root = self.root()?;
        let (mut files, mut left_out, mut left) = (Map::new(), Map::new(), bytes_max);
        match self.look(project, &root, parent) {
            Ok(seen) => {
                for item in &seen.items {
                    match self.keep(&root, item, &mut left) {
                        Ok(value) => files.insert(shown(&item.raw), value),
                        Err(why) => left_out.insert(shown(&item.raw), why.into()),
                    };
                }
            }
            Err(error) if error.is_of_the_work() => {
                left_out.insert("...".to_owned(), error.to_string().into());
            }
            Err(error) => return Err(error),
        }
        let bundle = json!({ "version": 1, "parent": parent, "files": files, "left_out": left_out });
        Ok(bundle.to_string().into_bytes())
    }

    /// Restores the tree to the commit `parent`; ignored files stay. May be killed and repeated. A tree that is over a
    /// cap, or missing, is checked out again, without its ignored files.
    ///
    /// # Errors
    /// When the file system or git refuses.
    pub fn discard(&self, project: &UserRepository, parent: &str, hook: Hook<'_>) -> Result<(), TreeError> {
        hook("tree.before-discard");
        self.restore_to(project, parent, hook)?;
        self.note_at(parent)?;
        hook("tree.after-discard");
        Ok(())
    }

    pub(crate) fn restore_to(&self, project: &UserRepository, parent: &str, hook: Hook<'_>) -> Result<(), TreeError> {
        let seen = match std::fs::symlink_metadata(&self.dir) {
            Ok(_) => self.root().and_then(|root| Ok((self.look(project, &root, parent)?, root))).map(Some),
            Err(_) => Ok(None),
        };
        match seen {
            Ok(Some((seen, root))) => self.restore(project, &root, &seen, hook),
            Ok(None) => self.replace(project, parent, hook),
            Err(error) if error.is_of_the_work() => self.replace(project, parent, hook),
            Err(error) => Err(error),
        }
    }

    /// Removes the tree in `directory`, whatever programs wrote there, and the notes beside it. Succeeds when there is
    /// none. A marker of a moving branch stays: it tells of the repository.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn remove(directory: &Path) -> Result<(), TreeError> {
        let failed = || TreeError::io("remove", directory);
        match std::fs::symlink_metadata(directory) {
            Ok(found) if found.is_dir() => remove_all(directory).map_err(failed())?,
            Ok(_) => std::fs::remove_file(directory).map_err(failed())?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed()(error)),
        }
        [".merge", ".at"].iter().try_for_each(|suffix| remove_if_there(&beside(directory, suffix)))
    }

    /// The commit that the tree was last brought to; none if an earlier version left it.
    #[must_use]
    pub fn at(&self) -> Option<String> {
        let text = std::fs::read_to_string(beside(&self.dir, ".at")).ok()?;
        let commit = text.trim();
        (commit.len() == 40).then(|| commit.to_owned())
    }

    pub(crate) fn note_at(&self, commit: &str) -> Result<(), TreeError> {
        let path = beside(&self.dir, ".at");
        write_whole(&path, commit.as_bytes()).map_err(TreeError::io("write", &path))
    }

    /// Commits the differences and moves the branch. None: there are none. Repeated with the same order it returns the
    /// same commit.
    ///
    /// # Errors
    /// When the branch moved, is locked or checked out, or the tree differs from the expected one.
    pub fn commit(
        &self,
        project: &UserRepository,
        order: &CommitOrder<'_>,
        hook: Hook<'_>,
    ) -> Result<Option<Committed>, TreeError> {
        let made = self.writer(project, &self.root()?, hook).commit(order)?;
        if let Some(made) = &made {
            self.note_at(&made.id)?;
        }
        Ok(made)
    }

    pub(crate) fn writer<'a>(&'a self, project: &'a UserRepository, root: &'a Root, hook: Hook<'a>) -> Writer<'a> {
        let marker = beside(&self.dir, ".ref-move");
        Writer { project, root, caps: &self.caps, known: &self.known, marker, hook }
    }

    pub(crate) fn root(&self) -> Result<Root, TreeError> {
        Root::open(&self.dir).map_err(TreeError::io("open the tree", &self.dir))
    }

    pub(crate) fn look(&self, project: &UserRepository, root: &Root, parent: &str) -> Result<ScanState, TreeError> {
        ScanState::look(project, root, parent, &self.caps, &self.known)
    }

    pub(crate) fn caps(&self) -> &TreeCaps {
        &self.caps
    }

    /// Digests of changed files; see [`Tree::contents`].
    pub(crate) fn digests(&self) -> &Stamped<Digest> {
        &self.digests
    }

    /// Writes the files of `commit`, and what `change` does to them, before the directory appears.
    pub(crate) fn write_fresh(
        &self,
        project: &UserRepository,
        commit: &str,
        change: impl FnOnce(&Root) -> Result<(), TreeError>,
        hook: Hook<'_>,
    ) -> Result<Vec<String>, TreeError> {
        let temporary = beside(&self.dir, &format!(".tmp-{}", std::process::id()));
        let above = self.dir.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(above).map_err(TreeError::io("make", above))?;
        std::fs::create_dir(&temporary).map_err(TreeError::io("make", &temporary))?;
        let root = Root::open(&temporary).map_err(TreeError::io("open", &temporary))?;
        let notes = write_base(&project.repo()?, &root, commit, &self.caps)?;
        change(&root)?;
        // Otherwise a power cut could leave the new name with empty files, which would look like an agent's work.
        root.sync().map_err(TreeError::io("sync", &temporary))?;
        hook("tree.before-checkout-rename");
        std::fs::rename(&temporary, &self.dir).map_err(TreeError::io("put in place", &self.dir))?;
        sync_dir(above).map_err(TreeError::io("sync", above))?;
        hook("tree.after-checkout-rename");
        Ok(notes)
    }

    /// New files go first: one may be in the place of a directory of the commit.
    fn restore(
        &self,
        project: &UserRepository,
        root: &Root,
        seen: &ScanState,
        hook: Hook<'_>,
    ) -> Result<(), TreeError> {
        let repo = project.repo()?;
        let is_base = |path: &[u8]| seen.base.files.contains_key(path);
        let added = seen.items.iter().filter(|item| item.kind == ChangeKind::Added).map(|item| &item.raw);
        for path in seen.left_over.iter().chain(added) {
            hook("tree.before-restore-file");
            root.remove(path).map_err(TreeError::io("remove", root.path(path)))?;
            root.remove_empty_above(path, is_base);
        }
        for item in seen.items.iter().filter(|item| item.kind != ChangeKind::Added) {
            if let Some(entry) = seen.base.files.get(&item.raw) {
                hook("tree.before-restore-file");
                put(&repo, root, &item.raw, *entry)?;
            }
        }
        Ok(())
    }

    /// Moved aside first: after a kill in between, there is no tree, and a checkout makes it.
    fn replace(&self, project: &UserRepository, parent: &str, hook: Hook<'_>) -> Result<(), TreeError> {
        remove_left_over(&self.dir)?;
        if std::fs::symlink_metadata(&self.dir).is_ok() {
            let aside = beside(&self.dir, ".tmp-old");
            hook("tree.before-move-aside");
            std::fs::rename(&self.dir, &aside).map_err(TreeError::io("move aside", &self.dir))?;
            hook("tree.after-move-aside");
        }
        self.write_fresh(project, parent, |_| Ok(()), hook)?;
        remove_left_over(&self.dir)
    }

    fn text_of(&self, root: &Root, change: &FileChange, bytes_max: u64) -> Result<String, TreeError> {
        let path = &change.raw;
        let failed = || TreeError::io("read", root.path(path));
        if change.kind == ChangeKind::Deleted {
            return Ok("[deleted]".to_owned());
        }
        if let Ok(target) = root.read_link(path) {
            return Ok(format!("[symbolic link to {}]", shown(&target)));
        }
        let Some(bytes) = root.read(path, self.caps.file_bytes_max).map_err(failed())? else {
            return Ok(format!("[over {} bytes]", self.caps.file_bytes_max));
        };
        Ok(excerpt(&bytes, bytes_max))
    }

    fn keep(&self, root: &Root, item: &Item, left: &mut u64) -> Result<Value, String> {
        if let Some(why) = &item.left_out {
            return Err(why.clone());
        }
        let Some(now) = item.now else { return Ok(json!({ "deleted": true })) };
        if item.len > *left {
            return Err(format!("has {} bytes, of which {left} were left", item.len));
        }
        let is_link = now.mode == Mode::Link;
        let bytes = content(root, &item.raw, is_link, self.caps.file_bytes_max).map_err(|error| error.to_string())?;
        *left = left.saturating_sub(count(bytes.len()));
        Ok(match String::from_utf8(bytes) {
            Ok(text) if is_link => json!({ "symlink": text }),
            Ok(text) => json!({ "text": text }),
            Err(error) => json!({ "base64": base64::engine::general_purpose::STANDARD.encode(error.as_bytes()) }),
        })
    }
}

/// Writes one file of a commit into a tree.
pub(crate) fn put(repo: &Repository, root: &Root, path: &[u8], entry: Entry) -> Result<(), TreeError> {
    let failed = TreeError::io("write", root.path(path));
    if entry.mode == Mode::Module {
        return root.make_dir(path).map_err(failed);
    }
    let blob = repo.find_blob(entry.id).map_err(TreeError::git("read a blob"))?;
    match entry.mode {
        Mode::Link => root.write_link(path, blob.content()).map_err(failed),
        mode => root.write(path, blob.content(), mode == Mode::Executable).map_err(failed),
    }
}

/// `DIR` with a suffix.
pub(crate) fn beside(dir: &Path, suffix: &str) -> PathBuf {
    let mut path = dir.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

fn write_base(repo: &Repository, root: &Root, commit: &str, caps: &TreeCaps) -> Result<Vec<String>, TreeError> {
    let base = Base::read(repo, commit, caps)?;
    check_bytes(repo, &base, caps)?;
    let mut notes = Vec::new();
    for (path, entry) in &base.files {
        put(repo, root, path, *entry)?;
        if entry.mode == Mode::Module {
            notes.push(format!("submodule `{}` is left empty: agents do not see its files", shown(path)));
        }
    }
    Ok(notes)
}

/// Checks their sizes in the object database, before the first is written.
fn check_bytes(repo: &Repository, base: &Base, caps: &TreeCaps) -> Result<(), TreeError> {
    let odb = repo.odb().map_err(TreeError::git("open the object database"))?;
    let mut bytes = 0_u64;
    for (path, entry) in base.files.iter().filter(|(_, entry)| entry.mode != Mode::Module) {
        let (size, _) = odb.read_header(entry.id).map_err(TreeError::git("read the size of a blob"))?;
        bytes = bytes.saturating_add(count(size));
        cap("bytes_max", bytes, caps.bytes_max, path)?;
    }
    Ok(())
}

/// Removes a file, if it exists.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), TreeError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(TreeError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Removes the remains of a killed checkout. Under the store's lock no other process makes this tree.
pub(crate) fn remove_left_over(dir: &Path) -> Result<(), TreeError> {
    let (Some(above), Some(name)) = (dir.parent(), dir.file_name()) else { return Ok(()) };
    let mut prefix = name.to_owned();
    prefix.push(".tmp-");
    let entries = match std::fs::read_dir(above) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(TreeError::io("list", above))?,
    };
    for entry in entries.filter_map(Result::ok) {
        let is_dir = entry.file_type().is_ok_and(|sort| sort.is_dir());
        if is_dir && entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes()) {
            remove_all(&entry.path()).map_err(TreeError::io("remove", entry.path()))?;
        }
    }
    Ok(())
}

fn excerpt(bytes: &[u8], bytes_max: u64) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else { return format!("[binary, {} bytes]", bytes.len()) };
    if text.contains('\0') {
        return format!("[binary, {} bytes]", bytes.len());
    }
    if count(bytes.len()) <= bytes_max {
        return text.to_owned();
    }
    let note = format!("\n[cut: the file has {} bytes]", bytes.len());
    let room = usize::try_from(bytes_max).unwrap_or(usize::MAX).saturating_sub(note.len());
    format!("{}{note}", &text[..text.floor_char_boundary(room)])
}
