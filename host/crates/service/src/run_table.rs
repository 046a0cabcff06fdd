//! The runs of a data directory in memory, with the sums over all of them that lists, costs and metrics tell.
//!
//! A change of a run takes what it counted out of each sum and adds what it counts now, so that an answer costs what
//! changed and what it tells, however many runs there are. At each moment costs and counts are those of the runs that
//! are there, as if they had been added up anew. A list with a filter looks at each run, and copies those of its page.
//! This file reads no store, and does not know which runs are active.
//!
//! A run of one model, one agent and one day takes about 4 KB, half of it for its counts in metrics, and some 200 bytes
//! more for each further one. 10,000 runs take some 40 MB.

use super::cost_sums::{CostSums, UsageSum};
use longhaul_api::run_lists::ListRunPage;
use longhaul_api::runs::RunSummary;
use longhaul_core::RunId;
use longhaul_core::model::Usage;
use longhaul_harness::RunStatus;
use longhaul_records::index::IndexedRuns;
use longhaul_records::sums::RunSums;
use longhaul_telemetry::Totals;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// A cached run.
pub(super) struct CachedRun {
    /// Its summary; `active` and `queue_place` are as they were when it was read.
    pub(super) summary: RunSummary,
    /// The sums of its events.
    sums: RunSums,
    /// True when a person was ever asked about a call of it.
    has_approvals: bool,
    /// True when it has work, which may wait for an approval.
    has_work: bool,
    /// Its name, title and project in lower case.
    words: Arc<[String; 3]>,
}

impl CachedRun {
    pub(super) fn new(summary: RunSummary, mut sums: RunSums, has_approvals: bool, has_work: bool) -> Self {
        sums.spent.shrink_to_fit();
        let words = [summary.run.as_str(), summary.title.as_str(), summary.project.as_str()].map(str::to_lowercase);
        Self { summary, sums, has_approvals, has_work, words: Arc::new(words) }
    }

    /// The run after more events and usage. The rest of it is as before.
    pub(super) fn went_on(&self, summary: RunSummary, mut sums: RunSums) -> Self {
        sums.spent.shrink_to_fit();
        let (has_approvals, has_work, words) = (self.has_approvals, self.has_work, Arc::clone(&self.words));
        Self { summary, sums, has_approvals, has_work, words }
    }

    fn age(&self) -> Age {
        (self.summary.created_ms, self.summary.run.clone())
    }

    /// True when it should go on unless somebody works on it.
    fn is_unfinished(&self) -> bool {
        matches!(self.summary.status, RunStatus::New | RunStatus::Planning | RunStatus::Working)
            || self.summary.wakes_at_ms.is_some()
    }

    /// True when a call of it may wait for an approval.
    fn may_ask(&self) -> bool {
        use RunStatus::{Abandoned, Completed, Failed};
        self.has_approvals && self.has_work && !matches!(self.summary.status, Completed | Failed | Abandoned)
    }

    fn spent(&self) -> Usage {
        self.summary.spent.usage
    }
}

/// The time of a run's request, and its name for two of one millisecond.
type Age = (u64, RunId);

/// Runs by age.
type Runs = BTreeMap<Age, Arc<CachedRun>>;

/// Some runs, with what they cost.
#[derive(Default)]
pub(super) struct RunGroup {
    runs: Runs,
    costs: CostSums,
}

impl RunGroup {
    fn add(&mut self, run: &Arc<CachedRun>) {
        self.costs.add(run.spent(), &run.sums.spent);
        self.runs.insert(run.age(), Arc::clone(run));
    }

    fn remove(&mut self, run: &CachedRun) {
        self.costs.remove(run.spent(), &run.sums.spent);
        self.runs.remove(&run.age());
    }

    /// The number of runs.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// The newest run first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Arc<CachedRun>> {
        self.runs.values().rev()
    }

    /// The costs of all runs.
    pub(super) fn costs(&self) -> &CostSums {
        &self.costs
    }
}

/// The runs of the project in a directory, without asks.
pub(super) struct DirectoryRuns {
    pub(super) directory: PathBuf,
    pub(super) oldest: Arc<CachedRun>,
    pub(super) newest: Arc<CachedRun>,
    pub(super) count: usize,
}

