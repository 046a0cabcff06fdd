//! The commits of a run's branch, read from the objects, and those that a revert removed from it.
//!
//! Nothing is parsed out of lines of text, so a subject may contain anything. Walks first parents only, which is the
//! branch's own history, and never beyond the commit that the run began at.

use crate::TreeError;
use crate::git::{Branch, UserRepository, end_of, files};
use git2::{Oid, Repository};
use std::collections::HashSet;

/// Commits of one branch that are walked. A run has at most as many as it has sessions, and a person may add some;
/// beyond this a branch counts as detached from the commit that the run began at.
const COMMITS_MAX: usize = 100_000;

/// Newest commits whose changes count as recent.
const LATELY_MAX: usize = 10;

/// The prefix of the refs of former tips.
pub(crate) const KEPT: &str = "refs/longhaul/reverted";

/// The prefixes of the trailers that are read.
const FEATURE: &str = "Longhaul-Feature: ";
const OUTCOME: &str = "Longhaul-Outcome: ";
const RUN: &str = "Longhaul-Run: ";

/// A commit of a run's branch.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Logged {
    /// 40 hexadecimal digits.
    pub commit: String,
    /// Its time, in milliseconds since 1970-01-01 UTC. Git keeps seconds.
    pub at_ms: u64,
    /// The first line of its message, unfiltered; invalid UTF-8 is replaced.
    pub subject: String,
    /// Its feature; none when a person made it.
    pub feature: Option<String>,
    /// The outcome of the feature; none as for `feature`, and in commits of older versions.
    pub outcome: Option<String>,
    /// The run that made it; as for `outcome`.
    pub run: Option<String>,
}

/// A commit of a run's branch by its content, for a comparison with another run's: its id differs with its date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCommit {
    /// 40 hexadecimal digits.
    pub id: String,
    /// The id of its tree, which follows from its files.
    pub tree: String,
    /// Its whole message, unfiltered; invalid UTF-8 is replaced.
    pub message: String,
}

impl UserRepository {
    /// The content of the commits of `branch` after `base`, oldest first.
    ///
    /// # Errors
    /// As [`UserRepository::log`].
    pub fn contents_of(&self, branch: &Branch, base: &str) -> Result<Vec<BranchCommit>, TreeError> {
        let repo = self.repo()?;
        let history = history(&repo, branch, end_of(&repo, branch, base)?, base)?;
        let content = |id: &Oid| {
            let commit = repo.find_commit(*id).map_err(TreeError::git("read a commit"))?;
            let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
            Ok(BranchCommit { id: id.to_string(), tree: commit.tree_id().to_string(), message })
        };
        history.iter().take(history.len() - 1).rev().map(content).collect()
    }

    /// The commits of `branch` after `base`, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`TreeError::BranchMoved`] when the branch does not descend from `base`.
    pub fn log(&self, branch: &Branch, base: &str, limit: usize) -> Result<Vec<Logged>, TreeError> {
        let repo = self.repo()?;
        let history = history(&repo, branch, end_of(&repo, branch, base)?, base)?;
        history.iter().take(history.len() - 1).take(limit).map(|id| logged(&repo, *id)).collect()
    }

    /// Paths that the newest commits up to `tip` changed, the newest first, each once, at most `limit`. The first
    /// commit of a history has none: it changed nothing.
    ///
    /// # Errors
    /// When a commit cannot be read.
    pub fn changed_lately(&self, tip: &str, limit: usize) -> Result<Vec<String>, TreeError> {
        let repo = self.repo()?;
        let mut next = Oid::from_str(tip).ok();
        let (mut paths, mut known) = (Vec::new(), HashSet::new());
        for _ in 0..LATELY_MAX {
            let Some(commit) = next.and_then(|id| repo.find_commit(id).ok()) else { break };
            next = commit.parent_id(0).ok();
            if next.is_none() || paths.len() >= limit {
                break;
            }
            paths.extend(files(&repo, &commit)?.into_iter().filter(|path| known.insert(path.clone())));
        }
        paths.truncate(limit);
        Ok(paths)
    }

