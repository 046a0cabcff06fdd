//! The changes of a run: as a diff, and as they are merged into the checked-out branch.

use super::words;
use longhaul_worktree::MergedIn;
use serde::{Deserialize, Serialize};

/// The changes of a run, or of one of its features.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiffView {
    /// The id of the run.
    pub run: String,
    /// The id of the feature; null: all of the run.
    pub feature: Option<String>,
    /// The commit before the changes.
    pub from: String,
    /// The commit with the changes.
    pub to: String,
    /// The text of the diff, or the count of changed lines of each file with `--stat`. Invalid UTF-8 is replaced.
    pub diff: String,
    /// The changed files that the project protects.
    pub protected: Vec<String>,
}

words! {
    /// The kind of a merge.
    MergeKindView of longhaul_worktree::MergeKind as InnerKind {
        /// The branch already contains all of it.
        AlreadyThere,
        /// The checked-out branch moves forward, without a merge commit.
        FastForward,
        /// A commit with both branches as parents.
        MergeCommit,
    }
}

/// A merge into the checked-out branch, made or planned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MergedView {
    /// The checked-out branch, by its short name.
    pub into: String,
    /// The branch of the run.
    pub branch: String,
    /// The kind of the merge.
    pub kind: MergeKindView,
    /// The former tip of the checked-out branch.
    pub from: String,
    /// Its new tip; null before a merge commit is made.
    pub to: Option<String>,
    /// Number of commits of the branch of the run that it did not have.
    pub commits: usize,
    /// The files that change.
    pub files: Vec<String>,
}

impl From<MergedIn> for MergedView {
    fn from(inner: MergedIn) -> Self {
        let MergedIn { into, branch, kind, from, to, commits, files } = inner;
        Self { into, branch, kind: kind.into(), from, to, commits, files }
    }
}

/// The merge of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MergeView {
    /// The id of the run.
    pub run: String,
    /// True when the merge was not made.
    pub dry_run: bool,
    /// The merge.
    pub merged: MergedView,
    /// The changed files that the project protects.
    pub protected: Vec<String>,
}
