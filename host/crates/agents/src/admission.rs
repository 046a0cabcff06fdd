//! Admission of tasks, by the free capacity of the machine, which the host measures.

use longhaul_core::Name;

/// A task that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionRequest {
    /// The agent.
    pub agent: Name,
    /// The task's id.
    pub task: String,
    /// Kind of the agent's code: `python`, `javascript`, `wasm`, `ask` or `run`.
    pub kind: &'static str,
    /// The most memory that it may use, in bytes. An ask or a run has none of its own.
    pub memory_bytes_max: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// The task may start.
    Now,
    /// The task waits, and is asked about again.
    Wait {
        /// The missing room, as words that follow "waits for": `512 MiB of memory, of which 100 MiB are free`.
        reason: String,
        /// The least time before the next check, in milliseconds. The wait is at least 100.
        for_ms: u64,
    },
}

/// Says whether a task may start. It is asked before each attempt, and must answer at once.
pub trait Admission: Send + Sync + 'static {
    /// Decides whether the task may start now.
    fn admit(&self, wanted: &AdmissionRequest) -> AdmissionDecision;
}

/// Lets everything start.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn admit(&self, _wanted: &AdmissionRequest) -> AdmissionDecision {
        AdmissionDecision::Now
    }
}
