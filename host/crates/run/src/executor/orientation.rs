//! What a session is told of the project before its work begins: what was done last, what was committed, and what
//! a person changed. Decisions of earlier runs reach it with the goal.
//!
//! It becomes part of the state, so a resume tells the same. Refuses times and commit ids: they say nothing to an
//! agent, and with them no recording of a model would fit a second run.

use longhaul_core::fault;
use longhaul_core::store::Store;
use longhaul_records::record::{self, RunRecord};
use longhaul_worktree::Logged;
use serde_json::{Value, json};

/// Entries of the project's progress that are told, the newest ones.
const PROGRESS_MAX: usize = 10;

/// Commits that are told, the newest ones.
pub(super) const COMMITS_MAX: usize = 10;

/// Names of files that are told.
const FILES_MAX: usize = 20;

/// What is at hand when a session is prepared.
pub(super) struct OrientationFacts<'a> {
    /// The branch's newest commits, newest first.
    pub(super) commits: &'a [Logged],
    /// Files that a person changed in the tree and that are now as the branch has them.
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

/// What was done, and what came of it unless that is a commit's name.
fn without_times(entry: &Value) -> Value {
    let is_commit =
        entry["outcome"].as_str().is_some_and(|it| it.len() == 40 && it.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let outcome = if is_commit { Value::Null } else { entry["outcome"].clone() };
    json!({ "action": entry["action"], "outcome": outcome, "files": entry["files"] })
}
