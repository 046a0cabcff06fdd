//! Differences as text: the tree against a commit, and a commit against its parent.
//!
//! Made of blobs and of the tree's raw files, without git's filters, drivers and configuration, so that no program they
//! name is started. Refuses to read files beyond a cap, and to make more text than requested.

use crate::TreeError;
use crate::git::{Branch, UserRepository, end_of};
use crate::names::shown;
use crate::root::Root;
use crate::scan::{Base, ChangeKind, content};
use crate::tree::Tree;
use git2::{Blob, Delta, Diff, DiffDelta, DiffOptions, Oid, Patch, Repository};
use std::path::Path;

/// Bytes of one file that is compared line by line; of a larger one only the size is given.
const COMPARED_BYTES_MAX: u64 = 1 << 20;

/// Lines around a change.
const CONTEXT_LINES: u32 = 3;

/// A text, and whether it was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PatchText {
    /// The text, in git's format.
    pub text: String,
    /// Files whose changes are missing from `text`.
    pub files_left_out: u64,
}

impl PatchText {
    /// Adds the changes of one file, whole or not at all, so that every included patch can be read. After the first
    /// omitted one, `patch` is not even called.
    fn add(&mut self, bytes_max: usize, patch: impl FnOnce() -> Result<String, TreeError>) -> Result<(), TreeError> {
        let patch = if self.files_left_out > 0 { None } else { Some(patch()?) };
        match patch.filter(|patch| self.text.len() + patch.len() <= bytes_max) {
            Some(patch) => self.text.push_str(&patch),
            None => self.files_left_out += 1,
        }
        Ok(())
    }
}

/// A commit with its details.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CommitDetails {
    /// 40 hexadecimal digits.
    pub commit: String,
    /// Its time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The message, unfiltered; invalid UTF-8 is replaced.
    pub message: String,
    /// The patch against its first parent.
    pub patch: PatchText,
}

impl Tree {
    /// The difference of the tree to the commit `parent`, as a patch of at most about `bytes_max` bytes, below `under`
    /// (empty: everywhere).
    ///
    /// # Errors
    /// As [`Tree::scan`].
    pub fn patch(
        &self,
        project: &UserRepository,
        parent: &str,
        under: &str,
        bytes_max: usize,
    ) -> Result<PatchText, TreeError> {
        let repo = project.repo()?;
        let base = Base::read(&repo, parent, self.caps())?;
        let root = self.root()?;
        let mut text = PatchText::default();
        for change in self.scan(project, parent)?.changes.iter().filter(|change| is_below(&change.raw, under)) {
            text.add(bytes_max, || {
                let old = base.files.get(&change.raw).map(|entry| entry.id);
                match self.now(&root, &change.raw, change.kind)? {
                    Ok(new) => one(&repo, old, new.as_deref(), &change.raw),
                    Err(bytes) => Ok(format!("Large file {} has {bytes} bytes\n", change.path)),
                }
            })?;
        }
        Ok(text)
    }

    /// The bytes of a file; `Err`: the size of a large one.
    fn now(&self, root: &Root, raw: &[u8], kind: ChangeKind) -> Result<Result<Option<Vec<u8>>, u64>, TreeError> {
        if kind == ChangeKind::Deleted {
            return Ok(Ok(None));
        }
        let Some(stamp) = root.stamp(raw).map_err(TreeError::io("look at", root.path(raw)))? else {
            return Err(TreeError::Raced { path: shown(raw) });
        };
        if stamp.len > COMPARED_BYTES_MAX {
            return Ok(Err(stamp.len));
        }
        content(root, raw, stamp.sort == crate::root::EntryKind::Link, COMPARED_BYTES_MAX).map(|bytes| Ok(Some(bytes)))
    }
}

