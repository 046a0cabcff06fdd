//! The trees and the commits of a run in the store, for the other data directories that share it.
//!
//! The rows name content by digest: the manifest of the files by which a tree differs from a commit, and packs of git.
//! They are written in the transaction of the effect that they show, so that whoever has the answer of an effect has
//! the files that it left. This module neither reads a tree nor makes one.

use super::RunRecord;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::{Digest, RunId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of both rows. It grows when an earlier reader could misread a row.
const VERSION: u32 = 1;

/// Trees of one run that one read returns: more than a run has lanes.
const TREES_MAX: usize = 1_000;

/// The files of one tree of a run, as its last effect left them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedTree {
    version: u32,
    /// The commit that the files differ from.
    pub base: String,
    /// The digest of the manifest of the difference.
    pub root: Digest,
    /// The number of files that differ.
    pub files: u64,
    /// Their length, in bytes.
    pub bytes: u64,
    /// Files that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<UncarriedFile>,
}

/// A file of a tree that stays on its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncarriedFile {
    /// Its path from the top of the tree.
    pub path: String,
    /// The reason, for people.
    pub why: String,
}

/// The commits of a run, and the refs that hold them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedCommits {
    version: u32,
    /// The commit that the run began from.
    pub base: String,
    /// The digests of the packs, in the order in which they were made: a later one rests on those before.
    pub packs: Vec<Digest>,
    /// The commit of each ref of the run, by the full name of the ref.
    pub refs: BTreeMap<String, String>,
}

impl CarriedTree {
    /// The row of a tree without left out files.
    pub fn new(base: String, root: Digest, files: u64, bytes: u64) -> Self {
        Self { version: VERSION, base, root, files, bytes, lost: Vec::new() }
    }
}

impl CarriedCommits {
    /// The row of a run without packs.
    pub fn new(base: String, refs: BTreeMap<String, String>) -> Self {
        Self { version: VERSION, base, packs: Vec::new(), refs }
    }
}

/// The row of one tree of a run; none if the tree is on its machine alone.
pub fn carried_tree(store: &dyn Store, run: &RunId, number: u32) -> fault::Result<Option<CarriedTree>> {
    read(store, run, &tree_key(run, number), "tree", |tree: &CarriedTree| tree.version)
}

/// Stores it with the effect that left the tree so.
pub fn put_carried_tree(batch: Batch, run: &RunId, number: u32, tree: &CarriedTree) -> fault::Result<Batch> {
    Ok(batch.put(Table::States, tree_key(run, number), serde_json::to_vec(tree)?))
}

/// Deletes it: nothing needs the tree any more, or its files are not known.
pub fn forget_carried_tree(batch: &mut Batch, run: &RunId, number: u32) {
    batch.push(Op::Delete(Table::States, tree_key(run, number)));
}

/// Deletes the rows of all trees of a run.
pub fn forget_carried_trees(store: &dyn Store, batch: &mut Batch, run: &RunId) -> fault::Result<()> {
    for (key, _) in store.scan(Table::States, &trees_key(run), None, TREES_MAX)? {
        batch.push(Op::Delete(Table::States, Key::from_bytes(key)));
    }
    Ok(())
}

/// The row of the commits of a run; none if they are in the repository of its machine alone.
pub fn carried_commits(store: &dyn Store, run: &RunId) -> fault::Result<Option<CarriedCommits>> {
    read(store, run, &commits_key(run), "commits", |commits: &CarriedCommits| commits.version)
}

/// Stores it with the start of the run, and with each effect that made a commit or moved a ref.
pub fn put_carried_commits(batch: Batch, run: &RunId, commits: &CarriedCommits) -> fault::Result<Batch> {
    Ok(batch.put(Table::States, commits_key(run), serde_json::to_vec(commits)?))
}

/// Deletes it: the packs do not hold all commits of the run.
pub fn forget_carried_commits(batch: &mut Batch, run: &RunId) {
    batch.push(Op::Delete(Table::States, commits_key(run)));
}

/// Deletes all rows of this module, where no other data directory shares the state and nothing would keep them current.
pub fn forget_carried(store: &dyn Store, batch: &mut Batch, run: &RunId) -> fault::Result<()> {
    if store.get(Table::States, &commits_key(run))?.is_some() {
        forget_carried_commits(batch, run);
    }
    forget_carried_trees(store, batch, run)
}

/// True when a key of the states of a run is that of such a row, or of a tree of a former time.
pub fn is_carried(run: &RunId, key: &[u8]) -> bool {
    let trees = [trees_key(run), past_trees_key(run)];
    key == commits_key(run).as_bytes() || trees.iter().any(|trees| key.starts_with(trees.as_bytes()))
}

