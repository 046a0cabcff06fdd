//! Requests and responses about the runs of a data directory as a whole: pages of their list, their numbers, and those
//! that were interrupted. This module looks nothing up.

use crate::runs::RunSummary;
use longhaul_harness::RunStatus;
use serde::{Deserialize, Serialize};

/// List a page of the runs that match. A field that is none leaves out no run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListRunPage {
    /// The name of their project.
    pub project: Option<String>,
    /// Their statuses.
    pub statuses: Option<Vec<RunStatus>>,
    /// True: only those that a process works on now. False: only the others.
    pub active: Option<bool>,
    /// True: only those in the archive. False: only the others.
    pub archived: bool,
    /// The name of one of their agents.
    pub agent: Option<String>,
    /// A text in their name, title or project, whatever its case.
    pub search: Option<String>,
    /// The earliest time of their request, in milliseconds since 1970-01-01 UTC.
    pub after_ms: Option<u64>,
    /// The time before which they were requested, in milliseconds since 1970-01-01 UTC.
    pub before_ms: Option<u64>,
    /// The most runs of the page.
    pub limit: usize,
    /// The number of runs to skip.
    pub offset: usize,
}

/// A page of runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunPage {
    /// The runs, the newest first.
    pub runs: Vec<RunSummary>,
    /// The number of runs that match.
    pub total_count: usize,
}

/// Count the runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CountRuns {}

/// Numbers of runs, and of what they wait for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunCounts {
    /// The number of runs of each status that some have.
    pub by_status: Vec<(RunStatus, usize)>,
    /// The number of runs that a process works on now, or that wait for their turn.
    pub active: usize,
    /// The number of runs that wait for their turn.
    pub queued: usize,
    /// The number of calls that wait for an approval.
    pub approvals_open: usize,
}

/// List the runs that should go on and that no process works on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListInterrupted {}
