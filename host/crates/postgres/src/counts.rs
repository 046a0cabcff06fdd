//! The counts of what a process did with its store since it opened it, for metrics. Counting waits for nobody.

use longhaul_core::store::{DurationCounts, StoreMetrics};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The bounds of the durations of commits, in milliseconds: from a server of this machine to one that was away for a
/// while.
const BOUNDS_MS: [u32; 12] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000];

/// A number that goes up.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts of a store. [`StoreMetrics`] documents what each of them counts.
#[derive(Debug, Default)]
pub(crate) struct StoreCounts {
    pub(crate) lease_renewals: Counter,
    pub(crate) lease_renewals_failed: Counter,
    pub(crate) commits_failed: Counter,
    pub(crate) fenced_writes: Counter,
    pub(crate) reconnects: Counter,
    /// Commits by the bound that they stayed within; the last ones are above all bounds.
    commits: [Counter; BOUNDS_MS.len() + 1],
    commit_micros: AtomicU64,
}

impl StoreCounts {
    /// Counts a batch that became durable.
    pub(crate) fn committed(&self, took: Duration) {
        let bucket = BOUNDS_MS.iter().position(|bound| took <= Duration::from_millis((*bound).into()));
        self.commits[bucket.unwrap_or(BOUNDS_MS.len())].add();
        self.commit_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The counts as metrics, without what only the store knows.
    pub(crate) fn metrics(&self) -> StoreMetrics {
        StoreMetrics {
            lease_renewals: self.lease_renewals.get(),
            lease_renewals_failed: self.lease_renewals_failed.get(),
            commits: self.durations(),
            commits_failed: self.commits_failed.get(),
            fenced_writes: self.fenced_writes.get(),
            reconnects: self.reconnects.get(),
            ..StoreMetrics::default()
        }
    }

    fn durations(&self) -> DurationCounts {
        DurationCounts {
            within_ms: BOUNDS_MS.into_iter().zip(self.commits.iter().map(Counter::get)).collect(),
            above: self.commits[BOUNDS_MS.len()].get(),
            total_micros: self.commit_micros.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_counts_under_the_first_bound_that_it_stays_within() {
        let counts = StoreCounts::default();
        for micros in [0, 1_000, 1_001, 30_000_000, 30_000_001] {
            counts.committed(Duration::from_micros(micros));
        }
        let commits = counts.metrics().commits;
        assert_eq!((commits.within_ms.len(), commits.count()), (BOUNDS_MS.len(), 5));
        let counted: Vec<_> = commits.within_ms.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(1, 2), (2, 1), (30_000, 1)]);
        assert_eq!((commits.above, commits.total_micros), (1, 60_002_002));
    }

    #[test]
    fn each_count_is_told_as_itself() {
        let counts = StoreCounts::default();
        let counters = [
            &counts.lease_renewals,
            &counts.lease_renewals_failed,
            &counts.commits_failed,
            &counts.fenced_writes,
            &counts.reconnects,
        ];
        for (times, counter) in (1..).zip(counters) {
            (0..times).for_each(|_| counter.add());
        }
        let told = counts.metrics();
        assert_eq!((told.lease_renewals, told.lease_renewals_failed, told.commits_failed), (1, 2, 3));
        assert_eq!((told.fenced_writes, told.reconnects, told.commits.count()), (4, 5, 0));
    }
}
