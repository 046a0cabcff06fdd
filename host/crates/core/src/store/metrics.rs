//! The figures of a store that works on a server, for metrics: what a process did with it since it opened it.
//!
//! It knows no names of metrics; who shows the figures gives them.

/// The figures of a store on a server, for which each process that writes there has a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreMetrics {
    /// The number of claims of the store, or of the seat of this process, its own included.
    pub epoch: u64,
    /// The time for which no other process may claim the store, in milliseconds.
    pub lease_left_ms: u64,
    /// Renewals of the lease.
    pub lease_renewals: u64,
    /// Attempts to renew it that failed.
    pub lease_renewals_failed: u64,
    /// Batches that became durable, by the time from their commit to its answer.
    pub commits: DurationCounts,
    /// Batches that failed otherwise than by a condition that does not hold.
    pub commits_failed: u64,
    /// Batches that wait for the server, or are on their way.
    pub commits_waiting: u64,
    /// Statements that the server refused since the lease had run out, or another process had claimed the store.
    pub fenced_writes: u64,
    /// Connections for commits that took the place of one that was broken.
    pub reconnects: u64,
}

/// Durations, counted by the bounds that they stay within.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// Bounds in milliseconds, in order, each with the number of durations up to it and above the bound before.
    pub within_ms: Vec<(u32, u64)>,
    /// The number of durations above the last bound.
    pub above: u64,
    /// All of them together, in microseconds.
    pub total_micros: u64,
}

impl DurationCounts {
    /// The number of all durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.within_ms.iter().map(|(_, count)| count).fold(self.above, |sum, count| sum.saturating_add(*count))
    }
}
