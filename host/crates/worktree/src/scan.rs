//! The differences between the tree and a commit.
//!
//! Content is compared by blob id, without git's filters: the tree's bytes are what would be committed. Refuses links
//! that leave the tree. Ignored files are not part of it; files that are too large, or that git could not hold, are
//! left out and named, so that their author can be told.

use crate::caps::{TreeCaps, cap};
use crate::ignore::Rules;
use crate::names::{self, join, shown};
use crate::root::{EntryKind, EntryStamp, Root, TEMPORARY};
use crate::{TreeError, UserRepository};
use git2::{ObjectType, Oid, Repository};
use longhaul_core::Digest;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Mutex;

/// Bytes of all paths of a tree together, each from the top: a deep directory of many files has long ones.
pub(crate) const PATHS_BYTES_MAX: u64 = 256 << 20;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The commit does not have it.
    Added,
    /// The commit has other content, or another type.
    Modified,
    /// The tree does not have it.
    Deleted,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileChange {
    /// The path from the root of the tree, with `/`. Invalid UTF-8 is shown as `\xNN`.
    pub path: String,
    /// The kind of change.
    pub kind: ChangeKind,
    #[serde(skip)]
    pub(crate) raw: Vec<u8>,
}

/// A changed file that no commit holds.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// The path, as in [`FileChange::path`].
    pub path: String,
    /// The reason and the remedy: follows the path in a sentence.
    pub why: String,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {}", self.path, self.why)
    }
}

/// All differences.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Scan {
    /// The commit that the tree is compared with.
    pub parent: String,
    /// The changes, sorted by path.
    pub changes: Vec<FileChange>,
    /// The files that no commit could hold, sorted by path.
    pub left_out: Vec<LeftOut>,
    /// Git directories within the tree that a program made, as `cargo new` does. The files beside them are committed,
    /// they are not.
    pub repositories: Vec<String>,
    /// The digest of the parent and every change with its content: identifies exactly what would be committed.
    pub digest: Digest,
}

/// The mode of a file in git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    File,
    Executable,
    Link,
    /// A submodule: a commit of another repository, of which the tree has no files.
    Module,
}

impl Mode {
    pub(crate) fn of_git(raw: i32) -> Self {
        match raw & 0o170_000 {
            0o120_000 => Self::Link,
            0o160_000 => Self::Module,
            _ if raw & 0o111 != 0 => Self::Executable,
            _ => Self::File,
        }
    }

    pub(crate) fn to_git(self) -> i32 {
        match self {
            Self::File => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Link => 0o120_000,
            Self::Module => 0o160_000,
        }
    }
}

/// A file of a commit, or of a commit to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: Oid,
    pub(crate) mode: Mode,
}

/// Every file of a commit, by its path.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) commit: Oid,
    pub(crate) tree: Oid,
    pub(crate) files: BTreeMap<Vec<u8>, Entry>,
}

/// A changed file: `now` is none when it is deleted.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) raw: Vec<u8>,
    pub(crate) kind: ChangeKind,
    pub(crate) now: Option<Entry>,
    pub(crate) len: u64,
    pub(crate) left_out: Option<String>,
}

/// All differences, before any refusal.
#[derive(Debug)]
pub(crate) struct ScanState {
    pub(crate) base: Base,
    pub(crate) items: Vec<Item>,
    /// Files that a kill left partly written or removed.
    pub(crate) left_over: Vec<Vec<u8>>,
    /// See [`Scan::repositories`].
    pub(crate) repositories: Vec<Vec<u8>>,
    /// Directories with nothing in them, which git does not have.
    pub(crate) empty_dirs: Vec<Vec<u8>>,
    /// Sockets, pipes and devices.
    pub(crate) special: Vec<Vec<u8>>,
}

/// Names of contents by path, valid as long as the stamp is the same.
pub(crate) type Stamped<T> = Mutex<HashMap<Vec<u8>, (EntryStamp, T)>>;

/// Blob ids.
pub(crate) type Known = Stamped<Oid>;

