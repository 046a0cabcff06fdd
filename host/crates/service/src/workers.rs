//! Work on runs by several servers with one database.
//!
//! One server leads: it owns the store, begins runs, and gives some of them to workers, which are servers that stand
//! by. Both are this same service. A worker carries out what the leader asks it to, and nothing that is the leader's:
//! it begins no run, recovers none, remembers none, sends no notification and runs no schedule.
//!
//! | file | holds |
//! |---|---|
//! | `workers/leader.rs` | the calls of the leader, and the runs that it gives away |
//! | `workers/rounds.rs` | the rounds of the leader: what workers did, and which of them are gone |
//! | `workers/worker.rs` | the work of a worker |

mod leader;
mod rounds;
mod worker;

pub(super) use leader::Chosen;

use super::cluster::{Cluster, ServerCapacity};
use super::{Service, ServiceOperations};
use longhaul_api::operations::WorkerOperations;
use longhaul_api::workers::{ListWorkers, WorkerList, WorkerView};
use longhaul_config::server::WorkerSettings;
use longhaul_core::RunId;
use longhaul_core::capacity::Capacity;
use longhaul_core::fault;
use longhaul_workers::claims;
use longhaul_workers::worker::WorkerRecord;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Service {
    /// True for the server that has everything that is no worker's. It stays so.
    pub fn leads(&self) -> bool {
        self.leading.0.load(Ordering::Acquire)
    }

    /// Takes over labels and the number of runs of changed settings.
    pub fn set_worker(&self, settings: Option<WorkerSettings>) {
        if let Some(cluster) = &self.cluster {
            *cluster.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        }
    }

    /// The room of this server for the work of runs.
    pub(super) fn capacity(&self) -> Arc<dyn Capacity> {
        match &self.cluster {
            None => self.resources.clone(),
            Some(cluster) => Arc::new(ServerCapacity {
                machine: self.resources.clone(),
                cluster: Arc::clone(cluster),
                remote: Arc::clone(&self.remote),
            }),
        }
    }

    /// The number of runs that this server works on at once.
    fn runs_max(&self, cluster: &Cluster) -> u32 {
        cluster.runs_max(self.resources.runs_max())
    }

    /// The number of runs of a project that are worked on here.
    fn count_here(&self, project: &str) -> u32 {
        let count = self.lock().values().filter(|active| active.project == project).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The record of this server, as its row has it.
    fn own_record(&self, cluster: &Cluster, epoch: u64) -> WorkerRecord {
        WorkerRecord {
            epoch,
            host: cluster.host.clone(),
            process: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: cluster.labels(),
            // One that ends gets no more runs.
            runs_max: if self.is_closing() { 0 } else { self.runs_max(cluster) },
            url: cluster.url.clone(),
        }
    }

    /// This server and the workers, as far as there are any.
    pub(super) fn worker_list(&self) -> fault::Result<WorkerList> {
        let Some(cluster) = &self.cluster else { return Ok(WorkerList::default()) };
        let store = &*self.host.store;
        let records = WorkerRecord::all(store)?;
        let mut workers = vec![self.own_view(cluster)];
        for seat in cluster.seats.seats()? {
            let Some(record) = records.get(&seat.name).filter(|_| seat.name != cluster.name) else { continue };
            // A server that leads now has no seat, and its record is of an earlier time.
            let is_alive = seat.left_ms > 0 && record.epoch == seat.epoch;
            let runs: Vec<RunId> = claims::of_worker(store, &seat.name)?.into_keys().collect();
            workers.push(WorkerView {
                name: seat.name,
                host: record.host.clone(),
                process: record.process,
                version: record.version.clone(),
                labels: record.labels.iter().cloned().collect(),
                runs_max: record.runs_max,
                runs,
                is_leader: false,
                is_alive,
                lease_left_ms: seat.left_ms,
                commits: seat.commits,
                url: record.url.clone(),
            });
        }
        workers.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(WorkerList { workers, runs_waiting: self.waiting_runs()? })
    }

    /// The runs that no server could take when it was last tried, the oldest first. One that was given up waits no
    /// more.
    fn waiting_runs(&self) -> fault::Result<Vec<RunId>> {
        let waiting = self.remote().waiting();
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.interrupted()?.into_iter().map(|summary| summary.run).filter(|run| waiting.contains(run)).collect())
    }

    fn own_view(&self, cluster: &Cluster) -> WorkerView {
        let waiting = self.queue.places();
        let WorkerRecord { host, process, version, labels, runs_max, url, .. } = self.own_record(cluster, 0);
        WorkerView {
            name: cluster.name.clone(),
            host,
            process,
            version,
            labels: labels.into_iter().collect(),
            runs_max,
            runs: self.active_here().into_iter().filter(|run| !waiting.contains_key(run)).collect(),
            is_leader: true,
            is_alive: true,
            lease_left_ms: self.host.store.lease_left_ms().unwrap_or(0),
            commits: self.host.store.metrics().map_or(0, |metrics| metrics.commits.count()),
            url,
        }
    }
}

#[async_trait::async_trait]
impl WorkerOperations for ServiceOperations<'_> {
    async fn workers(&self, ListWorkers {}: ListWorkers) -> fault::Result<WorkerList> {
        self.0.worker_list()
    }
}
