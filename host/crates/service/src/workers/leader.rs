//! The calls of the leader to workers, and the runs that it gives away.

use super::Service;
use crate::cluster::{Cluster, NoServer, RunMoved};
use crate::remote_runs::{RemoteRun, WorkerEpoch};
use longhaul_api::operations::{Handling, Operation, OperationCall};
use longhaul_api::runs::{AffectedRun, ResumeRun, RunRef, RunSubject};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault, FaultCode, bail};
use longhaul_core::store::Batch;
use longhaul_harness::RunStatus;
use longhaul_records::approvals;
use longhaul_records::bus::EventBus;
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_workers::calls::{Reply, WorkerCall};
use longhaul_workers::choice::{ServerCandidate, ServerChoice, choose};
use longhaul_workers::claims::{self, Claim};
use longhaul_workers::worker::WorkerRecord;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Times that a request is sent to the worker of its run, which may have let go of it meanwhile.
const TRIES: usize = 20;

/// The pause before the next of them.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest wait for a reply. A worker replies, or is evicted, long before: this bounds what nobody thought of.
const REPLY_MAX: Duration = Duration::from_secs(1_800);

/// The server that is to work on a run.
pub(crate) enum Chosen {
    /// This one.
    Here,
    /// A worker.
    Worker(WorkerEpoch),
    /// None: the run waits.
    Nobody(NoServer),
}

