//! The record of a test run: signed by the parent process in the sandbox, with a key that only it and the host know.
//!
//! Refuses a record that another key signed, and a pass of a test whose setup, call and teardown are not all reported.

use longhaul_core::Digest;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The parent's file, from the scratch directory.
pub(crate) const RECORD: &str = "judge/record";

/// A key for one run.
pub(crate) fn fresh_key(random: &mut StdRng) -> String {
    let bytes: [u8; 32] = random.random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The body of a record that was signed with `key`.
pub(crate) fn opened<'a>(bytes: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (tag, body) = (&bytes[..end], &bytes[end + 1..]);
    let inner = Digest::of(&[key.as_bytes(), body].concat()).to_string();
    let expected = Digest::of(format!("{key}{inner}").as_bytes()).to_string();
    (tag == expected.as_bytes()).then_some(body)
}

/// The report channel's content of one run.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Reported {
    #[serde(default)]
    events: Vec<Event>,
    /// The reason why the events are not trusted.
    #[serde(default)]
    pub(crate) broken: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    id: Option<String>,
    when: Option<String>,
    outcome: String,
    end: Option<i32>,
    /// Parts of the runner that changed since it started.
    changed: Vec<String>,
}

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// Its call failed.
    Failed,
    /// Skipped, or expected to fail.
    Skipped,
    /// Its setup failed, its teardown failed after its call passed, or it was reported in part.
    Broken,
}

impl Reported {
    /// Tests by their full names.
    pub(crate) fn tests(&self) -> BTreeMap<&str, Outcome> {
        let mut phases: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for event in &self.events {
            if let (Some(id), Some(when)) = (&event.id, &event.when) {
                phases.entry(id).or_default().push((when, &event.outcome));
            }
        }
        phases.into_iter().map(|(id, phases)| (id, outcome(&phases))).collect()
    }

    /// Parts of the runner that were changed while it ran.
    pub(crate) fn changed(&self) -> &[String] {
        self.events.iter().rev().find(|event| event.end.is_some()).map_or(&[], |event| &event.changed)
    }
}

fn outcome(phases: &[(&str, &str)]) -> Outcome {
    // A plugin may rerun a failed test.
    let phases: Vec<_> = phases.iter().filter(|(_, outcome)| *outcome != "rerun").collect();
    let of = |when: &str| {
        phases.iter().filter(|(one, _)| *one == when).map(|(_, outcome)| *outcome).collect::<BTreeSet<_>>()
    };
    let (setup, call, teardown) = (of("setup"), of("call"), of("teardown"));
    let only = |outcomes: &BTreeSet<&str>, outcome| outcomes.len() == 1 && outcomes.contains(outcome);
    let is_skipped = |outcomes: &BTreeSet<&str>| only(outcomes, "skipped") || only(outcomes, "xfailed");
    if is_skipped(&setup) || is_skipped(&call) && only(&setup, "passed") {
        Outcome::Skipped
    } else if only(&setup, "passed") && only(&call, "failed") && !teardown.is_empty() {
        // A teardown may check the test's results.
        Outcome::Failed
    } else if !only(&setup, "passed") || !only(&teardown, "passed") || call.is_empty() {
        Outcome::Broken
    } else if only(&call, "passed") {
        Outcome::Passed
    } else {
        Outcome::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_opens_with_its_key_alone() {
        let body = br#"{"events": []}"#;
        let inner = Digest::of(&[b"key", &body[..]].concat());
        let tag = Digest::of(format!("key{inner}").as_bytes());
        let record = [tag.to_string().as_bytes(), b"\n", body].concat();
        assert_eq!(opened(&record, "key"), Some(&body[..]));
        assert_eq!(opened(&record, "yek"), None);
        assert_eq!(opened(&[&record[..], b" "].concat(), "key"), None);
        assert_eq!(opened(b"", "key"), None);
    }

    #[track_caller]
    fn check(phases: &[(&str, &str)], expected: Outcome) {
        assert_eq!(outcome(phases), expected, "{phases:?}");
    }

    #[test]
    fn a_test_passes_when_it_was_set_up_called_and_taken_down() {
        let all = [("setup", "passed"), ("call", "passed"), ("teardown", "passed")];
        check(&all, Outcome::Passed);
        check(&all[..2], Outcome::Broken);
        check(&all[1..], Outcome::Broken);
        check(&[all[0], all[2]], Outcome::Broken);
        check(&[all[0], ("call", "failed"), all[1], all[2]], Outcome::Failed);
        check(&[all[0], ("call", "failed"), ("teardown", "failed")], Outcome::Failed);
        check(&[all[0], ("call", "failed")], Outcome::Broken);
        check(&[all[0], all[1], ("teardown", "failed")], Outcome::Broken);
        check(&[all[0], ("call", "rerun"), all[0], all[1], all[2]], Outcome::Passed);
        check(&[("setup", "skipped"), all[2]], Outcome::Skipped);
        check(&[all[0], ("call", "xfailed"), all[2]], Outcome::Skipped);
        check(&[], Outcome::Broken);
    }
}
