//! Back to an earlier commit of a run, what was kept of what was there, and commits: their log, and the changes of one.

use super::{Active, RunRef, Service, keyed_lock};
use longhaul_api::features::KeptWork;
use longhaul_api::runs::{CommitLog, RevertOutcome};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_harness::{Input, RunStatus};
use longhaul_records::record::{self, StoredRun};
use longhaul_run as run;
use longhaul_worktree::{Branch, CommitDiff, UserRepository};

impl Service {
    /// Carries out what kills cut off. What cannot be done now is tried again with the next order for its run.
    pub(super) async fn finish_reverts(&self) {
        let runs = record::list(&*self.host.store).unwrap_or_default();
        for record in runs.into_iter().map(|stored| stored.record) {
            if !run::revert::is_cut_off(&self.host, &record.run).unwrap_or(true) {
                continue;
            }
            let _turn = self.locks.take(keyed_lock::of_run(&record)).await;
            let run = record.run;
            if self.is_active(&run) {
                // The server that works on it finishes it.
                continue;
            }
            let finished = match run::places::elsewhere(&self.host, &run) {
                Ok(None) => run::revert::finish(&self.host, &run).await.map(drop),
                other => other.map(drop),
            };
            if let Err(error) = finished {
                tracing::warn!("{error:#}");
            }
        }
    }

    pub(super) async fn revert(&self, which: &RunRef, to: &str, stash: bool) -> fault::Result<RevertOutcome> {
        let (_alone, which) = self.alone(which).await?;
        let stored = self.ready(&which).await?;
        stored.record.expect_branch()?;
        refuse_working(&stored)?;
        // Looked at before anything is stopped, so that a refusal changes nothing.
        run::revert::look(&self.host, &stored, to, stash).await?;
        self.let_go(&stored.record.run).await;
        let stored = self.find(&RunRef::Named(stored.record.run.to_string()))?;
        let looked = run::revert::look(&self.host, &stored, to, stash).await?;
        run::revert::revert(&self.host, stored, looked).await
    }

    /// Has the actor of a run that waits end, which pauses the run.
    async fn let_go(&self, run: &RunId) {
        let active = self.lock().remove(run);
        if let Some(Active { handle, task, .. }) = active {
            // One that has just ended by itself takes no order.
            let _ = handle.input(Input::PauseRequested).await;
            let _ = task.await;
        }
    }

    pub(super) fn kept(&self, stored: &StoredRun, name: &str) -> fault::Result<KeptWork> {
        let run = &stored.record.run;
        let kept = record::best_effort(&*self.host.store, run, name)?;
        let kept = kept.or_unknown(|| {
            format!("run {run} has kept nothing under `{name}`; it does for features that fail, and for what a revert stashed")
        })?;
        Ok(KeptWork { text: String::from_utf8_lossy(&kept).into_owned() })
    }

    pub(super) async fn log(&self, stored: &StoredRun, limit: usize, reverted: bool) -> fault::Result<CommitLog> {
        stored.record.expect_branch()?;
        let record = stored.record.clone();
        tokio::task::spawn_blocking(move || {
            let (project, branch) = (UserRepository::open(&record.directory)?, Branch::new(&record.branch)?);
            let commits = match reverted {
                false => project.log(&branch, &record.base, limit)?,
                true => project.log_reverted(&branch, &record.base, record.run.as_str(), limit)?,
            };
            Ok(CommitLog { branch: record.branch, base: record.base, commits })
        })
        .await?
    }

    /// The changes of one commit of the run's own history, and of no other object of the repository.
    pub(super) async fn commit_diff(&self, stored: &StoredRun, commit: String) -> fault::Result<CommitDiff> {
        stored.record.expect_branch()?;
        let record = stored.record.clone();
        tokio::task::spawn_blocking(move || {
            let (project, branch) = (UserRepository::open(&record.directory)?, Branch::new(&record.branch)?);
            let run = record.run.as_str();
            project.commit_diff(&branch, &record.base, run, &commit)?.or_unknown(|| {
                format!("run {run} has no commit `{commit}`; `longhaul log --run {run}` lists its commits")
            })
        })
        .await?
    }
}

/// Refuses a run at work, which would go on from commits that the revert takes away.
pub(super) fn refuse_working(stored: &StoredRun) -> fault::Result<()> {
    use RunStatus::{Abandoned, Completed, Failed, Incomplete, New, Parked, Paused, Planning, Working};
    let run = &stored.record.run;
    match stored.state.status() {
        Parked | Paused | Completed | Incomplete | Failed | Abandoned => Ok(()),
        New | Planning | Working => {
            bail!(Fault::conflict(format!("run {run} is working; pause it first: `longhaul pause {run}`")))
        }
    }
}