impl Base {
    /// Reads `commit`, and refuses paths that must not be written.
    pub(crate) fn read(repo: &Repository, commit: &str, caps: &TreeCaps) -> Result<Self, TreeError> {
        let absent = || TreeError::NoCommit { commit: commit.to_owned(), dir: repo.path().to_owned() };
        let id = Oid::from_str(commit).map_err(|_| absent())?;
        let tree = repo.find_commit(id).and_then(|commit| commit.tree()).map_err(|_| absent())?;
        let mut base = Self { commit: id, tree: tree.id(), files: BTreeMap::new() };
        let mut waiting = vec![(Vec::new(), tree.id(), 1)];
        while let Some((above, id, depth)) = waiting.pop() {
            for (name, entry, is_tree) in entries(repo, id)? {
                let path = join(&above, &name);
                if is_unsafe(&name) {
                    return Err(TreeError::UnsafePath { commit: commit.to_owned(), path: shown(&path) });
                }
                if is_tree {
                    cap("depth_max", depth, caps.depth_max, &path)?;
                    waiting.push((path, entry.id, depth + 1));
                } else {
                    cap("files_max", count(base.files.len()) + 1, caps.files_max, &path)?;
                    base.files.insert(path, entry);
                }
            }
        }
        Ok(base)
    }

    /// The submodule at `path` or above it.
    fn module_above<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let is_module = |entry: &Entry| entry.mode == Mode::Module;
        let mut above = slashes.chain([path.len()]).map(|end| &path[..end]);
        above.find(|above| self.files.get(*above).is_some_and(is_module))
    }

    /// True when the commit has files below the directory `rel`.
    fn has_below(&self, rel: &[u8]) -> bool {
        let from = [rel, b"/"].concat();
        self.files.range(from.clone()..).next().is_some_and(|(path, _)| path.starts_with(&from))
    }
}

impl ScanState {
    pub(crate) fn look(
        project: &UserRepository,
        root: &Root,
        parent: &str,
        caps: &TreeCaps,
        known: &Known,
    ) -> Result<Self, TreeError> {
        let repo = project.repo()?;
        let base = Base::read(&repo, parent, caps)?;
        let mut walk = Walk {
            repo: &repo,
            root,
            base: &base,
            caps,
            known,
            steps: Cell::new(0),
            found: Found::default(),
            seen: 0,
            bytes: 0,
            paths_bytes: 0,
        };
        let met = walk.run()?;
        let Found { mut items, left_over, repositories, empty_dirs, special } = walk.found;
        let gone = base.files.iter().filter(|(path, entry)| entry.mode != Mode::Module && !met.contains(*path));
        let gone = gone.map(|(path, _)| path).filter(|path| !path.split(|byte| *byte == b'/').any(is_passed_over));
        items.extend(gone.map(|path| Item {
            raw: path.clone(),
            kind: ChangeKind::Deleted,
            now: None,
            len: 0,
            left_out: None,
        }));
        items.sort_by(|a, b| a.raw.cmp(&b.raw));
        Ok(Self { base, items, left_over, repositories, empty_dirs, special })
    }

    /// The changes that would be committed.
    pub(crate) fn to_commit(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.left_out.is_none())
    }

    /// Refuses links that leave the tree.
    pub(crate) fn judged(&self, root: &Root) -> Result<Scan, TreeError> {
        for item in self.to_commit().filter(|item| item.now.is_some_and(|now| now.mode == Mode::Link)) {
            let target = root.read_link(&item.raw).map_err(TreeError::io("read the link", root.path(&item.raw)))?;
            if link_leaves(&item.raw, &target) {
                return Err(TreeError::LinkLeaves { path: shown(&item.raw), target: shown(&target) });
            }
        }
        Ok(self.scan())
    }

    fn scan(&self) -> Scan {
        let change = |item: &Item| FileChange { path: shown(&item.raw), kind: item.kind, raw: item.raw.clone() };
        let left_out = |item: &Item| Some(LeftOut { path: shown(&item.raw), why: item.left_out.clone()? });
        Scan {
            parent: self.base.commit.to_string(),
            changes: self.to_commit().map(change).collect(),
            left_out: self.items.iter().filter_map(left_out).collect(),
            repositories: self.repositories.iter().map(|path| shown(path)).collect(),
            digest: self.digest(),
        }
    }

    fn digest(&self) -> Digest {
        let mut parts = vec![self.base.commit.to_string().into_bytes()];
        for item in self.to_commit() {
            let now = item.now.map_or_else(|| "gone".to_owned(), |now| format!("{:o} {}", now.mode.to_git(), now.id));
            parts.extend([item.raw.clone(), now.into_bytes()]);
        }
        Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// A walk through the tree, with an explicit stack: the guest chooses the depth.
struct Walk<'a> {
    repo: &'a Repository,
    root: &'a Root,
    base: &'a Base,
    caps: &'a TreeCaps,
    known: &'a Known,
    /// Steps of matching `.gitignore`.
    steps: Cell<u64>,
    found: Found,
    seen: u64,
    bytes: u64,
    paths_bytes: u64,
}

