//! The place of a run's trees: the data directory, of all that share the state, in which its agents work.

use super::RunRecord;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A data directory that has the trees of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreePlace {
    /// The id of the data directory.
    pub id: String,
    /// The name of its machine, for people.
    pub host: String,
    /// Its path there, for people.
    pub directory: PathBuf,
}

/// The place of a run's trees; none: the only data directory that has the state.
pub fn tree_place(store: &dyn Store, run: &RunId) -> fault::Result<Option<TreePlace>> {
    let bytes = store.get(Table::States, &place_key(run))?;
    let damaged = || format!("the place of the trees of run {run} is damaged");
    bytes.map(|bytes| serde_json::from_slice(&bytes).or_internal(damaged)).transpose()
}

/// Stores it with the start of the run, or with its move.
pub fn put_tree_place(batch: Batch, run: &RunId, place: &TreePlace) -> fault::Result<Batch> {
    Ok(batch.put(Table::States, place_key(run), serde_json::to_vec(place)?))
}

/// Deletes it: the trees, or what is left of them, are in the only data directory that has the state.
pub fn forget_tree_place(batch: &mut Batch, run: &RunId) {
    batch.push(Op::Delete(Table::States, place_key(run)));
}

fn place_key(run: &RunId) -> Key {
    RunRecord::key(run).and("place")
}
