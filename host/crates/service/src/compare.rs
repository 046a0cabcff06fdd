//! Runs beside each other: their journals, events and files are read here, and compared by [`longhaul_time_travel`].
//!
//! Refuses a single run, a run beside itself, and more than are shown side by side. Runs of different projects are
//! compared, too, but for their files. Changes nothing.

use super::Service;
use longhaul_api::comparison::{COMPARED_RUNS_MAX, CompareRuns, FileComparison, RunComparison};
use longhaul_api::runs::RunRef;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, bail};
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_time_travel::{RunTrace, TracedRun};
use longhaul_worktree::{TreeDiff, UserRepository};

/// Entries of a journal that are read at once. An answer may have megabytes.
const ENTRIES: usize = 100;

/// Events that are read at once.
const EVENTS: usize = 1_000;

impl Service {
    /// Compares runs. Blocks while it reads.
    pub(super) fn compare(&self, request: &CompareRuns) -> fault::Result<RunComparison> {
        let stored = self.to_compare(request)?;
        let mut runs = Vec::with_capacity(stored.len());
        let mut ends = Vec::with_capacity(stored.len());
        for one in &stored {
            let mut trace = RunTrace::default();
            self.read_journals(&one.record, &mut trace)?;
            ends.push((&one.record, self.read_events(&one.record, &mut trace)?));
            runs.push(TracedRun { status: self.status(one)?, trace });
        }
        Ok(longhaul_time_travel::compare(runs, files(&ends)))
    }

    /// The runs that are meant, each once.
    fn to_compare(&self, CompareRuns { run, others }: &CompareRuns) -> fault::Result<Vec<StoredRun>> {
        let count = others.len() + 1;
        if count < 2 {
            bail!("a comparison is of two runs or more, and one is named; name another one of `longhaul runs`");
        }
        if count > COMPARED_RUNS_MAX {
            bail!("{count} runs are named, and at most {COMPARED_RUNS_MAX} are compared at once; leave some out");
        }
        let mut found = vec![self.find(run)?];
        for name in others {
            let other = self.find(&RunRef::Named(name.clone()))?;
            let id = &other.record.run;
            if found.iter().any(|known| known.record.run == *id) {
                bail!("run {id} is named twice, and a run does not differ from itself; name each run once");
            }
            found.push(other);
        }
        Ok(found)
    }

    fn read_journals(&self, record: &RunRecord, trace: &mut RunTrace) -> fault::Result<()> {
        let store = &*self.host.store;
        for invocation in self.invocations(&record.run, None)? {
            trace.begin(&invocation);
            let mut after = 0;
            loop {
                let entries = longhaul_journal::entries(store, &invocation, after, ENTRIES)?;
                let Some((last, _)) = entries.last() else { break };
                after = *last;
                entries.into_iter().for_each(|(number, entry)| trace.entry(number, entry));
            }
            if let Some(finished) = longhaul_journal::finished(store, &invocation)? {
                trace.result(finished);
            }
        }
        Ok(())
    }

    /// Reads verdicts, and the commit at which the run ended: its last one that no revert removed, or the one that it
    /// began at.
    fn read_events(&self, record: &RunRecord, trace: &mut RunTrace) -> fault::Result<String> {
        let mut commits = Vec::new();
        let mut after = 0;
        loop {
            let page = record::events_after(&*self.host.store, &record.run, after, EVENTS)?;
            let Some(last) = page.last() else { break };
            after = last.number;
            for event in page {
                match &event.event {
                    Event::Committed { commit, .. } => commits.push(commit.clone()),
                    Event::Reverted { left, .. } => commits.retain(|commit| !left.contains(commit)),
                    _ => trace.event(event.event),
                }
            }
        }
        Ok(commits.pop().unwrap_or_else(|| record.base.clone()))
    }
}

/// The files of each other run beside those of the first, each where it ended.
fn files(ends: &[(&RunRecord, String)]) -> Vec<FileComparison> {
    let Some((first, others)) = ends.split_first() else { return Vec::new() };
    let compared = |(run, other)| match diff(first, other) {
        Ok(diff) => FileComparison { run, diff: Some(diff), reason: None },
        Err(reason) => FileComparison { run, diff: None, reason: Some(reason) },
    };
    (1..).zip(others).map(compared).collect()
}

/// The files of one beside those of another, or the reason why they are not compared.
fn diff(first: &(&RunRecord, String), other: &(&RunRecord, String)) -> Result<TreeDiff, String> {
    let ((first, from), (other, to)) = (first, other);
    if let Some(ask) = [first, other].into_iter().find(|record| record.ask.is_some()) {
        return Err(format!("run {} is an ask, which commits no files", ask.run));
    }
    let (here, there) = (&first.directory, &other.directory);
    if here != there {
        return Err(format!("the runs are of two directories, `{}` and `{}`", here.display(), there.display()));
    }
    let project = UserRepository::open(here).map_err(|error| error.to_string())?;
    project.tree_diff(from, to).map_err(|error| error.to_string())
}
