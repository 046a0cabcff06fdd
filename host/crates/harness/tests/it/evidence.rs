//! The evidence behind a pass, and the proposed checks of a planner.

use crate::bench::{Bench, begin, edited, feature, outcome, plan, prepared, python_check, resume, setup};
use longhaul_core::event::Event;
use longhaul_core::work::{CheckBody, CheckSpec, Criterion, Evidence, FeatureSpec, FeatureStatus, Mark};
use longhaul_harness::state::BlockedBy;
use longhaul_harness::{
    Action, HarnessLimits, HarnessSetup, Input, RunStatus, Trial, TrialOutcome, WorkFailure, WorkKind, WorkReport,
};

/// A feature that one check decides.
fn checked(id: &str, depends_on: &[&str]) -> FeatureSpec {
    let criterion = Criterion { id: "t".into(), text: "it holds".into(), check: Some("t".into()) };
    FeatureSpec { criteria: vec![criterion], checks: vec![python_check("t")], ..feature(id, depends_on) }
}

/// A run of features that one check each decides, under an evaluator that also reads, or one that only runs checks.
fn begun(checks_only: bool, features: Vec<FeatureSpec>) -> Bench {
    let checks_only = checks_only.then(|| "check-evaluator".to_owned());
    let Input::Begin { run, goal, context, limits, .. } = begin(HarnessLimits::default()) else { unreachable!() };
    let setup = HarnessSetup { checks_only, ..setup() };
    let mut bench = Bench::begun_with(Input::Begin { run, goal, context, setup, limits });
    bench.report(WorkReport::Planned(plan(features)));
    bench
}

fn answered(bench: &mut Bench, feature: &str, answer: &str) {
    bench.tell(Input::Answered { feature: Some(feature.into()), answer: answer.into() });
}

#[track_caller]
fn check_waits(bench: &Bench, feature: &str, words: &[&str]) {
    let feature = bench.state.feature(feature).expect("planned");
    assert_eq!(
        (feature.status, feature.blocked_by),
        (FeatureStatus::Blocked, Some(BlockedBy::Question)),
        "{feature:?}"
    );
    for words in words {
        assert!(feature.why.contains(words), "no `{words}` in {}", feature.why);
    }
}

/// The criteria that the evaluator is asked about now.
#[track_caller]
fn judged_by(bench: &Bench) -> Vec<String> {
    let WorkKind::Judge { criteria, .. } = bench.work().job else { panic!("not judged: {}", bench.key()) };
    criteria.into_iter().map(|criterion| criterion.id).collect()
}

#[test]
fn a_feature_whose_only_check_was_green_before_does_not_pass_with_nothing_done() {
    let mut bench = begun(false, vec![checked("a", &[]), checked("b", &["a"]), checked("c", &[])]);
    bench.report(prepared(&["t"]));
    bench.report(WorkReport::Unchanged(outcome("it is all there")));
    assert_eq!(bench.key(), "f-a/discard", "nobody was asked to judge nothing");
    bench.report(WorkReport::Discarded);
    let command = "longhaul answer r-1 --feature a --text done";
    check_waits(&bench, "a", &["already true before the work began", "`t`", "nothing was changed", command]);
    assert_eq!(bench.state.feature("b").map(|b| b.status), Some(FeatureStatus::Blocked));
    assert_eq!(bench.key(), "f-c/prepare", "what does not wait for it goes on");

    answered(&mut bench, "a", "Done.");
    let a = bench.state.feature("a").expect("planned");
    assert_eq!(
        (a.status, a.why.as_str()),
        (FeatureStatus::Passing, "true before the work began, as the operator says")
    );
    assert_eq!(bench.state.feature("b").map(|b| b.status), Some(FeatureStatus::NotStarted), "nobody is stranded");
}

