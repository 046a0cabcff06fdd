//! The claims on runs: which worker has a run.
//!
//! The leader makes a claim, in a commit of its own. It ends by a commit of the worker, once the run rests; or by one
//! of the leader, after the worker was evicted from its seat or joined anew. So nobody writes rows of a run that
//! somebody else has, and no commit has to prove more than its seat.

use crate::worker::text_after;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The claim of a worker on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The number of the worker's claim on its seat.
    pub epoch: u64,
    /// The time at which it was made, in milliseconds since 1970-01-01 UTC.
    pub since_ms: u64,
}

fn key(worker: &str, run: &RunId) -> Key {
    Key::of("claim").and(worker).and(run.as_str())
}

/// Gives a run to a worker, in place of a claim of the same worker that was left.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn put(batch: Batch, worker: &str, run: &RunId, claim: Claim) -> fault::Result<Batch> {
    Ok(batch.put(Table::States, key(worker, run), serde_json::to_vec(&claim)?))
}

/// Ends a claim.
pub fn forget(batch: &mut Batch, worker: &str, run: &RunId) {
    batch.push(Op::Delete(Table::States, key(worker, run)));
}

/// The claim of a worker on a run.
///
/// # Errors
/// When the store, or the row, cannot be read.
pub fn get(store: &dyn Store, worker: &str, run: &RunId) -> fault::Result<Option<Claim>> {
    let found = store.get(Table::States, &key(worker, run))?;
    found.map(|value| serde_json::from_slice(&value)).transpose().context("read a claim")
}

/// The claims of a worker, by run.
///
/// # Errors
/// When the store, or a row, cannot be read.
pub fn of_worker(store: &dyn Store, worker: &str) -> fault::Result<BTreeMap<RunId, Claim>> {
    let prefix = Key::of("claim").and(worker);
    let mut found = BTreeMap::new();
    for (key, value) in store.scan(Table::States, &prefix, None, usize::MAX)? {
        let run = text_after(&key, &prefix).context("a claim names no run")?;
        found.insert(RunId::from_text(run), serde_json::from_slice(&value).context("read a claim")?);
    }
    Ok(found)
}
