//! Reverts a run's branch to an earlier commit, with nothing lost.
//!
//! The former tip is kept under `refs/longhaul/reverted/RUN/N` before the branch moves, by compare-and-swap, and the
//! tree follows last. After a kill the same order ends in the same state. Refuses a word that is no hash, a commit that
//! the branch did not go through since the run began, and a branch that another process moved or locked, or that is
//! checked out.

use crate::git::{Branch, UserRepository, end_of, tip};
use crate::log::{KEPT, history, kept};
use crate::names::shown;
use crate::tree::Tree;
use crate::write::sync_file;
use crate::{Hook, TreeError};
use git2::{ErrorCode, ObjectType, Oid, Repository};

/// Fewest and most hexadecimal digits of a commit's name. Git abbreviates to no fewer than four.
const DIGITS: std::ops::RangeInclusive<usize> = 4..=40;

/// The way from where a branch is to one of the commits that it went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayBack {
    /// The tip of the branch.
    pub from: String,
    /// The target commit.
    pub to: String,
    /// The abandoned commits, newest first.
    pub left: Vec<String>,
}

/// A revert to carry out.
#[derive(Clone, Debug)]
pub struct RevertOrder<'a> {
    /// The branch that moves.
    pub branch: &'a Branch,
    /// Its tip.
    pub from: &'a str,
    /// Its new tip.
    pub to: &'a str,
    /// The ref that keeps the former tip; see [`keep_as`]. None when the branch does not move.
    pub keep_as: Option<&'a str>,
}

/// The ref that keeps the tip before the `number`th revert of `run`.
#[must_use]
pub fn keep_as(run: &str, number: u32) -> String {
    format!("{KEPT}/{run}/{number}")
}

impl UserRepository {
    /// The commit of `branch` that `word` names, and the way there. `base` is the commit that the run began at, and the
    /// earliest possible target. `word` is a commit's name or 4 digits or more of its beginning.
    ///
    /// # Errors
    /// [`TreeError::NotAHash`], [`TreeError::NotOfBranch`], [`TreeError::Ambiguous`], or [`TreeError::BranchMoved`]
    /// when the branch does not descend from `base`.
    pub fn way_back(&self, branch: &Branch, base: &str, word: &str) -> Result<WayBack, TreeError> {
        let wanted = digits(word)?;
        let repo = self.repo()?;
        let from = end_of(&repo, branch, base)?;
        let history: Vec<String> = history(&repo, branch, from, base)?.iter().map(Oid::to_string).collect();
        let mut fitting = history.iter().enumerate().filter(|(_, id)| id.starts_with(&wanted));
        match (fitting.next(), fitting.next()) {
            (Some((at, to)), None) => {
                Ok(WayBack { from: from.to_string(), to: to.clone(), left: history[..at].to_vec() })
            }
            (Some(_), Some(_)) => Err(TreeError::Ambiguous { word: wanted }),
            (None, _) => Err(not_of_branch(&repo, branch, base, &wanted)),
        }
    }

    /// The number of the latest ref of `run`'s reverts; 0 when there is none. See [`keep_as`].
    ///
    /// # Errors
    /// When git cannot list the refs.
    pub fn last_kept(&self, run: &str) -> Result<u32, TreeError> {
        Ok(kept(&self.repo()?, run)?.last().map_or(0, |(number, _)| *number))
    }

    /// Refuses a branch that is checked out: its files would seem to change.
    ///
    /// # Errors
    /// [`TreeError::CheckedOut`].
    pub fn check_movable(&self, branch: &Branch) -> Result<(), TreeError> {
        self.check_not_checked_out(&self.repo()?, branch)
    }
}

impl Tree {
    /// Carries out a revert: keeps the former tip, moves the branch, and brings the tree there. Ignored files stay, and
    /// uncommitted work is lost, so keep that first; see [`Tree::best_effort`]. May be killed and repeated.
    ///
    /// # Errors
    /// [`TreeError::BranchMoved`], [`TreeError::Locked`], [`TreeError::CheckedOut`], or when git or the file
    /// system refuses.
    pub fn revert(&self, project: &UserRepository, order: &RevertOrder<'_>, hook: Hook<'_>) -> Result<(), TreeError> {
        if let Some(keep_as) = order.keep_as {
            self.move_back(project, order, keep_as, hook)?;
        }
        self.discard(project, order.to, hook)
    }

    fn move_back(
        &self,
        project: &UserRepository,
        order: &RevertOrder<'_>,
        keep_as: &str,
        hook: Hook<'_>,
    ) -> Result<(), TreeError> {
        let repo = project.repo()?;
        let name = |text: &str| Oid::from_str(text).map_err(TreeError::git("read a commit's name"));
        let (from, to) = (name(order.from)?, name(order.to)?);
        let root = self.root()?;
        let writer = self.writer(project, &root, hook);
        let found = tip(&repo, order.branch)?;
        if found == Some(to) {
            return writer.forget_marker();
        }
        if found != Some(from) {
            return Err(TreeError::BranchMoved {
                branch: order.branch.as_str().to_owned(),
                expected: order.from.to_owned(),
                found: found.map_or_else(|| "nothing".to_owned(), |id| id.to_string()),
            });
        }
        project.check_not_checked_out(&repo, order.branch)?;
        hook("git.before-keep-ref");
        keep(&repo, keep_as, from)?;
        hook("git.after-keep-ref");
        writer.move_branch(&repo, order.branch, found, to, "longhaul: revert").map(|_| ())
    }
}

/// A repeated order finds its own ref.
fn keep(repo: &Repository, name: &str, id: Oid) -> Result<(), TreeError> {
    match repo.reference(name, id, false, "longhaul: revert") {
        Ok(_) => Ok(()),
        Err(error) if error.code() == ErrorCode::Exists && repo.refname_to_id(name).ok() == Some(id) => Ok(()),
        Err(error) => Err(TreeError::Git { doing: "keep where the branch was", source: error }),
    }?;
    sync_file(&repo.commondir().join(name))
}

pub(crate) fn digits(word: &str) -> Result<String, TreeError> {
    if DIGITS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(word.to_ascii_lowercase());
    }
    Err(TreeError::NotAHash { word: shown(word.chars().take(60).collect::<String>().as_bytes()) })
}

/// Names what the word is instead.
fn not_of_branch(repo: &Repository, branch: &Branch, base: &str, word: &str) -> TreeError {
    let is_before = |id: Oid| Oid::from_str(base).is_ok_and(|base| repo.graph_descendant_of(base, id).unwrap_or(false));
    let what = match repo.find_object_by_prefix(word, None) {
        Err(error) if error.code() == ErrorCode::Ambiguous => return TreeError::Ambiguous { word: word.to_owned() },
        Err(_) => "names nothing in this repository",
        Ok(object) if object.kind() != Some(ObjectType::Commit) => "is no commit",
        Ok(object) if is_before(object.id()) => "was there before the run began",
        Ok(_) => "is a commit of another branch",
    };
    TreeError::NotOfBranch { word: word.to_owned(), what, branch: branch.as_str().to_owned() }
}
