//! Merges the commits of a run into the branch that the user has checked out.
//!
//! This is the only module of the crate that writes the user's files, index and branch, and it does so only when the
//! user requests exactly that. All or nothing: every obstacle is found before the first file is written, and a checkout
//! that fails half way is taken back. Refuses a checkout with changes, a HEAD on no branch, and to choose between two
//! changes of the same lines; runs no hook, no filter of the configuration and no merge driver.

use crate::git::{Branch, UserRepository, check_settled, descends, tip};
use crate::merge::conflicts;
use crate::names::shown;
use crate::{Hook, TreeError};
use git2::build::CheckoutBuilder;
use git2::{Delta, DiffOptions, ErrorCode, ObjectType, Oid, Repository, Tree};
use std::collections::BTreeSet;
use std::path::Path;

/// Files that a refusal names.
const NAMED_MAX: usize = 20;

/// Commits that are counted.
const COUNTED_MAX: usize = 100_000;

/// The kind of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeKind {
    /// The branch already contains all of it.
    AlreadyThere,
    /// The checked-out branch moves forward, without a merge commit.
    FastForward,
    /// A commit with both branches as parents.
    MergeCommit,
}

/// The result of a merge, or of a dry run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MergedIn {
    /// The checked-out branch, by its short name.
    pub into: String,
    /// The branch of the run.
    pub branch: String,
    /// The kind of the merge.
    pub kind: MergeKind,
    /// The former tip of the checked-out branch.
    pub from: String,
    /// Its new tip; none before a merge commit is made.
    pub to: Option<String>,
    /// Commits of the run's branch that it did not have.
    pub commits: usize,
    /// The files that change.
    pub files: Vec<String>,
}

/// A merge without obstacles.
struct Planned<'repo> {
    merged: MergedIn,
    head_ref: String,
    head: Oid,
    tip: Oid,
    tree: Tree<'repo>,
    changes: Changes,
}

/// Paths that a merge writes.
#[derive(Default)]
struct Changes {
    all: Vec<Vec<u8>>,
    added: Vec<Vec<u8>>,
    gone: BTreeSet<Vec<u8>>,
}

impl UserRepository {
    /// Merges `branch` into the checked-out branch: fast forward if possible, else with a merge commit by the user of
    /// git's configuration. With `dry_run` nothing is written.
    ///
    /// # Errors
    /// The obstacle, with the files and the remedy. Then nothing has changed.
    pub fn merge_into_checkout(&self, branch: &Branch, dry_run: bool, hook: Hook<'_>) -> Result<MergedIn, TreeError> {
        let repo = self.repo()?;
        let Planned { mut merged, head_ref, head, tip, tree, changes } = self.plan_merge(&repo, branch)?;
        if merged.kind == MergeKind::AlreadyThere || (dry_run && merged.kind == MergeKind::FastForward) {
            return Ok(merged);
        }
        // Also for a dry run: without a name there could be no merge.
        let who = (merged.kind == MergeKind::MergeCommit).then(|| signature(&repo, self.root())).transpose()?;
        if dry_run {
            return Ok(merged);
        }
        let (to, what) = match who {
            None => (tip, "Fast-forward"),
            Some(who) => {
                let parent = |id| repo.find_commit(id).map_err(TreeError::git("read a commit"));
                let message = format!("Merge branch '{}'\n", branch.as_str());
                let parents = [&parent(head)?, &parent(tip)?];
                // No ref leads to it yet.
                let made = repo.commit(None, &who, &who, &message, &tree, &parents);
                (made.map_err(TreeError::git("write a commit"))?, "Merge made by longhaul")
            }
        };
        hook("merge.before-checkout");
        self.check_out(&repo, &tree, head, &changes)?;
        hook("merge.before-ref-move");
        let reason = format!("merge {}: {what}", branch.as_str());
        if let Err(error) = repo.reference_matching(&head_ref, to, true, head, &reason) {
            take_back(&repo, head, &changes)?;
            return Err(TreeError::Git { doing: "move your branch", source: error });
        }
        merged.to = Some(to.to_string());
        Ok(merged)
    }

