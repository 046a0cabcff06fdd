//! The orientation of a session before its work begins: the last progress, the last commits, and the changes of people.
//! Decisions of earlier runs reach it with the goal.
//!
//! It becomes part of the state, so a resume gives the same orientation. It leaves out times and commit ids: they mean
//! nothing to an agent, and with them no recording of a model would fit a second run.

use longhaul_core::fault;
use longhaul_core::store::Store;
use longhaul_records::record::{self, RunRecord};
use longhaul_worktree::Logged;
use serde_json::{Value, json};

/// Newest entries of the project's progress that the orientation holds.
const PROGRESS_MAX: usize = 10;

/// Newest commits that the orientation holds.
pub(super) const COMMITS_MAX: usize = 10;

/// Names of files that the orientation holds.
const FILES_MAX: usize = 20;

/// The facts for the orientation of a session.
pub(super) struct OrientationFacts<'a> {
    /// The branch's newest commits, newest first.
    pub(super) commits: &'a [Logged],
    /// Files that a person changed in the tree, and that now have the branch's content.
    pub(super) overwritten: &'a [String],
}

/// The object that [`longhaul_harness::WorkReport::Prepared`] carries.
pub(super) fn orientation(store: &dyn Store, record: &RunRecord, found: &OrientationFacts<'_>) -> fault::Result<Value> {
    let progress = record::progress_last(store, record.scope(), PROGRESS_MAX)?;
    let mut told = json!({
        "progress": progress.iter().map(without_times).collect::<Vec<_>>(),
        "commits": found.commits.iter().rev().map(|commit| &commit.subject).collect::<Vec<_>>(),
    });
    if !found.overwritten.is_empty() {
        let files: Vec<_> = found.overwritten.iter().take(FILES_MAX).collect();
        told["overwritten"] = json!({
            "files": files,
            "why": "a person changed these in the tree, and the branch changed them too; the branch's version is there",
        });
    }
    Ok(told)
}

/// Action and outcome of an entry; the outcome is left out when it is a commit id.
fn without_times(entry: &Value) -> Value {
    let is_commit =
        entry["outcome"].as_str().is_some_and(|it| it.len() == 40 && it.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let outcome = if is_commit { Value::Null } else { entry["outcome"].clone() };
    json!({ "action": entry["action"], "outcome": outcome, "files": entry["files"] })
}
