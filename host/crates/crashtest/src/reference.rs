//! The common part of two runs without a kill, and the findings about a run that was killed and resumed.
//!
//! Two runs are needed: what differs between them is the project's own, such as the time in a tool's answer, and is not
//! laid to a kill. It is listed, so that everybody sees what was not compared.

use crate::observation::{EntryKey, FinishedWork, RunObservation};
use crate::receivers::{Likeness, ReceivedRequest, counted};
use crate::traces::{Deviation, Difference, Facet, TraceKey, Traces, differences, traces, varying};
use longhaul_core::journal::EffectClass;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the entries that ask a model.
const MODEL_CALL: &str = "conversation.complete";

/// The name of the entries that call a tool.
pub(crate) const TOOL_CALL: &str = "tools.call";

/// A run with what the receivers saw of it: requests to hosts, and the number of requests to models by invocation.
pub type Witnessed<'a> = (&'a RunObservation, &'a [ReceivedRequest], &'a BTreeMap<String, u32>);

/// The common part of two runs without a kill.
#[derive(Clone, Debug)]
pub struct Reference {
    traces: Traces,
    varying: BTreeSet<TraceKey>,
    pub(crate) entries: BTreeMap<EntryKey, ExpectedEntry>,
    pub(crate) likeness: Likeness,
    requests: BTreeMap<String, u32>,
    models: BTreeMap<String, u32>,
    answered_models: BTreeMap<String, u32>,
    commits: usize,
}

/// An entry of a run without a kill.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedEntry {
    class: EffectClass,
    pub(crate) answer: String,
    /// The effects at the receiver between its call and its answer.
    pub(crate) requests: Vec<String>,
}

/// The state of a run at a kill.
#[derive(Clone, Debug)]
pub struct KillEvidence {
    /// The run as the killed process left it. None: it was killed before there was a run.
    pub observed: Option<RunObservation>,
    /// The requests to hosts until then.
    pub received: Vec<ReceivedRequest>,
    /// The requests to models until then, by invocation.
    pub models: BTreeMap<String, u32>,
}

/// The effects of a run without a kill, by where they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EffectTotals {
    /// Answered entries of its journals: every call of an import, tools and models among them.
    pub journal_entries: u32,
    /// Requests with an effect at the stand-in of all hosts.
    pub tool_requests: u32,
    /// Requests that the recording of the models answered.
    pub model_requests: u32,
    /// Commits of its branch.
    pub commits: u32,
    /// The part of requests by which they are told apart.
    pub requests_told_apart_by: Likeness,
}

/// The findings about a run that was killed and resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrialFindings {
    /// Effects that happened once more than they should, by the journal, by git and by the receivers.
    pub duplicates: Vec<String>,
    /// Steps that a run without a kill has, or that were finished before the kill, and that are not there.
    pub lost: Vec<String>,
    /// Other differences of the result: status, features, verdicts, results and calls of invocations.
    pub results: Vec<String>,
    /// Differences of the history in git: trees and messages of the commits.
    pub history: Vec<String>,
}

impl TrialFindings {
    /// True when nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let Self { duplicates, lost, results, history } = self;
        [duplicates, lost, results, history].iter().all(|found| found.is_empty())
    }
}

impl Reference {
    /// The reference of two runs without a kill.
    #[must_use]
    pub fn of(first: Witnessed<'_>, second: Witnessed<'_>) -> Self {
        let (observed, requests, models) = first;
        let of_first = traces(observed);
        let likeness = Likeness::of(requests, second.1);
        Self {
            varying: varying(&of_first, &traces(second.0)),
            traces: of_first,
            entries: expected_entries(observed, requests, likeness),
            likeness,
            requests: counted(requests, likeness),
            models: models.clone(),
            answered_models: answered_models(observed),
            commits: observed.commits.len(),
        }
    }

    /// The traces that differ without a kill, which are not compared.
    #[must_use]
    pub fn varying(&self) -> Vec<String> {
        self.varying.iter().map(ToString::to_string).collect()
    }

    /// The effects of a run without a kill.
    #[must_use]
    pub fn totals(&self) -> EffectTotals {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        EffectTotals {
            journal_entries: count(self.entries.len()),
            tool_requests: self.requests.values().sum(),
            model_requests: self.models.values().sum(),
            commits: count(self.commits),
            requests_told_apart_by: self.likeness,
        }
    }

