//! The exporters of telemetry in use, and the sums for Prometheus. Sends and counts nothing; `telemetry.rs` does.

use longhaul_core::RunId;
use longhaul_records::sums::RunSums;
use longhaul_telemetry::{Exporter, TelemetryConfig, Totals};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The exporters in use, and the tasks that feed them.
#[derive(Default)]
pub(super) struct TelemetryReporter {
    /// One for each table that is in use: projects may have collectors of their own.
    pub(super) exporters: Vec<(TelemetryConfig, Arc<Exporter>)>,
    pub(super) tasks: Vec<JoinHandle<()>>,
}

/// The sums of all runs so far.
#[derive(Default)]
pub(super) struct EventTotals {
    pub(super) totals: Totals,
    /// The sums of each run that is there, as they were counted last.
    counted: HashMap<RunId, Arc<RunSums>>,
}

impl EventTotals {
    /// Adds what the sums of these runs, which are all that there are, have more than when they were counted last.
    pub(super) fn count(&mut self, runs: impl Iterator<Item = (RunId, Arc<RunSums>)>) {
        let mut counted = HashMap::with_capacity(self.counted.len());
        let none = Totals::default();
        for (run, sums) in runs {
            let before = self.counted.get(&run);
            if before.is_none_or(|before| !Arc::ptr_eq(before, &sums)) {
                self.totals.grow(before.map_or(&none, |before| &before.totals), &sums.totals);
            }
            counted.insert(run, sums);
        }
        // Runs that are gone are not kept here.
        self.counted = counted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::event::{Event, RunEvent};

    fn sums(run: &RunId, events: u64) -> Arc<RunSums> {
        let mut sums = RunSums::default();
        for number in 1..=events {
            let event = Event::RunStarted { project: "p".into(), branch: "b".into() };
            sums.add(&RunEvent { run: run.clone(), number, at_ms: 0, event });
        }
        Arc::new(sums)
    }

    #[test]
    fn each_event_counts_once_and_stays_counted_when_its_run_is_gone() {
        let (one, two) = (RunId::from_text("r-1"), RunId::from_text("r-2"));
        let mut totals = EventTotals::default();
        let mut look = |runs: Vec<(RunId, Arc<RunSums>)>| {
            totals.count(runs.into_iter());
            let text = totals.totals.text();
            let line = text.lines().find_map(|line| line.strip_prefix("longhaul_runs_started_total "));
            (line.map(str::to_owned), totals.counted.len())
        };
        let first = sums(&one, 2);
        assert_eq!(look(vec![(one.clone(), Arc::clone(&first))]), (Some("2".into()), 1));
        assert_eq!(look(vec![(one.clone(), first)]), (Some("2".into()), 1));
        assert_eq!(look(vec![(one.clone(), sums(&one, 5)), (two.clone(), sums(&two, 1))]), (Some("6".into()), 2));
        assert_eq!(
            look(vec![(two.clone(), sums(&two, 1))]),
            (Some("6".into()), 1),
            "nothing is kept of a run that is gone"
        );
    }
}
