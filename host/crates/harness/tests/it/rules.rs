//! The rules of a session, each as the requested actions and emitted events of a short run.

use crate::bench::{Bench, begin, denied, feature, limit, outage, outcome, plan, prepared, python_check, verdict};
use expect_test::{Expect, expect};
use longhaul_core::Denial;
use longhaul_core::event::Event;
use longhaul_core::work::{FeatureSpec, FeatureStatus, Issue, Judgement, Mark, Verdict};
use longhaul_harness::{
    Action, EndStatus, HarnessLimits, Ignored, Input, PersonRequest, Reaction, RunState, RunStatus, WorkFailure,
    WorkKind, WorkReport, pending, step,
};

/// A planned run of `features`, the acts on it, and its requests and events meanwhile.
#[track_caller]
fn check(limits: HarnessLimits, features: Vec<FeatureSpec>, acts: impl FnOnce(&mut Bench), expected: Expect) -> Bench {
    let mut bench = Bench::planned(limits, features);
    acts(&mut bench);
    expected.assert_eq(&bench.look());
    bench
}

fn limits() -> HarnessLimits {
    HarnessLimits::default()
}

fn resume() -> Input {
    Input::Resume { retry_failing: false, limits: None }
}

fn answered(feature: Option<&str>) -> Input {
    Input::Answered { feature: feature.map(Into::into), answer: "use port 80".into() }
}

fn dropped(id: &str) -> Input {
    Input::FeatureDropped { feature: id.into() }
}

#[track_caller]
fn check_refused(bench: &mut Bench, input: Input, expected: Expect) {
    let before = bench.state.clone();
    match bench.try_tell(input) {
        Err(refusal) => expected.assert_eq(&refusal.to_string()),
        Ok(reaction) => panic!("not refused: {reaction:?}"),
    }
    assert_eq!(bench.state, before, "a refusal changes nothing");
}

#[track_caller]
fn check_ignored(bench: &mut Bench, input: Input, expected: Ignored) {
    let before = bench.state.clone();
    assert_eq!(bench.try_tell(input), Ok(Reaction::Ignored(expected)));
    assert_eq!(bench.state, before, "what is ignored changes nothing");
}

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
    let acts = |bench: &mut Bench| {
        bench.generated();
        bench.judged(Mark::Fail);
        let WorkKind::Generate { task, round: 2, .. } = bench.work().job else { panic!("round 2") };
        assert_eq!(task.feedback, [Issue { criterion: Some("works".into()), text: "mend a".into() }]);
        assert_eq!((task.attempt, &task.context["earlier_rounds"]), (2, &serde_json::json!(["did it"])));
        bench.exhaust();
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
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
        finish incomplete: 0 of 1 features pass; failing: `a` (not passed after 3 rounds (iterations_max): mend a)"#]],
    );
}

#[test]
fn a_pass_in_the_last_round_counts() {
    let acts = |bench: &mut Bench| {
        for mark in [Mark::Unknown, Mark::Fail, Mark::Pass] {
            bench.generated();
            bench.judged(mark);
        }
        bench.committed();
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        do f-a/1/judge
        - judged a round 1: false
        do f-a/2/generate
        do f-a/2/judge
        - judged a round 2: false
        do f-a/3/generate
        do f-a/3/judge
        - judged a round 3: true
        do f-a/commit
        - committed a c-f-a/commit a.txt
        - a passing: all checks passed
        - ended completed
        finish completed: 1 of 1 features pass"#]],
    );
}

