//! The place of a run's trees, among the data directories that share the state.
//!
//! Uncommitted files of a run are in the data directory that worked on it, and its commits in a repository beside it.
//! Another directory goes on with the run if nothing of it is missing there: if it rests at a commit that is there, or
//! if the store has its files and commits, which are then made again. Refuses to go on with another tree than the one
//! that the run left.

use crate::carried::{self, TreeAtWork};
use crate::revert;
use longhaul_config::Config;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault, FaultCode};
use longhaul_core::store::Batch;
use longhaul_harness::state::Phase;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::record::{self, RunRecord, StoredRun, TreePlace, UncarriedFile};
use longhaul_worktree::{Branch, Tree, TreeError, UserRepository};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The trees of a run are on another machine, and something that only they have is needed.
#[derive(Debug, thiserror::Error)]
#[error(
    "the tree of run {run}, with its uncommitted files, is in `{}` on {host}{}; start longhaul there to go on with it, or \
     give the run up with `longhaul abandon {run}` and begin anew", .directory.display(), because(.missing.as_deref())
)]
pub struct TreesElsewhere {
    /// The run.
    pub run: RunId,
    /// The name of the machine.
    pub host: String,
    /// The data directory there.
    pub directory: PathBuf,
    /// The missing part that kept the tree from being made again here, as a clause, if that was tried.
    pub missing: Option<String>,
}

fn because(missing: Option<&str>) -> String {
    missing.map(|missing| format!(", and it cannot be made again here, since {missing}")).unwrap_or_default()
}

/// The place of this data directory; none if no other one shares its state.
///
/// # Errors
/// When its id cannot be read.
pub fn here(host: &PluginHost) -> fault::Result<Option<TreePlace>> {
    if !host.store.is_shared() {
        return Ok(None);
    }
    let directory = host.home.path().to_owned();
    Ok(host.home.place()?.map(|place| TreePlace { id: place.id, host: place.host, directory }))
}

/// Notes with the start of a run that its trees are here, if other data directories share the state. An ask has one
/// only if its tools change it.
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

/// Notes that the trees of a run are made here, if nothing says where they are: it was begun for another server than
/// the one that stored it. The commit that it begins from comes into the repository here, as far as the store has it.
///
/// # Errors
/// When the store, git or the file system refuses.
pub async fn settle_here(host: &Arc<PluginHost>, record: &RunRecord, config: &Config) -> fault::Result<()> {
    if here(host)?.is_none() || record::tree_place(&*host.store, &record.run)?.is_some() {
        return Ok(());
    }
    if record.ask.is_none()
        && let Err(missing) = carried::make_again(host, record, Vec::new()).await?
    {
        tracing::debug!(run = %record.run, "the commits of the run are those of the repository here: {missing}");
    }
    let placed = put_here(Batch::new(), host, record, config)?;
    if !placed.is_empty() {
        host.store.commit(placed).await?;
    }
    Ok(())
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
    if stored.record.ask.is_none() && carried::is_carried(&*host.store, &run, &needed(host, stored)?)? {
        return Ok(None);
    }
    Ok(Some(TreesElsewhere { run, host: machine, directory, missing: None }))
}

/// Expects the trees of a run here, on which nobody works here. A run whose trees are elsewhere moves here if its trees
/// and commits can be made again here from the store: its branch is then where the run left it, and has no commit that
/// was taken back. Without that, it moves if it rests at a commit that the repository here has.
///
/// `is_ours`: no other process works on the run, nor can one store anything of it. The caller knows that: a process
/// that owns the store alone may say so of every run, since each commit proves the ownership and whoever had it before
/// is fenced. Such a one may still write into its own trees and its own repository until it notices, but nothing of
/// that counts: the rows are as the last answer left them, and it is refused the answer. When it owns the store again,
/// it finds that the place of the run has changed, and makes its trees anew. Without that, a run waits for the
/// directory that has its trees.
///
/// # Errors
/// [`TreesElsewhere`], or when the store, git or the file system refuses.
pub async fn expect_here(host: &Arc<PluginHost>, stored: &StoredRun, is_ours: bool) -> fault::Result<()> {
    let run = stored.record.run.clone();
    let Some(place) = elsewhere(host, &run)? else { return mend_here(host, stored).await };
    let mut missing = None;
    if is_ours && stored.record.ask.is_none() {
        let trees = needed(host, stored)?;
        match carried::make_again(host, &stored.record, trees.clone()).await? {
            Ok(lost) => return move_here(host, stored, &place, &trees, &lost).await,
            Err(why) => missing = Some(why),
        }
        if may_rest_here(host, stored).await? {
            return move_here(host, stored, &place, &[], &[]).await;
        }
    }
    let TreePlace { host: machine, directory, .. } = place;
    Err(Fault::from(TreesElsewhere { run, host: machine, directory, missing }).or_code(FaultCode::Conflict))
}