impl Service {
    /// Has the worker that has the run of a request carry it out. None: no worker has the run.
    pub(crate) async fn carried_out_by_worker<O: Operation>(
        self: &Arc<Self>,
        request: &O,
    ) -> fault::Result<Option<O::Response>> {
        for _ in 0..TRIES {
            let Some((at, run)) = self.worker_for(request) else { return Ok(None) };
            let reply = self.send(&at, &run, OperationCall::of(request)?, Batch::new()).await?;
            let Ok(reply) = tokio::time::timeout(REPLY_MAX, reply).await else { break };
            match reply {
                Ok(Reply::Done(response)) => return Ok(Some(serde_json::from_value(response)?)),
                Ok(Reply::Failed(why)) => return Err(why.into()),
                // It let go of the run just now, which the next look sees.
                Ok(Reply::NotHere) => {
                    self.look_at_workers().await?;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(_gone) if O::HANDLING == Handling::Once => bail!(Fault::unavailable(format!(
                    "the server that works on run {run} is gone, and may have done it; look with `longhaul status {run}` \
                     before you ask again"
                ))),
                Err(_gone) => {}
            }
        }
        bail!(
            Fault::unavailable(
                "the server that works on the run does not answer, and may do what it was asked to; look at the run, then \
                 try again"
            )
            .after(1_000)
        )
    }

    /// The worker that has the run of a request.
    fn worker_for<O: Operation>(&self, request: &O) -> Option<(WorkerEpoch, RunId)> {
        let subject = request.run()?;
        if !self.leads() || self.remote().is_empty() {
            return None;
        }
        // Where there is no such run, whoever carries the request out says so.
        let run = match subject {
            RunSubject::Run(which) => self.find(&which).ok()?.record.run,
            RunSubject::Checkpoint(key) => self.find(&RunRef::Named(key)).ok()?.record.run,
            RunSubject::Approval(id) => approvals::find(&*self.host.store, &id).ok()?.subject.invocation.run(),
        };
        let at = self.remote().worker_of(&run)?;
        Some((at, run))
    }

    /// Sends a call, with rows that are stored with it. The receiver is closed where the worker is gone.
    async fn send(
        &self,
        at: &WorkerEpoch,
        run: &RunId,
        operation: OperationCall,
        batch: Batch,
    ) -> fault::Result<oneshot::Receiver<Reply>> {
        let (number, reply) = self.remote().call(at, self.now_ms());
        let call = WorkerCall { epoch: at.epoch, run: run.clone(), operation };
        let sent = match call.put(batch, &at.name, number) {
            Ok(batch) => self.host.store.commit(batch).await.map_err(Fault::from),
            Err(error) => Err(error),
        };
        if sent.is_err() {
            self.remote().forget_call(at, number);
        }
        sent.map(|()| reply)
    }

    /// The server that is to work on a run which nobody works on.
    pub(crate) fn chosen(&self, record: &RunRecord) -> fault::Result<Chosen> {
        if !self.leads() {
            return Ok(Chosen::Here);
        }
        let config = record.config_now()?;
        let labels = config.run.labels_needed().to_vec();
        let needs: BTreeSet<String> = labels.iter().cloned().collect();
        let run = || record.run.clone();
        let nobody = |refusals| Chosen::Nobody(NoServer::Labels { run: run(), labels: labels.clone(), refusals });
        let Some(cluster) = &self.cluster else {
            return Ok(if needs.is_empty() { Chosen::Here } else { nobody(Vec::new()) });
        };
        if let Some(max) = config.project.runs_at_once_max
            && self.count_at_once(record.scope()) >= max
        {
            let capped = || Chosen::Nobody(NoServer::Capped { run: run(), project: record.project.clone(), max });
            // It waits in the queue of this server, which knows no labels.
            return Ok(if needs.is_subset(&cluster.labels()) { Chosen::Here } else { capped() });
        }
        let candidates = self.candidates(cluster, record)?;
        let choice = choose(&needs, candidates.iter().map(|(candidate, _)| candidate));
        Ok(match choice {
            ServerChoice::Takes(at) => match candidates[at].1 {
                None => Chosen::Here,
                Some(epoch) => Chosen::Worker(WorkerEpoch { name: candidates[at].0.name.clone(), epoch }),
            },
            // It waits in the queue of this server, which knows no labels.
            ServerChoice::AllBusy if needs.is_subset(&cluster.labels()) => Chosen::Here,
            ServerChoice::AllBusy | ServerChoice::NoneFits => nobody(self.refusals(&record.run, &candidates)),
        })
    }

    /// The runs of a project that work here, and those that workers have.
    fn count_at_once(&self, project: &str) -> u32 {
        self.queue.with_working(project, |working| working.saturating_add(self.remote().count_of(project)))
    }

    /// The reasons of servers that could not take a run a moment ago.
    fn refusals(&self, run: &RunId, candidates: &[(ServerCandidate, Option<u64>)]) -> Vec<String> {
        let (remote, now) = (self.remote(), Instant::now());
        let told = |(one, _): &(ServerCandidate, Option<u64>)| {
            remote.refusal(run, &one.name, now).map(|why| format!("; `{}` could not: {why}", one.name))
        };
        candidates.iter().filter_map(told).collect()
    }

    /// The sentence about a run because of workers: which one has it, or that none can.
    pub(crate) fn of_workers(&self, stored: &StoredRun) -> fault::Result<Option<String>> {
        use RunStatus::{New, Planning, Working};
        let record = &stored.record;
        if let Some(at) = self.remote().worker_of(&record.run) {
            return Ok(Some(format!("the server `{}` works on it (`longhaul workers`)", at.name)));
        }
        let goes_on = matches!(stored.state.status(), New | Planning | Working);
        if self.cluster.is_none() || !goes_on || self.is_active(&record.run) {
            return Ok(None);
        }
        Ok(match self.chosen(record)? {
            Chosen::Nobody(why) => Some(why.to_string()),
            Chosen::Here | Chosen::Worker(_) => None,
        })
    }

    /// The servers that may take a run, each worker with the number of its claim on its seat.
    fn candidates(&self, cluster: &Cluster, record: &RunRecord) -> fault::Result<Vec<(ServerCandidate, Option<u64>)>> {
        let store = &*self.host.store;
        let trees = record::tree_place(store, &record.run)?.map(|place| place.id);
        let now = Instant::now();
        let own = ServerCandidate {
            name: cluster.name.clone(),
            labels: cluster.labels(),
            runs_max: self.runs_max(cluster),
            runs: u32::try_from(self.active_here().len()).unwrap_or(u32::MAX),
            of_project: self.count_here(record.scope()),
            has_trees: trees.as_ref() == Some(&cluster.name),
            has_refused: false,
        };
        let mut found = vec![(own, None)];
        let records = WorkerRecord::all(store)?;
        for seat in cluster.seats.seats()? {
            let told = records.get(&seat.name).filter(|told| told.epoch == seat.epoch && seat.left_ms > 0);
            let Some(told) = told.filter(|_| seat.name != cluster.name) else { continue };
            let remote = self.remote();
            let (runs, of_project) = remote.count(&seat.name, record.scope());
            found.push((
                ServerCandidate {
                    labels: told.labels.clone(),
                    runs_max: told.runs_max,
                    runs,
                    of_project,
                    has_trees: trees.as_ref() == Some(&seat.name),
                    has_refused: remote.refusal(&record.run, &seat.name, now).is_some(),
                    name: seat.name,
                },
                Some(seat.epoch),
            ));
        }
        Ok(found)
    }

    /// Gives a run to a worker, which goes on with it. False where it could not, or is gone: nobody works on the run then.
    /// The caller has the run's turn.
    async fn give(self: &Arc<Self>, at: &WorkerEpoch, record: &RunRecord, request: &ResumeRun) -> fault::Result<bool> {
        let (service, at, record, request) = (Arc::clone(self), at.clone(), record.clone(), request.clone());
        // In a task of its own: a caller that goes away must leave no claim behind that nobody knows of.
        tokio::spawn(async move { service.hand_to(&at, &record, &request).await }).await?
    }

    async fn hand_to(&self, at: &WorkerEpoch, record: &RunRecord, request: &ResumeRun) -> fault::Result<bool> {
        let run = &record.run;
        let claim = Claim { epoch: at.epoch, since_ms: self.now_ms() };
        let (project, bus, last) = (record.scope().to_owned(), EventBus::default(), self.last_event(run)?);
        let at_once_max = record.config_now()?.project.runs_at_once_max;
        let remote = RemoteRun { at: at.clone(), project, bus, last, is_claimed: false };
        // Before it is stored, so that nobody else goes on with the run, whatever comes between.
        let is_added = self.queue.with_working(record.scope(), |working| {
            let room = at_once_max.map_or(u32::MAX, |max| max.saturating_sub(working));
            self.remote().add_within(room, run.clone(), remote)
        });
        if !is_added {
            return Ok(false);
        }
        let sent = async {
            let batch = claims::put(Batch::new(), &at.name, run, claim)?;
            self.send(at, run, OperationCall::of(request)?, batch).await
        };
        let reply = match sent.await {
            Ok(reply) => reply,
            Err(error) => {
                self.end_remote(run, at);
                return Err(error);
            }
        };
        self.remote().claimed(run);
        self.tell(run);
        let why = match tokio::time::timeout(REPLY_MAX, reply).await {
            Ok(Ok(Reply::Done(_))) => {
                tracing::info!(%run, worker = at.name, "a worker goes on with the run");
                return Ok(true);
            }
            // It has the run until it lets go of it.
            Err(_late) => return Ok(true),
            Ok(Ok(Reply::Failed(why))) => format!("{:#}", Fault::from(why)),
            Ok(Ok(Reply::NotHere)) => "it takes no runs any more".to_owned(),
            Ok(Err(_gone)) => "it is gone".to_owned(),
        };
        tracing::warn!(%run, worker = at.name, "a worker cannot go on with the run: {why}");
        // It does nothing about the run any more, and ends the claim, too.
        let mut batch = Batch::new();
        claims::forget(&mut batch, &at.name, run);
        self.host.store.commit(batch).await?;
        self.remote().refused(run, &at.name, why, Instant::now());
        self.end_remote(run, at);
        Ok(false)
    }

    /// Has a server go on with a run that nobody works on: a worker, or this one by `here`. The caller has the run's
    /// turn.
    pub(crate) async fn go_on_somewhere<F>(
        self: &Arc<Self>,
        record: &RunRecord,
        request: &ResumeRun,
        here: impl FnOnce() -> F,
    ) -> fault::Result<AffectedRun>
    where
        F: Future<Output = fault::Result<AffectedRun>>,
    {
        loop {
            match self.chosen(record)? {
                Chosen::Here => {
                    self.remote().waits_no_more(&record.run);
                    return here().await;
                }
                Chosen::Nobody(why) => {
                    self.remote().waits(&record.run);
                    return Err(Fault::from(why).or_code(FaultCode::Conflict));
                }
                Chosen::Worker(at) => {
                    if self.give(&at, record, request).await? {
                        return Ok(AffectedRun { run: record.run.clone() });
                    }
                }
            }
        }
    }

    /// Gives runs that wait for their turn here to workers that have room, in the order of their turns.
    pub(super) async fn spread_runs(self: &Arc<Self>) {
        let mut waiting: Vec<(u32, RunId)> = self.queue.places().into_iter().map(|(run, place)| (place, run)).collect();
        waiting.sort_unstable();
        for (_, run) in waiting {
            if let Err(error) = self.spread(&run).await
                && !error.is::<RunMoved>()
            {
                tracing::warn!(%run, "a run that waits here could not be given to another server: {error:#}");
            }
        }
    }

    async fn spread(self: &Arc<Self>, run: &RunId) -> fault::Result<()> {
        let which = RunRef::Named(run.to_string());
        // Looked at before the turn is waited for: most runs find no room elsewhere.
        let Chosen::Worker(_) = self.chosen(&self.find(&which)?.record)? else { return Ok(()) };
        let (_alone, _) = self.alone(&which).await?;
        let record = self.find(&which)?.record;
        let Chosen::Worker(_) = self.chosen(&record)? else { return Ok(()) };
        // It may have got its turn since.
        if !self.queue.places().contains_key(run) || !self.let_others_go_on(run).await {
            return Ok(());
        }
        let request = ResumeRun { run: which, retry_failing: false, sessions: None };
        self.go_on_somewhere(&record, &request, || self.resume_here(&request)).await?;
        Ok(())
    }
}
