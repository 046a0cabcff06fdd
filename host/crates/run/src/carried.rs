//! The trees and the commits of a run in the store: written where other data directories share it, and made again here
//! from what another directory left.
//!
//! Nothing is compared or written where the state is in files of this directory alone, unless `[run] tree_history` asks
//! for it; a fork makes its trees from what that keeps. Refuses to make a tree from rows
//! that do not fit the state of the run, and to move a run.

use crate::step_rows::put_step;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault;
use longhaul_core::store::{Batch, Store};
use longhaul_core::{Digest, RunId};
use longhaul_harness::RunState;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::record::{self, CarriedCommits, CarriedTree, RunRecord, StoredRun, UncarriedFile};
use longhaul_toolbox::commit_carrier::CommitCarrier;
use longhaul_toolbox::tree_carrier::TreeCarrier;
use longhaul_worktree::{Branch, Tree, TreeError, UserRepository};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Files that a warning names at most.
const NAMED_MAX: usize = 20;

/// A tree that a session works in: its number, and the commit that the work started from.
pub(crate) type TreeAtWork = (u32, String);

/// Files that stayed behind, or what is missing to make a tree again, as a clause.
pub(crate) type MadeAgain = Result<Vec<UncarriedFile>, String>;

/// Adds to the start of a run the commit that it begins from, where other data directories share the state.
///
/// # Errors
/// When the repository cannot be opened, or the store refuses.
pub async fn put_commits(mut batch: Batch, host: &PluginHost, record: &RunRecord) -> fault::Result<Batch> {
    if let Some(commits) = carrier(host, record)? {
        batch.ops.extend(commits.rows().await?.batch.ops);
    }
    Ok(batch)
}

/// The carrier of a run's commits; none for an ask, and where no other data directory shares the state.
pub(crate) fn carrier(host: &PluginHost, record: &RunRecord) -> fault::Result<Option<CommitCarrier>> {
    if record.ask.is_some() || !host.store.is_shared() {
        return Ok(None);
    }
    CommitCarrier::open(Arc::clone(&host.store), record).map(Some)
}

/// The carrier of one tree; none where neither another data directory shares the state nor the run keeps former trees.
/// Only what the run began with tells the latter, so that there is no gap which nobody sees.
pub(crate) fn tree_carrier(
    host: &PluginHost,
    record: &RunRecord,
    commits: Option<&CommitCarrier>,
    number: u32,
    tree: Tree,
) -> fault::Result<Option<TreeCarrier>> {
    let history = record.config()?.run.tree_history.then(|| Arc::clone(&host.clock));
    let commits = match commits {
        Some(commits) => commits.clone(),
        None if history.is_some() => CommitCarrier::open(Arc::clone(&host.store), record)?,
        None => return Ok(None),
    };
    Ok(Some(TreeCarrier::new(commits, number, tree, history)))
}

/// The trees that sessions of the run work in. Any other tree holds nothing that is in no commit.
pub(crate) fn trees_at_work(state: &RunState) -> Vec<TreeAtWork> {
    let sessions = state.lanes.iter().filter_map(|lane| lane.session.as_ref());
    sessions.filter_map(|session| Some((session.slot, session.base.clone()?))).collect()
}

