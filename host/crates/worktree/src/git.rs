//! The user's repository: its objects, and the one branch in it that moves.
//!
//! Reads and writes objects and the ref `refs/heads/longhaul/NAME`; refuses every other ref, the index,
//! the configuration and the user's files.

use crate::error::TreeError;
use crate::names::shown;
use git2::{ErrorCode, Oid, Repository, RepositoryOpenFlags, RepositoryState, StatusOptions};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The user's repository. Cheap to clone; it is opened again for each call, so that it can be shared between threads.
#[derive(Clone, Debug)]
pub struct UserRepository {
    root: PathBuf,
    git_dir: PathBuf,
}

/// `longhaul/NAME`, the only branch of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    name: String,
}

/// The start point of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartPoint {
    /// The commit to check out, and the parent of the run's first commit.
    pub base: String,
    /// The tip of the branch; none when there is no such branch yet.
    pub tip: Option<String>,
    /// Notes for the operator, for example that the branch and HEAD diverged.
    pub notes: Vec<String>,
}

/// A commit to make.
#[derive(Clone, Debug)]
pub struct CommitOrder<'a> {
    /// The branch that moves.
    pub branch: &'a Branch,
    /// Its parent, with which the tree is compared.
    pub parent: &'a str,
    /// Its message; the trailer is added.
    pub message: &'a str,
    /// The id of the effect: the same commit is never made twice.
    pub effect_id: &'a str,
    /// Its date, from the journal, in milliseconds since 1970 UTC. Git keeps seconds.
    pub time_ms: u64,
    /// [`crate::Scan::digest`] of the judged tree: any other tree is refused. None: the present tree.
    pub expected: Option<longhaul_core::Digest>,
}

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Committed {
    /// 40 hexadecimal digits.
    pub id: String,
    /// The changed paths.
    pub files: Vec<String>,
    /// Notes for the operator, for example files that were left out.
    pub notes: Vec<String>,
}

/// The number of commits that [`UserRepository::find_effect`] searches.
const EFFECT_COMMITS_MAX: usize = 1_000;

/// The number of paths that [`TreeError::Dirty`] names.
const DIRTY_PATHS_MAX: usize = 5;

/// The last line of every commit's message.
pub(crate) const TRAILER: &str = "Longhaul-Effect: ";

impl Branch {
    /// The branch `longhaul/NAME`; `name` may be given with or without the prefix.
    ///
    /// # Errors
    /// [`TreeError::BranchName`] when git would not allow it.
    pub fn new(name: &str) -> Result<Self, TreeError> {
        let short = name.strip_prefix("longhaul/").unwrap_or(name);
        let branch = Self { name: format!("longhaul/{short}") };
        let is_plain = short.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if is_plain && (1..=200).contains(&short.len()) && git2::Reference::is_valid_name(&branch.full()) {
            return Ok(branch);
        }
        Err(TreeError::BranchName { name: shown(name.chars().take(80).collect::<String>().as_bytes()) })
    }

    /// `longhaul/NAME`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    pub(crate) fn full(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
}

impl UserRepository {
    /// Finds the repository at `dir` or above it. The tree of a run is always the whole repository.
    ///
    /// # Errors
    /// Not a repository, bare, of another user, or without a commit.
    pub fn open(dir: &Path) -> Result<Self, TreeError> {
        let repo = find(dir).map_err(|error| not_opened(error, dir))?;
        let Some(root) = repo.workdir().filter(|_| !repo.is_bare()) else {
            return Err(TreeError::Bare { dir: repo.path().to_owned() });
        };
        let project = Self { root: root.to_owned(), git_dir: repo.path().to_owned() };
        project.head()?;
        Ok(project)
    }

    /// The directory of the user's files.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Refuses a checkout in the middle of a merge or the like, and one with uncommitted changes, ignored files aside.
    ///
    /// # Errors
    /// [`TreeError::InProgress`], or [`TreeError::Dirty`] with the first five changes.
    pub fn check_clean(&self) -> Result<(), TreeError> {
        let repo = self.repo()?;
        check_settled(&repo, &self.root)?;
        let mut options = StatusOptions::new();
        options.include_untracked(true).include_ignored(false).exclude_submodules(true);
        let dirty = repo.statuses(Some(&mut options)).map_err(TreeError::git("compare your files with HEAD"))?;
        if dirty.is_empty() {
            return Ok(());
        }
        let paths: Vec<String> = dirty.iter().take(DIRTY_PATHS_MAX).map(|entry| shown(entry.path_bytes())).collect();
        Err(TreeError::Dirty { dir: self.root.clone(), more: dirty.len() - paths.len(), paths })
    }

