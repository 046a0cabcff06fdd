//! The order of features: priorities, dependencies, and the retries of features that failed.

use crate::bench::{feature, run_of, run_with};
use expect_test::expect;
use longhaul_core::work::FeatureSpec;
use longhaul_harness::{Input, RunStatus};

#[test]
fn higher_priority_goes_first_and_dependencies_before_that() {
    let with = |id: &str, priority, depends_on: &[&str]| FeatureSpec { priority, ..feature(id, depends_on) };
    let features = vec![with("low", 1, &[]), with("high", 9, &["low"]), with("mid", 5, &[]), with("mid2", 5, &[])];
    let mut bench = run_with(features).planned();
    (0..4).for_each(|_| bench.pass());
    bench.check_log(expect![[r#"
        f-mid/1 passes
        - mid2 in_progress: session 1
        do f-mid2/1/generate
        f-mid2/1 passes
        - low in_progress: session 1
        do f-low/1/generate
        f-low/1 passes
        - high in_progress: session 1
        do f-high/1/generate
        f-high/1 passes
        - ended completed
        finish completed: 4 of 4 features pass"#]]);
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

#[test]
fn whoever_depends_on_a_failing_feature_is_blocked_and_freed_when_it_passes() {
    let features = vec![feature("a", &[]), feature("b", &["a"]), feature("c", &["b"])];
    let mut bench = run_with(features).planned();
    bench.exhaust();
    bench.tell(Input::Resume { retry_failing: true, limits: None });
    bench.pass();
    bench.check_log(expect![[r#"
        do f-a/1/judge
        - judged a round 1: false
        do f-a/2/generate
        do f-a/2/judge
        - judged a round 2: false
        do f-a/3/generate
        do f-a/3/judge
        - judged a round 3: false
        - a failing: not passed after 3 rounds (iterations_max): mend a
        do f-a/discard
        - b blocked: depends on `a`, which is failing
        - c blocked: depends on `b`, which is blocked
        - ended incomplete
        finish incomplete: 0 of 3 features pass; failing: `a` (not passed after 3 rounds (iterations_max): mend a); blocked: `b` (depends on `a`, which is failing), `c` (depends on `b`, which is blocked)
        - resumed
        - a in_progress: session 2
        do f-a/e1/1/generate
        f-a/e1/1 passes
        - b not_started: no longer waits for another
        - c not_started: no longer waits for another
        - b in_progress: session 1
        do f-b/1/generate"#]]);
}

#[test]
fn a_failing_feature_is_tried_as_often_as_the_limit_says_after_the_others() {
    let mut bench = run_of(&["a", "b"])
        .limited(|limits| {
            limits.feature_attempts_max = 2;
            limits.iterations_max = 1;
        })
        .planned();
    bench.exhaust();
    bench.pass();
    bench.exhaust();
    bench.check_log(expect![[r#"
        do f-a/1/judge
        - judged a round 1: false
        - a failing: not passed after 1 round (iterations_max): mend a
        do f-a/discard
        - b in_progress: session 1
        do f-b/1/generate
        f-b/1 passes
        - a in_progress: session 2
        do f-a/e1/1/generate
        do f-a/e1/1/judge
        - judged a round 1: false
        - a failing: not passed after 1 round (iterations_max): mend a
        do f-a/e1/discard
        - ended incomplete
        finish incomplete: 1 of 2 features pass; failing: `a` (not passed after 1 round (iterations_max): mend a)"#]]);
}
