//! The place of a run's trees: the data directory, of all that share the state, in which its agents work.

use super::RunRecord;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::{Digest, RunId};
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

/// Stores the place that the trees move to, if they are still where they were when the move began.
///
/// # Errors
/// When they have moved since; the batch fails in the same way where they move before it is committed.
pub fn move_tree_place(
    mut batch: Batch,
    store: &dyn Store,
    run: &RunId,
    from: &TreePlace,
    to: &TreePlace,
) -> fault::Result<Batch> {
    let key = place_key(run);
    match store.get(Table::States, &key)? {
        Some(bytes) if tree_place(store, run)?.as_ref() == Some(from) => {
            batch.push(Op::Swap(Table::States, key, Digest::of(&bytes), serde_json::to_vec(to)?));
            Ok(batch)
        }
        _ => bail!(Fault::conflict(format!("the trees of run {run} moved meanwhile; try again"))),
    }
}

/// Deletes it: the trees, or what is left of them, are in the only data directory that has the state.
pub fn forget_tree_place(batch: &mut Batch, run: &RunId) {
    batch.push(Op::Delete(Table::States, place_key(run)));
}

fn place_key(run: &RunId) -> Key {
    RunRecord::key(run).and("place")
}
