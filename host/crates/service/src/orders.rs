//! Orders about a run that is there: go on, pause, give up, change its features. Each goes to the run's
//! actor, or, when it has none, into its stored state.

use super::begin::begin;
use super::cluster::RunMoved;
use super::keyed_lock::{self, KeyedLockGuard};
use super::{Active, RunRef, Service};
use longhaul_api::runs::{AffectedRun, ResumeRun};
use longhaul_checkpoints::{self as checkpoint, SharedServer};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::shared::Lease;
use longhaul_core::store::Batch;
use longhaul_harness::state::BlockedBy;
use longhaul_harness::{Feature, Input, RunStatus, step};
use longhaul_plugins::plugin_host::PluginHost;
use longhaul_records::bus::EventBus;
use longhaul_records::commit_loss;
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_records::stop_condition::StopCondition;
use longhaul_run::{self as run, RunActor, RunHandle};
use std::sync::Arc;

impl Service {
    /// Goes on with a run. Only what was paused, or has ended, is told anew how far to go: what broke off, or was
    /// waiting for somebody, goes as far as it was asked to, unless a number is given.
    pub(super) async fn resume(self: &Arc<Self>, request: &ResumeRun) -> fault::Result<AffectedRun> {
        let (_alone, which) = self.alone(&request.run).await?;
        let record = self.find(&which)?.record;
        // By its name: a server with another directory may find another run as the newest.
        let request = &ResumeRun { run: which, ..request.clone() };
        if self.handle(&record.run).is_some() {
            return self.resume_here(request).await;
        }
        self.go_on_somewhere(&record, request, || self.resume_here(request)).await
    }

    /// Goes on with a run here. The caller has the run's turn.
    pub(super) async fn resume_here(self: &Arc<Self>, request: &ResumeRun) -> fault::Result<AffectedRun> {
        let ResumeRun { run: which, retry_failing, sessions } = request;
        let (retry_failing, until) = (*retry_failing, StopCondition::sessions(*sessions));
        let stored = &self.ready(which).await?;
        let run = stored.record.run.clone();
        let limits = stored.record.limits_in(&stored.record.config_now()?);
        let resume = Input::Resume { retry_failing, limits: Some(limits) };
        if let Some(handle) = self.handle(&run) {
            if until != StopCondition::End {
                bail!(Fault::conflict(format!(
                    "run {run} is worked on already; pause it first: `longhaul pause {run}`"
                )));
            }
            handle.input(resume).await?;
            self.leave_archive(&run).await?;
            return Ok(AffectedRun { run });
        }
        let config = stored.record.config_now()?;
        self.expect_trust(&stored.record.directory, &config)?;
        self.refuse_faults_of(&stored.record).await?;
        let stored = &self.told_of_answers(stored.clone()).await?;
        let is_told_anew = {
            use RunStatus::{Abandoned, Completed, Failed, Incomplete, Paused};
            matches!(stored.state.status(), Paused | Completed | Incomplete | Failed | Abandoned)
        };
        let until = match until {
            StopCondition::End if !is_told_anew => record::until(&*self.host.store, &run)?,
            asked => asked,
        };
        let is_cancelled = |feature: &Feature| feature.blocked_by == Some(BlockedBy::Cancel);
        let must_be_told = retry_failing || stored.state.features.iter().any(is_cancelled);
        // A run that was interrupted goes on as it was; one that was paused, cancelled, or ended, is told to go on.
        let first = match stored.state.status() {
            // Accepted, and broken off before its first step.
            RunStatus::New => Some(begin(self, &stored.record, &stored.record.config()?).await?),
            RunStatus::Planning | RunStatus::Working if !must_be_told => None,
            _ => Some(resume),
        };
        if let Some(input) = &first {
            // The harness refuses before anything is loaded for the order.
            step(&mut stored.state.clone(), self.host.clock.now_ms(), input.clone())?;
        }
        let bus = EventBus::default();
        run::places::settle_here(&self.host, &stored.record, &config).await?;
        let executor = self.executor(stored.record.clone(), bus.clone()).await?;
        self.note_went_on(&stored.record, &config).await?;
        self.leave_archive(&run).await?;
        self.settle_doubt(&run).await?;
        self.activate(stored.clone(), executor, bus, first, until).await?;
        Ok(AffectedRun { run })
    }

