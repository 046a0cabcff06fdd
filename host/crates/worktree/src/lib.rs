//! The tree that agents work on, its commits, and the operator's native checks on it.
//!
//! The tree is a plain directory made from a commit of the user's repository: it has no `.git`, so that nothing that
//! runs on it reaches hooks or configuration. Commits go straight into the user's object database, and of all refs only
//! `refs/heads/longhaul/NAME` moves, by compare-and-swap; a revert keeps its former tip under `refs/longhaul/reverted`,
//! an agent its checkpoints under `refs/longhaul/checkpoints`, a run that comes from another server what it replaces
//! under `refs/longhaul/replaced`, and a fork that is being made its mark under `refs/longhaul/forks`. This crate never touches the user's checkout, index or configuration,
//! except in [`UserRepository::merge_into_checkout`]; it runs no git filter and no hook, and follows no symbolic link
//! of the tree. Everything except [`run_native`] blocks.

mod browse;
mod caps;
mod checkpoint;
mod commit_diff;
mod contents;
mod copy_repository;
mod diff;
mod error;
mod fork_branch;
mod git;
mod glob;
mod ignore;
mod init;
mod into_checkout;
mod log;
mod manifest;
mod merge;
mod names;
mod native;
mod pack;
mod patch;
mod protect;
mod rebuild;
mod revert;
mod root;
mod run_refs;
mod scan;
mod tree;
mod tree_diff;
mod unkept;
mod weight;
mod write;

pub use browse::Browsed;
pub use caps::TreeCaps;
pub use checkpoint::{CheckpointOrder, TreeCheckpoint};
pub use commit_diff::{
    COMMIT_BYTES_MAX, COMMIT_FILE_BYTES_MAX, COMMIT_FILES_MAX, COMMIT_MESSAGE_BYTES_MAX, CommitChange, CommitCounts,
    CommitDiff, CommitFile,
};
pub use contents::{FileContent, LostFile, TreeContents};
pub use copy_repository::copy_project;
pub use diff::DiffForm;
pub use error::TreeError;
pub use git::{Branch, CommitOrder, Committed, StartPoint, UserRepository};
pub use init::{init_repository, new_project, new_project_with};
pub use into_checkout::{MergeKind, MergedIn};
pub use log::{BranchCommit, Logged};
pub use longhaul_judge::{EvidenceKind, near_the_judge, runner_file};
pub use merge::Merge;
pub use native::{ExactCopy, NativeCheck, NativeError, NativeReport, PinnedFiles, clear_scratch, pins, run_native};
pub use patch::{CommitDetails, PatchText};
pub use protect::{PROTECTED, Protected, ProtectedChange, pattern_of};
pub use revert::{RevertOrder, WayBack, keep_as};
pub use scan::{ChangeKind, FileChange, LeftOut, Scan};
pub use tree::{PreparedTree, Tree};
pub use tree_diff::TreeDiff;
pub use unkept::Named;

/// Called at named points, where the crash tests kill the process. See [`no_hook`].
pub type Hook<'a> = &'a dyn Fn(&'static str);

/// The default hook: does nothing.
pub fn no_hook(_point: &'static str) {}
