//! Parallel sessions: each in a tree of its own, committed in the order in which they pass.

use crate::bench::{Bench, feature, outage, run_of};
use expect_test::expect;
use longhaul_core::event::Event;
use longhaul_core::work::{FeatureStatus, Mark};
use longhaul_harness::state::WaitFor;
use longhaul_harness::{
    Action, HarnessLimits, Ignored, Input, OrderRefusal, PersonRequest, Reaction, RunState, RunStatus, WorkFailure,
    WorkReport,
};

fn limits() -> HarnessLimits {
    HarnessLimits { parallel_max: 2, ..HarnessLimits::default() }
}

fn three() -> Bench {
    Bench::planned(limits(), vec![feature("a", &[]), feature("b", &[]), feature("c", &["a"])])
}

impl Bench {
    #[track_caller]
    fn generated_on(&mut self, feature: &str) {
        let key = self.work_on(feature).key();
        self.report_on(&key, WorkReport::Generated(crate::bench::outcome("did it")));
    }

    #[track_caller]
    fn judged_on(&mut self, feature: &str, mark: Mark) {
        let work = self.work_on(feature);
        self.report_on(&work.key(), WorkReport::Judged(crate::bench::verdict(&work, mark)));
    }

    #[track_caller]
    fn report_for(&mut self, feature: &str, report: WorkReport) {
        let key = self.work_on(feature).key();
        self.report_on(&key, report);
    }
}

fn committed() -> WorkReport {
    WorkReport::Committed { commit: Some("c-1".into()), files: vec!["a.txt".into()], protected: vec![] }
}

fn slots(state: &RunState) -> Vec<(&str, u32)> {
    state.lanes.iter().filter_map(|lane| lane.session.as_ref()).map(|it| (it.feature.as_str(), it.slot)).collect()
}

