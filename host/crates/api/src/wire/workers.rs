//! The servers that work on runs of one store.

use crate::workers::{WorkerList, WorkerView};
use serde::Serialize;

/// The servers that work on runs, and the runs that wait for one.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Workers {
    /// The servers, by name.
    pub items: Vec<Worker>,
    /// Runs that wait because no server has their labels or a free place, the oldest first.
    pub runs_waiting: Vec<String>,
}

/// A server that works on runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Worker {
    /// Its name: the id of its data directory.
    pub name: String,
    /// The name of its machine.
    pub host: String,
    /// Its process id; null: unknown.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub process: Option<u32>,
    /// The version of its program.
    pub version: String,
    /// Its labels, which a run can require.
    pub labels: Vec<String>,
    /// Most runs that it works on at once.
    pub runs_max: u32,
    /// The runs that it has.
    pub runs: Vec<String>,
    /// True for the server that gives runs to the others.
    pub is_leader: bool,
    /// True while it renews its lease.
    pub is_alive: bool,
    /// Time until its lease ends, in milliseconds. 0: it has ended, and its runs are given to others.
    pub lease_left_ms: u64,
    /// Number of its commits since it took its seat.
    pub commits: u64,
    /// Its address for requests; null: its `server.toml` names none.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub url: Option<String>,
}

impl From<WorkerList> for Workers {
    fn from(WorkerList { workers, runs_waiting }: WorkerList) -> Self {
        let runs_waiting = runs_waiting.iter().map(ToString::to_string).collect();
        Self { items: workers.into_iter().map(Into::into).collect(), runs_waiting }
    }
}

impl From<WorkerView> for Worker {
    fn from(inner: WorkerView) -> Self {
        Self {
            name: inner.name,
            host: inner.host,
            process: (inner.process != 0).then_some(inner.process),
            version: inner.version,
            labels: inner.labels,
            runs_max: inner.runs_max,
            runs: inner.runs.iter().map(ToString::to_string).collect(),
            is_leader: inner.is_leader,
            is_alive: inner.is_alive,
            lease_left_ms: inner.lease_left_ms,
            commits: inner.commits,
            url: inner.url,
        }
    }
}
