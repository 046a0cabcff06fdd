//! Runs beside each other: their journals, events and files are read here, and compared by [`longhaul_time_travel`].
//!
//! Refuses a single run, a run beside itself, and more than are shown side by side. Runs of different projects are
//! compared, too, but for their files. The past that a fork shares with another run is its own. Changes nothing.

use super::Service;
use longhaul_api::comparison::{COMPARED_RUNS_MAX, CompareRuns, FileComparison, RunComparison};
use longhaul_api::runs::RunRef;
use longhaul_core::event::Event;
use longhaul_core::fault::{self, bail};
use longhaul_core::{InvocationId, RunId};
use longhaul_records::record::{self, RunRecord, StoredRun};
use longhaul_time_travel::{RunTrace, TracedRun};
use longhaul_worktree::{TreeDiff, UserRepository};
use std::collections::BTreeSet;

/// Entries of a journal that are read at once. An answer may have megabytes.
const ENTRIES: usize = 100;

/// Events that are read at once.
const EVENTS: usize = 1_000;

/// Runs of a chain of forks that are read, the compared one included.
const LINEAGE_MAX: usize = 64;

impl Service {
    /// Compares runs. Blocks while it reads.
    pub(super) fn compare(&self, request: &CompareRuns) -> fault::Result<RunComparison> {
        let stored = self.to_compare(request)?;
        let mut runs = Vec::with_capacity(stored.len());
        let mut ends = Vec::with_capacity(stored.len());
        for one in &stored {
            let mut trace = RunTrace::default();
            let lineage = self.lineage(&one.record.run)?;
            self.read_journals(&lineage, &mut trace)?;
            ends.push((&one.record, self.read_events(&one.record, &lineage, &mut trace)?));
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

    /// Reads the journals of the runs that a run was forked from, each up to the point, and then its own.
    fn read_journals(&self, lineage: &[Past], trace: &mut RunTrace) -> fault::Result<()> {
        let Some((own, before)) = lineage.split_last() else { return Ok(()) };
        let own = self.invocations(&own.run, None)?;
        let keys: BTreeSet<String> = own.iter().map(key).collect();
        for past in before {
            let ended = self.invocations_until(past)?;
            // Work in flight at the point is the fork's own, whose journal has the shared entries.
            self.read_each(ended.into_iter().filter(|invocation| !keys.contains(&key(invocation))), trace)?;
        }
        self.read_each(own, trace)
    }

    /// The invocations of a run that had ended at the end of a past.
    fn invocations_until(&self, past: &Past) -> fault::Result<Vec<InvocationId>> {
        let mut ended = Vec::new();
        for invocation in self.invocations(&past.run, None)? {
            let finished = longhaul_journal::finished(&*self.host.store, &invocation)?;
            if finished.is_some_and(|finished| past.at_ms.is_none_or(|until| finished.at_ms <= until)) {
                ended.push(invocation);
            }
        }
        Ok(ended)
    }

    fn read_each(
        &self,
        invocations: impl IntoIterator<Item = InvocationId>,
        trace: &mut RunTrace,
    ) -> fault::Result<()> {
        let store = &*self.host.store;
        for invocation in invocations {
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
    fn read_events(&self, record: &RunRecord, lineage: &[Past], trace: &mut RunTrace) -> fault::Result<String> {
        let mut commits = Vec::new();
        for past in lineage {
            self.read_events_until(past, &mut commits, trace)?;
        }
        Ok(commits.pop().unwrap_or_else(|| record.base.clone()))
    }

    fn read_events_until(&self, past: &Past, commits: &mut Vec<String>, trace: &mut RunTrace) -> fault::Result<()> {
        let mut after = 0;
        loop {
            let page = record::events_after(&*self.host.store, &past.run, after, EVENTS)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.number;
            for event in page {
                if past.event.is_some_and(|until| event.number > until) {
                    return Ok(());
                }
                match &event.event {
                    Event::Committed { commit, .. } => commits.push(commit.clone()),
                    Event::Reverted { left, .. } => commits.retain(|commit| !left.contains(commit)),
                    _ => trace.event(event.event),
                }
            }
        }
    }

    /// The past of a run: the runs that it was forked from, the first one first, and itself. A run that was deleted
    /// since, and what was before it, is left out.
    fn lineage(&self, run: &RunId) -> fault::Result<Vec<Past>> {
        let store = &*self.host.store;
        let mut lineage = vec![Past { run: run.clone(), event: None, at_ms: None }];
        while let Some(fork) = lineage.last().filter(|_| lineage.len() < LINEAGE_MAX)
            && let Some(from) = record::forked(store, &fork.run)?
            && lineage.iter().all(|known| known.run != from.parent)
        {
            lineage.push(Past { run: from.parent, event: Some(from.event), at_ms: Some(from.at_ms) });
        }
        lineage.reverse();
        Ok(lineage)
    }
}

/// A run up to a point; none: to its end.
struct Past {
    run: RunId,
    event: Option<u64>,
    at_ms: Option<u64>,
}

/// The name of an invocation within its run.
fn key(invocation: &InvocationId) -> String {
    let text = invocation.as_str();
    text.split_once('/').map_or(text, |(_, key)| key).to_owned()
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
