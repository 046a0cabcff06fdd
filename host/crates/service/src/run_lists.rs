//! Lists and numbers of all runs, from the table of runs in memory. The table is brought up to date first: only runs
//! that were written to since the last request are read, and of those at work only what a step of an agent writes.
//!
//! Whether a run is active, and its place in the queue, are those of the moment of the request.

use super::Service;
use super::run_table::{CachedRun, RunTable};
use longhaul_api::run_lists::{ListRunPage, RunCounts, RunPage};
use longhaul_api::runs::RunSummary;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_records::sums::{self, FreshSums, RunSums};
use longhaul_records::{approvals, commit_loss, ledger, record};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

/// The runs at work at one moment, which no row tells.
pub(super) struct RunActivity {
    pub(super) active: HashSet<RunId>,
    places: HashMap<RunId, u32>,
}

impl RunActivity {
    /// The summary of a run at this moment.
    pub(super) fn summary(&self, run: &CachedRun) -> RunSummary {
        let name = &run.summary.run;
        let (active, queue_place) = (self.active.contains(name), self.places.get(name).copied());
        RunSummary { active, queue_place, ..run.summary.clone() }
    }

    /// The summaries of runs at this moment.
    pub(super) fn summaries(&self, runs: &[Arc<CachedRun>]) -> Vec<RunSummary> {
        runs.iter().map(|run| self.summary(run)).collect()
    }
}

impl Service {
    /// An answer from all runs as they are now. Every other such question waits for it, so summaries are copied
    /// afterwards.
    pub(super) fn of_runs<A>(&self, answer: impl FnOnce(&RunTable) -> A) -> fault::Result<A> {
        let all = || Ok(record::heads(&*self.host.store)?.into_iter().map(|head| head.run).collect());
        self.index.query(all, |run, known| self.read_cached(run, known), answer)
    }

    /// The runs that are worked on now, and the queue of those here.
    pub(super) fn activity(&self) -> RunActivity {
        RunActivity { active: self.active().into_iter().collect(), places: self.queue.places() }
    }

    /// All runs, the oldest first.
    pub(super) fn all_runs(&self) -> fault::Result<Vec<RunSummary>> {
        let (runs, activity) = self.of_runs(|table| (table.oldest_first(), self.activity()))?;
        Ok(activity.summaries(&runs))
    }

    /// A page of the runs that match.
    pub(super) fn run_page(&self, request: &ListRunPage) -> fault::Result<RunPage> {
        let ((runs, total_count), activity) = self.of_runs(|table| {
            let activity = self.activity();
            (table.page(request, &activity.active), activity)
        })?;
        Ok(RunPage { runs: activity.summaries(&runs), total_count })
    }

    /// The numbers of runs, and of the calls that wait for a person.
    pub(super) fn run_counts(&self) -> fault::Result<RunCounts> {
        let (mut counts, asking) = self.of_runs(|table| {
            let RunActivity { active, places } = self.activity();
            let active = active.iter().filter(|run| table.has(run)).count();
            let queued = places.keys().filter(|run| table.has(run)).count();
            let counts = RunCounts { by_status: table.statuses(), active, queued, approvals_open: 0 };
            (counts, table.asking())
        })?;
        for run in asking {
            counts.approvals_open += self.awaited(&run)?.len();
        }
        Ok(counts)
    }

    /// The runs that should go on by themselves and that no process works on, the oldest first.
    pub(super) fn interrupted(&self) -> fault::Result<Vec<RunSummary>> {
        // The active ones before the table is read count too: one that ends meanwhile is in it as it was.
        let before = self.active();
        let (runs, activity) = self.of_runs(|table| (table.unfinished(), self.activity()))?;
        let was_or_is_active = |run: &RunId| before.contains(run) || activity.active.contains(run);
        let mut interrupted = Vec::new();
        for run in runs.iter().filter(|run| !was_or_is_active(&run.summary.run)) {
            // One of which commits may be lost waits for a person.
            if commit_loss::of_run(&*self.host.store, &run.summary.run)?.is_none() {
                interrupted.push(activity.summary(run));
            }
        }
        Ok(interrupted)
    }

    /// The entry of a run in the table. `known`: its entry before only events and ledger rows were written.
    fn read_cached(&self, run: &RunId, known: Option<&CachedRun>) -> fault::Result<Option<CachedRun>> {
        if let Some(known) = known {
            return self.read_progress(known).map(Some);
        }
        let store = &*self.host.store;
        let Some(stored) = record::load(store, run)? else { return Ok(None) };
        let (sums, summary) = (self.read_sums(run)?, self.summary(&stored)?);
        let has_work = !stored.state.lanes.is_empty();
        Ok(Some(CachedRun::new(summary, sums, approvals::has_any(store, run)?, has_work)))
    }

    fn read_progress(&self, known: &CachedRun) -> fault::Result<CachedRun> {
        let (run, store) = (&known.summary.run, &*self.host.store);
        let active = self.lock();
        let spent = ledger::total(store, run, active.contains_key(run) || self.remote().has(run))?;
        drop(active);
        let (wall_ms, last_ms) = (ledger::wall_ms(store, run)?, record::last_event_ms(store, run)?);
        let last_ms = last_ms.unwrap_or(known.summary.created_ms);
        let summary = RunSummary { spent, wall_ms, last_ms, ..known.summary.clone() };
        Ok(known.went_on(summary, self.read_sums(run)?))
    }

    fn read_sums(&self, run: &RunId) -> fault::Result<RunSums> {
        let FreshSums { sums, repair } = sums::read(&*self.host.store, run)?;
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner).extend(repair);
        Ok(sums)
    }

    /// Stores the sums of runs that were missing or behind.
    pub(super) async fn keep_repaired_sums(&self) {
        let repairs = std::mem::take(&mut *self.repairs.lock().unwrap_or_else(PoisonError::into_inner));
        if !repairs.is_empty() {
            sums::repair(&*self.host.store, repairs).await;
        }
    }
}