    /// Checks everything that can be refused.
    fn plan_merge<'repo>(&self, repo: &'repo Repository, branch: &Branch) -> Result<Planned<'repo>, TreeError> {
        let head_ref = repo.find_reference("HEAD").map_err(TreeError::git("read HEAD"))?;
        let head_ref = head_ref.symbolic_target().ok().flatten().map(str::to_owned);
        let Some(head_ref) = head_ref.filter(|_| !repo.head_detached().unwrap_or(true)) else {
            return Err(TreeError::Detached { dir: self.root().to_owned() });
        };
        let Some(tip) = tip(repo, branch)? else {
            return Err(TreeError::NoBranch { branch: branch.as_str().to_owned(), dir: self.root().to_owned() });
        };
        let head = repo.refname_to_id(&head_ref).map_err(TreeError::git("read HEAD"))?;
        let kind = match () {
            () if descends(repo, head, tip)? => MergeKind::AlreadyThere,
            () if descends(repo, tip, head)? => MergeKind::FastForward,
            () => MergeKind::MergeCommit,
        };
        check_settled(repo, self.root())?;
        if kind != MergeKind::AlreadyThere {
            self.check_clean()?;
            check_unlocked(repo, branch)?;
        }
        let tree = match kind {
            MergeKind::AlreadyThere => tree_of(repo, head)?,
            MergeKind::FastForward => tree_of(repo, tip)?,
            MergeKind::MergeCommit => merged_tree(repo, head, tip, branch)?,
        };
        let changes = Changes::between(repo, &tree_of(repo, head)?, &tree)?;
        self.check_room_for(&changes)?;
        let merged = MergedIn {
            into: head_ref.strip_prefix("refs/heads/").unwrap_or(&head_ref).to_owned(),
            branch: branch.as_str().to_owned(),
            kind,
            from: head.to_string(),
            to: match kind {
                MergeKind::AlreadyThere => Some(head.to_string()),
                MergeKind::FastForward => Some(tip.to_string()),
                MergeKind::MergeCommit => None,
            },
            commits: count_new(repo, head, tip)?,
            files: changes.all.iter().map(|path| shown(path)).collect(),
        };
        Ok(Planned { merged, head_ref, head, tip, tree, changes })
    }

    /// Refuses to overwrite uncommitted files. The checkout has only ignored ones.
    fn check_room_for(&self, changes: &Changes) -> Result<(), TreeError> {
        let is_there = |path: &[u8]| std::fs::symlink_metadata(self.root().join(as_path(path))).is_ok();
        let is_no_directory =
            |path: &[u8]| std::fs::symlink_metadata(self.root().join(as_path(path))).is_ok_and(|found| !found.is_dir());
        let above = |path: &[u8]| -> Vec<Vec<u8>> {
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            slashes.map(|(at, _)| path[..at].to_vec()).collect()
        };
        let mut in_the_way = BTreeSet::new();
        for path in &changes.added {
            let blocked = above(path).into_iter().find(|dir| !changes.gone.contains(dir) && is_no_directory(dir));
            // A directory whose files are all removed makes way for a file of its name.
            let has_gone_below = changes.gone.iter().any(|gone| gone.starts_with(&[path.as_slice(), b"/"].concat()));
            match blocked {
                Some(dir) => drop(in_the_way.insert(shown(&dir))),
                None if is_there(path) && !has_gone_below => drop(in_the_way.insert(shown(path))),
                None => {}
            }
        }
        if in_the_way.is_empty() {
            return Ok(());
        }
        let paths: Vec<String> = in_the_way.iter().take(NAMED_MAX).cloned().collect();
        Err(TreeError::InTheWay { dir: self.root().to_owned(), more: in_the_way.len() - paths.len(), paths })
    }

    fn check_out(&self, repo: &Repository, tree: &Tree<'_>, head: Oid, changes: &Changes) -> Result<(), TreeError> {
        let mut options = CheckoutBuilder::new();
        // A file that changed since the check ends it before the first write.
        options.safe().overwrite_ignored(false);
        match repo.checkout_tree(tree.as_object(), Some(&mut options)) {
            Ok(()) => Ok(()),
            Err(error) if error.code() == ErrorCode::Conflict => {
                Err(TreeError::Git { doing: "write your files, which changed meanwhile", source: error })
            }
            Err(error) => {
                take_back(repo, head, changes)?;
                Err(TreeError::Git { doing: "write your files", source: error })
            }
        }
    }
}