/// The findings of a walk, for [`ScanState`].
#[derive(Default)]
struct Found {
    items: Vec<Item>,
    left_over: Vec<Vec<u8>>,
    repositories: Vec<Vec<u8>>,
    empty_dirs: Vec<Vec<u8>>,
    special: Vec<Vec<u8>>,
}

/// A directory still to walk.
struct Dir {
    path: Vec<u8>,
    depth: u64,
    /// None: it is ignored, and only the commit's files in it count.
    rules: Option<Rc<Rules>>,
}

impl Walk<'_> {
    /// Returns the paths of the commit that exist.
    fn run(&mut self) -> Result<HashSet<Vec<u8>>, TreeError> {
        let mut met = HashSet::new();
        let mut waiting = vec![Dir { path: Vec::new(), depth: 1, rules: Some(Rules::of_repository(self.repo)) }];
        while let Some(dir) = waiting.pop() {
            cap("depth_max", dir.depth, self.caps.depth_max, &dir.path)?;
            let rules = dir.rules.map(|rules| rules.within(self.root, &dir.path)).transpose()?;
            let entries = self.root.list(&dir.path).map_err(TreeError::io("list", self.root.path(&dir.path)))?;
            if entries.is_empty() && !dir.path.is_empty() && !self.base.files.contains_key(&dir.path) {
                self.found.empty_dirs.push(dir.path.clone());
            }
            for (name, stamp) in entries {
                let path = join(&dir.path, &name);
                self.paths_bytes = self.paths_bytes.saturating_add(count(path.len()));
                cap("paths_bytes_max", self.paths_bytes, PATHS_BYTES_MAX, b"")?;
                match stamp.sort {
                    _ if name.starts_with(TEMPORARY) => self.found.left_over.push(path),
                    _ if is_git_dir(&name) => self.git_dir(path, &stamp, rules.as_deref())?,
                    EntryKind::Other if self.is_ignored(&path, false, rules.as_deref())? => {}
                    EntryKind::Other => self.found.special.push(path),
                    EntryKind::Dir => waiting.extend(self.below(path, dir.depth + 1, rules.as_ref())?),
                    EntryKind::File { .. } | EntryKind::Link => {
                        if self.file(&path, &stamp, rules.as_deref())? {
                            met.insert(path);
                        }
                    }
                }
            }
        }
        Ok(met)
    }

    /// An ignored directory is entered only if the commit has files in it, and so is one that git refuses.
    fn below(&mut self, path: Vec<u8>, depth: u64, rules: Option<&Rc<Rules>>) -> Result<Option<Dir>, TreeError> {
        let is_ignored = self.is_ignored(&path, true, rules.map(Rc::as_ref))?;
        let has_below = self.base.has_below(&path);
        if is_ignored && !has_below {
            return Ok(None);
        }
        if let Some(why) = names::refused(&path).filter(|_| !has_below) {
            self.leave_out(path, 0, why);
            return Ok(None);
        }
        Ok(Some(Dir { path, depth, rules: rules.filter(|_| !is_ignored).cloned() }))
    }

    /// A repository directory that a program made is skipped; any other file of that name is work that cannot be
    /// committed.
    fn git_dir(&mut self, path: Vec<u8>, stamp: &EntryStamp, rules: Option<&Rules>) -> Result<(), TreeError> {
        if self.is_ignored(&path, stamp.sort == EntryKind::Dir, rules)? {
            return Ok(());
        }
        let has = |name: &[u8]| self.root.stamp(&join(&path, name)).is_ok_and(|found| found.is_some());
        if path.ends_with(b".git") && has(b"HEAD") && has(b"objects") {
            self.found.repositories.push(path);
        } else if let Some(why) = names::refused(&path) {
            self.leave_out(path, stamp.len, why);
        }
        Ok(())
    }

    fn leave_out(&mut self, raw: Vec<u8>, len: u64, why: String) {
        self.found.items.push(Item { raw, kind: ChangeKind::Added, now: None, len, left_out: Some(why) });
    }

    fn is_ignored(&self, path: &[u8], is_dir: bool, rules: Option<&Rules>) -> Result<bool, TreeError> {
        rules.map_or(Ok(true), |rules| rules.cover(path, is_dir, &self.steps))
    }

    /// True when the commit has this file, changed or not.
    fn file(&mut self, path: &[u8], stamp: &EntryStamp, rules: Option<&Rules>) -> Result<bool, TreeError> {
        let was = self.base.files.get(path).copied();
        if was.is_none() && self.is_ignored(path, false, rules)? {
            return Ok(false);
        }
        self.seen += 1;
        cap("files_max", self.seen, self.caps.files_max, path)?;
        let left_out = self.why_left_out(path, stamp, was.is_none());
        let kind = if was.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        if left_out.is_some() && !self.is_unchanged_giant(path, stamp, was)? {
            self.found.items.push(Item { raw: path.to_vec(), kind, now: None, len: stamp.len, left_out });
        } else if left_out.is_none() {
            let now = Entry { id: self.id_of(path, stamp)?, mode: mode_now(stamp, was) };
            if was != Some(now) {
                self.bytes = self.bytes.saturating_add(stamp.len);
                cap("bytes_max", self.bytes, self.caps.bytes_max, path)?;
                let raw = path.to_vec();
                self.found.items.push(Item { raw, kind, now: Some(now), len: stamp.len, left_out: None });
            }
        }
        Ok(was.is_some())
    }

    fn why_left_out(&self, path: &[u8], stamp: &EntryStamp, is_new: bool) -> Option<String> {
        if let Some(module) = self.base.module_above(path) {
            return Some(in_module(module));
        }
        let refused = is_new.then(|| names::refused(path)).flatten();
        refused.or_else(|| too_large(stamp.len, self.caps))
    }

    /// A file over the cap that the commit has unchanged. Its size is compared first, its content only then.
    fn is_unchanged_giant(&self, path: &[u8], stamp: &EntryStamp, was: Option<Entry>) -> Result<bool, TreeError> {
        let Some(was) = was.filter(|was| matches!(was.mode, Mode::File | Mode::Executable)) else {
            return Ok(false);
        };
        let odb = self.repo.odb().map_err(TreeError::git("open the object database"))?;
        let (size, _) = odb.read_header(was.id).map_err(TreeError::git("read a blob"))?;
        Ok(u64::try_from(size).is_ok_and(|size| size == stamp.len) && self.id_of(path, stamp)? == was.id)
    }

    fn id_of(&self, path: &[u8], stamp: &EntryStamp) -> Result<Oid, TreeError> {
        let settled = stamp.is_settled();
        if let Some(id) = self.known(path, stamp).filter(|_| settled) {
            return Ok(id);
        }
        let id = self.hash(path, stamp)?;
        if settled && let Ok(mut known) = self.known.lock() {
            known.insert(path.to_vec(), (*stamp, id));
        }
        Ok(id)
    }

    fn known(&self, path: &[u8], stamp: &EntryStamp) -> Option<Oid> {
        let known = self.known.lock().ok()?;
        known.get(path).filter(|(then, _)| then == stamp).map(|(_, id)| *id)
    }

    fn hash(&self, path: &[u8], stamp: &EntryStamp) -> Result<Oid, TreeError> {
        if stamp.sort != EntryKind::Link && stamp.len > self.caps.file_bytes_max {
            return self.hash_giant(path);
        }
        let bytes = content(self.root, path, stamp.sort == EntryKind::Link, self.caps.file_bytes_max)?;
        Oid::hash_object(ObjectType::Blob, &bytes).map_err(TreeError::git("hash a file"))
    }

    /// By its open file, so that it is neither read into memory nor followed if it became a link.
    fn hash_giant(&self, path: &[u8]) -> Result<Oid, TreeError> {
        use std::os::fd::AsRawFd;
        let file = self.root.open_file(path).map_err(TreeError::io("open", self.root.path(path)))?;
        let open = format!("/dev/fd/{}", file.as_raw_fd());
        Oid::hash_file(ObjectType::Blob, open).map_err(TreeError::git("hash a large file"))
    }
}

