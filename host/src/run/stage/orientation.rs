//! What a session is told of the project before its work begins: what was done last, and what a person
//! changed. It becomes part of the state, so a resume tells the same.

use crate::run::record::{self, RunRecord};
use crate::wiring::World;
use serde_json::{Value, json};

/// Entries of the project's progress that are told, the newest ones.
const PROGRESS_MAX: usize = 10;

/// Names of files that are told.
const FILES_MAX: usize = 20;

/// The object that [`longhaul_harness::Report::Prepared`] carries.
pub(super) fn orientation(world: &World, record: &RunRecord, overwritten: &[String]) -> anyhow::Result<Value> {
    let mut told = json!({ "progress": record::progress_last(&*world.store, &record.project, PROGRESS_MAX)? });
    if !overwritten.is_empty() {
        let files: Vec<_> = overwritten.iter().take(FILES_MAX).collect();
        told["overwritten"] = json!({
            "files": files,
            "why": "a person changed these in the tree, and the branch changed them too; the branch's version is there",
        });
    }
    Ok(told)
}
