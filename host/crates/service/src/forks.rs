//! Forks of runs: told before, then made. The work of a fork begins with a resume, as that of any paused run.

use super::Service;
use super::keyed_lock::of_directory;
use longhaul_api::forks::{ForkOutcome, ForkRun};
use longhaul_api::runs::ForkOrigin;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault};
use longhaul_forks::PlannedFork;
use longhaul_records::record::{self, StoredRun};
use std::sync::Arc;

impl Service {
    /// Makes a fork of a run, or tells what it would be.
    pub(super) async fn fork(self: &Arc<Self>, request: ForkRun) -> fault::Result<ForkOutcome> {
        let parent = self.find(&request.run)?;
        // Two forks of one name go one after the other, and so does a run that begins.
        let _alone = self.locks.take([of_directory(&parent.record.directory)]).await;
        self.expect_trust(&parent.record.directory, &parent.record.config_now()?)?;
        let is_dry_run = request.dry_run;
        let planned = self.planned(parent, request).await?;
        let plan = planned.plan.clone();
        if is_dry_run {
            return Ok(ForkOutcome { run: None, plan });
        }
        let run = planned.record.run.clone();
        // Its trees are there before it is.
        let _begins = self.locks.begin(&run);
        self.sweep_trees()?;
        let run = longhaul_forks::make(&self.host, planned).await?;
        self.tell(&run);
        Ok(ForkOutcome { run: Some(run), plan })
    }

    async fn planned(&self, parent: StoredRun, request: ForkRun) -> fault::Result<PlannedFork> {
        let host = Arc::clone(&self.host);
        let plan = move || longhaul_forks::plan(&host, &parent, &request);
        tokio::task::spawn_blocking(plan).await.map_err(Fault::from)?
    }

    /// The origin of a run, if it is a fork.
    pub(super) fn origin(&self, run: &RunId) -> fault::Result<Option<ForkOrigin>> {
        let origin = record::forked(&*self.host.store, run)?;
        Ok(origin.map(|origin| ForkOrigin {
            parent: origin.parent,
            at: origin.point,
            event: origin.event,
            at_ms: origin.at_ms,
            inherited: origin.inherited,
        }))
    }
}
