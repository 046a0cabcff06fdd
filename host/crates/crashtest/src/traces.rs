//! The traces of an ended run, in a form in which two runs can be compared: without names, times and counts that differ
//! from run to run.

use crate::observation::{RunObservation, place_of};
use longhaul_core::event::Event;
use longhaul_core::text::truncate;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Longest text of a trace in a difference, in bytes.
const SHOWN_BYTES_MAX: usize = 300;

/// Counts in answers that differ from run to run: the duration of a check; and the requests to models that a caller
/// sees as sent again, which a kill may add.
const VARYING_COUNTS: [&str; 2] = ["\"duration_ms\":", "\"possibly_paid_twice\":"];

/// Digits of a time in milliseconds since 1970.
const TIME_DIGITS: usize = 13;

/// The kind of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Facet {
    /// The status of the run, with its answer.
    Run,
    /// A feature, with its status and the reason of it.
    Feature,
    /// A verdict of a round, with its judgements.
    Verdict,
    /// A commit of the branch: its tree and its message.
    Commit,
    /// The end of an invocation: its result and its fuel.
    Invocation,
    /// An entry of a journal: the call, the fuel up to it, and its answer.
    Entry,
}

impl Facet {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Feature => "feature",
            Self::Verdict => "verdict",
            Self::Commit => "commit",
            Self::Invocation => "invocation",
            Self::Entry => "entry",
        }
    }
}

/// Names a trace, in every run of the same project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TraceKey {
    /// Its kind.
    pub facet: Facet,
    /// Its name among those.
    pub name: String,
}

impl fmt::Display for TraceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.facet.word(), self.name)
    }
}

/// The traces of a run.
pub(crate) type Traces = BTreeMap<TraceKey, String>;

/// The difference of a trace from that of a run without a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deviation {
    Missing,
    Added,
    Changed,
}

/// A trace that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) key: TraceKey,
    pub(crate) deviation: Deviation,
    /// For people.
    pub(crate) text: String,
}

/// The traces of a run.
pub(crate) fn traces(observed: &RunObservation) -> Traces {
    let run = observed.run();
    let plain = |text: &str| normalized(text, &run);
    let mut traces = Traces::new();
    let mut put = |facet, name: String, text: String| traces.insert(TraceKey { facet, name }, text);
    let status = &observed.status;
    let answer = status.synthesis.as_ref().map(|synthesis| synthesis.answer.as_str()).unwrap_or_default();
    put(Facet::Run, "status".to_owned(), plain(format!("{:?} {answer}", status.summary.status).trim_end()));
    for feature in &status.features {
        put(Facet::Feature, feature.spec.id.clone(), plain(&format!("{:?} {}", feature.status, feature.why)));
    }
    let mut judged = BTreeMap::<String, u32>::new();
    for event in &observed.events {
        let Event::Judged { feature, round, passed, judgements, .. } = &event.event else { continue };
        let count = judged.entry(feature.clone()).or_default();
        *count += 1;
        put(Facet::Verdict, format!("{feature} {count}"), plain(&format!("round {round} {passed} {judgements:?}")));
    }
    for (commit, number) in observed.commits.iter().zip(1..) {
        put(Facet::Commit, number_of(number), plain(&format!("tree {}\n{}", commit.tree, commit.message)));
    }
    for (key, _, entry) in observed.entries() {
        let answer = entry.answered.as_ref().map_or("none", |answered| answered.answer.as_str());
        let asked = &entry.asked;
        let text = format!("{} {} {} -> {answer}", asked.name, asked.summary, asked.fuel_used);
        put(Facet::Entry, format!("{} {}", key.invocation, key.entry), plain(&text));
    }
    for journal in &observed.journals {
        let end = journal.finished.as_ref();
        let text = end.map(|end| format!("{} after {} fuel", end.result, end.fuel_used));
        put(Facet::Invocation, place_of(&journal.invocation), plain(&text.unwrap_or_else(|| "not ended".to_owned())));
    }
    traces
}

/// Numbers that sort as texts.
fn number_of(number: u32) -> String {
    format!("{number:04}")
}