impl Changes {
    fn between(repo: &Repository, before: &Tree<'_>, after: &Tree<'_>) -> Result<Self, TreeError> {
        let mut options = DiffOptions::new();
        options.ignore_submodules(false);
        let diff = repo.diff_tree_to_tree(Some(before), Some(after), Some(&mut options));
        let mut changes = Self::default();
        for delta in diff.map_err(TreeError::git("compare two commits"))?.deltas() {
            let path = delta.new_file().path_bytes().or(delta.old_file().path_bytes()).unwrap_or_default().to_vec();
            match delta.status() {
                Delta::Added => changes.added.push(path.clone()),
                Delta::Deleted => drop(changes.gone.insert(path.clone())),
                _ => {}
            }
            changes.all.push(path);
        }
        Ok(changes)
    }
}

/// Restores the files of `changes` to their state in `head`, and removes those that it does not have.
fn take_back(repo: &Repository, head: Oid, changes: &Changes) -> Result<(), TreeError> {
    let mut options = CheckoutBuilder::new();
    options.force().remove_untracked(true).disable_pathspec_match(true);
    for path in &changes.all {
        options.path(as_path(path));
    }
    let head = repo.find_object(head, Some(ObjectType::Commit)).map_err(TreeError::git("read a commit"))?;
    repo.checkout_tree(&head, Some(&mut options)).map_err(TreeError::git("put your files back"))
}

/// The merged files, or those that cannot be merged.
fn merged_tree<'repo>(repo: &'repo Repository, head: Oid, tip: Oid, branch: &Branch) -> Result<Tree<'repo>, TreeError> {
    let commit = |id| repo.find_commit(id).map_err(TreeError::git("read a commit"));
    let merged = repo.merge_commits(&commit(head)?, &commit(tip)?, None);
    let mut index = merged.map_err(TreeError::git("merge the branch"))?;
    if index.has_conflicts() {
        let mut paths = conflicts(&index)?;
        let more = paths.len().saturating_sub(NAMED_MAX);
        paths.truncate(NAMED_MAX);
        return Err(TreeError::Conflicts { branch: branch.as_str().to_owned(), paths, more });
    }
    let tree = index.write_tree_to(repo).map_err(TreeError::git("write a tree"))?;
    repo.find_tree(tree).map_err(TreeError::git("read a tree"))
}

fn tree_of(repo: &Repository, commit: Oid) -> Result<Tree<'_>, TreeError> {
    repo.find_commit(commit).and_then(|commit| commit.tree()).map_err(TreeError::git("read a tree"))
}

fn count_new(repo: &Repository, head: Oid, tip: Oid) -> Result<usize, TreeError> {
    let failed = || TreeError::git("walk the history");
    let mut walk = repo.revwalk().map_err(failed())?;
    walk.push(tip).map_err(failed())?;
    walk.hide(head).map_err(failed())?;
    Ok(walk.take(COUNTED_MAX).count())
}

fn signature(repo: &Repository, dir: &Path) -> Result<git2::Signature<'static>, TreeError> {
    repo.signature().map_err(|_| TreeError::NoIdentity { dir: dir.to_owned() })
}

/// A git process at work would write the index at the same time.
fn check_unlocked(repo: &Repository, branch: &Branch) -> Result<(), TreeError> {
    let lock = repo.path().join("index.lock");
    if std::fs::symlink_metadata(&lock).is_err() {
        return Ok(());
    }
    Err(TreeError::Locked { branch: branch.as_str().to_owned(), lock })
}

fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
