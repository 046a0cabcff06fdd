//! Errors of trees, commits and branches. Each case names its remedy.

use longhaul_core::LimitHit;
use std::path::PathBuf;

/// An error of a tree or a branch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// There is no git repository at the directory or above it.
    #[error("`{dir}` is not in a git repository; run `longhaul init` in it, or `git init` and a first commit")]
    NotARepository {
        /// The searched directory.
        dir: PathBuf,
    },
    /// A bare repository, without files.
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
    /// The user has uncommitted work, which an agent would not see.
    #[error("`{dir}` has changes that are not committed: {}; commit them, or `git stash -u`", list(.paths, *.more))]
    Dirty {
        /// The repository.
        dir: PathBuf,
        /// The first few.
        paths: Vec<String>,
        /// The number of further ones.
        more: usize,
    },
    /// The branch is checked out; moving it would make the user's files look changed.
    #[error("branch `{branch}` is checked out in `{worktree}`; switch to another one there: `git switch -`")]
    CheckedOut {
        /// Its short name.
        branch: String,
        /// The directory of the checkout.
        worktree: PathBuf,
    },
    /// Not a name that git allows.
    #[error("`{name}` cannot name a branch; use letters, digits, `-`, `_` and `.`, at most 200 of them")]
    BranchName {
        /// The requested name.
        name: String,
    },
    /// A branch `longhaul` excludes `longhaul/NAME`.
    #[error("branch `{taken}` leaves no room for `{branch}`; rename it: `git branch -m {taken} {taken}-old`")]
    NameTaken {
        /// The requested branch.
        branch: String,
        /// The conflicting branch.
        taken: String,
    },
    /// A fork needs a branch of its own.
    #[error("branch `{branch}` is there already; name another one, or delete it: `git branch -D {branch}`")]
    BranchExists {
        /// The requested branch.
        branch: String,
    },
    /// HEAD is at a commit and on no branch.
    #[error("HEAD of `{dir}` is on no branch, so nothing would hold the merge; switch to one: `git switch main`")]
    Detached {
        /// The repository.
        dir: PathBuf,
    },
    /// The branch of a run does not exist.
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
        /// The short name of the run's branch.
        branch: String,
        /// The first few files.
        paths: Vec<String>,
        /// The number of further ones.
        more: usize,
    },
    /// Uncommitted files lie where the merge has files.
    #[error("the merge would write over {} in `{dir}`, which no commit holds; move them away first", list(.paths, *.more))]
    InTheWay {
        /// The repository.
        dir: PathBuf,
        /// The first few.
        paths: Vec<String>,
        /// The number of further ones.
        more: usize,
    },
    /// Git does not know the user's name.
    #[error(
        "git does not know your name, which a merge commit has; say it: \
         `git config --global user.name NAME` and `git config --global user.email ADDRESS`"
    )]
    NoIdentity {
        /// The repository.
        dir: PathBuf,
    },
    /// The branch was moved by another process.
    #[error(
        "branch `{branch}` is at {found}, but the work is based on {expected}; \
         move it back: `git branch -f {branch} {expected}`, or start a new run"
    )]
    BranchMoved {
        /// Its short name.
        branch: String,
        /// The expected parent of the commit.
        expected: String,
        /// The commit that was found; `nothing` when the branch is gone.
        found: String,
    },
    /// Another git process holds the lock of the branch.
    #[error("branch `{branch}` is locked by another git; wait for it, or if none is running remove `{lock}`")]
    Locked {
        /// Its short name.
        branch: String,
        /// The lock file.
        lock: PathBuf,
    },
    /// The tree differs from the one that was judged.
    #[error("the tree changed after it was judged: it was {expected} and is {found}; judge it again")]
    TreeChanged {
        /// The digest of the judged scan.
        expected: String,
        /// The digest of the present scan.
        found: String,
    },
    /// A file changed while it was read.
    #[error("`{path}` changed while it was read; let nothing write to the tree meanwhile and try again")]
    Raced {
        /// The path within the tree.
        path: String,
    },
    /// A link that would lead out of the tree, or into a repository.
    #[error(
        "`{path}` is a symbolic link to `{target}`, which leaves the tree; link to a path inside it or remove the link"
    )]
    LinkLeaves {
        /// The path within the tree.
        path: String,
        /// Its target.
        target: String,
    },
    /// The commit holds a path that no checkout may write.
    #[error("commit {commit} holds the path `{path}`, which is not safe to write; remove it from the repository")]
    UnsafePath {
        /// The commit.
        commit: String,
        /// The path in the commit.
        path: String,
    },
    /// The tree is too large, has too many files or is too deep.
    #[error("{hit}; at `{path}`; remove files, or list them in .gitignore")]
    Limit {
        /// The cap.
        hit: LimitHit,
        /// The path at which it was reached.
        path: String,
    },
    /// An effect id must fit on one line of a message.
    #[error("`{id}` is not an effect id; use 1 to 200 visible characters without spaces")]
    EffectId {
        /// The given id.
        id: String,
    },
    /// A commit, or something in it, is not in the object database.
    #[error("commit `{commit}` is not in `{dir}`; fetch it, or start a new run")]
    NoCommit {
        /// The requested commit.
        commit: String,
        /// The repository.
        dir: PathBuf,
    },
    /// A word that cannot be a commit's name, for example an option.
    #[error(
        "`{word}` is not the name of a commit; write 4 to 40 of its hexadecimal digits, as `longhaul log` shows them"
    )]
    NotAHash {
        /// The given word, cut.
        word: String,
    },
    /// Two commits begin with this word.
    #[error("more than one commit begins with `{word}`; write more of its digits")]
    Ambiguous {
        /// The given word.
        word: String,
    },
    /// A commit that the branch did not go through since the run began.
    #[error("`{word}` {what}; `longhaul log` lists the commits of `{branch}` that this run can go back to")]
    NotOfBranch {
        /// The given word.
        word: String,
        /// The reason, as a clause about the commit.
        what: &'static str,
        /// The branch's short name.
        branch: String,
    },
    /// The user is in the middle of a merge, a rebase or the like.
    #[error("`{dir}` is in the middle of a {what}; finish it, or give it up: `{command}`")]
    InProgress {
        /// The repository.
        dir: PathBuf,
        /// The operation, for people.
        what: &'static str,
        /// The command that aborts it.
        command: &'static str,
    },
    /// The directory of a new project is not empty.
    #[error("`{dir}` {what}; choose another directory")]
    NotNew {
        /// The directory.
        dir: PathBuf,
        /// The obstacle.
        what: &'static str,
    },
    /// Stored content of a tree or of its commits is damaged, forged, or over a limit.
    #[error("{what} {why}; continue the run on the server that has its files, or give up what no commit holds")]
    Stored {
        /// The content, for people, for example `the stored tree at src`.
        what: String,
        /// The reason, as a clause about it.
        why: String,
    },
    /// An error of the file system.
    #[error("cannot {doing} `{path}`: {source}")]
    Io {
        /// The operation, for example `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// An error of git.
    #[error("git could not {doing}: {}", .source.message())]
    Git {
        /// The operation, for example `read the branch`.
        doing: &'static str,
        /// The error of git.
        source: git2::Error,
    },
}

impl TreeError {
    /// True when the agent's files are at fault: tell the agent, and let it try again.
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
            | Self::BranchExists { .. }
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
            | Self::Stored { .. }
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
            | Self::BranchExists { .. }
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
            | Self::Stored { .. }
            | Self::Io { .. }
            | Self::Git { .. } => false,
        }
    }

    pub(crate) fn limit(name: &str, used: u64, max: u64, path: impl Into<String>) -> Self {
        Self::Limit { hit: LimitHit::new(name, used, max), path: path.into() }
    }

    pub(crate) fn stored(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Stored { what: what.into(), why: why.into() }
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
