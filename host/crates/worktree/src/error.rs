//! Why the tree, a commit or a branch could not be had. Each case says what to do about it.

use longhaul_core::LimitHit;
use std::path::PathBuf;

/// Everything that goes wrong with trees and branches.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// There is no git repository at the directory or above it.
    #[error("`{dir}` is not in a git repository; run `longhaul init` in it, or `git init` and a first commit")]
    NotARepository {
        /// Where was looked.
        dir: PathBuf,
    },
    /// A repository without files.
    #[error("`{dir}` is a bare repository; clone it and run in the clone: `git clone {dir}`")]
    Bare {
        /// The repository.
        dir: PathBuf,
    },
    /// Git refuses repositories of other users, and so does this host.
    #[error("`{dir}` belongs to another user; run as its owner, or `git config --global --add safe.directory {dir}`")]
    Owner {
        /// The repository.
        dir: PathBuf,
    },
    /// HEAD names a branch without a commit.
    #[error("`{dir}` has no commit yet; make one: `git add -A && git commit -m \"start\"`")]
    Unborn {
        /// The repository.
        dir: PathBuf,
    },
    /// The user has work that is in no commit, which an agent would not see.
    #[error("`{dir}` has changes that are not committed: {}; commit them, or `git stash -u`", list(.paths, *.more))]
    Dirty {
        /// The repository.
        dir: PathBuf,
        /// The first few.
        paths: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// The branch is what the user looks at; moving it would make their files look changed.
    #[error("branch `{branch}` is checked out in `{worktree}`; switch to another one there: `git switch -`")]
    CheckedOut {
        /// Its short name.
        branch: String,
        /// Where.
        worktree: PathBuf,
    },
    /// Not a name that git allows.
    #[error("`{name}` cannot name a branch; use letters, digits, `-`, `_` and `.`, at most 200 of them")]
    BranchName {
        /// What was asked for.
        name: String,
    },
    /// A branch `longhaul` leaves no room for `longhaul/NAME`.
    #[error("branch `{taken}` leaves no room for `{branch}`; rename it: `git branch -m {taken} {taken}-old`")]
    NameTaken {
        /// The branch that is wanted.
        branch: String,
        /// The one that is in the way.
        taken: String,
    },
    /// HEAD is at a commit and on no branch.
    #[error("HEAD of `{dir}` is on no branch, so nothing would hold the merge; switch to one: `git switch main`")]
    Detached {
        /// The repository.
        dir: PathBuf,
    },
    /// The branch of a run is not there.
    #[error("`{dir}` has no branch `{branch}`; a run makes it with its first commit, see `longhaul log`")]
    NoBranch {
        /// Its short name.
        branch: String,
        /// The repository.
        dir: PathBuf,
    },
    /// Both branches changed the same lines.
    #[error(
        "`{branch}` and your branch changed the same lines of {}; nothing was changed; merge by hand: \
         `git merge {branch}`, resolve these files, `git commit`",
        list(.paths, *.more)
    )]
    Conflicts {
        /// The short name of the run's.
        branch: String,
        /// The first few files.
        paths: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// Files that no commit holds lie where the merge has some.
    #[error("the merge would write over {} in `{dir}`, which no commit holds; move them away first", list(.paths, *.more))]
    InTheWay {
        /// The repository.
        dir: PathBuf,
        /// The first few.
        paths: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// Git does not know who the user is.
    #[error(
        "git does not know your name, which a merge commit has; say it: \
         `git config --global user.name NAME` and `git config --global user.email ADDRESS`"
    )]
    NoIdentity {
        /// The repository.
        dir: PathBuf,
    },
    /// Somebody else moved the branch.
    #[error(
        "branch `{branch}` is at {found}, but the work is based on {expected}; \
         move it back: `git branch -f {branch} {expected}`, or start a new run"
    )]
    BranchMoved {
        /// Its short name.
        branch: String,
        /// What the commit was to follow.
        expected: String,
        /// What is there; `nothing` when the branch is gone.
        found: String,
    },
    /// Another git holds the lock of the branch.
    #[error("branch `{branch}` is locked by another git; wait for it, or if none is running remove `{lock}`")]
    Locked {
        /// Its short name.
        branch: String,
        /// The lock file.
        lock: PathBuf,
    },
    /// The tree is not what was judged.
    #[error("the tree changed after it was judged: it was {expected} and is {found}; judge it again")]
    TreeChanged {
        /// The scan's digest that was judged.
        expected: String,
        /// The scan's digest now.
        found: String,
    },
    /// A file changed while it was read.
    #[error("`{path}` changed while it was read; let nothing write to the tree meanwhile and try again")]
    Raced {
        /// Within the tree.
        path: String,
    },
    /// A link that would lead out of the tree, or into a repository.
    #[error(
        "`{path}` is a symbolic link to `{target}`, which leaves the tree; link to a path inside it or remove the link"
    )]
    LinkLeaves {
        /// Within the tree.
        path: String,
        /// Where it leads.
        target: String,
    },
    /// The commit holds a path that no checkout may write.
    #[error("commit {commit} holds the path `{path}`, which is not safe to write; remove it from the repository")]
    UnsafePath {
        /// The commit.
        commit: String,
        /// As the commit has it.
        path: String,
    },
    /// Too large, too many or too deep.
    #[error("{hit}; at `{path}`; remove files, or list them in .gitignore")]
    Limit {
        /// Which cap.
        hit: LimitHit,
        /// Where it was reached.
        path: String,
    },
    /// An effect id must fit on one line of a message.
    #[error("`{id}` is not an effect id; use 1 to 200 visible characters without spaces")]
    EffectId {
        /// What was given.
        id: String,
    },
    /// A commit, or something in it, is not in the object database.
    #[error("commit `{commit}` is not in `{dir}`; fetch it, or start a new run")]
    NoCommit {
        /// What was asked for.
        commit: String,
        /// The repository.
        dir: PathBuf,
    },
    /// A word that cannot be a commit's name, for example an option.
    #[error(
        "`{word}` is not the name of a commit; write 4 to 40 of its hexadecimal digits, as `longhaul log` shows them"
    )]
    NotAHash {
        /// What was given, cut.
        word: String,
    },
    /// Two commits begin so.
    #[error("more than one commit begins with `{word}`; write more of its digits")]
    Ambiguous {
        /// What was given.
        word: String,
    },
    /// A commit that the branch did not go through since the run began.
    #[error("`{word}` {what}; `longhaul log` lists the commits of `{branch}` that this run can go back to")]
    NotOfBranch {
        /// What was given.
        word: String,
        /// What it is instead.
        what: &'static str,
        /// The branch's short name.
        branch: String,
    },
    /// The user is in the middle of a merge, a rebase or the like.
    #[error("`{dir}` is in the middle of a {what}; finish it, or give it up: `{command}`")]
    InProgress {
        /// The repository.
        dir: PathBuf,
        /// Of what, for people.
        what: &'static str,
        /// What gives it up.
        command: &'static str,
    },
    /// There is already something where a new project is to be.
    #[error("`{dir}` {what}; choose another directory")]
    NotNew {
        /// The directory.
        dir: PathBuf,
        /// What is in the way.
        what: &'static str,
    },
    /// The file system said no.
    #[error("cannot {doing} `{path}`: {source}")]
    Io {
        /// For example `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// Git said no.
    #[error("git could not {doing}: {}", .source.message())]
    Git {
        /// For example `read the branch`.
        doing: &'static str,
        /// What it said.
        source: git2::Error,
    },
}