/// Makes a tree again that is missing here, where it should be: a fresh one would lack what the journals tell of. Where
/// that fails, the run is told, and begins the tree from its branch. Rows that are missing are written.
async fn mend_here(host: &Arc<PluginHost>, stored: &StoredRun) -> fault::Result<()> {
    let run = &stored.record.run;
    if stored.record.ask.is_some() {
        return Ok(());
    }
    let (mut made, mut fresh) = (Vec::new(), Vec::new());
    for tree in needed(host, stored)? {
        if host.home.tree_of(run, tree.0).is_dir() {
            continue;
        }
        let is_carried = carried::is_carried(&*host.store, run, std::slice::from_ref(&tree))?;
        if is_carried { made.push(tree) } else { fresh.push(tree) }
    }
    let mut missing = (!fresh.is_empty()).then(|| "the store does not have its files".to_owned());
    let mut batch = Batch::new();
    if !made.is_empty() {
        match carried::make_again(host, &stored.record, made).await? {
            Ok(lost) => batch = carried::put_lost(batch, host, stored, &lost)?,
            Err(why) => missing = Some(why),
        }
    }
    if !batch.is_empty() {
        host.store.commit(batch).await?;
    }
    write_missing_rows(host, stored).await;
    if let Some(why) = missing {
        let text = format!("a tree of the run is missing, and its uncommitted files with it: {why}");
        tracing::warn!(%run, "{text}");
        if host.store.is_shared() {
            host.store.commit(carried::put_warning(Batch::new(), host, stored, text)?).await?;
        }
    }
    Ok(())
}

async fn write_missing_rows(host: &PluginHost, stored: &StoredRun) {
    if let Err(error) = carried::catch_up(host, stored).await {
        tracing::warn!(run = %stored.record.run, "the trees cannot be carried to another machine: {error:#}");
    }
}

/// The trees that have to be as the run left them: those of sessions, and the first one where a planner left files in
/// it. A revert that was cut off has moved those without a row to a commit.
fn needed(host: &PluginHost, stored: &StoredRun) -> fault::Result<Vec<TreeAtWork>> {
    let mut trees = carried::trees_at_work(&stored.state);
    let run = &stored.record.run;
    if revert::is_cut_off(host, run)? {
        let mut kept = Vec::new();
        for tree in trees {
            if record::carried_tree(&*host.store, run, tree.0)?.is_some() {
                kept.push(tree);
            }
        }
        trees = kept;
    }
    if !trees.iter().any(|(number, _)| *number == 0)
        && let Some(row) = record::carried_tree(&*host.store, run, 0)?
    {
        trees.push((0, row.base));
    }
    Ok(trees)
}

/// True when no tree of the run has anything that is in no commit.
fn is_at_rest(host: &PluginHost, stored: &StoredRun) -> fault::Result<bool> {
    let is_of_branch = stored.record.ask.is_none();
    Ok(is_of_branch && needed(host, stored)?.is_empty() && !revert::is_cut_off(host, &stored.record.run)?)
}

/// True when a run that cannot be made again from the store needs nothing of it: it rests, and the repository here has
/// its commits, and no others if the store tells where its branch is.
async fn may_rest_here(host: &PluginHost, stored: &StoredRun) -> fault::Result<bool> {
    if !is_at_rest(host, stored)? {
        return Ok(false);
    }
    let is_at_tip = match record::carried_commits(&*host.store, &stored.record.run)? {
        Some(commits) => carried::has_tip(&stored.record, commits).await?,
        None => true,
    };
    Ok(is_at_tip && has_commits(stored.clone()).await?)
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

/// Removes what is here of the trees of a run.
///
/// # Errors
/// When the file system refuses.
pub async fn remove_trees(host: &Arc<PluginHost>, run: &RunId) -> fault::Result<()> {
    let (own, outdated) = (Arc::clone(host), run.clone());
    tokio::task::spawn_blocking(move || forget_others(&own, &outdated, &[])).await?
}

/// Notes that the run is here now, where `made` are its trees, and removes others that it left here when it was here
/// before.
async fn move_here(
    host: &Arc<PluginHost>,
    stored: &StoredRun,
    from: &TreePlace,
    made: &[TreeAtWork],
    lost: &[UncarriedFile],
) -> fault::Result<()> {
    let run = &stored.record.run;
    let made: Vec<u32> = made.iter().map(|(number, _)| *number).collect();
    let (own, outdated) = (Arc::clone(host), run.clone());
    tokio::task::spawn_blocking(move || forget_others(&own, &outdated, &made)).await??;
    let mut batch = Batch::new();
    match here(host)? {
        Some(place) => batch = record::move_tree_place(batch, &*host.store, run, from, &place)?,
        None => {
            record::forget_tree_place(&mut batch, run);
            record::forget_carried(&*host.store, &mut batch, run)?;
        }
    }
    host.store.commit(carried::put_lost(batch, host, stored, lost)?).await?;
    tracing::info!(%run, "the run goes on here; it was in `{}` on {}", from.directory.display(), from.host);
    Ok(())
}

/// Removes the trees of a run but for these.
fn forget_others(host: &PluginHost, run: &RunId, kept: &[u32]) -> fault::Result<()> {
    let home = &host.home;
    if kept.is_empty() {
        home.forget_trees_beside(run)?;
    } else {
        for number in home.trees_beside(run)?.into_iter().filter(|number| !kept.contains(number)) {
            Tree::remove(&home.tree_of(run, number))?;
        }
    }
    if kept.contains(&0) { Ok(()) } else { Ok(Tree::remove(&home.tree(run))?) }
}
