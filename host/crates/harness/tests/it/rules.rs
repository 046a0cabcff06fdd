//! The rules of a session, each as the requested actions and emitted events of a short run.

mod caps;
mod edits;
mod order;
mod rounds;
mod waits;

use crate::bench::{Bench, begin, feature, outcome, plan, run_of, used};
use expect_test::expect;
use longhaul_harness::{EndStatus, HarnessLimits, Ignored, Input, RunState, WorkReport, step};

fn limits() -> HarnessLimits {
    HarnessLimits::default()
}

#[test]
fn late_doubled_and_mismatched_reports_change_nothing() {
    let mut bench = run_of(&["a"]).planned();
    let done = |key: &str, report| Input::Done { key: key.into(), used: used(1), report };
    let generated = || WorkReport::Generated(outcome("did it"));
    bench.ignores(done("f-a/2/generate", generated()), Ignored::NotAwaited);
    bench.ignores(done("plan", WorkReport::Planned(plan(vec![]))), Ignored::NotAwaited);
    let commit = WorkReport::Committed { commit: Some("c".into()), files: vec![], protected: vec![] };
    bench.ignores(done("f-a/1/generate", commit), Ignored::WrongReport);
    bench.generated();
    bench.ignores(done("f-a/1/generate", generated()), Ignored::NotAwaited);
    bench.ignores(begin(limits()), Ignored::NothingToDo);
}

#[test]
fn a_state_of_a_later_version_is_not_read_and_a_broken_one_is_told_apart() {
    let mut state = RunState::new();
    assert!(RunState::from_json(&state.to_json()).is_ok());
    step(&mut state, 1, begin(limits())).expect("begun");
    let later = state.to_json().replace("\"version\":2", "\"version\":3");
    expect!["the run's state has version 3, this longhaul reads up to 2; resume it with the newer longhaul"]
        .assert_eq(&RunState::from_json(&later).expect_err("newer").to_string());
    assert!(RunState::from_json("{}").expect_err("damaged").to_string().contains("cannot be read"));
    assert_eq!(EndStatus::Incomplete.as_str(), "incomplete");
}

#[test]
fn costs_are_summed_so_that_a_stored_sum_is_the_same_to_the_last_bit() {
    for (cost, expected) in [(0.4, 0.0), (0.6, 1.0), (-5.0, 0.0), (f64::NAN, 0.0), (f64::INFINITY, 0.0)] {
        let mut bench = Bench::begun(limits());
        let mut used = used(1);
        used.usage.cost_microdollars = cost;
        let report = WorkReport::Planned(plan(vec![feature("a", &[])]));
        bench.tell(Input::Done { key: "plan".into(), used, report });
        let loaded = RunState::from_json(&bench.state.to_json()).expect("it loads");
        assert_eq!((loaded.used.usage.cost_microdollars, loaded), (expected, bench.state), "{cost}");
    }
}
