//! The pinned checks of features that pass, run again where the branch is now, since a merge or a commit by hand may
//! have broken them.
//!
//! They run on a copy of the branch's tip and never on the tree of the run, and decide nothing but whether a
//! feature still passes: a failure is reported to the harness, which reopens a run that had ended.

use super::Service;
use super::reverts::refuse_working;
use longhaul_api::features::RecheckOutcome;
use longhaul_api::runs::{FeatureRecheck, RunRef};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::work::FeatureStatus;
use longhaul_engine::Cancel;
use longhaul_harness::{Feature, Input, Work, WorkFailure, WorkKind, WorkReport};
use longhaul_records::bus::EventBus;
use longhaul_records::record::{RunRecord, StoredRun};
use longhaul_run::{self as run, WorkExecutor};
use std::path::PathBuf;

impl Service {
    pub(super) async fn recheck(&self, which: &RunRef, only: Option<String>) -> fault::Result<RecheckOutcome> {
        let stored = {
            let (_alone, which) = self.alone(which).await?;
            self.ready(&which).await?
        };
        stored.record.expect_branch()?;
        refuse_working(&stored)?;
        let wanted = wanted(&stored, only.as_deref())?;
        // Outside the lock: checks take their time.
        let features = self.run_checks(&stored, wanted).await?;
        let regressed: Vec<(String, String)> = features.iter().filter_map(regression).collect();
        let run = stored.record.run;
        if !regressed.is_empty() {
            let (_alone, which) = self.alone(&RunRef::Named(run.to_string())).await?;
            let stored = self.ready(&which).await?;
            let input = Input::Regressed { features: regressed };
            match self.handle(&run) {
                Some(handle) => handle.input(input).await?,
                None => run::apply(&self.host, stored, input).await?,
            }
        }
        Ok(RecheckOutcome { run, features })
    }

    async fn run_checks(&self, stored: &StoredRun, wanted: Vec<Feature>) -> fault::Result<Vec<FeatureRecheck>> {
        let _alone = self.rechecking.lock().await;
        // A name of its own gives it a tree of its own, which is the tip.
        let run = RunId::from_text(format!("recheck-{}", stored.record.run));
        let _copy = ScratchTree::in_place_of_an_older(self.host.home.tree(&run))?;
        let record = RunRecord { run, ..stored.record.clone() };
        let executor = self.executor(record, EventBus::default()).await?;
        let mut all = Vec::new();
        for feature in wanted {
            all.push(check(&executor, stored, &feature).await);
        }
        Ok(all)
    }
}

/// A tree that goes with this.
struct ScratchTree(PathBuf);

impl ScratchTree {
    /// One that a kill left is not the tip any more.
    fn in_place_of_an_older(directory: PathBuf) -> std::io::Result<Self> {
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(Self(directory)),
        }
    }
}

impl Drop for ScratchTree {
    fn drop(&mut self) {
        // The next recheck or run removes what is left.
        let _ = std::fs::remove_dir_all(&self.0);
        let _ = std::fs::remove_file(self.0.with_extension("at"));
    }
}

fn wanted(stored: &StoredRun, only: Option<&str>) -> fault::Result<Vec<Feature>> {
    let passing = |feature: &&Feature| feature.status == FeatureStatus::Passing;
    let Some(only) = only else { return Ok(stored.state.features.iter().filter(passing).cloned().collect()) };
    match stored.state.feature(only) {
        None => bail!(Fault::unknown(format!("there is no feature `{only}`; `longhaul features` lists them"))),
        Some(feature) if !passing(&feature) => {
            bail!(Fault::conflict(format!("feature `{only}` does not pass, so there is nothing to recheck")))
        }
        Some(feature) => Ok(vec![feature.clone()]),
    }
}

/// Runs each check once where the branch is, as the preparation of a session does, and says which of them pass.
async fn check(executor: &WorkExecutor, stored: &StoredRun, feature: &Feature) -> FeatureRecheck {
    let spec = &feature.spec;
    let checks: Vec<String> = spec.checks.iter().map(|check| check.name.clone()).collect();
    let work = Work {
        name: format!("f-{}/recheck", spec.id),
        attempt: 1,
        job: WorkKind::Prepare { feature: spec.id.clone(), checks: spec.checks.clone() },
    };
    let ended = executor.perform(&work, &stored.state, &Cancel::default()).await;
    let (failed, error) = match ended.end {
        run::WorkEnd::Report(WorkReport::Prepared { vacuous: passed, .. }) => {
            (checks.iter().filter(|check| !passed.contains(check)).cloned().collect(), None)
        }
        run::WorkEnd::Report(WorkReport::Failed(failure)) => (Vec::new(), Some(WorkFailure::text(&failure))),
        run::WorkEnd::Outage(outage) => (Vec::new(), Some(outage.to_string())),
        _ => (Vec::new(), Some("they were called off".to_owned())),
    };
    FeatureRecheck { feature: spec.id.clone(), checks, failed, error }
}

fn regression(checked: &FeatureRecheck) -> Option<(String, String)> {
    let names: Vec<String> = checked.failed.iter().map(|name| format!("`{name}`")).collect();
    let verb = if names.len() == 1 { "check" } else { "checks" };
    (!names.is_empty())
        .then(|| (checked.feature.clone(), format!("passed, and {verb} {} failed since", names.join(", "))))
}
