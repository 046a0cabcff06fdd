//! The branch of a fork: made at a commit of another run, before the fork is stored.
//!
//! A mark, the ref `refs/longhaul/forks/NAME`, stands from before the branch is made until the fork is stored. A branch
//! that a kill left without its fork is known by it: the next fork of that name removes such a branch, as long as it is
//! where the mark says. Every other branch of the name is refused, since it is a person's or a run's.

use crate::TreeError;
use crate::git::{Branch, UserRepository, check_room, descends, tip};
use crate::names::shown;
use crate::write::{swap, sync_file, take_turn};
use git2::{ErrorCode, Oid, Repository};

/// The prefix of the marks.
const MARKS: &str = "refs/longhaul/forks";

/// The line of git's reflog.
const WHY: &str = "longhaul: fork";

impl UserRepository {
    /// Refuses a name that [`UserRepository::make_fork_branch`] would refuse. Changes nothing.
    ///
    /// # Errors
    /// [`TreeError::BranchExists`], [`TreeError::NameTaken`], [`TreeError::CheckedOut`], or when git refuses.
    pub fn check_fork_branch(&self, branch: &Branch) -> Result<(), TreeError> {
        free_tip(self, &self.repo()?, branch).map(drop)
    }

    /// Makes `branch` at `commit` for a fork that is stored next. No run has the branch, which the caller knows. May be
    /// killed and repeated.
    ///
    /// # Errors
    /// As [`UserRepository::check_fork_branch`], and [`TreeError::NoCommit`] or [`TreeError::Locked`].
    pub fn make_fork_branch(&self, branch: &Branch, commit: &str) -> Result<(), TreeError> {
        let repo = self.repo()?;
        let id = present(&repo, commit)?;
        let _turn = take_turn();
        // A branch that an earlier attempt left goes before its mark moves: one beside its mark is a person's.
        if let Some(left) = free_tip(self, &repo, branch)? {
            remove_at(&repo, &branch.full(), left)?;
        }
        let mark = mark(branch);
        repo.reference(&mark, id, true, WHY).map_err(TreeError::git("mark the branch of a fork"))?;
        sync_file(&repo.commondir().join(&mark))?;
        swap(&repo, branch, None, id, WHY)
    }

    /// The fork of `branch` is stored: its branch needs no mark any more.
    ///
    /// # Errors
    /// Git refuses. The mark of a stored fork harms nothing.
    pub fn keep_fork_branch(&self, branch: &Branch) -> Result<(), TreeError> {
        let (repo, mark) = (self.repo()?, mark(branch));
        read(&repo, &mark)?.map_or(Ok(()), |marked| remove_at(&repo, &mark, marked))
    }

    /// The fork of `branch` could not be stored: removes its branch, unless something moved it, and its mark.
    ///
    /// # Errors
    /// Git refuses; then the next fork of the name removes it.
    pub fn drop_fork_branch(&self, branch: &Branch) -> Result<(), TreeError> {
        let repo = self.repo()?;
        let _turn = take_turn();
        let mark = mark(branch);
        let Some(marked) = read(&repo, &mark)? else { return Ok(()) };
        if tip(&repo, branch)? == Some(marked) {
            remove_at(&repo, &branch.full(), marked)?;
        }
        remove_at(&repo, &mark, marked)
    }

    /// The commit of these that comes after all others, or `base` where none comes after it.
    ///
    /// # Errors
    /// [`TreeError::NoCommit`], or when git cannot walk the history.
    pub fn newest_of<'a>(&self, base: &str, commits: impl IntoIterator<Item = &'a str>) -> Result<String, TreeError> {
        let repo = self.repo()?;
        let mut newest = present(&repo, base)?;
        for commit in commits {
            let id = present(&repo, commit)?;
            if descends(&repo, id, newest)? {
                newest = id;
            }
        }
        Ok(newest.to_string())
    }
}

/// The commit at which a killed fork left the branch; none where there is no branch of the name.
fn free_tip(project: &UserRepository, repo: &Repository, branch: &Branch) -> Result<Option<Oid>, TreeError> {
    check_room(repo, branch)?;
    project.check_not_checked_out(repo, branch)?;
    let found = tip(repo, branch)?;
    if found.is_some() && found != read(repo, &mark(branch))? {
        return Err(TreeError::BranchExists { branch: branch.as_str().to_owned() });
    }
    Ok(found)
}

fn mark(branch: &Branch) -> String {
    format!("{MARKS}/{}", branch.as_str().trim_start_matches("longhaul/"))
}

fn present(repo: &Repository, commit: &str) -> Result<Oid, TreeError> {
    let absent = || TreeError::NoCommit { commit: shown(commit.as_bytes()), dir: repo.path().to_owned() };
    let id = Oid::from_str(commit).map_err(|_| absent())?;
    // Its files, too: a branch must lead to something that can be checked out.
    repo.find_commit(id).and_then(|commit| commit.tree()).map_err(|_| absent())?;
    Ok(id)
}

fn read(repo: &Repository, name: &str) -> Result<Option<Oid>, TreeError> {
    match repo.refname_to_id(name) {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(TreeError::git("read a ref of a fork")(error)),
    }
}

/// Removes a ref that is at `id`. One that is gone, or elsewhere, stays so.
fn remove_at(repo: &Repository, name: &str, id: Oid) -> Result<(), TreeError> {
    let found = match repo.find_reference(name) {
        Ok(found) => Some(found).filter(|found| found.target() == Some(id)),
        Err(error) if error.code() == ErrorCode::NotFound => None,
        Err(error) => return Err(TreeError::git("read a ref of a fork")(error)),
    };
    match found {
        // Git compares it with what was read.
        Some(mut found) => found.delete().map_err(TreeError::git("remove a ref of a fork")),
        None => Ok(()),
    }
}
