//! A finished run can be played again from its journals: the same components make the same calls for the
//! same fuel and end in the same result, other components are told where they differ, and nobody
//! outside notices either.

use crate::common::lab::Lab;
use crate::common::{DOER_CONFIG, THREE_FEATURES, repository};

/// A run that is over.
fn finished() -> (Lab, String) {
    let lab = Lab::new(DOER_CONFIG, THREE_FEATURES);
    lab.run(&["run"]).expect(3);
    let run = lab.runs().pop().expect("a run");
    (lab, run)
}

/// A component of the tests.
fn component(name: &str) -> String {
    repository().join("target/plugins/tests").join(name).with_extension("wasm").display().to_string()
}

#[test]
fn a_finished_run_gives_the_same_result_calls_and_fuel_again() {
    let (lab, run) = finished();
    let (requests, status) = (lab.fake.requests(), lab.json(&["status", &run]));
    let names = lab.json(&["journal", &run])["invocations"].as_array().expect("a list").len();
    for _ in 0..2 {
        let answer = lab.json(&["replay", &run]);
        let replayed = answer["invocations"].as_array().expect("a list");
        assert_eq!(replayed.len(), names);
        for one in replayed {
            assert_eq!((&one["same"], &one["difference"]), (&true.into(), &serde_json::Value::Null), "{one}");
            assert_eq!(one["fuel"][0], one["fuel"][1], "{one}");
            assert!(one["fuel"][0].as_u64() > Some(0), "{one}");
        }
        let of_agent = replayed.iter().find(|one| one["invocation"] == format!("{run}/f-one/1/generate"));
        assert!(of_agent.is_some_and(|one| one["calls"].as_u64() > Some(10)), "{answer}");
    }
    let shown = lab.run(&["replay", &run]).expect(0);
    assert_eq!(shown.stdout.matches("same result, calls and fuel").count(), names, "{}", shown.said());
    assert_eq!(lab.fake.requests(), requests, "a replay asks nobody");
    assert_eq!(lab.json(&["status", &run]), status, "a replay changes nothing");
}

#[test]
fn the_same_bytes_from_a_file_are_the_same_component() {
    let (lab, run) = finished();
    let one = ["replay", &run, "--invocation", "f-one/1/generate", "--with", &component("doer")];
    assert!(lab.run(&one).expect(0).stdout.contains("same result, calls and fuel"));
}

#[test]
fn an_altered_plugin_is_told_where_it_asks_something_else() {
    let (lab, run) = finished();
    let requests = lab.fake.requests();
    let ran = lab.run(&["replay", &run, "--invocation", "f-one/1/generate", "--with", &component("doer2")]).expect(1);
    let number = ran
        .stdout
        .split_once("diverged at entry ")
        .and_then(|(_, rest)| rest.split_once(": journal has `tools.call` files.write "))
        .unwrap_or_else(|| panic!("{}", ran.said()));
    assert!(number.0.parse::<u32>().is_ok_and(|entry| entry > 1), "{}", ran.said());
    assert!(
        number.1.contains("written one-1") && number.1.contains("plugin asked `tools.call` files.write"),
        "{}",
        ran.said()
    );
    assert!(number.1.contains("altered one-1"), "{}", ran.said());
    assert_eq!(lab.fake.requests(), requests, "it executed nothing");
    lab.run(&["replay", &run]).expect(0);
}

#[test]
fn an_altered_plugin_is_held_against_every_invocation_of_its_role() {
    let (lab, run) = finished();
    let tool = lab.run(&["replay", &run, "--with", &component("poster")]).expect(1);
    assert!(tool.stderr.contains("of the role of"), "{}", tool.said());
    let ran = lab.run(&["replay", &run, "--with", &component("doer2")]).expect(1);
    assert_eq!(ran.stdout.matches("diverged at entry ").count(), 4, "each round of the agent: {}", ran.said());
    assert_eq!(ran.stdout.lines().count(), 4 + 5, "its sub-agents, and nobody else: {}", ran.said());
}

#[test]
fn what_has_not_ended_has_nothing_to_compare_with() {
    let lab = Lab::new(DOER_CONFIG, THREE_FEATURES);
    lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", "tool.before-call:2")]).wait();
    let run = lab.runs().pop().expect("a run");
    // What has ended can be played again meanwhile.
    assert_eq!(lab.run(&["replay", &run]).expect(0).stdout.lines().count(), 1);
    let ran = lab.run(&["replay", &run, "--invocation", "f-one/1/generate"]).expect(1);
    assert!(ran.stderr.contains("has not finished") && ran.stderr.contains("resume the run"), "{}", ran.said());
    let ran = lab.run(&["replay", &run, "--invocation", "f-nine/1/generate"]).expect(1);
    assert!(ran.stderr.contains("there is no invocation"), "{}", ran.said());
}
