//! The refs of a run, which go with it to another clone: the tip of its branch, checkpoints, and what reverts kept.
//!
//! Refuses every other ref. A commit that a ref leaves, and that none of the new ones leads to, stays reachable under
//! `refs/longhaul/replaced/RUN/COMMIT`: it may be a person's.

use crate::TreeError;
use crate::checkpoint::{REFS, all};
use crate::git::{Branch, UserRepository, check_room, descends, tip};
use crate::log::{KEPT, kept};
use crate::names::shown;
use crate::write::{swap, sync_file, take_turn};
use git2::{ErrorCode, Oid, Repository};
use std::collections::BTreeMap;

/// The prefix of the refs of replaced commits.
const REPLACED: &str = "refs/longhaul/replaced";

/// Refs of one run: ten times its checkpoints.
const REFS_MAX: usize = 10_000;

/// The line of git's reflog.
const WHY: &str = "longhaul: from another server";

impl UserRepository {
    /// The refs of `run`, by their full names: the tip of its branch, if there is one, its checkpoints, and the tips
    /// before reverts.
    ///
    /// # Errors
    /// When git cannot list them.
    pub fn refs_of_run(&self, branch: &Branch, run: &str) -> Result<BTreeMap<String, String>, TreeError> {
        let repo = self.repo()?;
        let tip = tip(&repo, branch)?.map(|id| (branch.full(), id));
        let checkpoints = all(&repo, run)?.into_iter().map(|(number, id)| (format!("{REFS}/{run}/{number}"), id));
        let kept = kept(&repo, run)?.into_iter().map(|(number, id)| (format!("{KEPT}/{run}/{number}"), id));
        Ok(tip.into_iter().chain(checkpoints).chain(kept).map(|(name, id)| (name, id.to_string())).collect())
    }

    /// Sets refs of `run`, each only if nothing moves it meanwhile. The branch is the last, so that the commits which
    /// it leaves are held by then. Refs that are not named stay. May be killed and repeated.
    ///
    /// # Errors
    /// [`TreeError::Stored`] for a ref of something else, [`TreeError::NoCommit`], [`TreeError::CheckedOut`],
    /// [`TreeError::NameTaken`], [`TreeError::BranchMoved`], [`TreeError::Locked`], or when git refuses.
    pub fn set_refs_of_run(
        &self,
        branch: &Branch,
        run: &str,
        refs: &BTreeMap<String, String>,
    ) -> Result<(), TreeError> {
        let repo = self.repo()?;
        let refs = checked(&repo, branch, run, refs)?;
        let ids: Vec<Oid> = refs.values().copied().collect();
        let full = branch.full();
        for (name, id) in refs.iter().filter(|(name, _)| **name != full) {
            set(&repo, run, name, *id, &ids)?;
        }
        match refs.get(full.as_str()) {
            Some(id) => self.set_branch(&repo, branch, run, *id, &ids),
            None => Ok(()),
        }
    }

    fn set_branch(&self, repo: &Repository, branch: &Branch, run: &str, id: Oid, ids: &[Oid]) -> Result<(), TreeError> {
        let _turn = take_turn();
        let found = tip(repo, branch)?;
        if found == Some(id) {
            return Ok(());
        }
        check_room(repo, branch)?;
        self.check_not_checked_out(repo, branch)?;
        keep_replaced(repo, run, found, ids)?;
        swap(repo, branch, found, id, WHY)
    }
}

/// The commits by their refs. All are checked before the first is set.
fn checked<'a>(
    repo: &Repository,
    branch: &Branch,
    run: &str,
    refs: &'a BTreeMap<String, String>,
) -> Result<BTreeMap<&'a str, Oid>, TreeError> {
    if refs.len() > REFS_MAX {
        return Err(TreeError::stored("the stored refs", format!("are {}, and {REFS_MAX} are the most", refs.len())));
    }
    let full = branch.full();
    let mut checked = BTreeMap::new();
    for (name, commit) in refs {
        if *name != full && !is_numbered(name, run) {
            return Err(TreeError::stored(
                format!("the stored ref `{}`", shown(name.as_bytes())),
                "is none of the run",
            ));
        }
        let absent = || TreeError::NoCommit { commit: shown(commit.as_bytes()), dir: repo.path().to_owned() };
        let id = Oid::from_str(commit).map_err(|_| absent())?;
        // Its files, too: a branch must lead to something that can be checked out.
        repo.find_commit(id).and_then(|commit| commit.tree()).map_err(|_| absent())?;
        checked.insert(name.as_str(), id);
    }
    Ok(checked)
}

/// True for a checkpoint of `run`, and for a tip before a revert.
fn is_numbered(name: &str, run: &str) -> bool {
    [REFS, KEPT].iter().any(|prefix| {
        let number = name.strip_prefix(&format!("{prefix}/{run}/"));
        number.is_some_and(|text| text.parse::<u32>().is_ok_and(|number| number > 0 && number.to_string() == text))
    })
}

fn set(repo: &Repository, run: &str, name: &str, id: Oid, ids: &[Oid]) -> Result<(), TreeError> {
    let found = match repo.refname_to_id(name) {
        Ok(found) => Some(found),
        Err(error) if error.code() == ErrorCode::NotFound => None,
        Err(error) => return Err(TreeError::git("read a ref of the run")(error)),
    };
    if found == Some(id) {
        return Ok(());
    }
    keep_replaced(repo, run, found, ids)?;
    // Zero: there must be none.
    let current = found.unwrap_or(Oid::ZERO_SHA1);
    repo.reference_matching(name, id, true, current, WHY).map_err(TreeError::git("set a ref of the run"))?;
    sync_file(&repo.commondir().join(name))
}

/// Keeps the commit that a ref leaves, unless one of the new ones leads to it.
fn keep_replaced(repo: &Repository, run: &str, found: Option<Oid>, ids: &[Oid]) -> Result<(), TreeError> {
    let Some(found) = found else { return Ok(()) };
    for id in ids {
        if descends(repo, *id, found)? {
            return Ok(());
        }
    }
    let name = format!("{REPLACED}/{run}/{found}");
    tracing::warn!(%run, commit = %found, name, "a run from another server replaces a commit, which is kept");
    repo.reference(&name, found, true, WHY).map_err(TreeError::git("keep a replaced commit"))?;
    sync_file(&repo.commondir().join(name))
}
