//! Features that passed and no longer do: after a revert, or by their checks.

use crate::bench::{Bench, dropped, feature, resume, run_with};
use expect_test::{Expect, expect};
use longhaul_core::work::FeatureStatus;
use longhaul_harness::{HarnessLimits, Input, OrderRefusal, PersonRequest, RunStatus, WorkReport};

fn reverted(features: &[&str]) -> Input {
    let features = features.iter().map(|id| (*id).to_owned()).collect();
    let kept_as = Some("refs/longhaul/reverted/r-1/1".into());
    Input::Reverted { features, left: vec!["c-9".into()], to: "0123456789abcdef".into(), kept_as }
}

fn regressed(features: &[&str]) -> Input {
    let why = |id: &&str| ((*id).to_owned(), "check `c` fails".to_owned());
    Input::Regressed { features: features.iter().map(why).collect() }
}

/// Two features, the second after the first, and a third beside them.
fn three() -> Bench {
    run_with([feature("a", &[]), feature("b", &["a"]), feature("c", &[])]).planned()
}

fn completed() -> Bench {
    let mut bench = three();
    for _ in 0..3 {
        bench.pass();
    }
    assert_eq!(bench.state.status(), RunStatus::Completed);
    bench.look();
    bench
}

#[track_caller]
fn check(bench: &mut Bench, inputs: Vec<Input>, expected: Expect) {
    for input in inputs {
        bench.tell(input);
    }
    expected.assert_eq(&bench.look());
}

#[track_caller]
fn refusal(bench: &mut Bench, input: Input) -> OrderRefusal {
    let before = bench.state.clone();
    let refused = bench.try_tell(input).expect_err("refused");
    assert_eq!(bench.state, before, "a refusal changes nothing");
    refused
}

#[test]
fn a_completed_run_waits_for_a_resume_after_a_revert() {
    let mut bench = completed();
    check(
        &mut bench,
        vec![reverted(&["b", "c"])],
        expect![[r#"
            - Reverted { to: "0123456789abcdef", kept_as: Some("refs/longhaul/reverted/r-1/1"), left: ["c-9"], features: ["b", "c"] }
            - b not_started: reverted to 0123456789
            - c not_started: reverted to 0123456789
            - paused"#]],
    );
    assert_eq!(bench.state.status(), RunStatus::Paused);
    assert!(bench.state.lanes.is_empty());
    let b = bench.state.feature("b").expect("there");
    assert_eq!((&b.commit, b.files.len(), b.sessions), (&None, 0, 1));
    assert!(bench.state.feature("a").expect("there").commit.is_some());
    // Under keys of a second session, so that no old journal answers.
    check(
        &mut bench,
        vec![resume()],
        expect![[r#"
            - resumed
            - b in_progress: session 2
            do f-b/e1/1/generate"#]],
    );
    bench.pass();
    bench.pass();
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

#[test]
fn a_revert_takes_back_what_was_under_way() {
    let mut bench = three();
    bench.pass();
    bench.tell(Input::PauseRequested);
    bench.look();
    check(
        &mut bench,
        vec![reverted(&["a"])],
        expect![[r#"
            cancel f-b/1/generate
            - Reverted { to: "0123456789abcdef", kept_as: Some("refs/longhaul/reverted/r-1/1"), left: ["c-9"], features: ["a", "b"] }
            - a not_started: reverted to 0123456789
            - b not_started: reverted to 0123456789"#]],
    );
    assert_eq!((bench.state.status(), bench.state.lanes.len()), (RunStatus::Paused, 0));
    check(
        &mut bench,
        vec![resume()],
        expect![[r#"
            - resumed
            - a in_progress: session 2
            do f-a/e1/1/generate"#]],
    );
}

#[test]
fn a_run_that_waits_is_paused_by_a_revert_and_its_question_is_gone() {
    let mut bench = three();
    bench.pass();
    let key = bench.key();
    bench.tell(Input::Parked {
        key,
        question: "did it happen?".into(),
        wanted: PersonRequest::Effect("longhaul answer RUN --question q-1 --skip".into()),
    });
    bench.look();
    bench.tell(reverted(&["a"]));
    assert_eq!(bench.state.status(), RunStatus::Paused);
    let answer = Input::Answered { feature: None, answer: "yes".into() };
    assert_eq!(refusal(&mut bench, answer), OrderRefusal::NoQuestion { feature: None });
}

#[test]
fn a_feature_that_was_dropped_stays_dropped_and_one_that_failed_stays_failing() {
    let mut bench = three();
    bench.pass();
    bench.exhaust();
    bench.tell(dropped("c"));
    bench.report(WorkReport::Discarded);
    assert_eq!(bench.state.status(), RunStatus::Incomplete);
    bench.tell(reverted(&["a", "c"]));
    let status = |id| bench.state.feature(id).expect("there").status;
    assert_eq!(
        [status("a"), status("b"), status("c")],
        [FeatureStatus::NotStarted, FeatureStatus::Failing, FeatureStatus::Dropped]
    );
}

#[test]
fn a_revert_that_takes_no_feature_back_leaves_a_completed_run_as_it_is() {
    let mut bench = completed();
    bench.tell(reverted(&[]));
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

#[test]
fn what_was_given_up_stays_given_up() {
    let mut bench = three();
    bench.pass();
    bench.tell(Input::Abandon { reason: "enough".into() });
    bench.tell(reverted(&["a"]));
    assert_eq!(bench.state.status(), RunStatus::Abandoned);
    assert_eq!(bench.state.feature("a").expect("there").status, FeatureStatus::NotStarted);
    assert!(matches!(refusal(&mut bench, resume()), OrderRefusal::Ended { .. }));
}

#[test]
fn a_run_that_works_or_has_no_plan_cannot_go_back() {
    let mut bench = three();
    for input in [reverted(&["a"]), regressed(&["a"])] {
        assert_eq!(refusal(&mut bench, input), OrderRefusal::Working);
    }
    let mut planning = Bench::begun(HarnessLimits::default());
    planning.tell(Input::PauseRequested);
    assert_eq!(refusal(&mut planning, reverted(&[])), OrderRefusal::NoPlanYet);
}

#[test]
fn a_regression_reopens_a_completed_run_for_a_resume() {
    let mut bench = completed();
    check(
        &mut bench,
        vec![regressed(&["a", "gone"])],
        expect![[r#"
            - a failing: check `c` fails
            - ended incomplete
            finish incomplete: 2 of 3 features pass; failing: `a` (check `c` fails)"#]],
    );
    // It may be retried without `--retry-failing`.
    check(
        &mut bench,
        vec![resume()],
        expect![[r#"
            - resumed
            - a in_progress: session 2
            do f-a/e1/1/generate"#]],
    );
    let reaction = bench.try_tell(Input::PauseRequested).expect("taken");
    assert!(matches!(reaction, longhaul_harness::Reaction::Acted(_)));
    let nothing = bench.try_tell(regressed(&["gone"])).expect("taken");
    assert_eq!(nothing, longhaul_harness::Reaction::Ignored(longhaul_harness::Ignored::NothingToDo));
}
