//! The trees of a run beside its branch, and the work in them that is in no commit. Every function here blocks, and
//! none changes anything, except that a missing first tree is made again.

use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::record::RunRecord;
use longhaul_worktree::{Tree, TreeCaps, TreeError, UserRepository};
use std::path::Path;

/// The first tree of the run, made from `commit` when it is missing.
pub(super) fn tree(
    host: &PluginHost,
    record: &RunRecord,
    project: &UserRepository,
    commit: &str,
) -> Result<Tree, TreeError> {
    open(host, project, &host.home.tree(&record.run), commit)
}

/// Every existing tree of the run, with the number of the sessions that work in it.
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

/// Uncommitted paths of a tree, or why the tree cannot be read: the difference to the commit that it was last brought
/// to. Other sessions may have moved the branch since.
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