    /// Refuses to go on with a run of which commits may be lost, without a person who says so.
    pub(super) fn refuse_in_doubt(&self, run: &RunId) -> fault::Result<()> {
        match commit_loss::of_run(&*self.host.store, run)? {
            None => Ok(()),
            Some(loss) => bail!(Fault::conflict(loss.of_run(run))),
        }
    }

    /// A person goes on with the run, whatever of it is lost.
    async fn settle_doubt(&self, run: &RunId) -> fault::Result<()> {
        if commit_loss::of_run(&*self.host.store, run)?.is_some() {
            let mut batch = Batch::new();
            commit_loss::forget_run(&mut batch, run);
            self.host.store.commit(batch).await?;
        }
        Ok(())
    }

    pub(super) async fn activate(
        self: &Arc<Self>,
        stored: StoredRun,
        executor: run::WorkExecutor,
        bus: EventBus,
        first: Option<Input>,
        until: StopCondition,
    ) -> fault::Result<()> {
        let (record, run) = (stored.record.clone(), stored.record.run.clone());
        // Events from before this process took the run up were another's to report.
        let reported = match stored.state.status() {
            RunStatus::New => 0,
            _ => record::last_event(&*self.host.store, &run)?,
        };
        let shared = checkpoint::of_record(&self.host.home, &*self.shares, &stored.record)?;
        let lease = match &shared {
            Some(shared) => Some((Arc::clone(shared), shared.begin(&run).await?)),
            None => None,
        };
        let (notifier, capacity, queue) = (Arc::clone(&self.notifier), self.capacity(), self.queue.clone());
        let watched = bus.clone();
        let wake = Arc::new(move || notifier.wake());
        let (mut actor, handle) = RunActor::new(executor, stored, bus, until, wake, capacity, queue)?;
        actor.enter_queue(first.as_ref());
        let (service, own, holder) = (Arc::clone(self), run.clone(), handle.clone());
        let (go, going) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            // The actor begins once it can be found: one that ends at once would be entered after its end otherwise.
            let _ = going.await;
            match lease {
                Some((shared, lease)) => live_holding(&service.host, actor, first, shared, lease, holder).await,
                None => actor.live(first).await,
            }
            service.lock().remove(&own);
            service.drop_ended_reports();
            service.tell(&own);
            if service.leads() {
                service.remember(own);
            }
        });
        if self.leads() {
            self.send_notifications();
        }
        self.lock().insert(run.clone(), Active { project: record.scope().to_owned(), handle, task });
        self.report(&record, &watched, reported).await;
        let _ = go.send(());
        self.tell(&run);
        Ok(())
    }

    /// Has the actor of a run end that waits for its turn, so that another server goes on with it. False: it has none.
    pub(super) async fn let_others_go_on(&self, run: &RunId) -> bool {
        let active = self.lock().remove(run);
        let Some(Active { handle, task, .. }) = active else { return false };
        handle.hand_over().await;
        let _ = task.await;
        true
    }

    /// Hands an order to the run: to its actor, or, when it is not active, to an actor for just that.
    pub(super) async fn order(self: &Arc<Self>, which: &RunRef, input: Input) -> fault::Result<AffectedRun> {
        let (_alone, which) = self.alone(which).await?;
        let stored = match input {
            // A run can always be stopped.
            Input::PauseRequested | Input::Abandon { .. } => self.find(&which)?,
            // No tree is needed for it, and the run's may be on the server that goes on with the run.
            _ if self.cluster.is_some() => self.find_newest(&which)?,
            _ => self.ready(&which).await?,
        };
        refuse_idle(&stored, &input)?;
        self.hand_in(stored, input, Batch::new()).await
    }

    /// Has a run take an input, with what is stored in one transaction with it. The caller has the run's turn.
    pub(super) async fn hand_in(&self, stored: StoredRun, input: Input, also: Batch) -> fault::Result<AffectedRun> {
        let run = stored.record.run.clone();
        if let Some(handle) = self.handle(&run) {
            handle.input_with(input, also).await?;
            return Ok(AffectedRun { run });
        }
        run::apply_with(&self.host, stored, input, also).await?;
        self.tell(&run);
        Ok(AffectedRun { run })
    }

    /// One's turn with the run that is meant, which is found before and is the same one then. Refuses a run that a
    /// worker got meanwhile.
    pub(super) async fn alone(&self, which: &RunRef) -> fault::Result<(KeyedLockGuard, RunRef)> {
        let record = self.find(which)?.record;
        let turn = self.locks.take(keyed_lock::of_run(&record)).await;
        if self.remote().has(&record.run) {
            bail!(RunMoved(record.run));
        }
        Ok((turn, RunRef::Named(record.run.to_string())))
    }

    /// The run that work is wanted of: a revert that was cut off is finished first. Refused is a run that another run
    /// of its project came after, since that one moved the branch, and one whose trees are on another machine, if they
    /// cannot be made again here.
    pub(super) async fn ready(&self, which: &RunRef) -> fault::Result<StoredRun> {
        let stored = self.find_newest(which)?;
        let run = stored.record.run.clone();
        if self.handle(&run).is_none() {
            // Nobody else has the run: requests about one that a worker has go there, and a worker has what it was
            // given.
            run::places::expect_here(&self.host, &stored, true).await?;
        }
        if stored.record.ask.is_some() {
            return Ok(stored);
        }
        run::revert::finish(&self.host, &run).await?;
        self.find(&RunRef::Named(run.to_string()))
    }

    /// The run that is meant, if no other run of its project came after it.
    fn find_newest(&self, which: &RunRef) -> fault::Result<StoredRun> {
        let stored = self.find(which)?;
        if stored.record.ask.is_none() {
            self.refuse_outdated(&stored.record)?;
        }
        Ok(stored)
    }

    fn refuse_outdated(&self, record: &RunRecord) -> fault::Result<()> {
        let RunRecord { run, directory, branch, .. } = record;
        let newest = record::newest_on_branch(&*self.host.store, directory, branch)?.map(|newest| newest.record);
        match newest.filter(|newer| newer.run != *run) {
            None => Ok(()),
            Some(newer) => bail!(Fault::conflict(format!(
                "run {} came after run {run} on `{branch}`; go on with that one, or start a new run",
                newer.run
            ))),
        }
    }

    pub(super) fn handle(&self, run: &RunId) -> Option<RunHandle> {
        self.lock().get(run).map(|active| active.handle.clone())
    }
}