impl TreeError {
    /// True when what the agent wrote is at fault: tell the agent, and let it try again.
    #[must_use]
    pub fn is_of_the_work(&self) -> bool {
        match self {
            Self::LinkLeaves { .. } | Self::Limit { .. } => true,
            Self::NotARepository { .. }
            | Self::Bare { .. }
            | Self::Owner { .. }
            | Self::Unborn { .. }
            | Self::Dirty { .. }
            | Self::CheckedOut { .. }
            | Self::BranchName { .. }
            | Self::NameTaken { .. }
            | Self::Detached { .. }
            | Self::NoBranch { .. }
            | Self::Conflicts { .. }
            | Self::InTheWay { .. }
            | Self::NoIdentity { .. }
            | Self::BranchMoved { .. }
            | Self::Locked { .. }
            | Self::TreeChanged { .. }
            | Self::Raced { .. }
            | Self::UnsafePath { .. }
            | Self::EffectId { .. }
            | Self::NoCommit { .. }
            | Self::NotAHash { .. }
            | Self::Ambiguous { .. }
            | Self::NotOfBranch { .. }
            | Self::InProgress { .. }
            | Self::NotNew { .. }
            | Self::Io { .. }
            | Self::Git { .. } => false,
        }
    }

    /// True when the same call may succeed later without anyone changing a file or a branch.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Locked { .. } | Self::Raced { .. } => true,
            Self::NotARepository { .. }
            | Self::Bare { .. }
            | Self::Owner { .. }
            | Self::Unborn { .. }
            | Self::Dirty { .. }
            | Self::CheckedOut { .. }
            | Self::BranchName { .. }
            | Self::NameTaken { .. }
            | Self::Detached { .. }
            | Self::NoBranch { .. }
            | Self::Conflicts { .. }
            | Self::InTheWay { .. }
            | Self::NoIdentity { .. }
            | Self::BranchMoved { .. }
            | Self::TreeChanged { .. }
            | Self::LinkLeaves { .. }
            | Self::UnsafePath { .. }
            | Self::Limit { .. }
            | Self::EffectId { .. }
            | Self::NoCommit { .. }
            | Self::NotAHash { .. }
            | Self::Ambiguous { .. }
            | Self::NotOfBranch { .. }
            | Self::InProgress { .. }
            | Self::NotNew { .. }
            | Self::Io { .. }
            | Self::Git { .. } => false,
        }
    }

    pub(crate) fn limit(name: &str, used: u64, max: u64, path: impl Into<String>) -> Self {
        Self::Limit { hit: LimitHit::new(name, used, max), path: path.into() }
    }

    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }

    pub(crate) fn git(doing: &'static str) -> impl FnOnce(git2::Error) -> Self {
        move |source| Self::Git { doing, source }
    }
}

fn list(paths: &[String], more: usize) -> String {
    let mut text = paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