#[test]
fn a_change_that_only_a_vacuous_check_decides_is_judged_by_what_was_asked_for() {
    let mut bench = begun(false, vec![checked("a", &[])]);
    bench.report(prepared(&["t"]));
    bench.generated();
    assert_eq!(judged_by(&bench), ["t", "as-asked"]);
    bench.judged(Mark::Fail);
    assert_eq!(bench.key(), "f-a/2/generate");
    bench.generated();
    bench.judged(Mark::Pass);
    let evidence = bench.last.iter().find_map(|action| match action {
        Action::Emit(Event::Judged { evidence, passed: true, .. }) => Some(evidence.clone()),
        _ => None,
    });
    let expected = [("as-asked".to_owned(), Evidence::Reading), ("t".to_owned(), Evidence::VacuousCheck)];
    assert_eq!(evidence, Some(expected.into()));
    bench.committed();
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

/// A feature that the native check `cargo-test` decides.
fn judged_natively(setup: HarnessSetup) -> Option<Evidence> {
    let check = CheckSpec { name: "t".into(), body: CheckBody::Native("cargo-test".into()) };
    let Input::Begin { run, goal, context, limits, .. } = begin(HarnessLimits::default()) else { unreachable!() };
    let mut bench = Bench::begun_with(Input::Begin { run, goal, context, setup, limits });
    bench.report(WorkReport::Planned(plan(vec![FeatureSpec { checks: vec![check], ..checked("a", &[]) }])));
    bench.report(prepared(&[]));
    bench.generated();
    bench.judged(Mark::Pass);
    bench.last.iter().find_map(|action| match action {
        Action::Emit(Event::Judged { evidence, passed: true, .. }) => evidence.get("t").copied(),
        _ => None,
    })
}

#[test]
fn a_pass_by_less_than_tests_and_counterexamples_is_told_as_such() {
    let by_exit_code = |name: &str| HarnessSetup { exit_checks: [name.to_owned()].into(), ..setup() };
    assert_eq!(judged_natively(by_exit_code("cargo-test")), Some(Evidence::ExitCode));
    assert_eq!(judged_natively(by_exit_code("another")), Some(Evidence::Check));
    for weak in [Evidence::Junit, Evidence::TestNames] {
        let setup = |name: &str| HarnessSetup { weak_checks: [(name.to_owned(), weak)].into(), ..setup() };
        assert_eq!(judged_natively(setup("cargo-test")), Some(weak));
        assert_eq!(judged_natively(setup("another")), Some(Evidence::Check));
    }
}

#[test]
fn a_check_that_failed_before_shows_nothing_where_the_work_changed_nothing() {
    let mut bench = begun(false, vec![checked("a", &[])]);
    bench.report(prepared(&[]));
    bench.report(WorkReport::Unchanged(outcome("it is all there")));
    assert_eq!(judged_by(&bench), ["t"]);
    bench.judged(Mark::Pass);
    bench.report(WorkReport::Discarded);
    check_waits(&bench, "a", &["nothing was changed"]);
}

#[test]
fn before_work_that_nobody_could_judge_a_person_is_asked() {
    let mut bench = begun(true, vec![checked("a", &[])]);
    bench.report(prepared(&["t"]));
    let words = ["passed before the work began", "`check-evaluator` judges by checks alone", "features edit a"];
    check_waits(&bench, "a", &words);
    assert_eq!(bench.state.status(), RunStatus::Incomplete);

    answered(&mut bench, "a", "go on, I look at it myself");
    bench.report(prepared(&["t"]));
    bench.report(WorkReport::Unchanged(outcome("nothing to do")));
    bench.report(WorkReport::Discarded);
    check_waits(&bench, "a", &["nothing was changed"]);

    answered(&mut bench, "a", "the name is missing");
    bench.report(prepared(&["t"]));
    bench.generated();
    assert_eq!(judged_by(&bench), ["t"], "their word is enough");
    bench.judged(Mark::Pass);
    bench.committed();
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

#[test]
fn an_edit_of_what_it_is_judged_by_takes_the_consent_back() {
    let mut bench = begun(true, vec![checked("a", &[])]);
    bench.report(prepared(&["t"]));
    answered(&mut bench, "a", "go on");
    let spec = FeatureSpec { instruction: "write more".into(), ..checked("a", &[]) };
    bench.tell(edited(spec));
    bench.report(WorkReport::Discarded);
    bench.report(prepared(&["t"]));
    check_waits(&bench, "a", &["passed before the work began"]);
}

#[test]
fn what_the_run_before_built_to_the_letter_passes_without_work() {
    let passed_before = |spec: FeatureSpec| {
        let mut bench = begun(false, vec![spec]);
        bench.report(prepared(&[]));
        bench.generated();
        bench.judged(Mark::Pass);
        bench.committed();
        bench.state.passed()
    };
    let begun = |now: FeatureSpec| {
        let Input::Begin { run, goal, context, limits, .. } = begin(HarnessLimits::default()) else { unreachable!() };
        let setup = HarnessSetup { passed_before: passed_before(checked("a", &[])), ..setup() };
        let mut bench = Bench::begun_with(Input::Begin { run, goal, context, setup, limits });
        bench.report(WorkReport::Planned(plan(vec![now])));
        bench
    };
    let mut bench = begun(checked("a", &[]));
    bench.report(prepared(&["t"]));
    assert_eq!(bench.state.status(), RunStatus::Completed, "nobody is paid for what is there");

    let mut bench = begun(checked("a", &[]));
    bench.report(prepared(&[]));
    assert_eq!(bench.key(), "f-a/1/generate", "its check fails by now");

    let mut bench = begun(FeatureSpec { instruction: "write more".into(), ..checked("a", &[]) });
    bench.report(prepared(&["t"]));
    assert_eq!(bench.key(), "f-a/1/generate", "more is asked for");
}

#[test]
fn a_criterion_that_nobody_can_judge_is_refused_before_anything_is_spent() {
    let bench = begun(true, vec![feature("a", &[])]);
    assert_eq!(bench.state.status(), RunStatus::Failed);
    let summary = serde_json::to_string(&bench.state.phase).expect("JSON");
    let words = ["criterion `works` of feature `a` names no check", "`check-evaluator` judges by checks alone"];
    for words in words {
        assert!(summary.contains(words), "{summary}");
    }
}

fn trial(feature: &str, outcome: TrialOutcome) -> Trial {
    Trial { feature: feature.into(), check: "t".into(), outcome }
}

/// A run whose planner proposed checks, which are tried.
fn tried(checks_only: bool, features: Vec<FeatureSpec>) -> Bench {
    let checks_only = checks_only.then(|| "check-evaluator".to_owned());
    let Input::Begin { run, goal, context, limits, .. } = begin(HarnessLimits::default()) else { unreachable!() };
    let setup = HarnessSetup { checks_only, ..setup() };
    let mut bench = Bench::begun_with(Input::Begin { run, goal, context, setup, limits });
    bench.tries_checks = true;
    bench.report(WorkReport::Planned(plan(features)));
    bench
}

#[test]
fn proposed_checks_are_tried_before_the_plan_is_taken() {
    let mut bench = tried(false, vec![checked("a", &[]), checked("b", &[])]);
    assert_eq!(bench.key(), "plan/try");
    let WorkKind::TryChecks { proposed, .. } = bench.work().job else { panic!("{}", bench.key()) };
    assert_eq!(proposed, [("a".to_owned(), "t".to_owned()), ("b".to_owned(), "t".to_owned())]);
    assert!(bench.state.features.is_empty(), "it is not taken yet");
    bench.look();
    bench.report(WorkReport::Tried(vec![trial("a", TrialOutcome::Fails), trial("b", TrialOutcome::Passes)]));
    expect_test::expect![[r#"
        - vacuous b t
        - planned 2
        - a in_progress: session 1
        do f-a/prepare"#]]
    .assert_eq(&bench.look());
    let shown = bench.last.iter().find_map(|action| match action {
        Action::Emit(Event::Planned { proposed, .. }) => Some(proposed.len()),
        _ => None,
    });
    assert_eq!(shown, Some(2), "people see what the planner proposed");
}

#[test]
fn a_check_that_cannot_be_loaded_goes_back_to_the_planner_once() {
    let cannot = || TrialOutcome::CannotLoad("SyntaxError: invalid\nsyntax".into());
    let mut bench = tried(false, vec![checked("a", &[])]);
    bench.report(WorkReport::Tried(vec![trial("a", cannot())]));
    assert_eq!(bench.key(), "plan/t2");
    let WorkKind::Plan { goal } = bench.work().job else { panic!("{}", bench.key()) };
    let notes = goal.context["notes"].to_string();
    assert!(notes.contains("check `t` of feature `a` cannot be loaded: SyntaxError: invalid syntax"), "{notes}");

    bench.report(WorkReport::Planned(plan(vec![checked("a", &[])])));
    assert_eq!(bench.key(), "plan/t2/try");
    bench.look();
    bench.report(WorkReport::Tried(vec![trial("a", cannot())]));
    let told = bench.look();
    assert!(told.contains("it is left out of the plan"), "{told}");
    let spec = &bench.state.feature("a").expect("taken").spec;
    assert!(spec.checks.is_empty() && spec.criteria[0].check.is_none(), "the evaluator reads it: {spec:?}");

    // Under an evaluator that only runs checks nothing is left that could pass.
    let mut bench = tried(true, vec![checked("a", &[])]);
    bench.report(WorkReport::Tried(vec![trial("a", cannot())]));
    bench.report(WorkReport::Planned(plan(vec![checked("a", &[])])));
    bench.report(WorkReport::Tried(vec![trial("a", cannot())]));
    assert_eq!(bench.state.status(), RunStatus::Failed);
}

#[test]
fn checks_that_the_goal_writes_are_the_operators_and_are_not_tried() {
    let written = CheckSpec { name: "t".into(), body: CheckBody::Python("build\n".into()) };
    let native = CheckSpec { name: "u".into(), body: CheckBody::Native("cargo-test".into()) };
    let bench = tried(false, vec![FeatureSpec { checks: vec![written, native], ..feature("a", &[]) }]);
    assert_eq!(bench.key(), "f-a/prepare");
}

#[test]
fn a_plan_whose_checks_cannot_be_tried_is_taken_and_told() {
    let mut bench = tried(false, vec![checked("a", &[])]);
    bench.look();
    bench.fail(WorkFailure::Failed("no room".into()));
    let told = bench.look();
    assert!(told.contains("were not tried before the work: no room") && told.contains("do f-a/prepare"), "{told}");
}

#[test]
fn a_resume_after_a_plan_was_tried_asks_for_nothing_twice() {
    let mut bench = tried(false, vec![checked("a", &[])]);
    bench.tell(Input::PauseRequested);
    bench.tell(resume());
    assert_eq!(bench.key(), "plan/try");
    bench.report(WorkReport::Tried(vec![trial("a", TrialOutcome::Fails)]));
    assert_eq!(bench.key(), "f-a/prepare");
}