/// Runs [`RunActor::live`] while the lease is renewed; then the run is left for others as it is.
async fn live_holding(
    host: &PluginHost,
    actor: RunActor,
    first: Option<Input>,
    shared: Arc<SharedServer>,
    lease: Lease,
    handle: RunHandle,
) {
    let keeper = tokio::spawn(Arc::clone(&shared).hold(lease.clone(), handle));
    actor
        .live_until(first, async {
            keeper.abort();
            if let Err(error) = shared.leave(host, &lease).await {
                tracing::warn!(run = lease.key, "other machines do not see the status of the run: {error:#}");
            }
        })
        .await;
}

/// Refuses to pause or abandon a run that is over: no response may say that it was paused or abandoned.
fn refuse_idle(stored: &StoredRun, input: &Input) -> fault::Result<()> {
    use RunStatus::{Abandoned, Completed, Failed, Incomplete};
    let status = stored.state.status();
    let (verb, is_over) = match input {
        Input::PauseRequested => ("pause", matches!(status, Completed | Incomplete | Failed | Abandoned)),
        Input::Abandon { .. } => ("abandon", matches!(status, Completed | Failed | Abandoned)),
        _ => return Ok(()),
    };
    let run = &stored.record.run;
    if is_over {
        bail!(Fault::conflict(format!(
            "run {run} is over, so there is nothing to {verb}; `longhaul status {run}` shows how it ended"
        )));
    }
    Ok(())
}