/// All runs.
#[derive(Default)]
pub(super) struct RunTable {
    by_name: HashMap<RunId, Arc<CachedRun>>,
    all: RunGroup,
    projects: BTreeMap<String, RunGroup>,
    /// Those that are no asks.
    directories: BTreeMap<PathBuf, Runs>,
    /// Those that a person was ever asked about.
    asked: Runs,
    unfinished: Runs,
    statuses: HashMap<RunStatus, usize>,
    archived: usize,
    /// Counts for metrics, which only grow: what a run had stays when it is removed.
    totals: Totals,
}

impl IndexedRuns for RunTable {
    type Value = CachedRun;

    fn get(&self, run: &RunId) -> Option<&CachedRun> {
        self.by_name.get(run).map(|known| &**known)
    }

    fn set(&mut self, run: &RunId, value: Option<CachedRun>) {
        let before = self.by_name.remove(run);
        if let Some(before) = &before {
            self.count_out(before);
        }
        let Some(now) = value.map(Arc::new) else { return };
        let none = Totals::default();
        let counted = before.as_ref().map_or(&none, |before| &before.sums.totals);
        self.totals.grow(counted, &now.sums.totals);
        self.count_in(&now);
        self.by_name.insert(run.clone(), now);
    }
}

impl RunTable {
    fn count_in(&mut self, run: &Arc<CachedRun>) {
        let RunSummary { project, directory, status, is_ask, archived_ms, .. } = &run.summary;
        self.all.add(run);
        self.projects.entry(project.clone()).or_default().add(run);
        *self.statuses.entry(*status).or_default() += 1;
        self.archived += usize::from(archived_ms.is_some());
        if !is_ask {
            self.directories.entry(directory.clone()).or_default().insert(run.age(), Arc::clone(run));
        }
        if run.has_approvals {
            self.asked.insert(run.age(), Arc::clone(run));
        }
        if run.is_unfinished() {
            self.unfinished.insert(run.age(), Arc::clone(run));
        }
    }

    fn count_out(&mut self, run: &CachedRun) {
        let RunSummary { project, directory, status, archived_ms, .. } = &run.summary;
        let age = run.age();
        self.all.remove(run);
        if let Some(group) = self.projects.get_mut(project) {
            group.remove(run);
            if group.runs.is_empty() {
                self.projects.remove(project);
            }
        }
        if let Some(runs) = self.directories.get_mut(directory) {
            runs.remove(&age);
            if runs.is_empty() {
                self.directories.remove(directory);
            }
        }
        if let Some(count) = self.statuses.get_mut(status) {
            *count -= 1;
        }
        self.archived -= usize::from(archived_ms.is_some());
        self.asked.remove(&age);
        self.unfinished.remove(&age);
    }

    /// All runs, the oldest first.
    pub(super) fn oldest_first(&self) -> Vec<Arc<CachedRun>> {
        self.all.runs.values().cloned().collect()
    }

    /// The runs of a project, or all runs. None: there are none.
    pub(super) fn group(&self, project: Option<&str>) -> Option<&RunGroup> {
        project.map_or(Some(&self.all), |project| self.projects.get(project))
    }