    /// The start point of a run on `branch`: HEAD when there is no such branch or HEAD already contains it, else its
    /// tip.
    ///
    /// # Errors
    /// When the branch is checked out by the user, or its name is taken.
    pub fn start(&self, branch: &Branch) -> Result<StartPoint, TreeError> {
        let repo = self.repo()?;
        check_room(&repo, branch)?;
        self.check_not_checked_out(&repo, branch)?;
        let (head, tip) = (head(&repo, &self.root)?, tip(&repo, branch)?);
        let base = base_of(&repo, head, tip)?;
        let mut notes = Vec::new();
        if repo.head_detached().map_err(TreeError::git("read HEAD"))? {
            let short = &head.to_string()[..10];
            notes.push(format!("HEAD is on no branch but at {short}, which is what `{}` follows", branch.as_str()));
        }
        if let Some(tip) = tip.filter(|tip| base == *tip && *tip != head)
            && !descends(&repo, tip, head)?
        {
            notes.push(format!(
                "branch `{}` goes on from its tip and lacks commits of HEAD; to have them, merge HEAD into it first",
                branch.as_str()
            ));
        }
        Ok(StartPoint { base: base.to_string(), tip: tip.map(|tip| tip.to_string()), notes })
    }

    /// The commit of HEAD.
    ///
    /// # Errors
    /// [`TreeError::Unborn`].
    pub fn head(&self) -> Result<String, TreeError> {
        head(&self.repo()?, &self.root).map(|id| id.to_string())
    }

    /// The commit of `branch`, if it exists.
    ///
    /// # Errors
    /// When git cannot read it.
    pub fn tip(&self, branch: &Branch) -> Result<Option<String>, TreeError> {
        Ok(tip(&self.repo()?, branch)?.map(|id| id.to_string()))
    }

    /// The commit where the work of a run that began at `base` continues: the branch's tip, or `base` while there is no
    /// such branch, or one that `base` already contains.
    ///
    /// # Errors
    /// When git cannot read it.
    pub fn end_of(&self, branch: &Branch, base: &str) -> Result<String, TreeError> {
        end_of(&self.repo()?, branch, base).map(|id| id.to_string())
    }

    /// The commit of `branch` with this effect's trailer, searched among its newest 1 000.
    ///
    /// # Errors
    /// When git cannot read the branch.
    pub fn find_effect(&self, branch: &Branch, effect_id: &str) -> Result<Option<Committed>, TreeError> {
        find_effect(&self.repo()?, branch, effect_id)
    }

    /// True when the repository has a commit.
    #[must_use]
    pub fn has_commit(&self, commit: &str) -> bool {
        let id = git2::Oid::from_str(commit).ok();
        self.repo().is_ok_and(|repo| id.is_some_and(|id| repo.find_commit(id).is_ok()))
    }

    pub(crate) fn repo(&self) -> Result<Repository, TreeError> {
        let repo = Repository::open(&self.git_dir).map_err(|error| not_opened(error, &self.root))?;
        if repo.workdir() != Some(self.root.as_path()) {
            // Without a link to it, the directory above that of git would be taken for the user's files.
            repo.set_workdir(&self.root, false).map_err(TreeError::git("find your files"))?;
        }
        Ok(repo)
    }

    /// Refuses a branch that is checked out in any worktree of the repository.
    pub(crate) fn check_not_checked_out(&self, repo: &Repository, branch: &Branch) -> Result<(), TreeError> {
        let names = repo.worktrees().map_err(TreeError::git("list the worktrees"))?;
        let linked = names.iter().filter_map(|name| repo.find_worktree(name.ok()??).ok());
        // A deleted worktree cannot be opened, and has nothing checked out.
        let linked = linked.filter_map(|worktree| Repository::open_from_worktree(&worktree).ok());
        let main = Repository::open(repo.commondir()).ok();
        for other in main.into_iter().chain(linked) {
            let head = other.find_reference("HEAD").ok();
            let target = head.as_ref().and_then(|head| head.symbolic_target_bytes());
            if target == Some(branch.full().as_bytes()) {
                let worktree = other.workdir().unwrap_or(other.path()).to_owned();
                return Err(TreeError::CheckedOut { branch: branch.as_str().to_owned(), worktree });
            }
        }
        Ok(())
    }
}

/// The repository at `dir` or above it, with the directory of its user's files. `Repository::discover` would lose that
/// where `.git` is a file, which leads to a directory elsewhere.
pub(crate) fn find(dir: &Path) -> Result<Repository, git2::Error> {
    Repository::open_ext(dir, RepositoryOpenFlags::CROSS_FS, std::iter::empty::<&OsStr>())
}

/// Refuses a repository whose checkout is in the middle of an operation.
pub(crate) fn check_settled(repo: &Repository, dir: &Path) -> Result<(), TreeError> {
    use RepositoryState as State;
    let (what, command) = match repo.state() {
        State::Clean => return Ok(()),
        State::Merge => ("merge", "git merge --abort"),
        State::Revert | State::RevertSequence => ("revert", "git revert --abort"),
        State::CherryPick | State::CherryPickSequence => ("cherry-pick", "git cherry-pick --abort"),
        State::Bisect => ("bisect", "git bisect reset"),
        State::Rebase | State::RebaseInteractive | State::RebaseMerge => ("rebase", "git rebase --abort"),
        State::ApplyMailbox | State::ApplyMailboxOrRebase => ("git am", "git am --abort"),
    };
    Err(TreeError::InProgress { dir: dir.to_owned(), what, command })
}