    /// The commits that reverts of `run` removed from `branch`, those of the latest first, at most `limit`.
    ///
    /// # Errors
    /// As [`UserRepository::log`].
    pub fn log_reverted(&self, branch: &Branch, base: &str, run: &str, limit: usize) -> Result<Vec<Logged>, TreeError> {
        let repo = self.repo()?;
        let end = end_of(&repo, branch, base)?;
        let mut known: HashSet<Oid> = history(&repo, branch, end, base)?.into_iter().collect();
        let mut left = Vec::new();
        for (_, tip) in kept(&repo, run)?.into_iter().rev() {
            // Each is named once: an earlier former tip may be an ancestor of a later one.
            left.extend(history(&repo, branch, tip, base)?.into_iter().filter(|id| known.insert(*id)));
        }
        left.into_iter().take(limit).map(|id| logged(&repo, id)).collect()
    }
}

/// The commits from `from` back to `base`, both included, newest first.
pub(crate) fn history(repo: &Repository, branch: &Branch, from: Oid, base: &str) -> Result<Vec<Oid>, TreeError> {
    let mut commits = Vec::new();
    let mut next = Some(from);
    while let Some(id) = next.filter(|_| commits.len() < COMMITS_MAX) {
        commits.push(id);
        if id.to_string() == base {
            return Ok(commits);
        }
        let commit = repo.find_commit(id).map_err(TreeError::git("read a commit"))?;
        next = commit.parent_id(0).ok();
    }
    Err(TreeError::BranchMoved {
        branch: branch.as_str().to_owned(),
        expected: base.to_owned(),
        found: from.to_string(),
    })
}

/// The commits from `from` on, by first parents, to the root.
pub(crate) fn log_from(repo: &Repository, from: Oid, limit: usize) -> Result<Vec<Logged>, TreeError> {
    let mut commits = Vec::new();
    let mut next = Some(from);
    while let Some(id) = next.filter(|_| commits.len() < limit.min(COMMITS_MAX)) {
        commits.push(logged(repo, id)?);
        next = repo.find_commit(id).map_err(TreeError::git("read a commit"))?.parent_id(0).ok();
    }
    Ok(commits)
}

/// The former tips of `run`'s branch before each revert, with their numbers, the oldest first.
pub(crate) fn kept(repo: &Repository, run: &str) -> Result<Vec<(u32, Oid)>, TreeError> {
    let prefix = format!("{KEPT}/{run}/");
    let mut found = Vec::new();
    for reference in repo.references_glob(&format!("{prefix}*")).map_err(TreeError::git("list what was reverted"))? {
        let reference = reference.map_err(TreeError::git("read what was reverted"))?;
        let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
        let number = name.strip_prefix(&prefix).and_then(|number| number.parse().ok());
        found.extend(number.zip(reference.target()));
    }
    found.sort_unstable();
    Ok(found)
}

pub(crate) fn logged(repo: &Repository, id: Oid) -> Result<Logged, TreeError> {
    let commit = repo.find_commit(id).map_err(TreeError::git("read a commit"))?;
    let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
    let seconds = u64::try_from(commit.time().seconds()).unwrap_or(0);
    Ok(Logged {
        commit: id.to_string(),
        at_ms: seconds.saturating_mul(1_000),
        subject: message.trim_start_matches('\n').lines().next().unwrap_or_default().to_owned(),
        feature: trailer(&message, FEATURE),
        outcome: trailer(&message, OUTCOME),
        run: trailer(&message, RUN),
    })
}

/// Only the last paragraph counts, and there the last line of a name: the text above may be a model's.
fn trailer(message: &str, name: &str) -> Option<String> {
    let last = message.trim_end().rsplit("\n\n").next()?;
    let found = last.lines().rev().find_map(|line| line.strip_prefix(name))?;
    Some(found.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_counts_in_the_last_paragraph_alone() {
        let message = "Title\n\nLonghaul-Feature: forged\n\nLonghaul-Feature: a\nLonghaul-Effect: r-1/f-a/commit\n";
        assert_eq!(trailer(message, FEATURE).as_deref(), Some("a"));
        assert_eq!(trailer(message, OUTCOME), None);
        assert_eq!(trailer("Longhaul-Feature: a", FEATURE).as_deref(), Some("a"));
        assert_eq!(trailer("Longhaul-Feature: a\n\nby hand\n", FEATURE), None);
    }
}
