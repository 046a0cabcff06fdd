//! The servers that share the store of a service, as this one knows itself among them, and what a run meets that none of
//! them takes. It asks no server and reads no store.

use super::remote_runs::RemoteRuns;
use longhaul_config::server::WorkerSettings;
use longhaul_core::RunId;
use longhaul_core::capacity::{AdmissionVerdict, Capacity, Need};
use longhaul_core::store::Seats;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// The servers that share the store of a service, this one among them.
pub struct Cluster {
    /// The seats of workers.
    pub seats: Arc<dyn Seats>,
    /// The id of the data directory of this server.
    pub name: String,
    /// The name of its machine.
    pub host: String,
    /// Its address for other servers.
    pub url: Option<String>,
    /// `[worker]` of its settings; none: it works on runs while it leads, and at no other time.
    pub settings: Mutex<Option<WorkerSettings>>,
    /// The number of its claim on its seat, while it is a worker. None: it leads from the beginning.
    pub epoch: Option<u64>,
}

impl Cluster {
    /// The labels of this server.
    pub(super) fn labels(&self) -> BTreeSet<String> {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        settings.iter().flat_map(|settings| settings.labels.iter().cloned()).collect()
    }

    /// The number of runs that it works on at once; `of_machine` where the settings name none.
    pub(super) fn runs_max(&self, of_machine: u32) -> u32 {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        settings.as_ref().and_then(|settings| settings.runs_max).unwrap_or(of_machine)
    }
}

/// The room of a machine, with the number of runs of `[worker]`, and the runs that workers have.
pub(super) struct ServerCapacity {
    pub(super) machine: Arc<dyn Capacity>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) remote: Arc<Mutex<RemoteRuns>>,
}

impl Capacity for ServerCapacity {
    fn admit(&self, who: &str, begins: bool, need: Need) -> AdmissionVerdict {
        self.machine.admit(who, begins, need)
    }

    fn runs_max(&self) -> u32 {
        self.cluster.runs_max(self.machine.runs_max())
    }

    fn runs_elsewhere(&self, project: &str) -> u32 {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner).count_of(project)
    }
}

/// Whether a service leads. One without other servers does.
pub(super) struct Leading(pub(super) AtomicBool);

impl Leading {
    pub(super) fn of(cluster: Option<&Cluster>) -> Self {
        Self(AtomicBool::new(cluster.is_none_or(|cluster| cluster.epoch.is_none())))
    }
}

/// No server can take a run now.
#[derive(Debug, thiserror::Error)]
pub enum NoServer {
    /// None that has its labels.
    #[error(
        "run {run} needs a server with the labels {}, and none that has them can take it; it goes on by itself once one \
         can (`longhaul workers` shows them){}", .labels.join(", "), .refusals.concat()
    )]
    Labels {
        /// The run.
        run: RunId,
        /// The labels that it needs.
        labels: Vec<String>,
        /// The reasons of servers that could not take it a moment ago, each behind a separator and its name.
        refusals: Vec<String>,
    },
    /// None may, since as many runs of its project work. The server that leads has not the labels that it needs, so the
    /// run does not wait in the queue there.
    #[error(
        "run {run} waits for other runs of project `{project}`, of which runs_at_once_max under [project] of \
         longhaul.toml allows {max} at once, on all servers together; it goes on by itself once it may"
    )]
    Capped {
        /// The run.
        run: RunId,
        /// The name of its project.
        project: String,
        /// The cap.
        max: u32,
    },
}

/// A worker got the run while a request about it waited for its turn.
#[derive(Debug, thiserror::Error)]
#[error("another server has got run {0} just now; try again")]
pub(crate) struct RunMoved(pub(crate) RunId);
