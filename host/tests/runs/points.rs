//! A run that has ended, as it was at points of its past.

use crate::common::lab::Lab;
use crate::common::{DOER_CONFIG, refused};
use serde_json::Value;

const GOAL: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- depends on: one\n- check: has_two\n\nDo it, too.\n";

#[test]
fn a_run_is_shown_as_it_was_at_each_point_of_its_past() {
    let lab = Lab::new(DOER_CONFIG, GOAL);
    lab.run(&["run"]).expect(0);
    let run = lab.runs().pop().expect("a run");
    let branch = lab.git(&["log", "--reverse", "--format=%H", "longhaul/kept"]);
    let commits: Vec<&str> = branch.lines().collect();
    let [base, first, second] = commits[..] else { panic!("the first one and two: {branch}") };
    let at = |point: &str| lab.json(&["journal", "--at", point]);
    let status = |shown: &Value, number: usize| shown["features"][number]["status"].as_str().map(str::to_owned);
    let statuses = |shown: &Value| [status(shown, 0), status(shown, 1)].map(Option::unwrap_or_default);

    let began = at("feature:one");
    assert_eq!(statuses(&began)[0], "in_progress", "{began}");
    assert!(!["passing", "in_progress"].contains(&statuses(&began)[1].as_str()), "{began}");
    assert_eq!(began["commit"], base, "nothing was committed before the first feature");
    let lane = began["lanes"][0]["invocation"].as_str().expect("work in flight");
    assert!(lane.starts_with(&format!("{run}/f-one/")), "{began}");

    let half = at("entry:f-one/1/generate:1");
    assert_eq!(half["lanes"][0]["invocation"], format!("{run}/f-one/1/generate"), "{half}");
    assert!(half["lanes"][0]["entries"].as_u64() >= Some(1) && half["commit"] == base, "{half}");
    assert!(half["event"].as_u64() > began["event"].as_u64(), "{half}");

    let next = at("feature:two");
    assert_eq!(statuses(&next), ["passing", "in_progress"], "{next}");
    assert_eq!(next["commit"], first, "{next}");
    let shown = lab.run(&["journal", "--at", "feature:two"]).expect(0).stdout;
    for words in ["at feature:two: working, 1 of 2 features pass", "in flight: ", "passing      one"] {
        assert!(shown.contains(words), "no `{words}` in {shown}");
    }

    let done = at(&format!("commit:{}", &second[..8]));
    assert_eq!((statuses(&done), &done["commit"]), (["passing", "passing"].map(str::to_owned), &Value::from(second)));
    let tokens = |shown: &Value| shown["usage"]["input_tokens"].as_u64().expect("a number");
    assert!(tokens(&began) < tokens(&next) && tokens(&next) < tokens(&done), "the usage is that of the point");

    // What past states are made of is named by their rows, and deleted with the run alone.
    lab.run(&["gc"]).expect(0);
    assert_eq!((at("feature:one"), at("feature:two")), (began, next));
    refused(&lab.run(&["journal", "--at", "feature:three"]), &["no feature `three`", "it has one, two"]);
    refused(&lab.run(&["journal", "--at", "commit:00000000"]), &["made no commit", "longhaul log"]);
    lab.run(&["journal", "--at", "yesterday"]).expect(2);
}