    /// Each project, or the one of a name, with the number of its runs and what they cost.
    pub(super) fn projects<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a str, u64, &'a UsageSum)> {
        let found = self.projects.iter().filter(move |(name, _)| wanted.is_none_or(|wanted| wanted == name.as_str()));
        found.map(|(name, group)| (name.as_str(), group.len() as u64, group.costs.sum()))
    }

    /// The directories of projects, with their runs.
    pub(super) fn directories(&self) -> Vec<DirectoryRuns> {
        let found = self.directories.iter().filter_map(|(directory, runs)| {
            let (oldest, newest) = (runs.values().next()?, runs.values().next_back()?);
            let (directory, oldest, newest) = (directory.clone(), Arc::clone(oldest), Arc::clone(newest));
            Some(DirectoryRuns { directory, oldest, newest, count: runs.len() })
        });
        found.collect()
    }

    /// The runs that a person was ever asked about, the oldest first.
    pub(super) fn asked(&self) -> Vec<RunId> {
        self.asked.values().map(|run| run.summary.run.clone()).collect()
    }

    /// The runs whose calls may wait for an approval.
    pub(super) fn asking(&self) -> Vec<RunId> {
        self.asked.values().filter(|run| run.may_ask()).map(|run| run.summary.run.clone()).collect()
    }

    /// The runs that should go on, unless somebody works on them, the oldest first.
    pub(super) fn unfinished(&self) -> Vec<Arc<CachedRun>> {
        self.unfinished.values().cloned().collect()
    }

    /// The number of runs of each status.
    pub(super) fn statuses(&self) -> Vec<(RunStatus, usize)> {
        self.statuses.iter().map(|(status, count)| (*status, *count)).collect()
    }

    /// True when there is such a run.
    pub(super) fn has(&self, run: &RunId) -> bool {
        self.by_name.contains_key(run)
    }

    /// The counts of all events, as Prometheus text.
    pub(super) fn totals_text(&self) -> String {
        self.totals.text()
    }

    /// The runs of a page, the newest first, and the number of runs that match.
    pub(super) fn page(&self, request: &ListRunPage, active: &HashSet<RunId>) -> (Vec<Arc<CachedRun>>, usize) {
        let filter = RunFilter { request, search: request.search.as_deref().map(str::to_lowercase), active };
        let total = filter.is_by_archive_alone().then(|| self.of_archive(request.archived));
        let (mut page, mut matching) = (Vec::new(), 0);
        for run in self.candidates(request, active) {
            if total.is_some() && page.len() >= request.limit {
                break;
            }
            if filter.takes(run) {
                if matching >= request.offset && page.len() < request.limit {
                    page.push(Arc::clone(run));
                }
                matching += 1;
            }
        }
        (page, total.unwrap_or(matching))
    }

    fn of_archive(&self, archived: bool) -> usize {
        if archived { self.archived } else { self.all.len() - self.archived }
    }

    /// Runs, the newest first, among which are all that match.
    fn candidates<'a>(
        &'a self,
        request: &ListRunPage,
        active: &HashSet<RunId>,
    ) -> Box<dyn Iterator<Item = &'a Arc<CachedRun>> + 'a> {
        if request.active == Some(true) {
            let mut found: Vec<_> = active.iter().filter_map(|run| self.by_name.get(run)).collect();
            found.sort_by_key(|run| std::cmp::Reverse(run.age()));
            return Box::new(found.into_iter());
        }
        match self.group(request.project.as_deref()) {
            Some(group) => Box::new(group.newest_first()),
            None => Box::new(std::iter::empty()),
        }
    }
}

/// The filter of a list.
struct RunFilter<'a> {
    request: &'a ListRunPage,
    /// The text that is searched for, in lower case.
    search: Option<String>,
    active: &'a HashSet<RunId>,
}

impl RunFilter<'_> {
    /// True when it leaves out nothing but the runs inside or outside the archive.
    fn is_by_archive_alone(&self) -> bool {
        let ListRunPage { project, statuses, active, agent, search, after_ms, before_ms, .. } = self.request;
        let texts = [project, agent, search].into_iter().all(Option::is_none);
        texts && statuses.is_none() && active.is_none() && after_ms.is_none() && before_ms.is_none()
    }

    fn takes(&self, run: &CachedRun) -> bool {
        let (of, summary) = (self.request, &run.summary);
        of.archived == summary.archived_ms.is_some()
            && of.project.as_ref().is_none_or(|project| *project == summary.project)
            && of.after_ms.is_none_or(|after_ms| summary.created_ms >= after_ms)
            && of.before_ms.is_none_or(|before_ms| summary.created_ms < before_ms)
            && of.statuses.as_ref().is_none_or(|statuses| statuses.contains(&summary.status))
            && of.active.is_none_or(|active| active == self.active.contains(&summary.run))
            && of.agent.as_ref().is_none_or(|agent| summary.agents.contains(agent))
            && self.search.as_ref().is_none_or(|text| run.words.iter().any(|word| word.contains(text.as_str())))
    }
}

#[cfg(test)]
pub(super) mod tests;
