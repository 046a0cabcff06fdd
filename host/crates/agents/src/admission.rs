//! Whether a task may start now, by what the machine has free. Who measures that is elsewhere.

use longhaul_core::Name;

/// What is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which agent.
    pub agent: Name,
    /// For which task.
    pub task: String,
    /// What its code is: `python`, `javascript`, `wasm`, `ask` or `run`.
    pub kind: &'static str,
    /// The memory that it may come to use, in bytes. An ask or a run says nothing of its own.
    pub memory_bytes_max: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It may start.
    Now,
    /// It waits, and is asked about again.
    Wait {
        /// For what, in words that follow on "waits for": `512 MiB of memory, of which 100 MiB are free`.
        reason: String,
        /// Not asked about again before so many milliseconds. At least 100 are waited.
        for_ms: u64,
    },
}

/// Says whether a task may start. It is asked before each attempt, and must answer at once.
pub trait Admission: Send + Sync + 'static {
    /// Whether this may start now.
    fn admit(&self, wanted: &Wanted) -> Admitted;
}

/// Lets everything start.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn admit(&self, _wanted: &Wanted) -> Admitted {
        Admitted::Now
    }
}