/// The reason why a file below a submodule is in no commit.
pub(crate) fn in_module(module: &[u8]) -> String {
    format!("is in the submodule `{}`, whose files are no part of this repository; write it elsewhere", shown(module))
}

/// The reason why a file of this length is in no commit, if it is too long.
pub(crate) fn too_large(len: u64, caps: &TreeCaps) -> Option<String> {
    let max = caps.file_bytes_max;
    let what_to_do = "make it smaller, remove it, or list it in .gitignore";
    (len > max).then(|| format!("has {len} bytes, and a commit takes files of at most {max}; {what_to_do}"))
}

/// The bytes that git would store for a file or a link.
pub(crate) fn content(root: &Root, path: &[u8], is_link: bool, bytes_max: u64) -> Result<Vec<u8>, TreeError> {
    let raced = || TreeError::Raced { path: shown(path) };
    let failed = TreeError::io("read", root.path(path));
    if is_link {
        return root.read_link(path).map_err(failed);
    }
    root.read(path, bytes_max).map_err(failed)?.ok_or_else(raced)
}

/// Guests cannot set the executable bit, and a file that is replaced by a new one loses it: so a file that is
/// executable in the commit stays so.
fn mode_now(stamp: &EntryStamp, was: Option<Entry>) -> Mode {
    match stamp.sort {
        EntryKind::Link => Mode::Link,
        EntryKind::File { executable: true } => Mode::Executable,
        _ if was.is_some_and(|was| was.mode == Mode::Executable) => Mode::Executable,
        _ => Mode::File,
    }
}

