//! The work of a worker: it takes up runs that the leader gives it, carries out its calls, and lets go of runs that
//! rest.
//!
//! It looks at its calls several times a second. A run is in its hands from the first call about it on until it commits
//! the end of its claim, and it carries out nothing about any other run. Whatever it does is proved by its seat: once
//! that is lost, the store refuses everything, and the process ends.

use super::Service;
use crate::InProcess;
use crate::cluster::Cluster;
use longhaul_api::operations::{OTHER_VERSIONS, handler};
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault, FaultWire};
use longhaul_core::store::Batch;
use longhaul_workers::calls::{Reply, WorkerCall};
use longhaul_workers::claims;
use longhaul_workers::worker::WorkerRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// The pause between two looks at the calls.
const PAUSE: Duration = Duration::from_millis(150);

/// The pause before a reply is stored again, after the store refused it.
const PAUSE_FAILED: Duration = Duration::from_secs(1);

/// The longest wait for claims to end at the end of the process.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// A worker at its seat.
struct Worker {
    name: String,
    epoch: u64,
    hands: Mutex<Hands>,
}

/// The runs that a worker has, and the calls that it carries out.
#[derive(Default)]
struct Hands {
    /// Each run with the number of calls about it that are under way.
    runs: BTreeMap<RunId, usize>,
    calls: BTreeSet<u64>,
}

impl Hands {
    /// Notes a call about a run, and says whether the run is here.
    fn begin(&mut self, number: u64, call: &WorkerCall, is_claimed: bool) -> bool {
        self.calls.insert(number);
        if is_claimed {
            self.runs.entry(call.run.clone()).or_default();
        }
        self.runs.get_mut(&call.run).map(|under_way| *under_way += 1).is_some()
    }

    /// A call was replied to.
    fn end(&mut self, number: u64, run: &RunId) {
        self.calls.remove(&number);
        if let Some(under_way) = self.runs.get_mut(run) {
            *under_way = under_way.saturating_sub(1);
        }
    }

    /// The runs that no call is about.
    fn quiet(&self) -> Vec<RunId> {
        self.runs.iter().filter(|(_, under_way)| **under_way == 0).map(|(run, _)| run.clone()).collect()
    }
}

impl Service {
    /// Works on runs that the leader gives to this worker, until this server leads.
    pub async fn work(self: Arc<Self>) {
        let Some(cluster) = &self.cluster else { return };
        let Some(epoch) = cluster.epoch else { return };
        let worker = Arc::new(Worker { name: cluster.name.clone(), epoch, hands: Mutex::default() });
        let (mut told, mut is_failing) = (None, false);
        while !self.leads() {
            let looked = self.look_at_calls(cluster, &worker, &mut told).await;
            if let Err(error) = &looked
                && !is_failing
            {
                tracing::warn!("the calls of the leader cannot be looked at: {error:#}");
            }
            is_failing = looked.is_err();
            sleep(PAUSE).await;
        }
    }

    /// Ends the work of this worker: its runs stop once what is on its way has ended, and their claims end.
    pub async fn end_work(&self) {
        let Some(cluster) = &self.cluster else { return };
        self.hand_over().await;
        let ended = async {
            // A look that follows lets go of them.
            while claims::of_worker(&*self.host.store, &cluster.name).is_ok_and(|claims| !claims.is_empty()) {
                sleep(PAUSE / 3).await;
            }
        };
        if tokio::time::timeout(LEAVE_MAX, ended).await.is_err() {
            tracing::warn!(
                "the leader waits for the end of the lease before others go on with the runs of this server"
            );
        }
    }

