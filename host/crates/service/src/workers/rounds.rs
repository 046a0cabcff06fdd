//! The rounds of the leader: it takes over what workers did, tells those that watch their runs, and finds workers that
//! are gone.
//!
//! A worker counts as gone once its lease ran out and it was evicted from its seat, or once it has another claim on the
//! seat. Its claims end then, and its runs are interrupted ones, which the recovery of a server goes on with. Nothing
//! is decided about a run here.

use super::Service;
use crate::cluster::Cluster;
use crate::remote_runs::{RemoteRun, WorkerEpoch};
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_core::store::{Batch, Seat};
use longhaul_records::bus::{BusMessage, EventBus};
use longhaul_records::record;
use longhaul_workers::calls::{self, Reply, WorkerCall};
use longhaul_workers::claims;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::sleep;

/// The pause between two rounds while workers have runs or are asked something, and otherwise.
const PAUSE: Duration = Duration::from_millis(150);
const PAUSE_IDLE: Duration = Duration::from_secs(1);

/// The pause between two looks for runs that wait here and could work elsewhere.
const SPREAD: Duration = Duration::from_secs(1);

impl Service {
    /// Leads from now on: takes over the claims of workers, and makes rounds as long as the service lives. A service
    /// without other servers leads from its beginning.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn lead(self: &Arc<Self>) -> fault::Result<()> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        self.take_over_claims(cluster).await?;
        self.leading.0.store(true, Ordering::Release);
        if !self.active_here().is_empty() {
            self.send_notifications();
        }
        tokio::spawn(make_rounds(Arc::downgrade(self)));
        // A task of its own: whoever gives a run away waits for a reply, which a round brings.
        tokio::spawn(keep_spreading(Arc::downgrade(self)));
        Ok(())
    }

    /// Takes over the claims that a leader before this one made. What this server had as a worker is its own now.
    async fn take_over_claims(&self, cluster: &Cluster) -> fault::Result<()> {
        let store = &*self.host.store;
        let mut batch = Batch::new();
        for seat in cluster.seats.seats()? {
            let at = WorkerEpoch { name: seat.name.clone(), epoch: seat.epoch };
            for (run, claim) in claims::of_worker(store, &seat.name)? {
                if seat.name == cluster.name || claim.epoch != seat.epoch {
                    claims::forget(&mut batch, &seat.name, &run);
                    continue;
                }
                let project = record::record(store, &run)?.map(|record| record.scope().to_owned()).unwrap_or_default();
                let last = record::last_event(store, &run)?;
                let remote = RemoteRun { at: at.clone(), project, bus: EventBus::default(), last, is_claimed: true };
                self.remote().add(run, remote);
            }
            // The callers of another leader are gone with it.
            Reply::of_worker(store, &seat.name)?
                .into_iter()
                .for_each(|(number, _)| calls::forget(&mut batch, &seat.name, number));
            let is_over = |call: &WorkerCall| seat.name == cluster.name || call.epoch != seat.epoch;
            let calls = WorkerCall::of_worker(store, &seat.name)?;
            calls
                .iter()
                .filter(|(_, call)| is_over(call))
                .for_each(|(number, _)| calls::forget(&mut batch, &seat.name, *number));
        }
        if !batch.is_empty() {
            store.commit(batch).await?;
        }
        Ok(())
    }

    /// Makes one round.
    pub(super) async fn look_at_workers(&self) -> fault::Result<()> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let _one = self.looking.lock().await;
        let workers = self.remote().workers();
        if workers.is_empty() {
            return Ok(());
        }
        let seats: BTreeMap<String, Seat> =
            cluster.seats.seats()?.into_iter().map(|seat| (seat.name.clone(), seat)).collect();
        let mut failed = None;
        for at in workers {
            let seat = seats.get(&at.name).filter(|seat| seat.epoch == at.epoch);
            // One whose rows cannot be read hides no other.
            failed = self.look_at(cluster, &at, seat).await.err().or(failed);
        }
        failed.map_or(Ok(()), Err)
    }

    async fn look_at(&self, cluster: &Cluster, at: &WorkerEpoch, seat: Option<&Seat>) -> fault::Result<()> {
        let is_gone = match seat {
            None => true,
            Some(seat) if seat.left_ms == 0 => cluster.seats.evict(seat).await?,
            Some(_) => false,
        };
        // Its commits before the eviction count.
        let commits = seat.map(|seat| seat.commits);
        if is_gone || commits.is_none_or(|commits| self.remote().has_committed(at, commits)) {
            self.hear(at).await?;
            if let Some(commits) = commits {
                self.remote().looked(at.clone(), commits);
            }
        }
        if is_gone {
            self.give_up(at).await?;
        }
        Ok(())
    }

    /// Takes over what a worker committed: events of its runs, the ends of its claims, and its replies.
    async fn hear(&self, at: &WorkerEpoch) -> fault::Result<()> {
        let store = &*self.host.store;
        // Before anything is read, so that no claim that is made meanwhile counts as one that ended.
        let runs = self.remote().of_worker(at);
        let claims = claims::of_worker(store, &at.name)?;
        let mut heard = Batch::new();
        for (number, reply) in Reply::of_worker(store, &at.name)? {
            // Told before it is removed: where the removal is cut off, it is told once more, and nobody waits for it.
            self.remote().reply(at, number, reply);
            calls::forget(&mut heard, &at.name, number);
        }
        for (run, bus, last) in runs {
            let now = self.tell_events(&run, &bus, last)?;
            if now != last {
                self.index.changed(&run);
                self.remote().told(&run, now);
            }
            if claims.get(&run).is_none_or(|claim| claim.epoch != at.epoch) {
                self.end_remote(&run, at);
                self.remember(run);
            }
        }
        if !heard.is_empty() {
            store.commit(heard).await?;
        }
        self.notifier.wake();
        Ok(())
    }

    /// Ends the claims of a worker that is gone.
    async fn give_up(&self, at: &WorkerEpoch) -> fault::Result<()> {
        let store = &*self.host.store;
        let mut batch = Batch::new();
        let claims = claims::of_worker(store, &at.name)?;
        let ended = claims.iter().filter(|(_, claim)| claim.epoch <= at.epoch);
        ended.for_each(|(run, _)| claims::forget(&mut batch, &at.name, run));
        let calls = WorkerCall::of_worker(store, &at.name)?;
        let dead = calls.iter().filter(|(_, call)| call.epoch <= at.epoch);
        dead.for_each(|(number, _)| calls::forget(&mut batch, &at.name, *number));
        if !batch.is_empty() {
            store.commit(batch).await?;
        }
        let runs = self.remote().forget_worker(at);
        if !runs.is_empty() {
            tracing::warn!(worker = at.name, runs = runs.len(), "a worker is gone; its runs go on elsewhere");
        }
        runs.iter().for_each(|run| self.end_remote(run, at));
        Ok(())
    }

    /// Tells the watchers of a run what was stored after an event. Returns the number of the last one.
    fn tell_events(&self, run: &RunId, bus: &EventBus, after: u64) -> fault::Result<u64> {
        let mut last = after;
        loop {
            let events = self.events(run, last)?;
            if events.is_empty() {
                return Ok(last);
            }
            for event in events {
                last = event.number;
                bus.tell(BusMessage::Event(event));
            }
        }
    }

    /// The worker does not have the run any more. Where the run is not over, and waits for nobody, it goes on
    /// elsewhere, so this is no failure of it.
    pub(super) fn end_remote(&self, run: &RunId, at: &WorkerEpoch) {
        let removed = self.remote().remove(run, at);
        if let Some(RemoteRun { bus, .. }) = removed {
            self.index.changed(run);
            bus.tell(BusMessage::Gone { why: None });
            self.tell(run);
        }
    }
}

/// Makes rounds as long as the service lives.
async fn make_rounds(service: Weak<Service>) {
    let mut is_failing = false;
    loop {
        let Some(service) = service.upgrade() else { return };
        let made = service.look_at_workers().await;
        if let Err(error) = &made
            && !is_failing
        {
            tracing::warn!("the work of other servers cannot be looked at: {error:#}");
        }
        is_failing = made.is_err();
        let is_busy = !is_failing && !service.remote().workers().is_empty();
        drop(service);
        sleep(if is_busy { PAUSE } else { PAUSE_IDLE }).await;
    }
}

/// Gives runs that wait here to workers that have room, until the service ends.
async fn keep_spreading(service: Weak<Service>) {
    loop {
        sleep(SPREAD).await;
        let Some(service) = service.upgrade() else { return };
        if service.is_closing() {
            return;
        }
        if !service.queue.is_empty() {
            let _naming = service.naming.read().await;
            service.spread_runs().await;
        }
    }
}
