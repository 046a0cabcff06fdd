//! The trees of a run beside its branch: what in them is in no commit. Everything here blocks, and changes nothing
//! but that a first tree which is gone is made again.

use longhaul_records::record::RunRecord;
use longhaul_toolbox::plugin_host::PluginHost;
use longhaul_worktree::{Tree, TreeCaps, TreeError, UserRepository};
use std::path::Path;

/// The first tree of the run, made from `commit` where it is gone.
pub(super) fn tree(
    host: &PluginHost,
    record: &RunRecord,
    project: &UserRepository,
    commit: &str,
) -> Result<Tree, TreeError> {
    open(host, project, &host.home.tree(&record.run), commit)
}

/// Every tree of the run that is there, with the number of the sessions that work in it.
pub(super) fn trees(
    host: &PluginHost,
    record: &RunRecord,
    project: &UserRepository,
    commit: &str,
) -> Result<Vec<(u32, Tree)>, TreeError> {
    let mut trees = vec![(0, tree(host, record, project, commit)?)];
    let beside = host.home.trees_beside(&record.run);
    for number in beside.map_err(|source| TreeError::Io { doing: "list", path: host.home.path().to_owned(), source })? {
        trees.push((number, open(host, project, &host.home.tree_of(&record.run, number), commit)?));
    }
    Ok(trees)
}

fn open(host: &PluginHost, project: &UserRepository, dir: &Path, commit: &str) -> Result<Tree, TreeError> {
    let hook = |point: &'static str| host.crash.reach(point);
    Ok(Tree::checkout(project, dir, commit, &TreeCaps::default(), &hook)?.tree)
}

/// Paths in a tree that are in no commit, or why it cannot be read: what differs from the commit that it was last
/// brought to. The branch may have gone on since, by others.
pub(super) fn loose(tree: &Tree, project: &UserRepository, tip: &str) -> Result<Vec<String>, TreeError> {
    match tree.scan(project, &tree.at().unwrap_or_else(|| tip.to_owned())) {
        Ok(scan) => {
            let left_out = scan.left_out.into_iter().map(|file| file.path);
            Ok(scan.changes.into_iter().map(|change| change.path).chain(left_out).collect())
        }
        Err(error) if error.is_of_the_work() => Ok(vec![error.to_string()]),
        Err(error) => Err(error),
    }
}