impl UserRepository {
    /// One commit of `branch` since `base`, `base` included, by 4 digits or more of its name.
    ///
    /// # Errors
    /// When the word is no such name, or the commit is not of this branch.
    pub fn show(&self, branch: &Branch, base: &str, word: &str, bytes_max: usize) -> Result<CommitDetails, TreeError> {
        let to = self.way_back(branch, base, word)?.to;
        shown_commit(&self.repo()?, &to, bytes_max)
    }

    /// The commits up to the tip of `branch`, those before the run too, newest first, at most `limit`.
    ///
    /// # Errors
    /// When git cannot read them.
    pub fn log_from(&self, branch: &Branch, base: &str, limit: usize) -> Result<Vec<crate::Logged>, TreeError> {
        let repo = self.repo()?;
        crate::log::log_from(&repo, end_of(&repo, branch, base)?, limit)
    }
}

fn shown_commit(repo: &Repository, id: &str, bytes_max: usize) -> Result<CommitDetails, TreeError> {
    let failed = || TreeError::git("read a commit");
    let oid = Oid::from_str(id).map_err(failed())?;
    let commit = repo.find_commit(oid).map_err(failed())?;
    let tree = commit.tree().map_err(failed())?;
    let before = commit.parent(0).and_then(|parent| parent.tree()).ok();
    let mut options = DiffOptions::new();
    options.context_lines(CONTEXT_LINES).max_size(i64::try_from(COMPARED_BYTES_MAX).unwrap_or(i64::MAX));
    // `diff.*` of the user's configuration does not apply, and neither does `.gitattributes`.
    options.ignore_submodules(true).skip_binary_check(false);
    let diff = repo.diff_tree_to_tree(before.as_ref(), Some(&tree), Some(&mut options)).map_err(failed())?;
    let mut patch = PatchText::default();
    for (at, delta) in diff.deltas().enumerate() {
        patch.add(bytes_max, || changed(&diff, at, &delta))?;
    }
    let seconds = u64::try_from(commit.time().seconds()).unwrap_or(0);
    Ok(CommitDetails {
        commit: id.to_owned(),
        at_ms: seconds.saturating_mul(1_000),
        message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
        patch,
    })
}

/// One file, from a blob to a blob.
fn changed(diff: &Diff<'_>, at: usize, delta: &DiffDelta<'_>) -> Result<String, TreeError> {
    let failed = || TreeError::git("read a commit");
    let path = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes()).unwrap_or_default().to_vec();
    let is_module = [delta.old_file().mode(), delta.new_file().mode()].contains(&git2::FileMode::Commit);
    if is_module || delta.status() == Delta::Typechange {
        return Ok(format!("Changed kind {}\n", shown(&path)));
    }
    match Patch::from_diff(diff, at).map_err(failed())? {
        Some(mut patch) => Ok(String::from_utf8_lossy(&patch.to_buf().map_err(failed())?).into_owned()),
        None => Ok(format!("Binary {}\n", shown(&path))),
    }
}

/// One file, from a blob to bytes. `None` on a side: the file does not exist there.
fn one(repo: &Repository, old: Option<Oid>, new: Option<&[u8]>, raw: &[u8]) -> Result<String, TreeError> {
    let failed = || TreeError::git("compare a file");
    let old: Option<Blob<'_>> = old.map(|id| repo.find_blob(id)).transpose().map_err(failed())?;
    let name = shown(raw);
    if old.as_ref().is_some_and(|blob| blob.size() as u64 > COMPARED_BYTES_MAX) {
        return Ok(format!("Large file {name}\n"));
    }
    let path = Path::new(&name);
    let mut options = DiffOptions::new();
    options.context_lines(CONTEXT_LINES);
    let old = old.as_ref().map(Blob::content).unwrap_or_default();
    let patch = Patch::from_buffers(old, Some(path), new.unwrap_or_default(), Some(path), Some(&mut options));
    let bytes = patch.and_then(|mut patch| Ok(patch.to_buf()?.to_vec())).map_err(failed())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_below(raw: &[u8], under: &str) -> bool {
    let under = under.trim_matches('/').as_bytes();
    under.is_empty() || raw.strip_prefix(under).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