    /// The findings about a run that was killed, by its state at the kill, and resumed to its end.
    #[must_use]
    pub fn judge(&self, kill: &KillEvidence, ended: Witnessed<'_>) -> TrialFindings {
        let (observed, received, models) = ended;
        let mut findings = TrialFindings::default();
        let after = FinishedWork::of(observed);
        // A run that was killed before it was there has finished nothing, but may still have commits twice.
        let before = FinishedWork::of(kill.observed.as_ref().unwrap_or(observed));
        findings.duplicates.extend(before.repeated_in(&after));
        findings.lost.extend(before.lost_in(&after));
        findings.duplicates.extend(self.requests_beyond(kill, received));
        findings.duplicates.extend(self.models_beyond(kill, models));
        for Difference { key, deviation, text } in differences(&self.traces, &self.varying, &traces(observed)) {
            match (key.facet, deviation) {
                (Facet::Commit, _) => findings.history.push(text),
                (_, Deviation::Missing) => findings.lost.push(text),
                (_, Deviation::Added | Deviation::Changed) => findings.results.push(text),
            }
        }
        findings
    }

    /// Effects at the receiver beyond those of a run without a kill. A call in flight may be made once more where its
    /// class allows that.
    fn requests_beyond(&self, kill: &KillEvidence, received: &[ReceivedRequest]) -> Vec<String> {
        let at_kill = counted(&kill.received, self.likeness);
        let answered = answered_entries(kill);
        let may_repeat = |told: &String| {
            let open = self.entries.iter().filter(|(key, _)| !answered.contains(*key));
            let of_it = open.filter(|(_, entry)| !entry.class.starts_durably() && entry.requests.contains(told));
            u32::try_from(of_it.count()).unwrap_or(u32::MAX)
        };
        let sent_by_answered = |told: &String| {
            let entries = self.entries.iter().filter(|(key, _)| answered.contains(*key));
            let sent = entries.flat_map(|(_, entry)| &entry.requests).filter(|other| *other == told).count();
            u32::try_from(sent).unwrap_or(u32::MAX)
        };
        let beyond = |(told, count): (&String, &u32)| {
            let expected = self.requests.get(told).copied().unwrap_or_default();
            let in_flight = at_kill.get(told).copied().unwrap_or_default().saturating_sub(sent_by_answered(told));
            let most = expected.saturating_add(in_flight.min(may_repeat(told)));
            (*count > most).then(|| format!("`{told}` was received {count} times, and {expected} times without a kill"))
        };
        counted(received, self.likeness).iter().filter_map(beyond).collect()
    }

    /// Requests to models beyond those of a run without a kill. Those in flight at the kill may be sent once more.
    fn models_beyond(&self, kill: &KillEvidence, models: &BTreeMap<String, u32>) -> Vec<String> {
        let answered = kill.observed.as_ref().map(answered_models).unwrap_or_default();
        let beyond = |(within, count): (&String, &u32)| {
            let expected = self.models.get(within).copied().unwrap_or_default();
            // A request that is no entry of its own, such as a summary, has no answer to tell by.
            if self.answered_models.get(within).copied().unwrap_or_default() != expected {
                return None;
            }
            let known = answered.get(within).copied().unwrap_or_default();
            let in_flight = kill.models.get(within).copied().unwrap_or_default().saturating_sub(known);
            let most = expected.saturating_add(in_flight);
            (*count > most)
                .then(|| format!("{within} asked its model {count} times, and {expected} times without a kill"))
        };
        models.iter().filter_map(beyond).collect()
    }
}

fn answered_entries(kill: &KillEvidence) -> BTreeSet<EntryKey> {
    let entries = kill.observed.iter().flat_map(RunObservation::entries);
    entries.filter(|(_, _, entry)| entry.answered.is_some()).map(|(key, _, _)| key).collect()
}

fn answered_models(observed: &RunObservation) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for (key, _, entry) in observed.entries() {
        if entry.asked.name == MODEL_CALL && entry.answered.is_some() {
            *counts.entry(key.invocation).or_default() += 1;
        }
    }
    counts
}

