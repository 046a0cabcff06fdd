//! The changes of one commit of a run.

use super::runs::Commit;
use super::words;
use longhaul_worktree::{CommitCounts, CommitDiff, CommitFile};
use serde::Serialize;

words! {
    /// The kind of a change in a commit.
    CommitFileChange of longhaul_worktree::CommitChange as InnerChange {
        /// The file is new.
        Added,
        /// It has other content, another mode or another type.
        Modified,
        /// It is gone.
        Deleted,
        /// It has another path, and may have other content, too.
        Renamed,
    }
}

/// A file that a commit changed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = CommitFile))]
pub struct CommitFileView {
    /// Its path after the commit, or before it if it is deleted; invalid UTF-8 as `\xNN`.
    pub path: String,
    /// Its path before the commit; null: the same.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub old_path: Option<String>,
    /// The kind of the change.
    pub change: CommitFileChange,
    /// The change in git's unified form, at most 128 KiB; empty if the file is binary or too large.
    pub patch: String,
    /// Number of added lines.
    pub added_lines: usize,
    /// Number of removed lines.
    pub removed_lines: usize,
    /// True when it is no text.
    pub is_binary: bool,
    /// True when text is missing: `patch` was cut, the file has more than 1 MiB, or the files before it took all room.
    pub is_cut: bool,
}

impl From<CommitFile> for CommitFileView {
    fn from(inner: CommitFile) -> Self {
        let CommitFile { path, old_path, change, patch, added_lines, removed_lines, is_binary, is_cut } = inner;
        Self { path, old_path, change: change.into(), patch, added_lines, removed_lines, is_binary, is_cut }
    }
}

/// Numbers of files by their changes, and of lines.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = CommitCounts))]
pub struct CommitCountsView {
    /// All changed files.
    pub files: usize,
    /// Files that are new.
    pub added: usize,
    /// Files with other content.
    pub modified: usize,
    /// Files that are gone.
    pub deleted: usize,
    /// Files with another path.
    pub renamed: usize,
    /// Added lines of the listed files.
    pub added_lines: usize,
    /// Removed lines of the listed files.
    pub removed_lines: usize,
}

impl From<CommitCounts> for CommitCountsView {
    fn from(inner: CommitCounts) -> Self {
        let CommitCounts { files, added, modified, deleted, renamed, added_lines, removed_lines } = inner;
        Self { files, added, modified, deleted, renamed, added_lines, removed_lines }
    }
}

/// A commit with its changes against its first parent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CommitChanges {
    /// The commit.
    #[serde(flatten)]
    pub logged: Commit,
    /// Its first parent; null: it is the first commit of the repository.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub parent: Option<String>,
    /// Its whole message, at most 16 KiB.
    pub message: String,
    /// The changed files by path, at most 1,000. Their texts have at most 1 MiB together.
    pub files: Vec<CommitFileView>,
    /// Number of changed files beyond those.
    pub files_left_out: usize,
    /// The counts of all changed files.
    pub counts: CommitCountsView,
}

impl From<CommitDiff> for CommitChanges {
    fn from(inner: CommitDiff) -> Self {
        let CommitDiff { logged, parent, message, files, files_left_out, counts } = inner;
        Self {
            logged: logged.into(),
            parent,
            message,
            files: files.into_iter().map(Into::into).collect(),
            files_left_out,
            counts: counts.into(),
        }
    }
}