fn entries(repo: &Repository, tree: Oid) -> Result<Vec<(Vec<u8>, Entry, bool)>, TreeError> {
    let tree = repo.find_tree(tree).map_err(TreeError::git("read a tree"))?;
    let entry = |entry: git2::TreeEntry<'_>| {
        let mode = Mode::of_git(entry.filemode_raw());
        (entry.name_bytes().to_vec(), Entry { id: entry.id(), mode }, entry.kind() == Some(ObjectType::Tree))
    };
    Ok(tree.iter().map(entry).collect())
}

/// Directories that are not entered.
fn is_passed_over(name: &[u8]) -> bool {
    is_git_dir(name) || name.starts_with(TEMPORARY)
}

fn is_git_dir(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

/// True when no file of a tree has this name.
pub(crate) fn is_unsafe(name: &[u8]) -> bool {
    matches!(name, b"" | b"." | b"..")
        || name.eq_ignore_ascii_case(b".git")
        || name.contains(&b'/')
        || name.contains(&0)
}

/// True when a link at `path` leads out of the tree or into a repository.
///
/// Only targets of the form `../..` and then names are accepted: a `..` after a name goes up from that name's own
/// target, which may be another link.
fn link_leaves(path: &[u8], target: &[u8]) -> bool {
    let ups = |part: &&[u8]| matches!(*part, b".." | b"." | b"");
    let parts: Vec<&[u8]> = target.split(|byte| *byte == b'/').collect();
    let up = parts.iter().take_while(|part| ups(part)).filter(|part| **part == b"..").count();
    let names = parts.iter().skip_while(|part| ups(part));
    let depth = path.iter().filter(|byte| **byte == b'/').count();
    target.is_empty()
        || target.starts_with(b"/")
        || up > depth
        || names.clone().any(|part| *part == b".." || part.eq_ignore_ascii_case(b".git"))
}

pub(crate) fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_lead_anywhere_inside_the_tree_and_nowhere_else() {
        let check = |path: &str, target: &str, leaves: bool| {
            assert_eq!(link_leaves(path.as_bytes(), target.as_bytes()), leaves, "{path} -> {target}");
        };
        check("a", "b", false);
        check("a/b", "../c", false);
        check("a/b/c", ".././../d/e", false);
        check("a", ".", false);
        check("a", "..", true);
        check("a/b", "../../c", true);
        check("a", "/etc/passwd", true);
        check("a", "", true);
        // `b` may be a link to `.`, and then `b/..` is outside.
        check("a", "b/../c", true);
        check("a", ".git/hooks/post-commit", true);
        check("a", "sub/.GIT", true);
    }
}
