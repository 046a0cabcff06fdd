//! Makes a commit and moves the branch to it.
//!
//! Objects are written and synced first, then the ref, by compare-and-swap: after a kill there is the old branch or the
//! new one, and the same call again ends in the same commit. Refuses a branch that another process moved or locked, or
//! that is checked out.

use crate::caps::TreeCaps;
use crate::git::{Branch, CommitOrder, Committed, TRAILER, UserRepository, descends, find_effect, tip};
use crate::names::shown;
use crate::root::{Root, sync_dir};
use crate::scan::{Item, Known, Mode, ScanState, content};
use crate::{Hook, TreeError};
use git2::{ErrorCode, ObjectType, Oid, Repository, Signature, Time};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Moves of one process take turns, so that a standing lock was not taken by a neighbour a moment ago.
static MOVES: Mutex<()> = Mutex::new(());

/// A tree, opened for one commit.
pub(crate) struct Writer<'a> {
    pub(crate) project: &'a UserRepository,
    pub(crate) root: &'a Root,
    pub(crate) caps: &'a TreeCaps,
    pub(crate) known: &'a Known,
    /// The file beside the tree that marks the branch's lock as this process's own.
    pub(crate) marker: PathBuf,
    pub(crate) hook: Hook<'a>,
}

impl Writer<'_> {
    pub(crate) fn commit(&self, order: &CommitOrder<'_>) -> Result<Option<Committed>, TreeError> {
        check_effect_id(order.effect_id)?;
        let repo = self.project.repo()?;
        if let Some(done) = find_effect(&repo, order.branch, order.effect_id)? {
            self.forget_marker()?;
            return Ok(Some(done));
        }
        let seen = ScanState::look(self.project, self.root, order.parent, self.caps, self.known)?;
        let scan = seen.judged(self.root)?;
        check_expected(order, &scan.digest)?;
        if scan.changes.is_empty() {
            return Ok(None);
        }
        self.project.check_not_checked_out(&repo, order.branch)?;
        let tip = self.check_tip(&repo, order, seen.base.commit)?;
        remove_half_objects(&repo);
        (self.hook)("git.before-commit-object");
        let id = self.write_objects(&repo, order, &seen)?;
        (self.hook)("git.after-commit-object");
        let mut notes: Vec<String> = scan.left_out.iter().map(|file| format!("left out: {file}")).collect();
        let repository =
            |path: &String| format!("left out: `{path}` is a repository of its own; the files beside it are committed");
        notes.extend(scan.repositories.iter().map(repository));
        notes.extend(self.move_branch(&repo, order.branch, tip, id, "longhaul: commit")?);
        let files = scan.changes.into_iter().map(|change| change.path).collect();
        Ok(Some(Committed { id: id.to_string(), files, notes }))
    }

    /// The branch may be at the base of the work, or behind it, so that it moves forward only.
    fn check_tip(&self, repo: &Repository, order: &CommitOrder<'_>, parent: Oid) -> Result<Option<Oid>, TreeError> {
        let tip = tip(repo, order.branch)?;
        match tip {
            Some(found) if !descends(repo, parent, found)? => {
                Err(moved(order.branch, &parent.to_string(), Some(found)))
            }
            _ => Ok(tip),
        }
    }

    fn write_objects(&self, repo: &Repository, order: &CommitOrder<'_>, seen: &ScanState) -> Result<Oid, TreeError> {
        let mut written = Vec::new();
        let tree = self.write_tree(repo, seen, &mut written)?;
        let id = write_commit(repo, order, seen.base.commit, tree)?;
        written.push(id);
        // On the disk before the branch points at them: after a power cut no branch may lead nowhere.
        written.iter().try_for_each(|id| sync_object(repo, *id))?;
        Ok(id)
    }

    /// Writes the tree to commit; `written` gets the ids of all objects.
    pub(crate) fn write_tree(
        &self,
        repo: &Repository,
        seen: &ScanState,
        written: &mut Vec<Oid>,
    ) -> Result<Oid, TreeError> {
        let mut top = Node::default();
        for item in seen.to_commit() {
            self.write_blob(repo, item, written)?;
            top.put(&item.raw, item.now.map(|now| (now.id, now.mode)));
        }
        let tree = top.write(repo, Some(seen.base.tree), written)?;
        tree.map_or_else(|| empty_tree(repo), Ok)
    }

    fn write_blob(&self, repo: &Repository, item: &Item, written: &mut Vec<Oid>) -> Result<(), TreeError> {
        let Some(now) = item.now else { return Ok(()) };
        let bytes = content(self.root, &item.raw, now.mode == Mode::Link, self.caps.file_bytes_max)?;
        let id = repo.blob(&bytes).map_err(TreeError::git("write a blob"))?;
        written.push(id);
        if id == now.id { Ok(()) } else { Err(TreeError::Raced { path: shown(&item.raw) }) }
    }

    /// Moves the branch from `tip` to `id`; `why` is for git's reflog. Returns notes.
    pub(crate) fn move_branch(
        &self,
        repo: &Repository,
        branch: &Branch,
        tip: Option<Oid>,
        id: Oid,
        why: &str,
    ) -> Result<Vec<String>, TreeError> {
        let _turn = take_turn();
        let notes = self.clear_lock(repo, branch, id)?;
        let marker = format!("{}\n{id}\n", branch.full());
        std::fs::write(&self.marker, marker).map_err(TreeError::io("write", &self.marker))?;
        (self.hook)("git.before-ref-move");
        swap(repo, branch, tip, id, why)?;
        (self.hook)("git.after-ref-move");
        self.forget_marker()?;
        Ok(notes)
    }

    /// Removes a lock that a killed process of this host left. A lock of another git is awaited, and left.
    fn clear_lock(&self, repo: &Repository, branch: &Branch, id: Oid) -> Result<Vec<String>, TreeError> {
        let lock = lock_path(repo, branch);
        for _ in 0..20 {
            if !lock.exists() {
                return Ok(Vec::new());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if !self.is_our_lock(&lock, branch, id) {
            return Err(locked(repo, branch));
        }
        std::fs::remove_file(&lock).map_err(TreeError::io("remove", &lock))?;
        tracing::warn!(lock = %lock.display(), "removed a lock that a killed longhaul left");
        Ok(vec![format!("removed `{}`, which an earlier longhaul left when it was killed", lock.display())])
    }

    /// The lock is this host's if its marker was written before, and the lock is empty or holds the new commit. With
    /// several trees of a run another one may have written the marker.
    fn is_our_lock(&self, lock: &Path, branch: &Branch, id: Oid) -> bool {
        let holds = std::fs::read_to_string(lock).unwrap_or_else(|_| "unreadable".to_owned());
        let holds = holds.trim();
        self.markers().iter().any(|marker| {
            let mut marker = marker.lines();
            let is_this_branch = marker.next() == Some(branch.full().as_str());
            let announced = marker.next().unwrap_or_default();
            is_this_branch && (holds.is_empty() || holds == announced || holds == id.to_string())
        })
    }

    /// The markers beside this tree and its neighbours.
    fn markers(&self) -> Vec<String> {
        let beside = self.marker.parent().map(std::fs::read_dir).into_iter().flatten().flatten();
        let is_marker = |path: &PathBuf| path.extension() == self.marker.extension();
        let markers = beside.filter_map(Result::ok).map(|entry| entry.path()).filter(is_marker);
        markers.filter_map(|path| std::fs::read_to_string(path).ok()).collect()
    }

    pub(crate) fn forget_marker(&self) -> Result<(), TreeError> {
        match std::fs::remove_file(&self.marker) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(TreeError::io("remove", &self.marker)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Held while a branch moves.
pub(crate) fn take_turn() -> MutexGuard<'static, ()> {
    MOVES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves the branch to `id` if it is at `tip`; none: if there is no such branch. `why` is for git's reflog.
pub(crate) fn swap(repo: &Repository, branch: &Branch, tip: Option<Oid>, id: Oid, why: &str) -> Result<(), TreeError> {
    // Zero: the branch must not exist.
    let current = tip.unwrap_or(Oid::ZERO_SHA1);
    repo.reference_matching(&branch.full(), id, true, current, why).map_err(|error| match error.code() {
        ErrorCode::Modified | ErrorCode::NotFound => {
            let found = repo.refname_to_id(&branch.full()).ok();
            moved(branch, &tip.map_or_else(|| "nothing".to_owned(), |tip| tip.to_string()), found)
        }
        ErrorCode::Locked => locked(repo, branch),
        _ => TreeError::Git { doing: "move the branch", source: error },
    })?;
    sync_file(&repo.commondir().join(branch.full()))
}

/// Changes of one directory.
#[derive(Default)]
struct Node {
    names: BTreeMap<Vec<u8>, Put>,
}

enum Put {
    Entry(Oid, Mode),
    Gone,
    Dir(Node),
}

impl Node {
    /// A file and a directory may swap places: the present entry wins over the deleted one.
    fn put(&mut self, path: &[u8], entry: Option<(Oid, Mode)>) {
        let Some(slash) = path.iter().position(|byte| *byte == b'/') else {
            match (entry, self.names.get(path)) {
                (Some((id, mode)), _) => {
                    self.names.insert(path.to_vec(), Put::Entry(id, mode));
                }
                (None, Some(_)) => {}
                (None, None) => {
                    self.names.insert(path.to_vec(), Put::Gone);
                }
            }
            return;
        };
        let below = self.names.entry(path[..slash].to_vec()).or_insert_with(|| Put::Dir(Self::default()));
        if matches!(below, Put::Gone) {
            *below = Put::Dir(Self::default());
        }
        if let Put::Dir(node) = below {
            node.put(&path[slash + 1..], entry);
        }
    }

    /// Writes the directory `base` with these changes. None: it is empty.
    fn write(&self, repo: &Repository, base: Option<Oid>, written: &mut Vec<Oid>) -> Result<Option<Oid>, TreeError> {
        let base = base.map(|id| repo.find_tree(id)).transpose().map_err(TreeError::git("read a tree"))?;
        let mut builder = repo.treebuilder(base.as_ref()).map_err(TreeError::git("write a tree"))?;
        for (name, put) in &self.names {
            let before = base.as_ref().and_then(|tree| tree.get_name_bytes(name));
            let entry = match put {
                Put::Entry(id, mode) => Some((*id, mode.to_git())),
                Put::Gone => None,
                Put::Dir(node) => {
                    let below =
                        before.as_ref().filter(|entry| entry.kind() == Some(ObjectType::Tree)).map(|entry| entry.id());
                    node.write(repo, below, written)?.map(|id| (id, 0o040_000))
                }
            };
            match entry {
                Some((id, mode)) => builder.insert(name.as_slice(), id, mode).map(|_| ()),
                None if before.is_some() => builder.remove(name.as_slice()),
                None => Ok(()),
            }
            .map_err(TreeError::git("write a tree"))?;
        }
        if builder.is_empty() {
            return Ok(None);
        }
        let id = builder.write().map_err(TreeError::git("write a tree"))?;
        written.push(id);
        Ok(Some(id))
    }
}

pub(crate) fn write_commit(
    repo: &Repository,
    order: &CommitOrder<'_>,
    parent: Oid,
    tree: Oid,
) -> Result<Oid, TreeError> {
    let failed = TreeError::git;
    let seconds = i64::try_from(order.time_ms / 1_000).unwrap_or(i64::MAX);
    // Both are Longhaul, whatever the user's configuration says: the user did not write this, and the same effect must
    // have the same id wherever it is repeated.
    let who =
        Signature::new("Longhaul", "longhaul@localhost", &Time::new(seconds, 0)).map_err(failed("sign a commit"))?;
    let tree = repo.find_tree(tree).map_err(failed("read a tree"))?;
    let parent = repo.find_commit(parent).map_err(failed("read a commit"))?;
    let message = message(order);
    repo.commit(None, &who, &who, &message, &tree, &[&parent]).map_err(failed("write a commit"))
}

/// The message is a model's: of control characters only line ends stay.
fn message(order: &CommitOrder<'_>) -> String {
    let text: String =
        order.message.chars().filter(|character| !character.is_control() || *character == '\n').collect();
    let text = text.trim();
    let text = if text.is_empty() { "Work of an agent" } else { text };
    // Trailers are one paragraph: this one joins those that the harness wrote.
    let joins = text.lines().last().is_some_and(|line| line.starts_with("Longhaul-Run: "));
    let gap = if joins { "\n" } else { "\n\n" };
    format!("{text}{gap}{TRAILER}{}\n", order.effect_id)
}

fn empty_tree(repo: &Repository) -> Result<Oid, TreeError> {
    repo.treebuilder(None).and_then(|builder| builder.write()).map_err(TreeError::git("write a tree"))
}

fn check_effect_id(id: &str) -> Result<(), TreeError> {
    if (1..=200).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(TreeError::EffectId { id: shown(id.chars().take(80).collect::<String>().as_bytes()) })
}

fn check_expected(order: &CommitOrder<'_>, found: &longhaul_core::Digest) -> Result<(), TreeError> {
    match order.expected {
        Some(expected) if expected != *found => {
            Err(TreeError::TreeChanged { expected: expected.short(), found: found.short() })
        }
        _ => Ok(()),
    }
}

fn moved(branch: &Branch, expected: &str, found: Option<Oid>) -> TreeError {
    TreeError::BranchMoved {
        branch: branch.as_str().to_owned(),
        expected: expected.to_owned(),
        found: found.map_or_else(|| "nothing".to_owned(), |id| id.to_string()),
    }
}

fn locked(repo: &Repository, branch: &Branch) -> TreeError {
    TreeError::Locked { branch: branch.as_str().to_owned(), lock: lock_path(repo, branch) }
}

fn lock_path(repo: &Repository, branch: &Branch) -> PathBuf {
    repo.commondir().join(format!("{}.lock", branch.full()))
}

/// A loose object; one that git had before may be in a pack, and is on the disk.
pub(crate) fn sync_object(repo: &Repository, id: Oid) -> Result<(), TreeError> {
    let id = id.to_string();
    sync_file(&repo.commondir().join("objects").join(&id[..2]).join(&id[2..]))
}

/// Removes objects that a killed process had begun to write under libgit2's temporary name, which `git gc` does not
/// know. An object takes milliseconds, so an old one is abandoned.
fn remove_half_objects(repo: &Repository) {
    let Ok(entries) = std::fs::read_dir(repo.commondir().join("objects")) else { return };
    for entry in entries.filter_map(Result::ok) {
        let is_half = entry.file_name().as_encoded_bytes().starts_with(b"tmp_object_git2_");
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if is_half && age.is_some_and(|age| age > HALF_OBJECT_AGE_MIN) {
            // A file that cannot be removed does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Age from which on a partly written object counts as abandoned.
const HALF_OBJECT_AGE_MIN: Duration = Duration::from_secs(600);

pub(crate) fn sync_file(path: &Path) -> Result<(), TreeError> {
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(TreeError::io("open", path))?,
    };
    file.sync_all().map_err(TreeError::io("sync", path))?;
    path.parent().map_or(Ok(()), |dir| sync_dir(dir).map_err(TreeError::io("sync", dir)))
}
