//! Where the trees of a run are, among the data directories that share the state.
//!
//! Uncommitted files of a run are in the data directory that worked on it, and its commits in a repository beside it. So
//! a run stays where it began: another directory goes on with it only if nothing of it is missing there. Refuses to go
//! on with another tree than the one that the run left.

use crate::revert;
use longhaul_config::Config;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault, FaultCode};
use longhaul_core::store::Batch;
use longhaul_harness::Lane;
use longhaul_harness::state::Phase;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::record::{self, RunRecord, StoredRun, TreePlace};
use longhaul_worktree::{Branch, TreeError, UserRepository};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The trees of a run are on another machine, and something that only they have is needed.
#[derive(Debug, thiserror::Error)]
#[error(
    "the tree of run {run}, with its uncommitted files, is in `{}` on {host}; start longhaul there to go on with it, or \
     give the run up with `longhaul abandon {run}` and begin anew", .directory.display()
)]
pub struct TreesElsewhere {
    /// The run.
    pub run: RunId,
    /// The name of the machine.
    pub host: String,
    /// The data directory there.
    pub directory: PathBuf,
}

/// The place of this data directory; none if no other one shares its state.
///
/// # Errors
/// When its id cannot be read.
pub fn here(host: &PluginHost) -> fault::Result<Option<TreePlace>> {
    let directory = host.home.path().to_owned();
    Ok(host.home.place()?.map(|place| TreePlace { id: place.id, host: place.host, directory }))
}

/// Notes with the start of a run that its trees are here, if other data directories share the state. An ask has one only
/// if its tools change it.
///
/// # Errors
/// When the id of the data directory cannot be read.
pub fn put_here(batch: Batch, host: &PluginHost, record: &RunRecord, config: &Config) -> fault::Result<Batch> {
    let has_tree = record.ask.is_none() || config.changes_trees();
    match here(host)? {
        Some(place) if has_tree => record::put_tree_place(batch, &record.run, &place),
        _ => Ok(batch),
    }
}

/// The other data directory that has the trees of a run; none if they are here, or it has none.
///
/// # Errors
/// When the store, or the id of this data directory, cannot be read.
pub fn elsewhere(host: &PluginHost, run: &RunId) -> fault::Result<Option<TreePlace>> {
    let Some(place) = record::tree_place(&*host.store, run)? else { return Ok(None) };
    let here = host.home.place()?.map(|here| here.id);
    Ok(Some(place).filter(|place| here.as_ref() != Some(&place.id)))
}

/// The reason why a run that has not ended cannot go on here, as far as the store tells.
///
/// # Errors
/// As [`elsewhere`].
pub fn left_behind(host: &PluginHost, stored: &StoredRun) -> fault::Result<Option<TreesElsewhere>> {
    let run = stored.record.run.clone();
    let Some(TreePlace { host: machine, directory, .. }) = elsewhere(host, &run)? else { return Ok(None) };
    if matches!(stored.state.phase, Phase::Ended { .. }) || is_at_rest(host, stored)? {
        return Ok(None);
    }
    Ok(Some(TreesElsewhere { run, host: machine, directory }))
}

/// Expects the trees of a run here. A run that rests at a commit which the repository here has, too, moves here.
///
/// # Errors
/// [`TreesElsewhere`], or when the store cannot be read.
pub async fn expect_here(host: &Arc<PluginHost>, stored: &StoredRun) -> fault::Result<()> {
    let run = stored.record.run.clone();
    let Some(TreePlace { host: machine, directory, .. }) = elsewhere(host, &run)? else { return Ok(()) };
    if is_at_rest(host, stored)? && has_commits(stored.clone()).await? {
        return move_here(host, &run).await;
    }
    Err(Fault::from(TreesElsewhere { run, host: machine, directory }).or_code(FaultCode::Conflict))
}

/// True when no tree of the run has anything that is in no commit.
fn is_at_rest(host: &PluginHost, stored: &StoredRun) -> fault::Result<bool> {
    let StoredRun { record, state } = stored;
    let works = |lane: &Lane| lane.session.as_ref().is_some_and(|session| session.base.is_some());
    Ok(record.ask.is_none() && !state.lanes.iter().any(works) && !revert::is_cut_off(host, &record.run)?)
}

/// True when the branch in the repository here has every commit of the run.
pub async fn has_commits(stored: StoredRun) -> fault::Result<bool> {
    let look = move || -> Result<bool, TreeError> {
        let StoredRun { record, state } = stored;
        let (project, branch) = (UserRepository::open(&record.directory)?, Branch::new(&record.branch)?);
        let there: BTreeSet<String> =
            project.log(&branch, &record.base, usize::MAX)?.into_iter().map(|logged| logged.commit).collect();
        Ok(state.features.iter().filter_map(|feature| feature.commit.as_ref()).all(|commit| there.contains(commit)))
    };
    // A repository that is not here, or a branch with another history, has them not.
    Ok(tokio::task::spawn_blocking(look).await?.unwrap_or(false))
}

/// Removes the trees that the run left here when it was here before, and notes that it is here again.
async fn move_here(host: &Arc<PluginHost>, run: &RunId) -> fault::Result<()> {
    let (tree, home) = (host.home.tree(run), host.home.clone());
    let outdated = run.clone();
    tokio::task::spawn_blocking(move || {
        home.forget_trees_beside(&outdated)?;
        if tree.exists() { std::fs::remove_dir_all(&tree) } else { Ok(()) }
    })
    .await??;
    let mut batch = Batch::new();
    match here(host)? {
        Some(place) => batch = record::put_tree_place(batch, run, &place)?,
        None => record::forget_tree_place(&mut batch, run),
    }
    host.store.commit(batch).await?;
    tracing::info!(%run, "the run rests at a commit that is here, and goes on here");
    Ok(())
}