#[test]
fn as_many_go_on_as_are_allowed_and_what_waits_for_another_comes_after_it() {
    let mut bench = three();
    assert_eq!(slots(&bench.state), [("a", 0), ("b", 1)]);
    bench.generated_on("b");
    bench.generated_on("a");
    bench.judged_on("a", Mark::Pass);
    bench.report_for("a", committed());
    // Its tree is free again, and in use.
    assert_eq!(slots(&bench.state), [("b", 1), ("c", 0)]);
    expect![[r#"
        do f-b/1/judge
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - committed a c-1 a.txt
        - a passing: all checks passed
        - c in_progress: session 1
        do f-c/1/generate"#]]
    .assert_eq(&bench.look());
}

#[test]
fn whoever_passes_second_is_brought_to_the_branch_and_judged_again() {
    let mut bench = three();
    for id in ["a", "b"] {
        bench.generated_on(id);
        bench.judged_on(id, Mark::Pass);
    }
    bench.report_for("a", committed());
    bench.report_for("b", WorkReport::Moved);
    bench.report_for("b", WorkReport::Merged { base: "c-1".into() });
    assert_eq!(bench.state.session("b").expect("it goes on").base.as_deref(), Some("c-1"));
    bench.look();
    bench.judged_on("b", Mark::Pass);
    bench.report_for("b", committed());
    expect![[r#"
        - judged b round 1: true
        do f-b/commit/m1
        - committed b c-1 a.txt
        - b passing: all checks passed"#]]
    .assert_eq(&bench.look());
}

#[test]
fn a_merge_that_breaks_what_was_asked_for_is_another_round() {
    let mut bench = three();
    bench.generated_on("b");
    bench.judged_on("b", Mark::Pass);
    bench.report_for("b", WorkReport::Moved);
    bench.report_for("b", WorkReport::Merged { base: "c-1".into() });
    bench.look();
    bench.judged_on("b", Mark::Fail);
    expect![[r#"
        - judged b round 1: false
        do f-b/2/generate"#]]
    .assert_eq(&bench.look());
}

#[test]
fn a_conflict_sends_the_later_one_back_and_counts_no_attempt() {
    let mut bench = three();
    bench.generated_on("b");
    bench.judged_on("b", Mark::Pass);
    bench.report_for("b", WorkReport::Moved);
    bench.report_for("b", WorkReport::Conflicted { files: vec!["lib.rs".into()] });
    bench.report_for("b", WorkReport::Discarded);
    let b = bench.state.feature("b").expect("b");
    assert_eq!((b.status, b.attempts, b.sessions), (FeatureStatus::InProgress, 0, 2));
    let task = bench.work_on("b");
    assert!(format!("{task:?}").contains("changed the same lines of `lib.rs`"), "the next session is told: {task:?}");
    expect![[r#"
        do f-b/1/judge
        - judged b round 1: true
        do f-b/commit
        do f-b/merge/m1
        - b not_started: passed, but the branch changed the same lines of `lib.rs`
        do f-b/discard
        - b in_progress: session 2
        do f-b/e1/1/generate"#]]
    .assert_eq(&bench.look());
}

#[test]
fn one_lane_waits_and_the_other_goes_on() {
    let mut bench = three();
    bench.report_for("a", WorkReport::Failed(outage(None)));
    assert_eq!((bench.state.status(), bench.state.wakes_at_ms()), (RunStatus::Working, Some(6_000)));
    bench.report_for("b", WorkReport::Failed(outage(None)));
    assert_eq!((bench.state.status(), bench.state.wakes_at_ms()), (RunStatus::Parked, Some(6_000)));
    bench.look();
    bench.now_ms = 6_000;
    bench.tell(Input::Woke);
    expect!["do f-a/1/generate/t2"].assert_eq(&bench.look());
    assert_eq!(bench.state.wakes_at_ms(), Some(11_000));
}

#[test]
fn an_answer_is_for_the_feature_that_it_names_when_two_ask() {
    let mut bench = three();
    for id in ["a", "b"] {
        let key = bench.work_on(id).key();
        bench.tell(Input::Parked {
            key,
            question: format!("was {id} sent?"),
            wanted: PersonRequest::Effect("longhaul answer RUN --question q-1 --skip".into()),
        });
    }
    let answer = |feature: Option<&str>| Input::Answered { feature: feature.map(str::to_owned), answer: "yes".into() };
    let refused = bench.try_tell(answer(None));
    assert_eq!(refused, Err(OrderRefusal::WhichQuestion { features: vec!["a".into(), "b".into()] }));
    bench.look();
    bench.tell(answer(Some("b")));
    bench.tell(answer(None));
    expect![[r#"
        do f-b/1/generate
        do f-a/1/generate"#]]
    .assert_eq(&bench.look());
}

#[test]
fn what_is_known_of_an_effect_is_for_the_work_that_it_names_and_can_be_taken_back() {
    let mut bench = three();
    let keys = ["a", "b"].map(|id| {
        let key = bench.work_on(id).key();
        let wanted = PersonRequest::Effect(format!("longhaul answer RUN --question q-{id} --skip"));
        bench.tell(Input::Parked { key: key.clone(), question: format!("was {id} sent?"), wanted });
        key
    });
    let resolved = |key: &String| Input::Resolved { key: key.clone() };
    let taken_back = |key: &String| Input::AnswerTakenBack {
        key: key.clone(),
        question: "was b sent?".into(),
        answer_with: "longhaul answer RUN --question q-b --skip".into(),
    };
    assert_eq!(bench.try_tell(taken_back(&keys[1])), Err(OrderRefusal::AnswerUsed), "it has no answer yet");
    bench.look();
    bench.tell(resolved(&keys[1]));
    assert_eq!(bench.try_tell(resolved(&keys[1])), Err(OrderRefusal::NoQuestion { feature: None }), "it waits no more");
    bench.tell(taken_back(&keys[1]));
    bench.tell(resolved(&keys[0]));
    expect![[r#"
        do f-b/1/generate
        - asks: was b sent? [longhaul answer r-1 --question q-b --skip]
        park
        do f-a/1/generate"#]]
    .assert_eq(&bench.look());
    let waits: Vec<_> = bench.state.waits().filter(|(_, wait)| wait.wait == WaitFor::Work).collect();
    assert_eq!(waits.len(), 1, "{waits:?}");
}

#[test]
fn who_approves_of_a_call_answers_no_question_of_its_feature() {
    let mut bench = three();
    let key = bench.work_on("a").key();
    let approved = || Input::Approved { key: key.clone() };
    let not_awaited = Ok(Reaction::Ignored(Ignored::NotAwaited));
    assert_eq!(bench.try_tell(approved()), not_awaited, "it does not wait yet");
    let wanted = PersonRequest::Approval("a-1".into());
    bench.tell(Input::Parked { key: key.clone(), question: "may it be sent?".into(), wanted });
    bench.look();
    bench.tell(approved());
    assert_eq!(bench.look(), "do f-a/1/generate");
    // It continued, and now asks another question.
    bench.report_for("a", WorkReport::Failed(WorkFailure::Blocked("which port?".into())));
    assert_eq!(bench.try_tell(approved()), not_awaited);
    assert!(bench.state.feature("a").expect("a").answers.is_empty());
}

#[test]
fn the_budget_ends_the_run_once_nobody_goes_on() {
    let limits = HarnessLimits { tokens_max: Some(3), ..limits() };
    let mut bench = Bench::planned(limits, vec![feature("a", &[]), feature("b", &[])]);
    bench.generated_on("a");
    // One token for the plan, one for each of the others.
    bench.judged_on("a", Mark::Fail);
    assert_eq!(bench.state.status(), RunStatus::Working);
    bench.report_for("b", WorkReport::Failed(WorkFailure::Failed("trap".into())));
    assert_eq!(bench.state.status(), RunStatus::Incomplete);
    let limit = |action: &Action| matches!(action, Action::Emit(Event::Limit { name, .. }) if name == "tokens_max");
    assert_eq!(bench.last.iter().filter(|action| limit(action)).count(), 1);
    bench.look();
    let limits = HarnessLimits { parallel_max: 2, ..HarnessLimits::default() };
    bench.tell(Input::Resume { retry_failing: false, limits: Some(limits) });
    expect![[r#"
        - resumed
        do f-a/2/generate
        do f-b/2/generate"#]]
    .assert_eq(&bench.look());
}

#[test]
fn a_state_of_the_first_version_goes_on_in_one_lane() {
    let mut bench = run_of(&["a"]).planned();
    bench.generated_on("a");
    let mut value: serde_json::Value = serde_json::from_str(&bench.state.to_json()).expect("JSON");
    let lane = value.as_object_mut().and_then(|fields| fields.remove("lanes")).expect("lanes")[0].clone();
    let old = ["feature", "round", "feedback", "earlier"];
    let session: serde_json::Map<_, _> =
        old.iter().map(|name| ((*name).to_owned(), lane["session"][name].clone())).collect();
    value["version"] = 1.into();
    value["session"] = session.into();
    value["outstanding"] = lane["work"].clone();
    value["phase"] = serde_json::json!({
        "phase": "waiting", "wait": "outage", "park": {"reason": "down", "until_ms": 7},
    });
    let mut state = RunState::from_json(&value.to_string()).expect("it is read");
    assert_eq!((state.version, state.status(), state.wakes_at_ms()), (2, RunStatus::Parked, Some(7)));
    let woke = longhaul_harness::step(&mut state, 8, Input::Woke).expect("taken");
    assert!(format!("{woke:?}").contains("f-a"), "{woke:?}");
    assert_eq!(state.lanes[0].work.key(), "f-a/1/judge");
}