/// A tree of a run from the bytes of a row.
pub(super) fn tree_of(run: &RunId, bytes: &[u8]) -> fault::Result<CarriedTree> {
    decoded(run, bytes, "tree", |tree: &CarriedTree| tree.version)
}

fn read<T: DeserializeOwned>(
    store: &dyn Store,
    run: &RunId,
    key: &Key,
    what: &str,
    version: impl Fn(&T) -> u32,
) -> fault::Result<Option<T>> {
    let Some(bytes) = store.get(Table::States, key)? else { return Ok(None) };
    decoded(run, &bytes, what, version).map(Some)
}

fn decoded<T: DeserializeOwned>(
    run: &RunId,
    bytes: &[u8],
    what: &str,
    version: impl Fn(&T) -> u32,
) -> fault::Result<T> {
    let row: T = serde_json::from_slice(bytes).or_internal(|| format!("the stored {what} of run {run} is damaged"))?;
    if version(&row) > VERSION {
        bail!("the stored {what} of run {run} is of a newer longhaul; go on with that one, on each machine");
    }
    Ok(row)
}

fn trees_key(run: &RunId) -> Key {
    RunRecord::key(run).and("tree")
}

fn tree_key(run: &RunId, number: u32) -> Key {
    trees_key(run).number(number.into())
}

/// The key under which the trees of former times are, see `tree_past.rs`.
pub(super) fn past_trees_key(run: &RunId) -> Key {
    RunRecord::key(run).and("tree-past")
}

fn commits_key(run: &RunId) -> Key {
    RunRecord::key(run).and("git")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> CarriedTree {
        CarriedTree::new("0".repeat(40), Digest::of(text.as_bytes()), 1, 7)
    }

    #[tokio::test]
    async fn what_is_carried_of_a_run_is_read_as_it_was_stored_and_goes_as_a_whole() {
        let (store, run, other) =
            (longhaul_testkit::MemoryStore::new(), RunId::from_text("r-1"), RunId::from_text("r-12"));
        let lost = vec![UncarriedFile { path: "core".into(), why: "it is too large".into() }];
        let trees = [(0, tree("a")), (3, CarriedTree { lost, ..tree("b") })];
        let packs = vec![Digest::of(b"pack")];
        let commits = CarriedCommits { packs, ..CarriedCommits::new("0".repeat(40), BTreeMap::new()) };
        let mut batch = Batch::new();
        for one in [&run, &other] {
            for (number, tree) in &trees {
                batch = put_carried_tree(batch, one, *number, tree).unwrap();
            }
            batch = put_carried_commits(batch, one, &commits).unwrap();
        }
        store.commit(batch).await.unwrap();
        for (number, tree) in &trees {
            assert_eq!(carried_tree(&store, &run, *number).unwrap().as_ref(), Some(tree));
        }
        assert_eq!(carried_tree(&store, &run, 1).unwrap(), None);
        assert_eq!(carried_commits(&store, &run).unwrap().as_ref(), Some(&commits));

        let mut batch = Batch::new();
        forget_carried(&store, &mut batch, &run).unwrap();
        store.commit(batch).await.unwrap();
        assert!(store.scan(Table::States, &RunRecord::key(&run), None, 10).unwrap().is_empty());
        assert_eq!(carried_commits(&store, &other).unwrap(), Some(commits), "another run keeps its rows");
    }

    #[tokio::test]
    async fn the_rows_of_a_newer_version_are_refused_and_not_guessed_at() {
        let (store, run) = (longhaul_testkit::MemoryStore::new(), RunId::from_text("r-1"));
        let newer = CarriedTree { version: VERSION + 1, ..tree("a") };
        store.commit(put_carried_tree(Batch::new(), &run, 0, &newer).unwrap()).await.unwrap();
        let refused = carried_tree(&store, &run, 0).unwrap_err().to_string();
        assert!(refused.contains("newer longhaul"), "{refused}");
    }

    #[test]
    fn only_the_rows_of_trees_and_of_commits_are_carried_ones() {
        let run = RunId::from_text("r-1");
        let carried =
            [tree_key(&run, 0), tree_key(&run, 300), commits_key(&run), past_trees_key(&run).number(0).number(7)];
        assert!(carried.iter().all(|key| is_carried(&run, key.as_bytes())));
        let others =
            [RunRecord::key(&run), RunRecord::key(&run).and("trees"), RunRecord::key(&run).and("git").and("x")];
        assert!(!others.iter().any(|key| is_carried(&run, key.as_bytes())));
        assert!(!is_carried(&run, tree_key(&RunId::from_text("r-12"), 0).as_bytes()));
    }
}
