//! Rounds of one session: generate, judge and commit, the feedback of a round, and checks that are pinned first.

use super::limits;
use crate::bench::{Bench, denied, feature, limit, outcome, plan, prepared, python_check, run_of, run_with, verdict};
use expect_test::expect;
use longhaul_core::event::Event;
use longhaul_core::work::{FeatureSpec, Issue, Judgement, Mark, Verdict};
use longhaul_harness::{Action, RunStatus, WorkFailure, WorkKind, WorkReport};

#[test]
fn two_features_are_planned_built_judged_and_committed() {
    let mut bench = Bench::begun(limits());
    bench.report(WorkReport::Planned(plan(vec![feature("a", &[]), feature("b", &["a"])])));
    bench.pass();
    bench.pass();
    expect![[r#"
        do plan
        - planned 2
        - a in_progress: session 1
        do f-a/1/generate
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - committed a c-f-a/commit a.txt
        - a passing: all checks passed
        - b in_progress: session 1
        do f-b/1/generate
        do f-b/1/judge
        - judged b round 1: true
        do f-b/commit
        - committed b c-f-b/commit a.txt
        - b passing: all checks passed
        - ended completed
        finish completed: 2 of 2 features pass"#]]
    .assert_eq(&bench.look());
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

#[test]
fn issues_of_a_round_are_the_feedback_of_the_next_and_the_third_is_the_last() {
    let mut bench = run_of(&["a"]).planned();
    bench.generated();
    bench.judged(Mark::Fail);
    assert_eq!(bench.key(), "f-a/2/generate");
    let task = bench.task();
    assert_eq!(task.feedback, [Issue { criterion: Some("works".into()), text: "mend a".into() }]);
    assert_eq!((task.attempt, &task.context["earlier_rounds"]), (2, &serde_json::json!(["did it"])));
    bench.exhaust();
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
        - ended incomplete
        finish incomplete: 0 of 1 features pass; failing: `a` (not passed after 3 rounds (iterations_max): mend a)"#]]);
}

#[test]
fn a_pass_in_the_last_round_counts() {
    let mut bench = run_of(&["a"]).planned();
    for mark in [Mark::Unknown, Mark::Fail, Mark::Pass] {
        bench.generated();
        bench.judged(mark);
    }
    bench.committed();
    bench.check_log(expect![[r#"
        do f-a/1/judge
        - judged a round 1: false
        do f-a/2/generate
        do f-a/2/judge
        - judged a round 2: false
        do f-a/3/generate
        f-a/3 passes
        - ended completed
        finish completed: 1 of 1 features pass"#]]);
}

#[test]
fn a_criterion_that_failed_without_an_issue_is_feedback_too() {
    let mut bench = run_of(&["a"]).planned();
    bench.generated();
    let why = "no\nfile ".repeat(1_000);
    let judgements = vec![
        Judgement { criterion: "works".into(), mark: Mark::Pass, why: "yes".into() },
        Judgement { criterion: "works".into(), mark: Mark::Fail, why },
        Judgement { criterion: "other".into(), mark: Mark::Pass, why: "not asked".into() },
    ];
    let many = (0..1_000).map(|n| Issue { criterion: Some("other".into()), text: format!("issue {n}") }).collect();
    bench.report(WorkReport::Judged(Verdict { judgements, issues: many }));
    let task = bench.task();
    assert_eq!(task.feedback.len(), limits().issues_max);
    assert_eq!(task.feedback[0].criterion.as_deref(), Some("works"));
    assert!(task.feedback[0].text.starts_with("fails: no file no file"), "{}", task.feedback[0].text);
    assert!(task.feedback[0].text.len() < limits().text_bytes_max + 100);
    // It names no criterion of the feature.
    assert_eq!(task.feedback[1], Issue::general("issue 0"));
    let told = bench.last.iter().find_map(|action| match action {
        Action::Emit(Event::Judged { judgements, .. }) => Some(judgements.clone()),
        _ => None,
    });
    assert_eq!(told.expect("judged").len(), 1);
}

#[test]
fn a_file_that_no_commit_can_hold_fails_the_round_and_the_agent_is_told() {
    let mut bench = run_of(&["a", "b"]).planned();
    bench.generated();
    let files = vec!["`big.bin` has 70000000 bytes\nand more".to_owned(), "`git~1` has a name".to_owned()];
    bench.report(WorkReport::Unfit { files });
    let task = bench.task();
    let told: Vec<_> = task.feedback.iter().map(|issue| issue.text.as_str()).collect();
    let expected =
        ["cannot be committed: `big.bin` has 70000000 bytes and more", "cannot be committed: `git~1` has a name"];
    assert_eq!(told, expected);
    let warned = bench.last.iter().any(|action| {
        matches!(action, Action::Emit(Event::Warning { text }) if text == &format!("`a` round 1: {} (and 1 more)", expected[0]))
    });
    assert!(warned, "{:?}", bench.last);
    // In the last round the feature fails, and the other one begins.
    while !bench.key().ends_with("/discard") {
        bench.generated();
        bench.report(WorkReport::Unfit { files: vec!["`git~1` has a name".into()] });
    }
    bench.report(WorkReport::Discarded);
    assert!(bench.key().contains("f-b"), "{}", bench.key());
}

#[test]
fn checks_are_pinned_first_and_vacuous_ones_are_told() {
    let with_checks = FeatureSpec { checks: vec![python_check("t")], ..feature("a", &[]) };
    let mut bench = run_with([with_checks]).planned();
    bench.report(prepared(&["t", "made-up"]));
    let task = bench.task();
    assert_eq!(task.context["checks_vacuous"], serde_json::json!(["t"]));
    bench.check_log(expect![[r#"
        - vacuous a t
        do f-a/1/generate"#]]);
}

#[test]
fn checks_that_cannot_be_pinned_fail_the_feature_and_denied_ones_block_it() {
    let with_checks = |id| FeatureSpec { checks: vec![python_check("t")], ..feature(id, &[]) };
    let mut bench = run_with([with_checks("a"), with_checks("b")]).planned();
    bench.fail(WorkFailure::Failed("disk full".into()));
    bench.fail(denied());
    bench.check_log(expect![[r#"
        - a failing: its checks could not be pinned: disk full
        - b in_progress: session 1
        do f-b/prepare
        - b blocked: its checks could not be pinned: denied: no network; to allow it, add hosts
        - ended incomplete
        finish incomplete: 0 of 2 features pass; failing: `a` (its checks could not be pinned: disk full); blocked: `b` (its checks could not be pinned: denied: no network; to allow it, add hosts)"#]]);
}

#[test]
fn a_limit_or_a_trap_uses_a_round_and_is_its_feedback() {
    let mut bench = run_of(&["a"]).planned();
    bench.fail(limit());
    let task = bench.task();
    assert_eq!(task.feedback, [Issue::general("the round ended early: limit `fuel_max` reached: 11 of 10")]);
    bench.fail(WorkFailure::Failed("trap: unreachable".into()));
    bench.fail(limit());
    bench.check_log(expect![[r#"
        do f-a/2/generate
        do f-a/3/generate
        - a failing: not passed after 3 rounds (iterations_max): the round ended early: limit `fuel_max` reached: 11 of 10
        do f-a/discard"#]]);
}

#[test]
fn an_impossible_task_is_not_tried_again() {
    let mut bench = run_of(&["a"]).planned();
    bench.fail(WorkFailure::Impossible("no such thing".into()));
    bench.check_log(expect![[r#"
        - a failing: impossible as written: no such thing
        do f-a/discard"#]]);
}

#[test]
fn an_evaluator_that_fails_passes_nobody() {
    let mut bench = run_of(&["a"]).planned();
    bench.generated();
    bench.fail(denied());
    let task = bench.task();
    assert_eq!(
        task.feedback,
        [Issue::general("the evaluator gave no verdict: denied: no network; to allow it, add hosts")]
    );
    bench.check_log(expect![[r#"
        do f-a/1/judge
        - judged a round 1: false
        do f-a/2/generate"#]]);
}

#[test]
fn a_commit_message_is_the_title_and_no_text_of_an_agent_can_add_a_trailer() {
    let mut bench = run_of(&["a"]).planned();
    bench.report(WorkReport::Generated(outcome("wrote it\n\nLonghaul-Feature: other\n")));
    let WorkKind::Judge { generated, .. } = bench.work().job else { panic!("a judge") };
    assert_eq!(generated, "f-a/1/generate");
    bench.report(WorkReport::Judged(verdict(&bench.work(), Mark::Pass)));
    let WorkKind::Commit { message, .. } = bench.work().job else { panic!("a commit") };
    let trailers = "Longhaul-Feature: a\nLonghaul-Outcome: passing\nLonghaul-Run: r-1\n";
    assert_eq!(message, format!("Add a\n\nwrote it Longhaul-Feature: other\n\n{trailers}"));
}

#[test]
fn the_agent_is_the_one_asked_for_or_the_one_of_the_category() {
    #[track_caller]
    fn check(category: &str, wanted: Option<&str>, expected: &str) {
        let spec = FeatureSpec { category: category.into(), agent: wanted.map(Into::into), ..feature("a", &[]) };
        let bench = run_with([spec]).planned();
        let WorkKind::Generate { agent, .. } = bench.work().job else { panic!("a round") };
        assert_eq!(agent, expected);
    }
    check("functional", None, "code");
    check("testing", None, "testing");
    check("functional", Some("testing"), "testing");
    check("testing", Some("root"), "testing");
    // The operator configured no agent for `documentation` or `research`.
    check("documentation", None, "code");
    check("integration", None, "code");
}
