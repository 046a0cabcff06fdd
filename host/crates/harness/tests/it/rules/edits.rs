//! Orders of the operator: features that are edited, added or dropped, a goal that is read again, the end of a run.

use super::limits;
use crate::bench::{
    Bench, added, answered, begin, dropped, edited, feature, outage, outcome, plan, resume, run_of, run_with, used,
};
use expect_test::expect;
use longhaul_core::work::{FeatureSpec, FeatureStatus, Mark};
use longhaul_harness::{HarnessLimits, Ignored, Input, RunState, RunStatus, WorkFailure, WorkKind, WorkReport};

#[test]
fn an_edit_of_the_feature_in_progress_begins_it_anew() {
    let mut bench = run_of(&["a"]).planned();
    let old = bench.key();
    let spec = FeatureSpec { instruction: "write it in Rust".into(), ..feature("a", &[]) };
    bench.tell(edited(spec.clone()));
    bench.ignores(edited(spec), Ignored::NothingToDo);
    let late =
        |key: &str| Input::Done { key: key.into(), used: used(5), report: WorkReport::Generated(outcome("late")) };
    bench.tell(late(&old));
    assert_eq!(bench.state.used.usage.tokens(), 6, "what it used was used");
    bench.ignores(late(&old), Ignored::NotAwaited);
    bench.report(WorkReport::Discarded);
    let task = bench.task();
    assert_eq!(task.instruction, "write it in Rust");
    bench.pass();
    bench.check_log(expect![[r#"
        - a in_progress: edited by the operator
        cancel f-a/1/generate
        do f-a/discard
        - a in_progress: session 2
        do f-a/e1/1/generate
        f-a/e1/1 passes
        - ended completed
        finish completed: 1 of 1 features pass"#]]);
}

#[test]
fn a_dropped_feature_is_called_off_and_who_depends_on_it_is_told() {
    let mut bench = run_with([feature("a", &[]), feature("b", &["a"])]).planned();
    bench.tell(dropped("a"));
    bench.ignores(dropped("a"), Ignored::NothingToDo);
    bench.report(WorkReport::Discarded);
    bench.tell(dropped("b"));
    bench.check_log(expect![[r#"
        - a dropped: dropped by the operator
        cancel f-a/1/generate
        do f-a/discard
        - b blocked: depends on `a`, which was dropped; edit `depends_on`, or drop this feature too
        - ended incomplete
        finish incomplete: 0 of 1 features pass; 1 dropped; blocked: `b` (depends on `a`, which was dropped; edit `depends_on`, or drop this feature too)
        - b dropped: dropped by the operator
        - resumed
        - ended completed
        finish completed: 0 of 0 features pass; 2 dropped"#]]);
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

#[test]
fn a_completed_run_is_taken_up_for_an_added_feature_or_an_edited_one() {
    let mut bench = run_of(&["a"]).planned();
    bench.pass();
    bench.tell(added(feature("b", &["a"])));
    bench.pass();
    bench.tell(edited(FeatureSpec { priority: 7, ..feature("a", &[]) }));
    assert_eq!(bench.state.count(FeatureStatus::Passing), 1);
    bench.check_log(expect![[r#"
        f-a/1 passes
        - ended completed
        finish completed: 1 of 1 features pass
        - b not_started: added by the operator
        - resumed
        - b in_progress: session 1
        do f-b/1/generate
        f-b/1 passes
        - ended completed
        finish completed: 2 of 2 features pass
        - a not_started: edited by the operator
        - resumed
        - a in_progress: session 2
        do f-a/e1/1/generate"#]]);
}

#[test]
fn an_edit_of_a_feature_that_a_limit_stopped_takes_the_run_up_from_a_clean_tree() {
    let mut bench = run_of(&["a"]).limited(|limits| limits.unavailable_retries_max = 0).planned();
    bench.fail(outage(None));
    bench.tell(edited(FeatureSpec { priority: 7, ..feature("a", &[]) }));
    bench.report(WorkReport::Discarded);
    bench.check_log(expect![[r#"
        - limit unavailable_retries_max: 1 outages in a row: the model is down; resume when it is there again
        - ended incomplete
        finish incomplete: 0 of 1 features pass; in progress: `a` (session 1); stopped at unavailable_retries_max: 1 outages in a row: the model is down; resume when it is there again
        - a in_progress: edited by the operator
        - resumed
        do f-a/discard
        - a in_progress: session 2
        do f-a/e1/1/generate"#]]);
}

#[test]
fn orders_that_cannot_be_carried_out_are_refused_with_a_remedy() {
    let mut new = Bench::begun(limits());
    new.state = RunState::new();
    new.refuses(
        begin(HarnessLimits { iterations_max: 0, ..limits() }),
        expect!["`iterations_max` is 0, so nothing could ever be done; set it to 1 or more in [run.limits]"],
    );
    new.refuses(Input::PauseRequested, expect!["the run has not begun; begin it with a goal first"]);
    new.refuses(resume(), expect!["the run has not begun; begin it with a goal first"]);

    let mut planning = Bench::begun(limits());
    planning.refuses(dropped("a"), expect!["the plan is not there yet; edit features once it is"]);

    let mut run = run_with([feature("a", &[]), feature("b", &["a"])])
        .limited(|limits| {
            limits.features_max = 2;
            limits.edits_max = 1;
        })
        .planned();
    run.refuses(dropped("zz"), expect!["there is no feature `zz`; `longhaul features` lists them"]);
    run.refuses(
        answered(None),
        expect!["no question is open for the run; `longhaul status` shows what the run waits for"],
    );
    run.refuses(
        answered(Some("a")),
        expect!["no question is open for feature `a`; `longhaul status` shows what the run waits for"],
    );
    run.refuses(
        added(feature("c", &[])),
        expect!["the plan has 3 features, features_max is 2; merge some, or raise it in [run.limits]"],
    );
    run.refuses(
        edited(feature("a", &["b"])),
        expect!["the features depend on each other in a circle: b -> a -> b; remove one of these dependencies"],
    );
    run.refuses(
        edited(feature("b", &["c"])),
        expect!["feature `b` depends on `c`, which is not in the plan; add it, or remove the dependency"],
    );
    run.generated();
    run.judged(Mark::Pass);
    run.refuses(dropped("a"), expect!["feature `a` has passed and is being committed; try again in a moment"]);
    run.committed();
    run.refuses(dropped("a"), expect!["feature `a` passes and is committed; to take it back, revert its commit"]);
    run.tell(dropped("b"));
    run.refuses(
        edited(feature("b", &[])),
        expect!["the feature list was edited 1 times, which is edits_max; raise it in [run.limits] and resume"],
    );

    let mut gone = run_of(&["a"]).planned();
    gone.tell(Input::Abandon { reason: "no money".into() });
    gone.refuses(resume(), expect!["the run has ended as abandoned; start a new one"]);
    gone.refuses(dropped("a"), expect!["the run has ended as abandoned; start a new one"]);
}

#[test]
fn an_abandoned_run_calls_its_work_off() {
    let mut bench = run_of(&["a"]).planned();
    bench.tell(Input::Abandon { reason: "no\nmoney".into() });
    bench.ignores(Input::Abandon { reason: "again".into() }, Ignored::NothingToDo);
    bench.check_log(expect![[r#"
        cancel f-a/1/generate
        - ended abandoned
        finish abandoned: abandoned: no money; 0 of 1 features pass; in progress: `a` (session 1)"#]]);
}

fn reread(goal: &str, features: Vec<FeatureSpec>, dropped: &[&str]) -> Input {
    let dropped = dropped.iter().map(|id| (*id).to_owned()).collect();
    Input::GoalReread { goal: goal.into(), steps: plan(features).steps, dropped }
}

/// A cycle used to stay in the run.
#[test]
fn a_goal_that_was_mended_is_planned_anew() {
    let mut bench = Bench::begun(limits());
    bench.report(WorkReport::Failed(WorkFailure::Blocked("`a` and `b` wait for each other".into())));
    bench.tell(reread("mended", Vec::new(), &[]));
    let WorkKind::Plan { goal } = bench.work().job else { panic!("a plan is asked for") };
    assert_eq!(goal.text, "mended");
    bench.report(WorkReport::Planned(plan(vec![feature("a", &[])])));
    expect![[r#"
        do plan
        - asks: `a` and `b` wait for each other [longhaul answer r-1 --text ANSWER; or mend the goal's file, then: longhaul resume r-1 --reread-goal]
        park
        do plan/t2
        - planned 1
        - a in_progress: session 1
        do f-a/1/generate"#]]
    .assert_eq(&bench.look());
}

#[test]
fn a_goal_that_is_read_again_adds_changes_and_drops_and_keeps_what_passes() {
    let mut bench = run_with([feature("a", &[]), feature("b", &[]), feature("c", &["b"])]).planned();
    bench.pass();
    bench.look();
    let changed = |id: &str| FeatureSpec { instruction: "otherwise".into(), ..feature(id, &[]) };
    bench.tell(reread("new", vec![changed("a"), changed("b"), feature("d", &["b"])], &["c", "a", "gone"]));
    expect![[r#"
        - b in_progress: changed by the goal
        cancel f-b/1/generate
        do f-b/discard
        - d not_started: added by the goal
        - c dropped: not in the goal any more
        - warning: `a` passes and stays as it is, though the goal says something else of it now"#]]
    .assert_eq(&bench.look());
    assert_eq!(bench.state.goal, "new");
    assert_eq!(bench.state.feature("a").map(|feature| feature.status), Some(FeatureStatus::Passing));
    bench.ignores(reread("new", Vec::new(), &["c"]), Ignored::NothingToDo);
    let expected = expect!["feature `e` depends on `gone`, which is not in the plan; add it, or remove the dependency"];
    bench.refuses(reread("worse", vec![feature("e", &["gone"])], &[]), expected);
}
