//! The changes of a run, between two commits, in git's format.
//!
//! Made of blobs without git's filters, drivers and configuration, so that no program they name is started. `git apply`
//! accepts the text; the caller cleans it before it is shown. Changes nothing.

use crate::TreeError;
use crate::git::UserRepository;
use crate::names::shown;
use git2::{DiffFormat, DiffOptions, DiffStatsFormat, Oid};

/// Bytes of one file that is compared line by line; of a larger one only the name is given.
const COMPARED_BYTES_MAX: i64 = 16 << 20;

/// Columns of the summary of a difference.
const STAT_COLUMNS: usize = 80;

/// The form of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffForm {
    /// Every line.
    Patch,
    /// Files with their numbers of lines.
    Stat,
}

impl UserRepository {
    /// The difference from the commit `from` to `to`.
    ///
    /// # Errors
    /// When one of them does not exist, or git cannot read it.
    pub fn diff(&self, from: &str, to: &str, form: DiffForm) -> Result<Vec<u8>, TreeError> {
        let repo = self.repo()?;
        let tree = |commit: &str| {
            let missing = || TreeError::NoCommit { commit: commit.to_owned(), dir: self.root().to_owned() };
            let found = Oid::from_str(commit).and_then(|id| repo.find_commit(id)).map_err(|_| missing())?;
            found.tree().map_err(TreeError::git("read a tree"))
        };
        let failed = || TreeError::git("compare two commits");
        let mut options = DiffOptions::new();
        options.max_size(COMPARED_BYTES_MAX).show_binary(form == DiffForm::Patch);
        let diff = repo.diff_tree_to_tree(Some(&tree(from)?), Some(&tree(to)?), Some(&mut options));
        let mut diff = diff.map_err(failed())?;
        diff.find_similar(None).map_err(failed())?;
        if form == DiffForm::Stat {
            let stats = diff.stats().and_then(|stats| stats.to_buf(DiffStatsFormat::FULL, STAT_COLUMNS));
            return Ok(stats.map_err(failed())?.to_vec());
        }
        let mut text = Vec::new();
        let printed = diff.print(DiffFormat::Patch, |_, _, line| {
            if let sign @ ('+' | '-' | ' ') = line.origin() {
                text.push(sign as u8);
            }
            text.extend_from_slice(line.content());
            true
        });
        printed.map_err(failed())?;
        Ok(text)
    }

    /// The paths that differ from the commit `from` to `to`, as [`crate::FileChange::path`] shows them.
    ///
    /// # Errors
    /// When one of them does not exist, or git cannot read it.
    pub fn changed_paths(&self, from: &str, to: &str) -> Result<Vec<String>, TreeError> {
        let repo = self.repo()?;
        let tree = |commit: &str| {
            let missing = || TreeError::NoCommit { commit: commit.to_owned(), dir: self.root().to_owned() };
            let found = Oid::from_str(commit).and_then(|id| repo.find_commit(id)).map_err(|_| missing())?;
            found.tree().map_err(TreeError::git("read a tree"))
        };
        let diff = repo.diff_tree_to_tree(Some(&tree(from)?), Some(&tree(to)?), None);
        let diff = diff.map_err(TreeError::git("compare two commits"))?;
        let path =
            |delta: git2::DiffDelta<'_>| delta.new_file().path_bytes().or(delta.old_file().path_bytes()).map(shown);
        Ok(diff.deltas().filter_map(path).collect())
    }

    /// The first parent of a commit; none of a first one.
    ///
    /// # Errors
    /// When the commit does not exist.
    pub fn parent_of(&self, commit: &str) -> Result<Option<String>, TreeError> {
        let repo = self.repo()?;
        let missing = || TreeError::NoCommit { commit: commit.to_owned(), dir: self.root().to_owned() };
        let found = Oid::from_str(commit).and_then(|id| repo.find_commit(id)).map_err(|_| missing())?;
        Ok(found.parent_id(0).ok().map(|id| id.to_string()))
    }
}