#[test]
fn a_criterion_that_failed_without_an_issue_is_feedback_too() {
    let mut bench = Bench::planned(limits(), vec![feature("a", &[])]);
    bench.generated();
    let why = "no\nfile ".repeat(1_000);
    let judgements = vec![
        Judgement { criterion: "works".into(), mark: Mark::Pass, why: "yes".into() },
        Judgement { criterion: "works".into(), mark: Mark::Fail, why },
        Judgement { criterion: "other".into(), mark: Mark::Pass, why: "not asked".into() },
    ];
    let many = (0..1_000).map(|n| Issue { criterion: Some("other".into()), text: format!("issue {n}") }).collect();
    bench.report(WorkReport::Judged(Verdict { judgements, issues: many }));
    let WorkKind::Generate { task, .. } = bench.work().job else { panic!("the next round") };
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
    let mut bench = Bench::planned(limits(), vec![feature("a", &[]), feature("b", &[])]);
    bench.generated();
    let files = vec!["`big.bin` has 70000000 bytes\nand more".to_owned(), "`git~1` has a name".to_owned()];
    bench.report(WorkReport::Unfit { files });
    let WorkKind::Generate { task, .. } = bench.work().job else { panic!("the next round") };
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
fn higher_priority_goes_first_and_dependencies_before_that() {
    let with = |id: &str, priority, depends_on: &[&str]| FeatureSpec { priority, ..feature(id, depends_on) };
    let features = vec![with("low", 1, &[]), with("high", 9, &["low"]), with("mid", 5, &[]), with("mid2", 5, &[])];
    let acts = |bench: &mut Bench| (0..4).for_each(|_| bench.pass());
    let bench = check(
        limits(),
        features,
        acts,
        expect![[r#"
        do f-mid/1/judge
        - judged mid round 1: true
        do f-mid/commit
        - committed mid c-f-mid/commit a.txt
        - mid passing: all checks passed
        - mid2 in_progress: session 1
        do f-mid2/1/generate
        do f-mid2/1/judge
        - judged mid2 round 1: true
        do f-mid2/commit
        - committed mid2 c-f-mid2/commit a.txt
        - mid2 passing: all checks passed
        - low in_progress: session 1
        do f-low/1/generate
        do f-low/1/judge
        - judged low round 1: true
        do f-low/commit
        - committed low c-f-low/commit a.txt
        - low passing: all checks passed
        - high in_progress: session 1
        do f-high/1/generate
        do f-high/1/judge
        - judged high round 1: true
        do f-high/commit
        - committed high c-f-high/commit a.txt
        - high passing: all checks passed
        - ended completed
        finish completed: 4 of 4 features pass"#]],
    );
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

#[test]
fn checks_are_pinned_first_and_vacuous_ones_are_told() {
    let with_checks = FeatureSpec { checks: vec![python_check("t")], ..feature("a", &[]) };
    let acts = |bench: &mut Bench| {
        bench.report(prepared(&["t", "made-up"]));
        let WorkKind::Generate { task, .. } = bench.work().job else { panic!("a round") };
        assert_eq!(task.context["checks_vacuous"], serde_json::json!(["t"]));
    };
    check(
        limits(),
        vec![with_checks],
        acts,
        expect![[r#"
        - vacuous a t
        do f-a/1/generate"#]],
    );
}

#[test]
fn checks_that_cannot_be_pinned_fail_the_feature_and_denied_ones_block_it() {
    let with_checks = |id| FeatureSpec { checks: vec![python_check("t")], ..feature(id, &[]) };
    let acts = |bench: &mut Bench| {
        bench.fail(WorkFailure::Failed("disk full".into()));
        bench.fail(denied());
    };
    check(
        limits(),
        vec![with_checks("a"), with_checks("b")],
        acts,
        expect![[r#"
        - a failing: its checks could not be pinned: disk full
        - b in_progress: session 1
        do f-b/prepare
        - b blocked: its checks could not be pinned: denied: no network; to allow it, add hosts
        - ended incomplete
        finish incomplete: 0 of 2 features pass; failing: `a` (its checks could not be pinned: disk full); blocked: `b` (its checks could not be pinned: denied: no network; to allow it, add hosts)"#]],
    );
}

#[test]
fn whoever_depends_on_a_failing_feature_is_blocked_and_freed_when_it_passes() {
    let features = vec![feature("a", &[]), feature("b", &["a"]), feature("c", &["b"])];
    let acts = |bench: &mut Bench| {
        bench.exhaust();
        bench.tell(Input::Resume { retry_failing: true, limits: None });
        bench.pass();
    };
    check(
        limits(),
        features,
        acts,
        expect![[r#"
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
        do f-a/e1/1/judge
        - judged a round 1: true
        do f-a/e1/commit
        - committed a c-f-a/e1/commit a.txt
        - a passing: all checks passed
        - b not_started: no longer waits for another
        - c not_started: no longer waits for another
        - b in_progress: session 1
        do f-b/1/generate"#]],
    );
}

#[test]
fn a_failing_feature_is_tried_as_often_as_the_limit_says_after_the_others() {
    let limits = HarnessLimits { feature_attempts_max: 2, iterations_max: 1, ..limits() };
    let acts = |bench: &mut Bench| {
        bench.exhaust();
        bench.pass();
        bench.exhaust();
    };
    check(
        limits,
        vec![feature("a", &[]), feature("b", &[])],
        acts,
        expect![[r#"
        do f-a/1/judge
        - judged a round 1: false
        - a failing: not passed after 1 round (iterations_max): mend a
        do f-a/discard
        - b in_progress: session 1
        do f-b/1/generate
        do f-b/1/judge
        - judged b round 1: true
        do f-b/commit
        - committed b c-f-b/commit a.txt
        - b passing: all checks passed
        - a in_progress: session 2
        do f-a/e1/1/generate
        do f-a/e1/1/judge
        - judged a round 1: false
        - a failing: not passed after 1 round (iterations_max): mend a
        do f-a/e1/discard
        - ended incomplete
        finish incomplete: 1 of 2 features pass; failing: `a` (not passed after 1 round (iterations_max): mend a)"#]],
    );
}

#[test]
fn a_question_blocks_its_feature_and_the_run_goes_on() {
    let acts = |bench: &mut Bench| {
        bench.fail(WorkFailure::Blocked("which port?".into()));
        bench.report(WorkReport::Discarded);
        bench.pass();
        assert_eq!(bench.state.status(), RunStatus::Incomplete);
        bench.tell(answered(Some("a")));
        let WorkKind::Generate { task, .. } = bench.work().job else { panic!("a round") };
        assert_eq!(task.context["answers"], serde_json::json!([{"about": "which port?", "text": "use port 80"}]));
        bench.pass();
    };
    check(
        limits(),
        vec![feature("a", &[]), feature("b", &[])],
        acts,
        expect![[r#"
        - a blocked: which port?
        do f-a/discard
        - b in_progress: session 1
        do f-b/1/generate
        do f-b/1/judge
        - judged b round 1: true
        do f-b/commit
        - committed b c-f-b/commit a.txt
        - b passing: all checks passed
        - ended incomplete
        finish incomplete: 1 of 2 features pass; blocked: `a` (which port?)
        - a not_started: its question was answered
        - resumed
        - a in_progress: session 2
        do f-a/e1/1/generate
        do f-a/e1/1/judge
        - judged a round 1: true
        do f-a/e1/commit
        - committed a c-f-a/e1/commit a.txt
        - a passing: all checks passed
        - ended completed
        finish completed: 2 of 2 features pass"#]],
    );
}

#[test]
fn a_refusal_blocks_its_feature_until_a_resume() {
    let acts = |bench: &mut Bench| {
        bench.fail(denied());
        bench.report(WorkReport::Discarded);
        bench.tell(resume());
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        - a blocked: denied: no network; to allow it, add hosts
        do f-a/discard
        - ended incomplete
        finish incomplete: 0 of 1 features pass; blocked: `a` (denied: no network; to allow it, add hosts)
        - resumed
        - a not_started: retried after a refusal
        - a in_progress: session 2
        do f-a/e1/1/generate"#]],
    );
}

#[test]
fn a_limit_or_a_trap_uses_a_round_and_is_its_feedback() {
    let acts = |bench: &mut Bench| {
        bench.fail(limit());
        let WorkKind::Generate { task, .. } = bench.work().job else { panic!("a round") };
        assert_eq!(task.feedback, [Issue::general("the round ended early: limit `fuel_max` reached: 11 of 10")]);
        bench.fail(WorkFailure::Failed("trap: unreachable".into()));
        bench.fail(limit());
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        do f-a/2/generate
        do f-a/3/generate
        - a failing: not passed after 3 rounds (iterations_max): the round ended early: limit `fuel_max` reached: 11 of 10
        do f-a/discard"#]],
    );
}

#[test]
fn an_impossible_task_is_not_tried_again() {
    let acts = |bench: &mut Bench| bench.fail(WorkFailure::Impossible("no such thing".into()));
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        - a failing: impossible as written: no such thing
        do f-a/discard"#]],
    );
}

#[test]
fn an_evaluator_that_fails_passes_nobody() {
    let acts = |bench: &mut Bench| {
        bench.generated();
        bench.fail(denied());
        let WorkKind::Generate { task, .. } = bench.work().job else { panic!("a round") };
        assert_eq!(
            task.feedback,
            [Issue::general("the evaluator gave no verdict: denied: no network; to allow it, add hosts")]
        );
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        do f-a/1/judge
        - judged a round 1: false
        do f-a/2/generate"#]],
    );
}

#[test]
fn an_outage_waits_longer_each_time_and_uses_no_round() {
    let limits = HarnessLimits { unavailable_retries_max: 2, ..limits() };
    let acts = |bench: &mut Bench| {
        bench.fail(outage(None));
        check_ignored(bench, Input::Woke, Ignored::TooEarly);
        assert_eq!(bench.state.status(), RunStatus::Parked);
        bench.now_ms = 6_000;
        bench.tell(Input::Woke);
        bench.fail(outage(Some(u32::MAX)));
        bench.tell(resume());
        bench.fail(outage(None));
        bench.tell(resume());
        bench.pass();
    };
    check(
        limits,
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        - warning: could not generate: the model is down; trying again in 5 s (1 of 2), or at once with: longhaul resume r-1
        park until 6000
        do f-a/1/generate/t2
        - warning: could not generate: the model is down; trying again in 3600 s (2 of 2), or at once with: longhaul resume r-1
        park until 3606000
        do f-a/1/generate/t3
        - limit unavailable_retries_max: 3 outages in a row: the model is down; resume when it is there again
        - ended incomplete
        finish incomplete: 0 of 1 features pass; in progress: `a` (session 1); stopped at unavailable_retries_max: 3 outages in a row: the model is down; resume when it is there again
        - resumed
        do f-a/1/generate/t4
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - committed a c-f-a/commit a.txt
        - a passing: all checks passed
        - ended completed
        finish completed: 1 of 1 features pass"#]],
    );
}

#[test]
fn work_that_waits_for_a_person_goes_on_under_its_key() {
    let acts = |bench: &mut Bench| {
        let parked = |key: &str| Input::Parked {
            key: key.into(),
            question: "was the mail sent?".into(),
            wanted: PersonRequest::Effect("longhaul answer RUN --question q-1 --skip".into()),
        };
        check_ignored(bench, parked("f-a/9/generate"), Ignored::NotAwaited);
        bench.tell(parked("f-a/1/generate"));
        check_ignored(bench, parked("f-a/1/generate"), Ignored::NothingToDo);
        assert!(matches!(pending(&bench.state)[..], [Action::Park(_)]));
        bench.tell(answered(None));
        bench.pass();
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
            - asks: was the mail sent? [longhaul answer r-1 --question q-1 --skip]
            park
            do f-a/1/generate
            do f-a/1/judge
            - judged a round 1: true
            do f-a/commit
            - committed a c-f-a/commit a.txt
            - a passing: all checks passed
            - ended completed
            finish completed: 1 of 1 features pass"#]],
    );
}

#[test]
fn an_unclear_goal_is_asked_about_and_the_answer_reaches_the_planner() {
    let mut bench = Bench::begun(limits());
    bench.fail(WorkFailure::Blocked("which language?".into()));
    bench.tell(answered(None));
    let WorkKind::Plan { goal } = bench.work().job else { panic!("a plan") };
    assert_eq!(goal.context["notes"], serde_json::json!([{"about": "which language?", "text": "use port 80"}]));
    assert_eq!(goal.context["project"], "p");
    bench.report(WorkReport::Planned(plan(vec![feature("a", &[])])));
    expect![[r#"
        do plan
        - asks: which language? [longhaul answer r-1 --text ANSWER; or mend the goal's file, then: longhaul resume r-1 --reread-goal]
        park
        do plan/t2
        - planned 1
        - a in_progress: session 1
        do f-a/1/generate"#]]
    .assert_eq(&bench.look());
}

#[test]
fn a_refused_plan_is_asked_for_again_while_attempts_are_left() {
    let mut bench = Bench::begun(HarnessLimits { plan_attempts_max: 2, ..limits() });
    bench.report(WorkReport::Planned(plan(vec![])));
    let WorkKind::Plan { goal } = bench.work().job else { panic!("a plan") };
    assert_eq!(goal.context["notes"][0]["text"], "the plan has no features; give it at least one");
    bench.fail(WorkFailure::Failed("no JSON".into()));
    bench.tell(resume());
    bench.report(WorkReport::Planned(plan(vec![feature("a", &[])])));
    expect![[r#"
        do plan
        - warning: plan 1 was refused: the plan has no features; give it at least one
        do plan/t2
        - ended failed
        finish failed: no plan: no JSON
        - resumed
        do plan/t3
        - planned 1
        - a in_progress: session 1
        do f-a/1/generate"#]]
    .assert_eq(&bench.look());
}

#[test]
fn a_repository_that_cannot_be_written_waits_for_a_person_and_not_for_ever() {
    let limits = HarnessLimits { repository_attempts_max: 2, ..limits() };
    let acts = |bench: &mut Bench| {
        bench.generated();
        bench.judged(Mark::Pass);
        bench.fail(WorkFailure::Failed("index.lock exists".into()));
        bench.tell(resume());
        bench.fail(WorkFailure::Failed("index.lock exists".into()));
        bench.tell(resume());
        bench.report(WorkReport::Committed { commit: None, files: vec![], protected: vec![] });
    };
    let bench = check(
        limits,
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - asks: could not commit feature `a`: index.lock exists; mend the repository, then resume [longhaul resume r-1]
        park
        do f-a/commit/t2
        - limit repository_attempts_max: to commit feature `a` failed 2 times: index.lock exists; mend the repository and resume
        - ended incomplete
        finish incomplete: 0 of 1 features pass; in progress: `a` (session 1); stopped at repository_attempts_max: to commit feature `a` failed 2 times: index.lock exists; mend the repository and resume
        - resumed
        do f-a/commit/t3
        - a passing: all checks passed; nothing had changed
        - ended completed
        finish completed: 1 of 1 features pass"#]],
    );
    assert_eq!(bench.state.features[0].status, FeatureStatus::Passing);
}

/// A key that was refused used to block the feature, and an unknown model to use up its rounds.
#[test]
fn a_provider_that_refuses_for_good_waits_for_a_person_and_uses_no_round() {
    let refused = || {
        let fix = "check `id` of [models.gpt]".to_owned();
        WorkFailure::Rejected(Denial { reason: "HTTP 404: no such model".into(), fix })
    };
    let acts = |bench: &mut Bench| {
        bench.fail(refused());
        bench.tell(resume());
        bench.generated();
        bench.fail(refused());
        bench.tell(resume());
        bench.judged(Mark::Pass);
        bench.committed();
    };
    let bench = check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
            - asks: could not generate: HTTP 404: no such model; check `id` of [models.gpt] [longhaul resume r-1]
            park
            do f-a/1/generate
            do f-a/1/judge
            - asks: could not judge: HTTP 404: no such model; check `id` of [models.gpt] [longhaul resume r-1]
            park
            do f-a/1/judge
            - judged a round 1: true
            do f-a/commit
            - committed a c-f-a/commit a.txt
            - a passing: all checks passed
            - ended completed
            finish completed: 1 of 1 features pass"#]],
    );
    assert_eq!(bench.state.features[0].status, FeatureStatus::Passing);
}

#[test]
fn a_pause_holds_the_next_work_back_and_takes_the_report_of_the_last() {
    let acts = |bench: &mut Bench| {
        bench.tell(Input::PauseRequested);
        check_ignored(bench, Input::PauseRequested, Ignored::NothingToDo);
        bench.generated();
        assert_eq!(bench.state.status(), RunStatus::Paused);
        assert_eq!(pending(&bench.state), []);
        bench.tell(resume());
        check_ignored(bench, resume(), Ignored::NothingToDo);
        bench.judged(Mark::Pass);
        bench.committed();
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        - paused
        - resumed
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - committed a c-f-a/commit a.txt
        - a passing: all checks passed
        - ended completed
        finish completed: 1 of 1 features pass"#]],
    );
}

#[test]
fn a_budget_stops_work_that_asks_models_and_never_a_commit() {
    let limits = HarnessLimits { tokens_max: Some(3), ..limits() };
    let acts = |bench: &mut Bench| {
        bench.pass();
        check_ignored(bench, Input::Woke, Ignored::NothingToDo);
        let raised = HarnessLimits { tokens_max: None, cost_microdollars_max: Some(10), ..HarnessLimits::default() };
        bench.tell(Input::Resume { retry_failing: false, limits: Some(raised) });
        bench.generated();
    };
    let bench = check(
        limits,
        vec![feature("a", &[]), feature("b", &[])],
        acts,
        expect![[r#"
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - committed a c-f-a/commit a.txt
        - a passing: all checks passed
        - limit tokens_max: the run used 4 of 3 tokens; raise tokens_max and resume
        - ended incomplete
        finish incomplete: 1 of 2 features pass; not started: `b`; stopped at tokens_max: the run used 4 of 3 tokens; raise tokens_max and resume
        - resumed
        - b in_progress: session 1
        do f-b/1/generate
        - limit cost_microdollars_max: the run cost 10 of 10 microdollars; raise cost_microdollars_max and resume
        - ended incomplete
        finish incomplete: 1 of 2 features pass; in progress: `b` (session 1); stopped at cost_microdollars_max: the run cost 10 of 10 microdollars; raise cost_microdollars_max and resume"#]],
    );
    assert_eq!((bench.state.used.usage.tokens(), bench.state.features[0].used.usage.tokens()), (5, 3));
    assert_eq!(pending(&bench.state), []);
}

#[test]
fn sessions_of_a_run_are_capped_until_a_resume() {
    let limits = HarnessLimits { sessions_max: 1, ..limits() };
    let acts = |bench: &mut Bench| {
        bench.pass();
        bench.tell(resume());
    };
    check(
        limits,
        vec![feature("a", &[]), feature("b", &[])],
        acts,
        expect![[r#"
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - committed a c-f-a/commit a.txt
        - a passing: all checks passed
        - limit sessions_max: the run had 1 session; resume it for as many more
        - ended incomplete
        finish incomplete: 1 of 2 features pass; not started: `b`; stopped at sessions_max: the run had 1 session; resume it for as many more
        - resumed
        - b in_progress: session 1
        do f-b/1/generate"#]],
    );
}

#[test]
fn features_that_fail_alike_in_a_row_stop_the_run() {
    let limits = HarnessLimits { failures_equal_max: 2, ..limits() };
    let fails = |bench: &mut Bench| {
        bench.fail(WorkFailure::Impossible("no compiler".into()));
        bench.report(WorkReport::Discarded);
    };
    let acts = |bench: &mut Bench| {
        fails(bench);
        bench.pass();
        fails(bench);
        assert_eq!(bench.state.status(), RunStatus::Working, "a pass between them starts the count again");
        fails(bench);
    };
    check(
        limits,
        ["a", "b", "c", "d", "e"].map(|id| feature(id, &[])).into(),
        acts,
        expect![[r#"
        - a failing: impossible as written: no compiler
        do f-a/discard
        - b in_progress: session 1
        do f-b/1/generate
        do f-b/1/judge
        - judged b round 1: true
        do f-b/commit
        - committed b c-f-b/commit a.txt
        - b passing: all checks passed
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
        finish incomplete: 1 of 5 features pass; failing: `a` (impossible as written: no compiler), `c` (impossible as written: no compiler), `d` (impossible as written: no compiler); not started: `e`; stopped at failures_equal_max: 2 features in a row failed alike: impossible as written: no compiler; mend what they share and resume"#]],
    );
}

#[test]
fn an_edit_of_the_feature_in_progress_begins_it_anew() {
    let acts = |bench: &mut Bench| {
        let old = bench.key();
        let spec = FeatureSpec { instruction: "write it in Rust".into(), ..feature("a", &[]) };
        bench.tell(Input::FeatureEdited { spec: spec.clone() });
        check_ignored(bench, Input::FeatureEdited { spec }, Ignored::NothingToDo);
        let late = |key: &str| Input::Done {
            key: key.into(),
            used: crate::bench::used(5),
            report: WorkReport::Generated(outcome("late")),
        };
        bench.tell(late(&old));
        assert_eq!(bench.state.used.usage.tokens(), 6, "what it used was used");
        check_ignored(bench, late(&old), Ignored::NotAwaited);
        bench.report(WorkReport::Discarded);
        let WorkKind::Generate { task, .. } = bench.work().job else { panic!("a round") };
        assert_eq!(task.instruction, "write it in Rust");
        bench.pass();
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        - a in_progress: edited by the operator
        cancel f-a/1/generate
        do f-a/discard
        - a in_progress: session 2
        do f-a/e1/1/generate
        do f-a/e1/1/judge
        - judged a round 1: true
        do f-a/e1/commit
        - committed a c-f-a/e1/commit a.txt
        - a passing: all checks passed
        - ended completed
        finish completed: 1 of 1 features pass"#]],
    );
}

#[test]
fn a_dropped_feature_is_called_off_and_who_depends_on_it_is_told() {
    let acts = |bench: &mut Bench| {
        bench.tell(dropped("a"));
        check_ignored(bench, dropped("a"), Ignored::NothingToDo);
        bench.report(WorkReport::Discarded);
        bench.tell(dropped("b"));
    };
    let bench = check(
        limits(),
        vec![feature("a", &[]), feature("b", &["a"])],
        acts,
        expect![[r#"
        - a dropped: dropped by the operator
        cancel f-a/1/generate
        do f-a/discard
        - b blocked: depends on `a`, which was dropped; edit `depends_on`, or drop this feature too
        - ended incomplete
        finish incomplete: 0 of 1 features pass; 1 dropped; blocked: `b` (depends on `a`, which was dropped; edit `depends_on`, or drop this feature too)
        - b dropped: dropped by the operator
        - resumed
        - ended completed
        finish completed: 0 of 0 features pass; 2 dropped"#]],
    );
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

#[test]
fn a_completed_run_is_taken_up_for_an_added_feature_or_an_edited_one() {
    let acts = |bench: &mut Bench| {
        bench.pass();
        bench.tell(Input::FeatureAdded { spec: feature("b", &["a"]) });
        bench.pass();
        bench.tell(Input::FeatureEdited { spec: FeatureSpec { priority: 7, ..feature("a", &[]) } });
        assert_eq!(bench.state.count(FeatureStatus::Passing), 1);
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - committed a c-f-a/commit a.txt
        - a passing: all checks passed
        - ended completed
        finish completed: 1 of 1 features pass
        - b not_started: added by the operator
        - resumed
        - b in_progress: session 1
        do f-b/1/generate
        do f-b/1/judge
        - judged b round 1: true
        do f-b/commit
        - committed b c-f-b/commit a.txt
        - b passing: all checks passed
        - ended completed
        finish completed: 2 of 2 features pass
        - a not_started: edited by the operator
        - resumed
        - a in_progress: session 2
        do f-a/e1/1/generate"#]],
    );
}

#[test]
fn an_edit_of_a_feature_that_a_limit_stopped_takes_the_run_up_from_a_clean_tree() {
    let limits = HarnessLimits { unavailable_retries_max: 0, ..limits() };
    let acts = |bench: &mut Bench| {
        bench.fail(outage(None));
        bench.tell(Input::FeatureEdited { spec: FeatureSpec { priority: 7, ..feature("a", &[]) } });
        bench.report(WorkReport::Discarded);
    };
    check(
        limits,
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        - limit unavailable_retries_max: 1 outages in a row: the model is down; resume when it is there again
        - ended incomplete
        finish incomplete: 0 of 1 features pass; in progress: `a` (session 1); stopped at unavailable_retries_max: 1 outages in a row: the model is down; resume when it is there again
        - a in_progress: edited by the operator
        - resumed
        do f-a/discard
        - a in_progress: session 2
        do f-a/e1/1/generate"#]],
    );
}

#[test]
fn orders_that_cannot_be_carried_out_are_refused_with_a_remedy() {
    let mut new = Bench::begun(limits());
    new.state = RunState::new();
    check_refused(
        &mut new,
        begin(HarnessLimits { iterations_max: 0, ..limits() }),
        expect!["`iterations_max` is 0, so nothing could ever be done; set it to 1 or more in [run.limits]"],
    );
    check_refused(&mut new, Input::PauseRequested, expect!["the run has not begun; begin it with a goal first"]);
    check_refused(&mut new, resume(), expect!["the run has not begun; begin it with a goal first"]);

    let mut planning = Bench::begun(limits());
    check_refused(&mut planning, dropped("a"), expect!["the plan is not there yet; edit features once it is"]);

    let small = HarnessLimits { features_max: 2, edits_max: 1, ..limits() };
    let mut run = Bench::planned(small, vec![feature("a", &[]), feature("b", &["a"])]);
    check_refused(&mut run, dropped("zz"), expect!["there is no feature `zz`; `longhaul features` lists them"]);
    check_refused(
        &mut run,
        answered(None),
        expect!["no question is open for the run; `longhaul status` shows what the run waits for"],
    );
    check_refused(
        &mut run,
        answered(Some("a")),
        expect!["no question is open for feature `a`; `longhaul status` shows what the run waits for"],
    );
    check_refused(
        &mut run,
        Input::FeatureAdded { spec: feature("c", &[]) },
        expect!["the plan has 3 features, features_max is 2; merge some, or raise it in [run.limits]"],
    );
    check_refused(
        &mut run,
        Input::FeatureEdited { spec: feature("a", &["b"]) },
        expect!["the features depend on each other in a circle: b -> a -> b; remove one of these dependencies"],
    );
    check_refused(
        &mut run,
        Input::FeatureEdited { spec: feature("b", &["c"]) },
        expect!["feature `b` depends on `c`, which is not in the plan; add it, or remove the dependency"],
    );
    run.generated();
    run.judged(Mark::Pass);
    check_refused(
        &mut run,
        dropped("a"),
        expect!["feature `a` has passed and is being committed; try again in a moment"],
    );
    run.committed();
    check_refused(
        &mut run,
        dropped("a"),
        expect!["feature `a` passes and is committed; to take it back, revert its commit"],
    );
    run.tell(dropped("b"));
    check_refused(
        &mut run,
        Input::FeatureEdited { spec: feature("b", &[]) },
        expect!["the feature list was edited 1 times, which is edits_max; raise it in [run.limits] and resume"],
    );

    let mut gone = Bench::planned(limits(), vec![feature("a", &[])]);
    gone.tell(Input::Abandon { reason: "no money".into() });
    check_refused(&mut gone, resume(), expect!["the run has ended as abandoned; start a new one"]);
    check_refused(&mut gone, dropped("a"), expect!["the run has ended as abandoned; start a new one"]);
}

#[test]
fn an_abandoned_run_calls_its_work_off() {
    let acts = |bench: &mut Bench| {
        bench.tell(Input::Abandon { reason: "no\nmoney".into() });
        check_ignored(bench, Input::Abandon { reason: "again".into() }, Ignored::NothingToDo);
    };
    check(
        limits(),
        vec![feature("a", &[])],
        acts,
        expect![[r#"
        cancel f-a/1/generate
        - ended abandoned
        finish abandoned: abandoned: no money; 0 of 1 features pass; in progress: `a` (session 1)"#]],
    );
}

#[test]
fn late_doubled_and_mismatched_reports_change_nothing() {
    let mut bench = Bench::planned(limits(), vec![feature("a", &[])]);
    let done = |key: &str, report| Input::Done { key: key.into(), used: crate::bench::used(1), report };
    let generated = || WorkReport::Generated(outcome("did it"));
    check_ignored(&mut bench, done("f-a/2/generate", generated()), Ignored::NotAwaited);
    check_ignored(&mut bench, done("plan", WorkReport::Planned(plan(vec![]))), Ignored::NotAwaited);
    let commit = WorkReport::Committed { commit: Some("c".into()), files: vec![], protected: vec![] };
    check_ignored(&mut bench, done("f-a/1/generate", commit), Ignored::WrongReport);
    bench.generated();
    check_ignored(&mut bench, done("f-a/1/generate", generated()), Ignored::NotAwaited);
    check_ignored(&mut bench, begin(limits()), Ignored::NothingToDo);
}

#[test]
fn a_commit_message_is_the_title_and_no_text_of_an_agent_can_add_a_trailer() {
    let mut bench = Bench::planned(limits(), vec![feature("a", &[])]);
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
        let bench = Bench::planned(HarnessLimits::default(), vec![spec]);
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
        let mut used = crate::bench::used(1);
        used.usage.cost_microdollars = cost;
        let report = WorkReport::Planned(plan(vec![feature("a", &[])]));
        bench.tell(Input::Done { key: "plan".into(), used, report });
        let loaded = RunState::from_json(&bench.state.to_json()).expect("it loads");
        assert_eq!((loaded.used.usage.cost_microdollars, loaded), (expected, bench.state), "{cost}");
    }
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
    let mut bench = Bench::planned(limits(), vec![feature("a", &[]), feature("b", &[]), feature("c", &["b"])]);
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
    check_ignored(&mut bench, reread("new", Vec::new(), &["c"]), Ignored::NothingToDo);
    let expected = expect!["feature `e` depends on `gone`, which is not in the plan; add it, or remove the dependency"];
    check_refused(&mut bench, reread("worse", vec![feature("e", &["gone"])], &[]), expected);
}
