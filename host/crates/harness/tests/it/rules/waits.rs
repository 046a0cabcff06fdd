//! Waits of a run: questions to a person, refusals, outages of a service, and pauses.

use super::limits;
use crate::bench::{Bench, answered, denied, feature, outage, plan, resume, run_of};
use expect_test::expect;
use longhaul_core::event::Event;
use longhaul_core::work::{FeatureStatus, Mark};
use longhaul_core::{Denial, LimitHit};
use longhaul_harness::{
    Action, HarnessLimits, Ignored, Input, PersonRequest, RunStatus, WorkFailure, WorkKind, WorkReport, pending,
};

#[test]
fn a_question_blocks_its_feature_and_the_run_goes_on() {
    let mut bench = run_of(&["a", "b"]).planned();
    bench.fail(WorkFailure::Blocked("which port?".into()));
    bench.report(WorkReport::Discarded);
    bench.pass();
    assert_eq!(bench.state.status(), RunStatus::Incomplete);
    bench.tell(answered(Some("a")));
    let task = bench.task();
    assert_eq!(task.context["answers"], serde_json::json!([{"about": "which port?", "text": "use port 80"}]));
    bench.pass();
    bench.check_log(expect![[r#"
        - a blocked: which port?
        do f-a/discard
        - b in_progress: session 1
        do f-b/1/generate
        f-b/1 passes
        - ended incomplete
        finish incomplete: 1 of 2 features pass; blocked: `a` (which port?)
        - a not_started: its question was answered
        - resumed
        - a in_progress: session 2
        do f-a/e1/1/generate
        f-a/e1/1 passes
        - ended completed
        finish completed: 2 of 2 features pass"#]]);
}

#[test]
fn a_refusal_blocks_its_feature_until_a_resume() {
    let mut bench = run_of(&["a"]).planned();
    bench.fail(denied());
    bench.report(WorkReport::Discarded);
    bench.tell(resume());
    bench.check_log(expect![[r#"
        - a blocked: denied: no network; to allow it, add hosts
        do f-a/discard
        - ended incomplete
        finish incomplete: 0 of 1 features pass; blocked: `a` (denied: no network; to allow it, add hosts)
        - resumed
        - a not_started: retried after a refusal
        - a in_progress: session 2
        do f-a/e1/1/generate"#]]);
}

#[test]
fn an_outage_waits_longer_each_time_and_uses_no_round() {
    let mut bench = run_of(&["a"]).limited(|limits| limits.unavailable_retries_max = 2).planned();
    bench.fail(outage(None));
    bench.ignores(Input::Woke, Ignored::TooEarly);
    assert_eq!(bench.state.status(), RunStatus::Parked);
    bench.now_ms = 6_000;
    bench.tell(Input::Woke);
    bench.fail(outage(Some(u32::MAX)));
    bench.tell(resume());
    bench.fail(outage(None));
    bench.tell(resume());
    bench.pass();
    bench.check_log(expect![[r#"
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
        f-a/1 passes
        - ended completed
        finish completed: 1 of 1 features pass"#]]);
}

#[test]
fn work_that_waits_for_a_person_goes_on_under_its_key() {
    let mut bench = run_of(&["a"]).planned();
    let parked = |key: &str| Input::Parked {
        key: key.into(),
        question: "was the mail sent?".into(),
        wanted: PersonRequest::Effect("longhaul answer RUN --question q-1 --skip".into()),
    };
    bench.ignores(parked("f-a/9/generate"), Ignored::NotAwaited);
    bench.tell(parked("f-a/1/generate"));
    bench.ignores(parked("f-a/1/generate"), Ignored::NothingToDo);
    assert!(matches!(pending(&bench.state)[..], [Action::Park(_)]));
    bench.tell(answered(None));
    bench.pass();
    bench.check_log(expect![[r#"
        - asks: was the mail sent? [longhaul answer r-1 --question q-1 --skip]
        park
        do f-a/1/generate
        f-a/1 passes
        - ended completed
        finish completed: 1 of 1 features pass"#]]);
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
    let mut bench = run_of(&["a"]).limited(|limits| limits.repository_attempts_max = 2).planned();
    bench.generated();
    bench.judged(Mark::Pass);
    bench.fail(WorkFailure::Failed("index.lock exists".into()));
    bench.tell(resume());
    bench.fail(WorkFailure::Failed("index.lock exists".into()));
    bench.tell(resume());
    bench.report(WorkReport::Committed { commit: None, files: vec![], protected: vec![] });
    bench.check_log(expect![[r#"
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
        finish completed: 1 of 1 features pass"#]]);
    assert_eq!(bench.state.features[0].status, FeatureStatus::Passing);
}

/// A key that was refused used to block the feature, and an unknown model to use up its rounds.
#[test]
fn a_provider_that_refuses_for_good_waits_for_a_person_and_uses_no_round() {
    let refused = || {
        let fix = "check `id` of [models.gpt]".to_owned();
        WorkFailure::Rejected(Denial { reason: "HTTP 404: no such model".into(), fix })
    };
    let mut bench = run_of(&["a"]).planned();
    bench.fail(refused());
    bench.tell(resume());
    bench.generated();
    bench.fail(refused());
    bench.tell(resume());
    bench.judged(Mark::Pass);
    bench.committed();
    bench.check_log(expect![[r#"
        - asks: could not generate: HTTP 404: no such model; check `id` of [models.gpt] [longhaul resume r-1]
        park
        do f-a/1/generate
        do f-a/1/judge
        - asks: could not judge: HTTP 404: no such model; check `id` of [models.gpt] [longhaul resume r-1]
        park
        f-a/1 passes
        - ended completed
        finish completed: 1 of 1 features pass"#]]);
    assert_eq!(bench.state.features[0].status, FeatureStatus::Passing);
}

#[test]
fn a_pause_holds_the_next_work_back_and_takes_the_report_of_the_last() {
    let mut bench = run_of(&["a"]).planned();
    bench.tell(Input::PauseRequested);
    bench.ignores(Input::PauseRequested, Ignored::NothingToDo);
    bench.generated();
    assert_eq!(bench.state.status(), RunStatus::Paused);
    assert_eq!(pending(&bench.state), []);
    bench.tell(resume());
    bench.ignores(resume(), Ignored::NothingToDo);
    bench.judged(Mark::Pass);
    bench.committed();
    bench.check_log(expect![[r#"
        - paused
        - resumed
        f-a/1 passes
        - ended completed
        finish completed: 1 of 1 features pass"#]]);
}

/// The same work goes on under its key, and no retry of an outage is used up.
#[test]
fn who_used_up_the_day_of_the_project_waits_for_midnight_or_for_a_resume() {
    let midnight = 20_000 * 86_400_000;
    let over = |name: &str| WorkFailure::Budget(LimitHit::new(name, 1_200, 1_000));
    let mut bench = run_of(&["a"]).limited(|limits| limits.unavailable_retries_max = 0).planned();
    bench.now_ms = midnight - 5;
    bench.fail(over("cost_microdollars_per_day_max"));
    assert_eq!((bench.state.status(), bench.state.wakes_at_ms()), (RunStatus::Parked, Some(midnight)));
    assert!(!bench.state.waits().any(|(_, wait)| wait.wait.is_for_a_person()));
    bench.ignores(Input::Woke, Ignored::TooEarly);
    bench.now_ms = midnight;
    bench.tell(Input::Woke);
    bench.now_ms = midnight + 90_000;
    bench.fail(over("tokens_per_day_max"));
    assert_eq!(bench.state.wakes_at_ms(), Some(midnight + 86_400_000));
    // With a higher cap of the project.
    bench.tell(resume());
    bench.pass();
    bench.check_log(expect![[r#"
        - limit cost_microdollars_per_day_max: the project used up its day: the next call would take it to 1200 of 1000 (cost_microdollars_per_day_max); it goes on at 00:00 UTC, or after you raise cost_microdollars_per_day_max under [project] of longhaul.toml, with: longhaul resume r-1
        park until 1728000000000
        do f-a/1/generate
        - limit tokens_per_day_max: the project used up its day: the next call would take it to 1200 of 1000 (tokens_per_day_max); it goes on at 00:00 UTC, or after you raise tokens_per_day_max under [project] of longhaul.toml, with: longhaul resume r-1
        park until 1728086400000
        do f-a/1/generate
        f-a/1 passes
        - ended completed
        finish completed: 1 of 1 features pass"#]]);
}

#[test]
fn lanes_that_meet_the_end_of_one_day_tell_it_once_and_wait_together() {
    let mut bench = run_of(&["a", "b"]).limited(|limits| limits.parallel_max = 2).planned();
    bench.now_ms = 20_000 * 86_400_000 - 5;
    for key in ["f-a/1/generate", "f-b/1/generate"] {
        let over = LimitHit::new("tokens_per_day_max", 9, 8);
        bench.report_on(key, WorkReport::Failed(WorkFailure::Budget(over)));
        let told = bench.last.iter().filter(|action| matches!(action, Action::Emit(Event::Limit { .. }))).count();
        assert_eq!(told, usize::from(key.starts_with("f-a")));
    }
    bench.now_ms += 5;
    bench.tell(Input::Woke);
    let asked = bench.last.iter().filter(|action| matches!(action, Action::Work(_))).count();
    assert_eq!(asked, 2);
}
