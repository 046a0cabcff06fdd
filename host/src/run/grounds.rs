//! The tree of a run beside its branch: what is in no commit. A person may have added to the branch of a run that
//! rests, of which its tree knows nothing. Everything here blocks.

use super::record::RunRecord;
use crate::wiring::World;
use longhaul_worktree::{Branch, Project, Tree, TreeCaps, TreeError};

/// The tree of a run, made from `commit` where it is gone.
pub(super) fn tree(world: &World, record: &RunRecord, project: &Project, commit: &str) -> Result<Tree, TreeError> {
    let hook = |point: &'static str| world.crash.reach(point);
    Ok(Tree::checkout(project, &world.home.tree(&record.run), commit, &TreeCaps::default(), &hook)?.tree)
}

/// Paths in the tree that are in no commit, or why it cannot be read. None when it is as the branch is, or as the
/// run left it with its last commit.
pub(super) fn loose(
    tree: &Tree,
    project: &Project,
    branch: &Branch,
    record: &RunRecord,
) -> Result<Vec<String>, TreeError> {
    let own = project.last_of(branch, &record.base, record.run.as_str())?;
    let tip = project.end_of(branch, &record.base)?;
    let since_tip = differs(tree, project, &tip)?;
    if since_tip.is_empty() || tip == own {
        return Ok(since_tip);
    }
    differs(tree, project, &own)
}

fn differs(tree: &Tree, project: &Project, commit: &str) -> Result<Vec<String>, TreeError> {
    match tree.scan(project, commit) {
        Ok(scan) => {
            let left_out = scan.left_out.into_iter().map(|file| file.path);
            Ok(scan.changes.into_iter().map(|change| change.path).chain(left_out).collect())
        }
        Err(error) if error.is_of_the_work() => Ok(vec![error.to_string()]),
        Err(error) => Err(error),
    }
}
