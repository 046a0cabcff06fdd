//! The files of one commit beside those of another, as where two runs of a project ended.
//!
//! Bounded as the changes of one commit are: in files, in the text of a file, and in all. Made of blobs without git's
//! filters, drivers and configuration. Refuses names that are no whole commit; changes nothing.

use crate::TreeError;
use crate::commit_diff::{CommitCounts, CommitFile, Compared, compared};
use crate::git::UserRepository;
use git2::{Oid, Repository, Tree};

/// The changes from one commit to another, which need not descend from it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TreeDiff {
    /// The commit before.
    pub from: String,
    /// The commit after.
    pub to: String,
    /// The changed files by path, at most [`crate::COMMIT_FILES_MAX`].
    pub files: Vec<CommitFile>,
    /// Changed files beyond those.
    pub files_left_out: usize,
    /// The counts of all changed files, those that are left out included.
    pub counts: CommitCounts,
}

impl UserRepository {
    /// The changes of files from the commit `from` to `to`, which are both named with all 40 digits.
    ///
    /// # Errors
    /// [`TreeError::NoCommit`] when one of them is not here, or git cannot read it.
    pub fn tree_diff(&self, from: &str, to: &str) -> Result<TreeDiff, TreeError> {
        let repo = self.repo()?;
        let (before, after) = (self.tree_of(&repo, from)?, self.tree_of(&repo, to)?);
        let Compared { files, files_left_out, counts } = compared(&repo, Some(&before), &after)?;
        Ok(TreeDiff { from: from.to_owned(), to: to.to_owned(), files, files_left_out, counts })
    }

    fn tree_of<'repo>(&self, repo: &'repo Repository, commit: &str) -> Result<Tree<'repo>, TreeError> {
        let missing = || TreeError::NoCommit { commit: commit.to_owned(), dir: self.root().to_owned() };
        let found = Oid::from_str(commit).and_then(|id| repo.find_commit(id)).map_err(|_| missing())?;
        found.tree().map_err(TreeError::git("read a tree"))
    }
}
