//! Moves a tree to a later commit and keeps its uncommitted work.
//!
//! The tree's changes and the branch's new commits are merged as git merges two branches, line by line. After a kill
//! the same call continues: the target state is written down, as a commit that no branch leads to, before the first
//! file changes. Refuses to choose between two changes of the same lines, and then leaves the tree unchanged.

use crate::git::UserRepository;
use crate::names::shown;
use crate::scan::{Base, ScanState};
use crate::tree::{Tree, beside};
use crate::{Hook, TreeError};
use git2::{Oid, Repository, Signature, Time};

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The tree holds both.
    Done,
    /// Both changed the same lines.
    Conflict {
        /// The files with conflicts.
        files: Vec<String>,
    },
}

/// Files that a conflict names.
const CONFLICTS_MAX: usize = 100;

impl Tree {
    /// Merges the commits from `base`, where the tree started, to `tip` into the tree.
    ///
    /// # Errors
    /// As [`Tree::scan`], or when git or the file system refuses.
    pub fn merge(&self, project: &UserRepository, base: &str, tip: &str, hook: Hook<'_>) -> Result<Merge, TreeError> {
        let marker = beside(self.dir(), ".merge");
        let announced = std::fs::read_to_string(&marker).unwrap_or_default();
        let merged = match announced.strip_prefix(&format!("{base}\n{tip}\n")) {
            Some(merged) => merged.trim().to_owned(),
            None => match self.merged(project, base, tip, hook)? {
                Ok(merged) => merged.to_string(),
                Err(files) => return Ok(Merge::Conflict { files }),
            },
        };
        hook("tree.before-merge");
        crate::root::write_whole(&marker, format!("{base}\n{tip}\n{merged}\n").as_bytes())
            .map_err(TreeError::io("write", &marker))?;
        self.restore_to(project, &merged, hook)?;
        self.note_at(tip)?;
        hook("tree.after-merge");
        std::fs::remove_file(&marker).map_err(TreeError::io("remove", &marker))?;
        Ok(Merge::Done)
    }

    /// Moves the tree to `tip` between two sessions. A person's changes stay, unless the branch changed the same lines:
    /// those files get the branch's content, and are returned.
    ///
    /// # Errors
    /// As [`Tree::merge`].
    pub fn bring_to(&self, project: &UserRepository, tip: &str, hook: Hook<'_>) -> Result<Vec<String>, TreeError> {
        let Some(at) = self.at() else {
            self.note_at(tip)?;
            return Ok(Vec::new());
        };
        if at == tip && self.dir().exists() {
            return Ok(Vec::new());
        }
        match self.merge(project, &at, tip, hook) {
            Ok(Merge::Done) => Ok(Vec::new()),
            Ok(Merge::Conflict { files }) => {
                self.discard(project, tip, hook)?;
                Ok(files)
            }
            // An unreadable tree, or one from a missing commit, is made again.
            Err(error) if error.is_of_the_work() || matches!(error, TreeError::NoCommit { .. }) => {
                self.discard(project, tip, hook)?;
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// A commit, which no branch leads to, of the merged state; or the files that cannot be merged.
    fn merged(
        &self,
        project: &UserRepository,
        base: &str,
        tip: &str,
        hook: Hook<'_>,
    ) -> Result<Result<Oid, Vec<String>>, TreeError> {
        let failed = TreeError::git;
        let root = self.root()?;
        let repo = project.repo()?;
        let seen = self.look(project, &root, base)?;
        seen.judged(&root)?;
        let theirs = Base::read(&repo, tip, self.caps())?;
        let ours = self.write_work(project, &repo, &seen, hook)?;
        let tree = |id: Oid| repo.find_tree(id).map_err(failed("read a tree"));
        let mut index = repo
            .merge_trees(&tree(seen.base.tree)?, &tree(ours)?, &tree(theirs.tree)?, None)
            .map_err(failed("merge the work with the branch"))?;
        if index.has_conflicts() {
            return Ok(Err(conflicts(&index)?));
        }
        let merged = index.write_tree_to(&repo).map_err(failed("write a tree"))?;
        holding_commit(&repo, merged, theirs.commit).map(Ok)
    }

    fn write_work(
        &self,
        project: &UserRepository,
        repo: &Repository,
        seen: &ScanState,
        hook: Hook<'_>,
    ) -> Result<Oid, TreeError> {
        self.writer(project, &self.root()?, hook).write_tree(repo, seen, &mut Vec::new())
    }
}

pub(crate) fn conflicts(index: &git2::Index) -> Result<Vec<String>, TreeError> {
    let failed = TreeError::git("list the conflicts");
    let mut files = Vec::new();
    for conflict in index.conflicts().map_err(failed)?.take(CONFLICTS_MAX) {
        let conflict = conflict.map_err(TreeError::git("list the conflicts"))?;
        let entry = conflict.our.or(conflict.their).or(conflict.ancestor);
        files.extend(entry.map(|entry| shown(&entry.path)));
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Without a date, so that the same merge has the same id.
fn holding_commit(repo: &Repository, tree: Oid, parent: Oid) -> Result<Oid, TreeError> {
    let failed = TreeError::git;
    let who = Signature::new("Longhaul", "longhaul@localhost", &Time::new(0, 0)).map_err(failed("sign a commit"))?;
    let tree = repo.find_tree(tree).map_err(failed("read a tree"))?;
    let parent = repo.find_commit(parent).map_err(failed("read a commit"))?;
    let message = "Work of an agent, brought to the branch\n";
    repo.commit(None, &who, &who, message, &tree, &[&parent]).map_err(failed("write a commit"))
}
