//! A run as it was looked at: its state, journals, events and commits, and the work that it has finished.

use longhaul_api::journal::InvocationEntries;
use longhaul_api::runs::Status;
use longhaul_core::event::RunEvent;
use longhaul_core::journal::JournalEntry;
use longhaul_core::{Digest, InvocationId};
use longhaul_worktree::BranchCommit;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The trailer with the effect of a commit: a commit that was made twice has the same twice.
const EFFECT: &str = "Longhaul-Effect: ";

/// A run as it was looked at.
#[derive(Clone, Debug)]
pub struct RunObservation {
    /// Its state, with its features.
    pub status: Status,
    /// The journals of its invocations, each with all its entries, in the order of their start.
    pub journals: Vec<InvocationEntries>,
    /// Its events, in their order.
    pub events: Vec<RunEvent>,
    /// The commits of its branch, oldest first.
    pub commits: Vec<BranchCommit>,
}

/// An entry of a journal, in every run of the same project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryKey {
    /// The invocation, without its run.
    pub invocation: String,
    /// The number of the entry.
    pub entry: u32,
}

impl fmt::Display for EntryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entry {}", self.invocation, self.entry)
    }
}

impl RunObservation {
    /// The id of the run.
    #[must_use]
    pub fn run(&self) -> String {
        self.status.summary.run.to_string()
    }

    /// All entries, with the invocation of each.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (EntryKey, &InvocationId, &JournalEntry)> {
        self.journals.iter().flat_map(|InvocationEntries { invocation, entries, .. }| {
            entries.iter().map(move |(number, entry)| {
                (EntryKey { invocation: place_of(invocation), entry: *number }, invocation, entry)
            })
        })
    }
}

/// An invocation without its run.
pub(crate) fn place_of(invocation: &InvocationId) -> String {
    let text = invocation.as_str();
    text.split_once('/').map_or(text, |(_, place)| place).to_owned()
}

/// The work that a run has finished: what a later look must find unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedWork {
    /// Answered entries, each with what another execution would change.
    entries: BTreeMap<EntryKey, String>,
    /// Ended invocations, likewise.
    invocations: BTreeMap<String, String>,
    /// The commits with their effects, oldest first.
    commits: Vec<(String, Option<String>)>,
}

impl FinishedWork {
    /// The finished work of a run.
    #[must_use]
    pub fn of(observed: &RunObservation) -> Self {
        let answered = observed.entries().filter_map(|(key, _, entry)| {
            let answer = entry.answered.as_ref()?;
            let digest = Digest::of(answer.answer.as_bytes());
            Some((key, format!("{} {} {} {digest}", entry.asked.attempt, entry.asked.at_ms, answer.at_ms)))
        });
        let ended = observed.journals.iter().filter_map(|journal| {
            let end = journal.finished.as_ref()?;
            let digest = Digest::of(end.result.as_bytes());
            Some((place_of(&journal.invocation), format!("{} {} {digest}", end.at_ms, end.fuel_used)))
        });
        let effect = |commit: &BranchCommit| {
            commit.message.lines().rev().find_map(|line| line.strip_prefix(EFFECT)).map(str::to_owned)
        };
        Self {
            entries: answered.collect(),
            invocations: ended.collect(),
            commits: observed.commits.iter().map(|commit| (commit.id.clone(), effect(commit))).collect(),
        }
    }

    /// The work that a later look at the same run does not find any more.
    #[must_use]
    pub fn lost_in(&self, later: &Self) -> Vec<String> {
        let entries = self.entries.keys().filter(|key| !later.entries.contains_key(*key));
        let invocations = self.invocations.keys().filter(|name| !later.invocations.contains_key(*name));
        let kept: BTreeSet<&String> = later.commits.iter().map(|(id, _)| id).collect();
        let commits = self.commits.iter().filter(|(id, _)| !kept.contains(id));
        entries
            .map(|key| format!("the answer of {key}"))
            .chain(invocations.map(|name| format!("the end of {name}")))
            .chain(commits.map(|(id, _)| format!("commit {id}")))
            .collect()
    }

    /// The work that was finished and was done once more until a later look at the same run, and commits that are there
    /// twice.
    #[must_use]
    pub fn repeated_in(&self, later: &Self) -> Vec<String> {
        let differs = |then: Option<&String>, now: &String| then.is_some_and(|then| then != now);
        let entries = self.entries.iter().filter(|(key, now)| differs(later.entries.get(*key), now));
        let invocations = self.invocations.iter().filter(|(name, now)| differs(later.invocations.get(*name), now));
        let mut effects = BTreeSet::new();
        let commits = later.commits.iter().filter_map(|(_, effect)| effect.as_ref());
        let commits: Vec<&String> = commits.filter(|effect| !effects.insert(*effect)).collect();
        entries
            .map(|(key, _)| format!("{key} was answered before the kill and executed again"))
            .chain(invocations.map(|(name, _)| format!("{name} had ended before the kill and was executed again")))
            .chain(commits.into_iter().map(|effect| format!("the commit of {effect} is there twice")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answered, commit, observation};

    fn work() -> RunObservation {
        observation(vec![answered(1, "tools.call", 100, "1"), answered(2, "timer.now", 200, "2")], &["a", "b"])
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut RunObservation), lost: &[&str], repeated: &[&str]) {
        let (before, mut after) = (work(), work());
        change(&mut after);
        let (before, after) = (FinishedWork::of(&before), FinishedWork::of(&after));
        assert_eq!(before.lost_in(&after), lost);
        assert_eq!(before.repeated_in(&after), repeated);
    }

    #[test]
    fn finished_work_that_a_resume_lost_or_repeated_is_found() {
        check(|_| (), &[], &[]);
        // An event that a resume adds is neither.
        check(|run| run.journals[0].entries.push(answered(3, "tools.call", 300, "3")), &[], &[]);
        check(|run| drop(run.journals[0].entries.pop()), &["the answer of f-a/1/generate entry 2"], &[]);
        check(
            |run| run.journals[0].entries[0] = answered(1, "tools.call", 900, "1"),
            &[],
            &["f-a/1/generate entry 1 was answered before the kill and executed again"],
        );
        check(
            |run| run.journals[0].finished.as_mut().expect("it ended").at_ms += 1,
            &[],
            &["f-a/1/generate had ended before the kill and was executed again"],
        );
        check(|run| run.journals[0].finished = None, &["the end of f-a/1/generate"], &[]);
        check(|run| drop(run.commits.remove(0)), &["commit a"], &[]);
        let doubled = commit("c", "r-1/f-b/commit");
        check(move |run| run.commits.push(doubled), &[], &["the commit of r-1/f-b/commit is there twice"]);
    }
}
