//! Checkpoints of an agent's tree.
//!
//! A checkpoint is a commit on a ref of its own, `refs/longhaul/checkpoints/RUN/N`. It moves no branch, so that it
//! bypasses no judge, and only a request by name reads it. The same effect makes the same checkpoint once. Refuses to
//! overwrite one, and more of them than a run may have.

use crate::TreeError;
use crate::caps::cap;
use crate::git::{Branch, CommitOrder, TRAILER, UserRepository};
use crate::no_hook;
use crate::tree::Tree;
use crate::write::{sync_file, sync_object, write_commit};
use git2::{ErrorCode, Oid, Repository};

/// The prefix of their refs.
pub(crate) const REFS: &str = "refs/longhaul/checkpoints";

/// Checkpoints of one run. Each may hold a tree's worth of changed files.
const CHECKPOINTS_MAX: u64 = 1_000;

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TreeCheckpoint {
    /// The ref that keeps it.
    pub name: String,
    /// 40 hexadecimal digits.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
}

/// A checkpoint to make.
#[derive(Clone, Debug)]
pub struct CheckpointOrder<'a> {
    /// The run; see [`UserRepository::checkpoints`].
    pub run: &'a str,
    /// The commit that the tree is compared with, which becomes its parent.
    pub parent: &'a str,
    /// Its message; the trailer is added.
    pub message: &'a str,
    /// The id of the effect: the same checkpoint is never made twice.
    pub effect_id: &'a str,
    /// Its date, in milliseconds since 1970 UTC.
    pub time_ms: u64,
}

impl Tree {
    /// Stores the difference to `parent`. None: there is none.
    ///
    /// # Errors
    /// A link that leaves the tree, a cap, or when git or the file system refuses.
    pub fn checkpoint(
        &self,
        project: &UserRepository,
        order: &CheckpointOrder<'_>,
    ) -> Result<Option<TreeCheckpoint>, TreeError> {
        let repo = project.repo()?;
        let known = all(&repo, order.run)?;
        if let Some(done) = find(&repo, order.run, &known, order.effect_id)? {
            return Ok(Some(done));
        }
        let root = self.root()?;
        let seen = self.look(project, &root, order.parent)?;
        if seen.judged(&root)?.changes.is_empty() {
            return Ok(None);
        }
        let next = known.last().map_or(1, |(number, _)| number + 1);
        cap("checkpoints_max", next, CHECKPOINTS_MAX, b"")?;
        let mut written = Vec::new();
        let tree = self.writer(project, &root, &no_hook).write_tree(&repo, &seen, &mut written)?;
        // A commit needs a branch in its text; none moves.
        let branch = Branch::new("checkpoint")?;
        let commit = CommitOrder {
            branch: &branch,
            parent: order.parent,
            message: order.message,
            effect_id: order.effect_id,
            time_ms: order.time_ms,
            expected: None,
        };
        let id = write_commit(&repo, &commit, seen.base.commit, tree)?;
        written.push(id);
        written.iter().try_for_each(|id| sync_object(&repo, *id))?;
        let name = keep(&repo, order.run, next, id)?;
        sync_file(&repo.commondir().join(&name))?;
        checkpoint(&repo, name, id).map(Some)
    }
}

impl UserRepository {
    /// The checkpoints of a run, oldest first.
    ///
    /// # Errors
    /// When git cannot list them.
    pub fn checkpoints(&self, run: &str) -> Result<Vec<TreeCheckpoint>, TreeError> {
        let repo = self.repo()?;
        let named = all(&repo, run)?.into_iter().map(|(number, id)| (format!("{REFS}/{run}/{number}"), id));
        named.map(|(name, id)| checkpoint(&repo, name, id)).collect()
    }
}

/// Stores a commit under the first free number from `next`: others may make checkpoints at the same time. Returns the
/// name.
fn keep(repo: &Repository, run: &str, next: u64, id: Oid) -> Result<String, TreeError> {
    let mut number = next;
    loop {
        cap("checkpoints_max", number, CHECKPOINTS_MAX, b"")?;
        let name = format!("{REFS}/{run}/{number}");
        // Only if nothing is there yet, checked once more under the lock.
        let kept = repo.reference_matching(&name, id, false, Oid::ZERO_SHA1, "longhaul: checkpoint");
        match kept.map_err(|error| (error.code(), error)) {
            Ok(_) => return Ok(name),
            Err((ErrorCode::Exists | ErrorCode::Modified | ErrorCode::Locked, _)) => number += 1,
            Err((_, error)) => return Err(TreeError::git("keep a checkpoint")(error)),
        }
    }
}

/// The checkpoints of `run`, with their numbers, the oldest first.
pub(crate) fn all(repo: &Repository, run: &str) -> Result<Vec<(u64, Oid)>, TreeError> {
    let prefix = format!("{REFS}/{run}/");
    let mut found = Vec::new();
    for reference in repo.references_glob(&format!("{prefix}*")).map_err(TreeError::git("list checkpoints"))? {
        let reference = reference.map_err(TreeError::git("read a checkpoint"))?;
        let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
        let number = name.strip_prefix(&prefix).and_then(|number| number.parse().ok());
        found.extend(number.zip(reference.target()));
    }
    found.sort_unstable();
    Ok(found)
}

fn find(repo: &Repository, run: &str, known: &[(u64, Oid)], effect: &str) -> Result<Option<TreeCheckpoint>, TreeError> {
    let trailer = format!("{TRAILER}{effect}");
    for (number, id) in known.iter().rev() {
        let commit = repo.find_commit(*id).map_err(TreeError::git("read a checkpoint"))?;
        if String::from_utf8_lossy(commit.message_bytes()).trim_end().lines().last() == Some(&trailer) {
            return checkpoint(repo, format!("{REFS}/{run}/{number}"), *id).map(Some);
        }
    }
    Ok(None)
}

fn checkpoint(repo: &Repository, name: String, id: Oid) -> Result<TreeCheckpoint, TreeError> {
    let commit = repo.find_commit(id).map_err(TreeError::git("read a checkpoint"))?;
    let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
    let subject = message.trim_start().lines().next().unwrap_or_default().to_owned();
    Ok(TreeCheckpoint { name, commit: id.to_string(), subject })
}