pub(crate) fn tip(repo: &Repository, branch: &Branch) -> Result<Option<Oid>, TreeError> {
    match repo.refname_to_id(&branch.full()) {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(TreeError::Git { doing: "read the branch", source: error }),
    }
}

pub(crate) fn end_of(repo: &Repository, branch: &Branch, base: &str) -> Result<Oid, TreeError> {
    let base = Oid::from_str(base).map_err(TreeError::git("read the commit that the run began at"))?;
    match tip(repo, branch)? {
        // A missing base has no descendants.
        Some(tip) if repo.find_commit(base).is_err() || !descends(repo, base, tip)? => Ok(tip),
        Some(_) | None => Ok(base),
    }
}

/// True when `id` is `other` or comes after it.
pub(crate) fn descends(repo: &Repository, id: Oid, other: Oid) -> Result<bool, TreeError> {
    Ok(id == other || repo.graph_descendant_of(id, other).map_err(TreeError::git("walk the history"))?)
}

pub(crate) fn find_effect(repo: &Repository, branch: &Branch, effect_id: &str) -> Result<Option<Committed>, TreeError> {
    let wanted = format!("{TRAILER}{effect_id}");
    let mut next = tip(repo, branch)?;
    for _ in 0..EFFECT_COMMITS_MAX {
        // The end of the history, or of a shallow clone's part of it.
        let Some(commit) = next.and_then(|id| repo.find_commit(id).ok()) else { break };
        if last_line(commit.message_bytes()) == wanted.as_bytes() {
            let files = files(repo, &commit)?;
            return Ok(Some(Committed { id: commit.id().to_string(), files, notes: Vec::new() }));
        }
        next = commit.parent_id(0).ok();
    }
    Ok(None)
}

/// Only the last line counts: the rest of the message is a model's.
fn last_line(message: &[u8]) -> &[u8] {
    message.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// The files that a commit changed, against its first parent.
pub(crate) fn files(repo: &Repository, commit: &git2::Commit<'_>) -> Result<Vec<String>, TreeError> {
    let failed = TreeError::git;
    let before = match commit.parent(0) {
        Ok(parent) => Some(parent.tree().map_err(failed("read a tree"))?),
        Err(_) => None,
    };
    let after = commit.tree().map_err(failed("read a tree"))?;
    let diff = repo.diff_tree_to_tree(before.as_ref(), Some(&after), None).map_err(failed("compare two commits"))?;
    let path = |delta: git2::DiffDelta<'_>| delta.new_file().path_bytes().or(delta.old_file().path_bytes()).map(shown);
    Ok(diff.deltas().filter_map(path).collect())
}

fn head(repo: &Repository, dir: &Path) -> Result<Oid, TreeError> {
    let unborn = |error: git2::Error| match error.code() {
        ErrorCode::UnbornBranch | ErrorCode::NotFound => TreeError::Unborn { dir: dir.to_owned() },
        _ => TreeError::Git { doing: "read HEAD", source: error },
    };
    Ok(repo.head().map_err(unborn)?.peel_to_commit().map_err(TreeError::git("read HEAD"))?.id())
}

fn base_of(repo: &Repository, head: Oid, tip: Option<Oid>) -> Result<Oid, TreeError> {
    match tip {
        None => Ok(head),
        Some(tip) if descends(repo, head, tip)? => Ok(head),
        Some(tip) => Ok(tip),
    }
}

/// Git keeps branches as files: `longhaul` or `longhaul/NAME/x` exclude `longhaul/NAME`.
pub(crate) fn check_room(repo: &Repository, branch: &Branch) -> Result<(), TreeError> {
    let taken = |taken: String| TreeError::NameTaken { branch: branch.as_str().to_owned(), taken };
    if repo.find_reference("refs/heads/longhaul").is_ok() {
        return Err(taken("longhaul".to_owned()));
    }
    let below = format!("{}/*", branch.full());
    let mut below = repo.references_glob(&below).map_err(TreeError::git("list the branches"))?;
    match below.names().next() {
        Some(Ok(name)) => Err(taken(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned())),
        _ => Ok(()),
    }
}

pub(crate) fn not_opened(error: git2::Error, dir: &Path) -> TreeError {
    match error.code() {
        ErrorCode::NotFound => TreeError::NotARepository { dir: dir.to_owned() },
        ErrorCode::Owner => TreeError::Owner { dir: dir.to_owned() },
        _ => TreeError::Git { doing: "open the repository", source: error },
    }
}
