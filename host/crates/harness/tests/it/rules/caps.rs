//! Caps that stop a run: its budget, the number of its sessions, and failures that are alike.

use crate::bench::{Bench, resume, run_of};
use expect_test::expect;
use longhaul_harness::{HarnessLimits, Ignored, Input, RunStatus, WorkFailure, WorkReport, pending};

#[test]
fn a_budget_stops_work_that_asks_models_and_never_a_commit() {
    let mut bench = run_of(&["a", "b"]).limited(|limits| limits.tokens_max = Some(3)).planned();
    bench.pass();
    bench.ignores(Input::Woke, Ignored::NothingToDo);
    let raised = HarnessLimits { tokens_max: None, cost_microdollars_max: Some(10), ..HarnessLimits::default() };
    bench.tell(Input::Resume { retry_failing: false, limits: Some(raised) });
    bench.generated();
    bench.check_log(expect![[r#"
        f-a/1 passes
        - limit tokens_max: the run used 4 of 3 tokens; raise tokens_max and resume
        - ended incomplete
        finish incomplete: 1 of 2 features pass; not started: `b`; stopped at tokens_max: the run used 4 of 3 tokens; raise tokens_max and resume
        - resumed
        - b in_progress: session 1
        do f-b/1/generate
        - limit cost_microdollars_max: the run cost 10 of 10 microdollars; raise cost_microdollars_max and resume
        - ended incomplete
        finish incomplete: 1 of 2 features pass; in progress: `b` (session 1); stopped at cost_microdollars_max: the run cost 10 of 10 microdollars; raise cost_microdollars_max and resume"#]]);
    assert_eq!((bench.state.used.usage.tokens(), bench.state.features[0].used.usage.tokens()), (5, 3));
    assert_eq!(pending(&bench.state), []);
}

#[test]
fn sessions_of_a_run_are_capped_until_a_resume() {
    let mut bench = run_of(&["a", "b"]).limited(|limits| limits.sessions_max = 1).planned();
    bench.pass();
    bench.tell(resume());
    bench.check_log(expect![[r#"
        f-a/1 passes
        - limit sessions_max: the run had 1 session; resume it for as many more
        - ended incomplete
        finish incomplete: 1 of 2 features pass; not started: `b`; stopped at sessions_max: the run had 1 session; resume it for as many more
        - resumed
        - b in_progress: session 1
        do f-b/1/generate"#]]);
}

#[test]
fn features_that_fail_alike_in_a_row_stop_the_run() {
    let fails = |bench: &mut Bench| {
        bench.fail(WorkFailure::Impossible("no compiler".into()));
        bench.report(WorkReport::Discarded);
    };
    let mut bench = run_of(&["a", "b", "c", "d", "e"]).limited(|limits| limits.failures_equal_max = 2).planned();
    fails(&mut bench);
    bench.pass();
    fails(&mut bench);
    assert_eq!(bench.state.status(), RunStatus::Working, "a pass between them starts the count again");
    fails(&mut bench);
    bench.check_log(expect![[r#"
        - a failing: impossible as written: no compiler
        do f-a/discard
        - b in_progress: session 1
        do f-b/1/generate
        f-b/1 passes
        - c in_progress: session 1
        do f-c/1/generate
        - c failing: impossible as written: no compiler
        do f-c/discard
        - d in_progress: session 1
        do f-d/1/generate
        - d failing: impossible as written: no compiler
        do f-d/discard
        - limit failures_equal_max: 2 features in a row failed alike: impossible as written: no compiler; mend what they share and resume
        - ended incomplete
        finish incomplete: 1 of 5 features pass; failing: `a` (impossible as written: no compiler), `c` (impossible as written: no compiler), `d` (impossible as written: no compiler); not started: `e`; stopped at failures_equal_max: 2 features in a row failed alike: impossible as written: no compiler; mend what they share and resume"#]]);
}