/// The traces in which two runs without a kill differ.
pub(crate) fn varying(first: &Traces, second: &Traces) -> BTreeSet<TraceKey> {
    first.keys().chain(second.keys()).filter(|key| first.get(*key) != second.get(*key)).cloned().collect()
}

/// The traces in which a run differs from `reference`, those aside that vary without a kill, too.
pub(crate) fn differences(reference: &Traces, varying: &BTreeSet<TraceKey>, found: &Traces) -> Vec<Difference> {
    let keys: BTreeSet<&TraceKey> =
        reference.keys().chain(found.keys()).filter(|key| !varying.contains(*key)).collect();
    let difference = |key: &TraceKey| {
        let (deviation, text) = match (reference.get(key), found.get(key)) {
            (Some(expected), None) => (Deviation::Missing, format!("{key} is missing: {}", shown(expected))),
            (None, Some(found)) => (Deviation::Added, format!("{key} is there beside: {}", shown(found))),
            (Some(expected), Some(found)) if expected != found => {
                (Deviation::Changed, format!("{key} was {} and is {}", shown(expected), shown(found)))
            }
            _ => return None,
        };
        Some(Difference { key: key.clone(), deviation, text })
    };
    keys.into_iter().filter_map(difference).collect()
}

fn shown(text: &str) -> String {
    format!("`{}`", truncate(text, SHOWN_BYTES_MAX))
}

/// A text without the run, times and counts that differ from run to run.
fn normalized(text: &str, run: &str) -> String {
    let text = without_times(&text.replace(run, "RUN"));
    VARYING_COUNTS.iter().fold(text, |text, count| without_count(&text, count))
}

fn without_count(text: &str, count: &str) -> String {
    let mut parts = text.split(count);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, rest| shown + count + "N" + rest.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn without_times(text: &str) -> String {
    let (mut shown, mut digits) = (String::with_capacity(text.len()), String::new());
    for character in text.chars() {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        shown.push_str(if digits.len() == TIME_DIGITS { "TIME" } else { &digits });
        digits.clear();
        shown.push(character);
    }
    shown.push_str(if digits.len() == TIME_DIGITS { "TIME" } else { &digits });
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answered, observation};

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        let text = "{\"run\":\"r-1\",\"at\":1700000000123,\"duration_ms\":17,\"n\":12}";
        assert_eq!(normalized(text, "r-1"), "{\"run\":\"RUN\",\"at\":TIME,\"duration_ms\":N,\"n\":12}");
        assert_eq!(without_times("1700000000123"), "TIME");
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut RunObservation), expected: &[&str]) {
        let mut other = observation(vec![answered(1, "tools.call", 100, "1")], &["a", "b"]);
        let reference = traces(&other);
        change(&mut other);
        let found = differences(&reference, &BTreeSet::new(), &traces(&other));
        let texts: Vec<&str> = found.iter().map(|difference| difference.text.as_str()).collect();
        assert!(
            texts.len() == expected.len() && texts.iter().zip(expected).all(|(text, part)| text.contains(part)),
            "{texts:?}"
        );
    }

    #[test]
    fn each_trace_that_differs_is_told() {
        check(|_| (), &[]);
        check(|run| run.commits[1].tree = "other".to_owned(), &["commit 0002 was `tree tree-b"]);
        check(|run| drop(run.commits.pop()), &["commit 0002 is missing"]);
        check(|run| run.status.features[0].why = "not yet".to_owned(), &["feature a was"]);
        check(|run| drop(run.events.pop()), &["verdict a 1 is missing"]);
        check(
            |run| run.journals[0].entries.push(answered(2, "timer.now", 9, "2")),
            &["f-a/1/generate 2 is there beside"],
        );
        check(
            |run| run.journals[0].finished.as_mut().expect("it ended").fuel_used += 1,
            &["invocation f-a/1/generate was"],
        );
    }

    #[test]
    fn what_varies_without_a_kill_is_not_told_of_a_kill() {
        let run = |answer| traces(&observation(vec![answered(1, "tools.call", 100, answer)], &[]));
        let varying = varying(&run("1"), &run("2"));
        assert_eq!(varying.iter().map(ToString::to_string).collect::<Vec<_>>(), ["entry f-a/1/generate 1"]);
        assert_eq!(differences(&run("1"), &varying, &run("3")), []);
    }
}