/// The answered entries of a run, with the effects that the receiver got meanwhile. A request that came during several
/// calls of tools is taken for that of the latest.
fn expected_entries(
    observed: &RunObservation,
    requests: &[ReceivedRequest],
    likeness: Likeness,
) -> BTreeMap<EntryKey, ExpectedEntry> {
    let mut entries = BTreeMap::new();
    let mut calls = Vec::new();
    for (key, _, entry) in observed.entries() {
        let Some(answered) = &entry.answered else { continue };
        if entry.asked.name == TOOL_CALL {
            calls.push((entry.asked.at_ms, answered.at_ms, key.clone()));
        }
        let expected =
            ExpectedEntry { class: entry.asked.class, answer: answered.answer.clone(), requests: Vec::new() };
        entries.insert(key, expected);
    }
    for request in requests {
        let during = calls.iter().filter(|(from, until, _)| (*from..=*until).contains(&request.at_ms));
        let latest = during.max_by_key(|(from, _, _)| *from).and_then(|(_, _, key)| entries.get_mut(key));
        if let (Some(entry), Some(told)) = (latest, request.told(likeness)) {
            entry.requests.push(told);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answered, commit, observation, request};

    const ANSWER: &str = r#"{"Ok":{"output":"1","truncated":false}}"#;

    /// A run of one model call and two calls of tools, each of which pays once.
    fn whole() -> (RunObservation, Vec<ReceivedRequest>, BTreeMap<String, u32>) {
        let entries = vec![
            answered(1, MODEL_CALL, 50, "\"go\""),
            answered(2, TOOL_CALL, 100, ANSWER),
            answered(3, TOOL_CALL, 200, ANSWER),
        ];
        let models = [("f-a/1/generate".to_owned(), 1)].into();
        (observation(entries, &["a", "b"]), vec![sent(100), sent(200)], models)
    }

    fn sent(at_ms: u64) -> ReceivedRequest {
        request(at_ms, "POST", "http://a.example/pay", "{}", None)
    }

    /// The same run as it is after the first call of a tool.
    fn killed() -> KillEvidence {
        let (mut observed, mut received, models) = whole();
        observed.journals[0].entries.truncate(2);
        observed.journals[0].finished = None;
        observed.commits.truncate(1);
        received.truncate(1);
        KillEvidence { observed: Some(observed), received, models }
    }

    type Ended = (RunObservation, Vec<ReceivedRequest>, BTreeMap<String, u32>);

    #[track_caller]
    fn check(kill: &KillEvidence, change: impl FnOnce(&mut Ended), expected: [&[&str]; 4]) {
        let (observed, received, models) = whole();
        let reference = Reference::of((&observed, &received, &models), (&observed, &received, &models));
        let mut ended = (observed.clone(), received.clone(), models.clone());
        change(&mut ended);
        let TrialFindings { duplicates, lost, results, history } =
            reference.judge(kill, (&ended.0, &ended.1, &ended.2));
        for (found, expected) in [duplicates, lost, results, history].iter().zip(expected) {
            let fits =
                found.len() == expected.len() && found.iter().zip(expected).all(|(text, part)| text.contains(part));
            assert!(fits, "{found:?} and not {expected:?}");
        }
    }

    #[test]
    fn a_run_that_ends_as_without_a_kill_is_clean() {
        check(&killed(), |_| (), [&[], &[], &[], &[]]);
        let nothing = KillEvidence { observed: None, received: Vec::new(), models: BTreeMap::new() };
        check(&nothing, |_| (), [&[], &[], &[], &[]]);
    }

    #[test]
    fn an_effect_that_happened_twice_is_a_duplicate() {
        check(&killed(), |ended| ended.1.push(sent(300)), [&["was received 3 times, and 2 times"], &[], &[], &[]]);
        let twice = |ended: &mut Ended| *ended.2.entry("f-a/1/generate".to_owned()).or_default() = 2;
        check(&killed(), twice, [&["asked its model 2 times, and 1 times"], &[], &[], &[]]);
        check(
            &killed(),
            |ended| ended.0.journals[0].entries[1] = answered(2, TOOL_CALL, 150, ANSWER),
            [&["entry 2 was answered before the kill and executed again"], &[], &[], &[]],
        );
    }

    #[test]
    fn a_request_in_flight_at_the_kill_may_be_sent_once_more() {
        // The model was asked, and the kill came before its answer was in the journal.
        let mut kill = killed();
        let entries = &mut kill.observed.as_mut().expect("a run").journals[0].entries;
        entries.clear();
        kill.received.clear();
        let twice = |ended: &mut Ended| *ended.2.entry("f-a/1/generate".to_owned()).or_default() = 2;
        check(&kill, twice, [&[], &[], &[], &[]]);
        let thrice = |ended: &mut Ended| *ended.2.entry("f-a/1/generate".to_owned()).or_default() = 3;
        check(&kill, thrice, [&["asked its model 3 times"], &[], &[], &[]]);
        // An effect of the class `acts` may not.
        kill.received = vec![sent(100)];
        check(&kill, |ended| ended.1.push(sent(300)), [&["was received 3 times"], &[], &[], &[]]);
    }

    #[test]
    fn a_lost_step_and_a_differing_commit_are_found() {
        check(
            &killed(),
            |ended| drop(ended.0.journals[0].entries.pop()),
            [&[], &["entry f-a/1/generate 3 is missing"], &[], &[]],
        );
        let other = |ended: &mut Ended| ended.0.commits[1] = commit("z", "r-1/f-b/commit");
        check(&killed(), other, [&[], &[], &[], &["commit 0002 was `tree tree-b"]]);
        let status = |ended: &mut Ended| ended.0.status.features[0].why = "not yet".to_owned();
        check(&killed(), status, [&[], &[], &["feature a was"], &[]]);
    }
}
