//! Makes a planned fork: its trees and its branch first, then all of its rows in one transaction.
//!
//! A kill before the transaction leaves no fork. Trees without a run are removed by the next start of one, and a branch
//! without a run is removed by the next fork of its name, which knows it by its mark (`fork_branch.rs` of
//! `longhaul-worktree`). After the transaction the fork is whole. What fails without a kill is taken back at once.

use crate::plan::PlannedFork;
use crate::trees::ForkTree;
use longhaul_core::RunId;
use longhaul_core::event::{Event, RunEvent};
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::store::Batch;
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::contended::change;
use longhaul_records::record::{self, ForkedFrom, RunRecord};
use longhaul_records::repeats;
use longhaul_run::{carried, places};
use longhaul_worktree::{Branch, Tree, TreeCaps, UserRepository};
use std::sync::Arc;

/// Makes a fork. It is paused: a resume begins its work.
///
/// # Errors
/// Git, the file system or the store refuses; then nothing of it is there.
pub async fn make(host: &Arc<PluginHost>, planned: PlannedFork) -> fault::Result<RunId> {
    let run = planned.record.run.clone();
    let (own, record) = (Arc::clone(host), planned.record.clone());
    let (trees, commit) = (planned.trees.clone(), planned.plan.commit.clone());
    let laid = tokio::task::spawn_blocking(move || lay(&own, &record, &trees, &commit)).await?;
    let stored = match laid {
        Ok(()) => store(host, &planned).await,
        Err(error) => Err(error),
    };
    let Err(error) = stored else {
        settle_branch(host, &planned.record, true).await;
        return Ok(run);
    };
    match record::record(&*host.store, &run) {
        // The store answered with an error, and has it all the same.
        Ok(Some(_)) => {
            settle_branch(host, &planned.record, true).await;
            return Ok(run);
        }
        Ok(None) => settle_branch(host, &planned.record, false).await,
        // The outcome is unknown: the next fork removes the rest, as after a kill.
        Err(_) => return Err(error),
    }
    if let Err(left) = places::remove_trees(host, &run).await {
        tracing::warn!(%run, "trees of a fork that was not made are left: {left:#}");
    }
    Err(error)
}

/// Makes the trees, then the branch. It blocks.
fn lay(host: &PluginHost, record: &RunRecord, trees: &[ForkTree], commit: &str) -> fault::Result<()> {
    if record.ask.is_some() {
        return Ok(());
    }
    let project = UserRepository::open(&record.directory)?;
    for tree in trees {
        let directory = host.home.tree_of(&record.run, tree.number);
        if let Some(parent) = directory.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match &tree.files {
            Some(files) => {
                if let Some(missing) = carried::rebuild(&*host.store, &project, &directory, files)? {
                    bail!(Fault::conflict(format!("the files at this point cannot be made again, since {missing}")));
                }
            }
            None => {
                let hook = |point: &'static str| host.crash.reach(point);
                Tree::checkout(&project, &directory, &tree.base, &TreeCaps::default(), &hook)?;
            }
        }
    }
    host.crash.reach("fork.trees");
    project.make_fork_branch(&Branch::new(&record.branch)?, commit)?;
    host.crash.reach("fork.branch");
    Ok(())
}

/// Keeps the branch of a stored fork, and removes that of another one.
async fn settle_branch(host: &PluginHost, record: &RunRecord, is_stored: bool) {
    if record.ask.is_some() {
        return;
    }
    let (directory, name) = (record.directory.clone(), record.branch.clone());
    let settle = move || -> fault::Result<()> {
        let (project, branch) = (UserRepository::open(&directory)?, Branch::new(&name)?);
        if is_stored {
            project.keep_fork_branch(&branch)?;
        } else {
            project.drop_fork_branch(&branch)?;
        }
        Ok(())
    };
    let settled = match tokio::task::spawn_blocking(settle).await {
        Ok(settled) => settled,
        Err(stopped) => Err(stopped.into()),
    };
    if let Err(error) = settled {
        tracing::warn!(run = %record.run, "the mark of a fork's branch is left: {error:#}");
    }
    host.crash.reach("fork.settled");
}

/// Stores the fork in one transaction. Another fork of the run, or its deletion, may be faster: then all rows are made
/// anew from what is there.
async fn store(host: &Arc<PluginHost>, planned: &PlannedFork) -> fault::Result<()> {
    // The branch is there by now, so the commits of the fork are known.
    let carried = carried::put_commits(Batch::new(), host, &planned.record).await?;
    change(&*host.store, || Ok((rows(host, planned, &carried)?, ()))).await?;
    host.crash.reach("fork.stored");
    Ok(())
}

fn rows(host: &PluginHost, planned: &PlannedFork, carried: &Batch) -> fault::Result<Batch> {
    let PlannedFork { record, cuts, trees, .. } = planned;
    let (store, run) = (&*host.store, &record.run);
    let mut batch = record.insert(Batch::new())?;
    batch.ops.extend(planned.pinned.ops.iter().chain(&carried.ops).cloned());
    for cut in cuts {
        batch.ops.extend(cut.rows(store, run)?);
    }
    batch = record::put_fork(store, batch, &origin(planned), run)?;
    batch = repeats::put(batch, run, &planned.repeats)?;
    for (feature, digest) in &planned.judged {
        batch = record::put_judged(batch, run, feature, *digest);
    }
    for tree in trees.iter().filter(|_| store.is_shared()) {
        if let Some(files) = &tree.files {
            batch = record::put_carried_tree(batch, run, tree.number, files)?;
        }
    }
    if !trees.is_empty() {
        batch = places::put_here(batch, host, record, &record.config_now()?)?;
    }
    longhaul_run::put_step(store, &mut batch, record, &planned.state, &events(planned))?;
    Ok(batch)
}

fn origin(planned: &PlannedFork) -> ForkedFrom {
    let plan = &planned.plan;
    ForkedFrom {
        parent: plan.parent.clone(),
        event: plan.event,
        at_ms: plan.at_ms,
        point: plan.at.clone(),
        edited: planned.edited.clone(),
        inherited: plan.inherited,
    }
}

/// The first events of a fork.
fn events(planned: &PlannedFork) -> Vec<RunEvent> {
    let PlannedFork { plan, record, .. } = planned;
    let started = Event::RunStarted { project: record.project.clone(), branch: record.branch.clone() };
    let text = format!("forked from run {} at {} (its event {})", plan.parent, plan.at, plan.event);
    let paused = planned.state.paused.then_some(Event::Paused);
    let all = [started, Event::Warning { text }].into_iter().chain(paused).chain(planned.events.iter().cloned());
    (1..)
        .zip(all)
        .map(|(number, event)| RunEvent { run: record.run.clone(), number, at_ms: record.created_ms, event })
        .collect()
}
