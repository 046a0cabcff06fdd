//! Requests and responses about the servers that work on runs of one store. This module asks no server.

use longhaul_core::RunId;
use serde::{Deserialize, Serialize};

/// List the servers that work on runs of the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListWorkers {}

/// The servers that work on runs of the store, and the runs that wait for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerList {
    /// The servers by name. One that has no more runs and does not renew its lease any more may be left out.
    pub workers: Vec<WorkerView>,
    /// The runs that wait because no server has their labels or a free place, the oldest first.
    #[serde(default)]
    pub runs_waiting: Vec<RunId>,
}

/// A server that works on runs of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    /// The name: the id of its data directory.
    pub name: String,
    /// The name of its machine.
    pub host: String,
    /// The process id. 0: unknown.
    pub process: u32,
    /// The version of its program.
    pub version: String,
    /// The labels of its `[worker]`, which a run can require.
    pub labels: Vec<String>,
    /// The most runs that it works on at once.
    pub runs_max: u32,
    /// The runs that it has, by name.
    pub runs: Vec<RunId>,
    /// True for the server that gives runs to the others, and answers what they do not.
    pub is_leader: bool,
    /// True while it renews its lease.
    pub is_alive: bool,
    /// The time until its lease ends, in milliseconds. 0: it has ended, and its runs are given to others.
    pub lease_left_ms: u64,
    /// The number of its commits since it took its seat.
    pub commits: u64,
    /// The address at which it forwards or answers requests. None: its `server.toml` names none.
    pub url: Option<String>,
}