    async fn look_at_calls(
        self: &Arc<Self>,
        cluster: &Cluster,
        worker: &Arc<Worker>,
        told: &mut Option<WorkerRecord>,
    ) -> fault::Result<()> {
        let store = &*self.host.store;
        let record = self.own_record(cluster, worker.epoch);
        if told.as_ref() != Some(&record) {
            store.commit(record.put(Batch::new(), &worker.name)?).await?;
            *told = Some(record);
        }
        // The runs that are quiet before the calls are read: a call that comes later finds its run gone.
        for (number, call) in WorkerCall::of_worker(store, &worker.name)? {
            if call.epoch != worker.epoch || worker.hands().calls.contains(&number) {
                continue;
            }
            let claim = claims::get(store, &worker.name, &call.run)?;
            let is_claimed = claim.is_some_and(|claim| claim.epoch == worker.epoch);
            let is_here = worker.hands().begin(number, &call, is_claimed);
            let (service, worker) = (Arc::clone(self), Arc::clone(worker));
            tokio::spawn(async move { service.answer_call(&worker, number, call, is_here).await });
        }
        self.let_go_of_quiet_runs(worker).await
    }

    /// Ends the claims on runs that nobody works on and that no call is about.
    async fn let_go_of_quiet_runs(&self, worker: &Worker) -> fault::Result<()> {
        let quiet = worker.hands().quiet();
        let active = self.active_here();
        let mut batch = Batch::new();
        let resting: Vec<RunId> = quiet.into_iter().filter(|run| !active.contains(run)).collect();
        if resting.is_empty() {
            return Ok(());
        }
        resting.iter().for_each(|run| claims::forget(&mut batch, &worker.name, run));
        let ended = self.host.store.commit(batch).await;
        if ended.is_ok() {
            // After a failure the claims are still there, and the next look ends them.
            worker.hands().runs.retain(|run, _| !resting.contains(run));
        }
        Ok(ended?)
    }

    /// Carries out a call, and replies.
    async fn answer_call(self: &Arc<Self>, worker: &Worker, number: u64, call: WorkerCall, is_here: bool) {
        let WorkerCall { run, operation, .. } = call;
        // One that ends takes nothing up any more.
        let is_here = is_here && !self.is_closing();
        let reply = if is_here { self.reply_to(&operation.name, operation.request).await } else { Reply::NotHere };
        while let Err(error) = self.store_reply(worker, number, &reply).await {
            if self.leads() || self.host.store.lease_left_ms() == Some(0) {
                // Its caller has gone.
                break;
            }
            tracing::warn!(%run, "a reply to the leader is stored again: {error:#}");
            sleep(PAUSE_FAILED).await;
        }
        worker.hands().end(number, &run);
    }

    async fn reply_to(self: &Arc<Self>, name: &str, request: serde_json::Value) -> Reply {
        let Some(handler) = handler::<InProcess>(name) else {
            let unknown = Fault::msg(format!("there is no operation `{name}`; {OTHER_VERSIONS}"));
            return Reply::Failed(FaultWire::from(&unknown));
        };
        match (handler.carry_out)(&InProcess(Arc::clone(self)), request).await {
            Ok(response) => Reply::Done(response),
            Err(error) => Reply::Failed(FaultWire::from(&error)),
        }
    }

    async fn store_reply(&self, worker: &Worker, number: u64, reply: &Reply) -> fault::Result<()> {
        Ok(self.host.store.commit(reply.put(Batch::new(), &worker.name, number)?).await?)
    }
}

impl Worker {
    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_api::operations::OperationCall;
    use serde_json::json;

    fn call(run: &str) -> WorkerCall {
        let operation = OperationCall { name: "pause_run".into(), request: json!({}) };
        WorkerCall { epoch: 1, run: RunId::from_text(run), operation }
    }

    #[test]
    fn a_run_is_here_from_its_claim_on_until_it_is_let_go_of() {
        let mut hands = Hands::default();
        assert!(!hands.begin(1, &call("r-1"), false), "no claim, no run");
        assert!(hands.begin(2, &call("r-1"), true) && hands.begin(3, &call("r-1"), false));
        assert!(hands.quiet().is_empty());
        hands.end(2, &RunId::from_text("r-1"));
        assert!(hands.quiet().is_empty(), "another call is under way");
        hands.end(3, &RunId::from_text("r-1"));
        hands.end(1, &RunId::from_text("r-1"));
        assert_eq!(hands.quiet(), [RunId::from_text("r-1")]);
        hands.runs.clear();
        assert!(!hands.begin(4, &call("r-1"), false));
        assert_eq!(hands.calls, BTreeSet::from([4]));
    }
}