/// True when the rows tell of the commits of the run, and of each of these trees.
pub(crate) fn is_carried(store: &dyn Store, run: &RunId, trees: &[TreeAtWork]) -> fault::Result<bool> {
    if record::carried_commits(store, run)?.is_none() {
        return Ok(false);
    }
    for (number, base) in trees {
        if row_of(store, run, *number, base)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the rows that are missing of a run whose trees are here and that nobody works on: one that was imported, or
/// that an earlier version began. Where no other data directory shares the state, rows of a former time are removed.
pub(crate) async fn catch_up(host: &PluginHost, stored: &StoredRun) -> fault::Result<()> {
    let run = &stored.record.run;
    let mut batch = Batch::new();
    match carrier(host, &stored.record)? {
        None => record::forget_carried(&*host.store, &mut batch, run)?,
        Some(commits) => {
            batch.ops.extend(commits.rows().await?.batch.ops);
            for (number, base) in trees_at_work(&stored.state) {
                let directory = host.home.tree_of(run, number);
                if row_of(&*host.store, run, number, &base)?.is_some() || !directory.is_dir() {
                    continue;
                }
                let tree = Tree::in_dir(&directory);
                if let Some(tree) = tree_carrier(host, &stored.record, Some(&commits), number, tree)? {
                    batch.ops.extend(tree.rows(&base).await?.ops);
                }
            }
        }
    }
    if !batch.is_empty() {
        host.store.commit(batch).await?;
    }
    Ok(())
}

/// Brings the commits and refs of a run into the repository here, and makes these trees anew in the places of any that
/// are there. Nothing has changed here when a row or a commit is missing, but for other commits that came.
///
/// # Errors
/// When the store, git or the file system refuses; what was done by then is done again with the next call.
pub(crate) async fn make_again(
    host: &Arc<PluginHost>,
    record: &RunRecord,
    trees: Vec<TreeAtWork>,
) -> fault::Result<MadeAgain> {
    let (host, record) = (Arc::clone(host), record.clone());
    tokio::task::spawn_blocking(move || make(&host, &record, &trees)).await?
}

/// Adds the event that names the files which stayed behind.
pub(crate) fn put_lost(
    batch: Batch,
    host: &PluginHost,
    stored: &StoredRun,
    lost: &[UncarriedFile],
) -> fault::Result<Batch> {
    if lost.is_empty() { Ok(batch) } else { put_warning(batch, host, stored, warning(lost)) }
}

/// Adds a warning to the events of a run that nobody works on.
pub(crate) fn put_warning(
    mut batch: Batch,
    host: &PluginHost,
    stored: &StoredRun,
    text: String,
) -> fault::Result<Batch> {
    let run = stored.record.run.clone();
    let number = record::last_event(&*host.store, &run)? + 1;
    let event = RunEvent { run, number, at_ms: host.clock.now_ms(), event: Event::Warning { text } };
    put_step(&*host.store, &mut batch, &stored.record, &stored.state, &[event])?;
    Ok(batch)
}

/// True when the branch of a run is here where its row tells.
pub(crate) async fn has_tip(record: &RunRecord, commits: CarriedCommits) -> fault::Result<bool> {
    let record = record.clone();
    let look = move || -> Result<bool, TreeError> {
        let project = UserRepository::open(&record.directory)?;
        let tip = branch_here(&project, &record)?;
        Ok(tip.as_ref().unwrap_or(&record.base) == branch_of(&commits.refs).unwrap_or(&record.base))
    };
    Ok(tokio::task::spawn_blocking(look).await?.unwrap_or(false))
}

/// True when the branch here has commits that the run did not make. One that it made and that no answer tells of is
/// found again by the work that made it.
fn has_others(project: &UserRepository, record: &RunRecord) -> Result<bool, TreeError> {
    match project.log(&Branch::new(&record.branch)?, &record.base, usize::MAX) {
        Ok(commits) => Ok(commits.iter().any(|commit| commit.run.as_deref() != Some(record.run.as_str()))),
        Err(TreeError::BranchMoved { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The tip of a run's branch in the repository here; none before its first commit.
fn branch_here(project: &UserRepository, record: &RunRecord) -> Result<Option<String>, TreeError> {
    let refs = project.refs_of_run(&Branch::new(&record.branch)?, record.run.as_str())?;
    Ok(branch_of(&refs).cloned())
}

/// The tip of the only branch among the refs of a run.
fn branch_of(refs: &BTreeMap<String, String>) -> Option<&String> {
    refs.iter().find(|(name, _)| name.starts_with("refs/heads/")).map(|(_, tip)| tip)
}

fn warning(lost: &[UncarriedFile]) -> String {
    let mut files: Vec<String> =
        lost.iter().take(NAMED_MAX).map(|UncarriedFile { path, why }| format!("`{path}` ({why})")).collect();
    if lost.len() > NAMED_MAX {
        files.push(format!("{} more files", lost.len() - NAMED_MAX));
    }
    format!("the tree was made again on another machine; not carried along: {}", files.join(", "))
}

/// The row of a tree, if it is of the work that started from `base`.
fn row_of(store: &dyn Store, run: &RunId, number: u32, base: &str) -> fault::Result<Option<CarriedTree>> {
    Ok(record::carried_tree(store, run, number)?.filter(|row| row.base == base))
}

fn make(host: &PluginHost, record: &RunRecord, trees: &[TreeAtWork]) -> fault::Result<MadeAgain> {
    let (store, run) = (&*host.store, &record.run);
    let Some(commits) = record::carried_commits(store, run)? else {
        return Ok(Err("the store does not have its commits".to_owned()));
    };
    let mut rows = Vec::with_capacity(trees.len());
    for (number, base) in trees {
        let Some(row) = row_of(store, run, *number, base)? else {
            return Ok(Err("the store does not have its files".to_owned()));
        };
        rows.push((*number, row));
    }
    let project = match UserRepository::open(&record.directory) {
        Ok(project) => project,
        Err(TreeError::NotARepository { dir }) => {
            return Ok(Err(format!("`{}` is no clone of its repository", dir.display())));
        }
        Err(error) => return Ok(Err(error.to_string())),
    };
    if let Some(missing) = bring(store, &project, &commits)? {
        return Ok(Err(missing));
    }
    if branch_of(&commits.refs).is_none() && has_others(&project, record)? {
        return Ok(Err(format!("the branch `{}` here has commits that the run has not", record.branch)));
    }
    let mut lost = Vec::new();
    for (number, row) in rows {
        if let Some(missing) = rebuild(store, &project, &host.home.tree_of(run, number), &row)? {
            return Ok(Err(missing));
        }
        lost.extend(row.lost);
    }
    // After the trees: what cannot be made as a whole moves no branch.
    project.set_refs_of_run(&Branch::new(&record.branch)?, run.as_str(), &commits.refs)?;
    Ok(Ok(lost))
}

/// Brings the commits that are not here; returns what is missing then.
fn bring(store: &dyn Store, project: &UserRepository, commits: &CarriedCommits) -> fault::Result<Option<String>> {
    let absent = || commits.refs.values().chain([&commits.base]).find(|commit| !project.has_commit(commit));
    if absent().is_none() {
        return Ok(None);
    }
    for digest in &commits.packs {
        let Some(pack) = store.blob(digest)? else { return Ok(Some(missing(digest))) };
        if let Err(error) = project.unpack(&pack) {
            // One that rests on commits which are neither here nor in an earlier pack.
            tracing::warn!(%error, "commits of a run cannot be brought into the repository");
        }
    }
    Ok(absent().map(|commit| absent_commit(commit, project)))
}

fn absent_commit(commit: &str, project: &UserRepository) -> String {
    format!("commit {commit} is neither in the store nor in `{}`; fetch it there first", project.root().display())
}

/// Makes one tree from a row, also for a fork; returns what is missing instead. A directory that is there is of an
/// earlier time. Blocks as long as that takes.
///
/// # Errors
/// The store, git or the file system refuses.
pub fn rebuild(
    store: &dyn Store,
    project: &UserRepository,
    directory: &Path,
    row: &CarriedTree,
) -> fault::Result<Option<String>> {
    if !project.has_commit(&row.base) {
        return Ok(Some(absent_commit(&row.base, project)));
    }
    Tree::remove(directory)?;
    let mut absent = None;
    let mut fetch = |digest: &Digest| {
        let doing = "read from the store what is named";
        let failed = |source: io::Error| TreeError::Io { doing, path: digest.to_string().into(), source };
        match store.blob(digest) {
            Ok(Some(content)) => Ok(content),
            Ok(None) => {
                absent = Some(missing(digest));
                Err(failed(io::ErrorKind::NotFound.into()))
            }
            Err(error) => Err(failed(io::Error::other(error))),
        }
    };
    match Tree::rebuild(project, directory, &row.base, &row.root, &mut fetch) {
        Err(_) if absent.is_some() => Ok(absent),
        made => Ok(made.map(|()| None)?),
    }
}

fn missing(digest: &Digest) -> String {
    format!("content {} is missing from the store", digest.short())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_the_first_files_that_stayed_behind_and_counts_the_rest() {
        let file = |number: usize| UncarriedFile { path: format!("f{number}"), why: "it is a socket".into() };
        let text = warning(&[file(1)]);
        assert!(text.ends_with("not carried along: `f1` (it is a socket)"), "{text}");
        let text = warning(&(0..=NAMED_MAX).map(file).collect::<Vec<_>>());
        assert!(text.contains("`f19`") && !text.contains("`f20`") && text.ends_with("1 more files"), "{text}");
    }
}
