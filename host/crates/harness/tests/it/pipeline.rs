//! The strategy `pipeline`: failures lead to another plan, passing steps are kept, and in the end the planner
//! synthesises the results.

use crate::bench::{Bench, begin, feature, plan, prepared, setup};
use expect_test::expect;
use longhaul_core::work::{
    FeatureSpec, FeatureStatus, Judgement, Mark, OnFailure, Outcome, Plan, PlanStep, Synthesis, Verdict,
};
use longhaul_harness::{
    HarnessLimits, HarnessSetup, Input, RunState, RunStatus, Strategy, WorkFailure, WorkKind, WorkReport,
};

fn limits() -> HarnessLimits {
    HarnessLimits { iterations_max: 1, ..HarnessLimits::default() }
}

fn steps(steps: &[(&str, &[&str], OnFailure)]) -> Plan {
    let step = |(id, deps, on_failure): &(&str, &[&str], OnFailure)| PlanStep {
        spec: feature(id, deps),
        on_failure: *on_failure,
    };
    Plan { steps: steps.iter().map(step).collect(), notes: "as asked".into() }
}

fn begun(limits: HarnessLimits) -> Bench {
    let Input::Begin { run, goal, context, limits, .. } = begin(limits) else { panic!("a beginning") };
    let setup = HarnessSetup { strategy: Strategy::Pipeline, ..setup() };
    Bench::begun_with(Input::Begin { run, goal, context, setup, limits })
}

fn planned(limits: HarnessLimits, plan: Plan) -> Bench {
    let mut bench = begun(limits);
    bench.report(WorkReport::Planned(plan));
    bench.look();
    bench
}

fn synthesis() -> WorkReport {
    WorkReport::Synthesized(Synthesis {
        answer: "\"42\"".into(),
        confidence: Some(0.9),
        conflicts: vec![],
        unknowns: vec![],
    })
}

#[test]
fn passed_steps_are_kept_and_only_the_failures_are_planned_again() {
    let replan = OnFailure::Replan;
    let mut bench = planned(limits(), steps(&[("a", &[], replan), ("b", &[], replan), ("c", &["b"], replan)]));
    bench.pass();
    bench.exhaust();
    let WorkKind::Replan { plan, results, .. } = bench.work().job else { panic!("a replan") };
    assert_eq!(plan.steps.len(), 3);
    assert_eq!(results.iter().map(|it| (it.step.as_str(), it.passed)).collect::<Vec<_>>(), [("a", true), ("b", false)]);
    assert_eq!(results[1].issues[0].text, "mend b");
    // `a` passes and is kept; `c` is not named any more.
    bench.report(WorkReport::Planned(steps(&[("a", &[], replan), ("b2", &["a"], replan)])));
    bench.pass();
    bench.report(synthesis());
    expect![[r#"
        do f-a/1/judge
        - judged a round 1: true
        do f-a/commit
        - committed a c-f-a/commit a.txt
        - a passing: all checks passed
        - b in_progress: session 1
        do f-b/1/generate
        do f-b/1/judge
        - judged b round 1: false
        - b failing: not passed after 1 round (iterations_max): mend b
        do f-b/discard
        - c blocked: depends on `b`, which is failing
        do replan/1
        - warning: the new plan names what passes already and is kept: `a`
        - replanned 1: b2, kept a
        - b dropped: not in the plan any more (replan 1)
        - c dropped: not in the plan any more (replan 1)
        - b2 in_progress: session 1
        do f-b2/1/generate
        do f-b2/1/judge
        - judged b2 round 1: true
        do f-b2/commit
        - committed b2 c-f-b2/commit a.txt
        - b2 passing: all checks passed
        do synthesize/2
        - answered "42"
        - ended completed
        finish completed: 2 of 2 features pass; 2 dropped"#]]
    .assert_eq(&bench.look());
    assert_eq!(bench.state.answer.expect("an answer").answer, "\"42\"");
}

#[test]
fn the_last_replan_is_carried_out_and_then_a_person_is_asked_once() {
    let mut bench = planned(limits(), steps(&[("a", &[], OnFailure::Replan)]));
    for replan in 1..=2 {
        bench.exhaust();
        assert_eq!(bench.key(), format!("replan/{replan}"));
        bench.report(WorkReport::Planned(steps(&[("a", &[], OnFailure::Replan)])));
    }
    bench.look();
    bench.exhaust();
    expect![[r#"
        do f-a/e2/1/judge
        - judged a round 1: false
        - a failing: not passed after 1 round (iterations_max): mend a
        do f-a/e2/discard
        - asks: 3 plans did not lead to the goal; 0 of 1 features pass; failing: `a` (not passed after 1 round (iterations_max): mend a); what should be done differently? [longhaul answer r-1 --text ANSWER]
        park"#]]
    .assert_eq(&bench.look());
    assert_eq!(bench.state.status(), RunStatus::Parked);
    bench.tell(Input::Answered { feature: None, answer: "use a list".into() });
    let WorkKind::Replan { goal, .. } = bench.work().job else { panic!("a replan") };
    assert_eq!(goal.context["notes"][0]["text"], "use a list");
}

#[test]
fn what_the_plan_says_about_a_failure_is_done() {
    let skipped = |bench: &mut Bench| {
        bench.exhaust();
        // Its dependents continue without it.
        assert_eq!(bench.key(), "f-b/1/generate");
        bench.pass();
        bench.report(synthesis());
        assert_eq!(bench.state.status(), RunStatus::Incomplete);
    };
    let aborted = |bench: &mut Bench| {
        bench.exhaust();
        assert_eq!(bench.state.status(), RunStatus::Incomplete);
        assert!(bench.look().contains("given up, as the plan says, since `a` failed"));
    };
    let retried = |bench: &mut Bench| {
        for session in ["f-a", "f-a/e1", "f-a/e2"] {
            assert_eq!(bench.key(), format!("{session}/1/generate"));
            bench.exhaust();
        }
        assert_eq!(bench.key(), "replan/1");
    };
    let check = |on_failure, acts: &dyn Fn(&mut Bench)| {
        let mut bench = planned(limits(), steps(&[("a", &[], on_failure), ("b", &["a"], OnFailure::Replan)]));
        acts(&mut bench);
    };
    check(OnFailure::Skip, &skipped);
    check(OnFailure::Abort, &aborted);
    check(OnFailure::Retry(2), &retried);
}

#[test]
fn an_empty_or_circular_replan_is_refused_and_said() {
    for bad in
        [plan(vec![]), plan(vec![feature("x", &["y"]), feature("y", &["x"])]), plan(vec![feature("b", &["gone"])])]
    {
        let mut bench = planned(limits(), steps(&[("a", &[], OnFailure::Replan)]));
        bench.exhaust();
        bench.look();
        bench.report(WorkReport::Planned(bad));
        assert_eq!(bench.state.status(), RunStatus::Incomplete);
        assert!(bench.look().contains("no plan: "), "it says why");
    }
}

#[test]
fn a_step_whose_agent_doubts_it_is_looked_at_again_while_plans_are_left() {
    let limits = HarnessLimits { replans_max: 1, ..limits() };
    let mut bench = planned(limits, steps(&[("a", &[], OnFailure::Replan)]));
    bench.report(WorkReport::Generated(Outcome { confidence: Some(0.59), ..crate::bench::outcome("perhaps") }));
    bench.judged(longhaul_core::work::Mark::Pass);
    bench.committed();
    assert_eq!(bench.key(), "replan/1");
    bench.report(WorkReport::Planned(steps(&[("check-a", &["a"], OnFailure::Replan)])));
    bench.pass();
    assert_eq!(bench.key(), "synthesize/2");
    bench.fail(WorkFailure::Failed("no JSON".into()));
    assert_eq!(bench.state.status(), RunStatus::Completed);
    let answer = bench.state.answer.expect("their own words");
    assert_eq!((answer.answer.as_str(), answer.confidence), (r#""a: perhaps\ncheck-a: did it""#, Some(0.5)));
}

#[test]
fn what_one_step_said_reaches_those_that_depend_on_it() {
    let mut bench = planned(limits(), steps(&[("a", &[], OnFailure::Replan), ("b", &["a"], OnFailure::Replan)]));
    bench.pass();
    let task = bench.task();
    assert_eq!(task.context["depends_on"], serde_json::json!([{"id": "a", "summary": "did it"}]));
}

#[test]
fn a_full_journal_goes_on_in_a_fresh_invocation_and_uses_no_round() {
    let full = || WorkFailure::Limit(longhaul_core::LimitHit::new("journal_entries_max", 1_001, 1_000));
    let limits = HarnessLimits { handoffs_max: 1, iterations_max: 3, ..limits() };
    let mut bench = Bench::planned(limits, vec![feature("a", &[])]);
    bench.fail(full());
    let WorkKind::Generate { task, round, .. } = bench.work().job else { panic!("a round") };
    assert_eq!((round, &task.context["handoffs"]), (1, &serde_json::json!(1)));
    bench.fail(full());
    expect![[r#"
        - limit journal_entries_max: `a` goes on in a fresh invocation (1)
        do f-a/1/generate/h1
        - limit handoffs_max: `a`: its agent filled a journal (journal_entries_max) 2 times in a row and came to no result; handoffs_max is 1
        - a failing: its agent filled a journal (journal_entries_max) 2 times in a row and came to no result; handoffs_max is 1
        do f-a/discard"#]]
    .assert_eq(&bench.look());
}

#[test]
fn a_rubric_is_added_to_before_the_work_and_never_weakened() {
    let Input::Begin { run, goal, context, limits, .. } = begin(limits()) else { panic!("a beginning") };
    let setup = HarnessSetup { contract_by: Some("testing".into()), ..setup() };
    let mut bench = Bench::begun_with(Input::Begin { run, goal, context, setup, limits });
    bench.report(WorkReport::Planned(plan(vec![FeatureSpec { ..feature("a", &[]) }])));
    let WorkKind::Propose { agent, task, .. } = bench.work().job else { panic!("a proposal") };
    assert_eq!((agent.as_str(), &task.context["criteria"][0]["id"]), ("testing", &serde_json::json!("works")));
    let output = serde_json::json!({
        "criteria": [{"id": "works", "text": "anything goes"}, {"id": "empty", "text": "an empty list is refused"}],
        "checks": [{"name": "rejects", "python": "import lib; lib.f([])"}],
    });
    // A model that finishes with a text passes the object inside a string.
    bench.report(WorkReport::Proposed { output: serde_json::Value::String(output.to_string()).to_string() });
    let spec = &bench.state.feature("a").expect("a").spec;
    let criteria: Vec<_> = spec.criteria.iter().map(|it| (it.id.as_str(), it.text.as_str())).collect();
    assert_eq!(
        criteria,
        [("works", "it works"), ("empty", "an empty list is refused"), ("rejects", "the check `rejects` passes"),]
    );
    let WorkKind::Prepare { checks, .. } = bench.work().job else { panic!("they are pinned") };
    assert_eq!(checks.len(), 1);
    assert!(bench.look().contains("the proposed criterion `works` was left out"));
    bench.report(prepared(&[]));
    let WorkKind::Agree { criteria, output, .. } = bench.work().job else { panic!("the evaluator is asked") };
    assert_eq!(criteria.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["empty", "rejects"]);
    assert!(output.contains("Nothing is built yet"));
    let mark = |id: &str, mark| Judgement { criterion: id.into(), mark, why: "by the files".into() };
    let judgements = vec![mark("empty", Mark::Unknown), mark("rejects", Mark::Fail), mark("works", Mark::Unknown)];
    bench.report(WorkReport::Judged(Verdict { judgements, issues: vec![] }));
    expect![[r#"
        do f-a/agree
        - Contract { feature: "a", criteria: ["rejects"], checks: ["rejects"] }
        - warning: feature `a`: criterion `empty` is not added, the evaluator cannot judge it: by the files
        do f-a/1/generate"#]]
    .assert_eq(&bench.look());
    let spec = &bench.state.feature("a").expect("a").spec;
    assert_eq!(spec.criteria.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["works", "rejects"]);
    assert_eq!(spec.checks.len(), 1);
}

#[test]
fn what_the_evaluator_cannot_judge_is_not_added_with_its_check() {
    let Input::Begin { run, goal, context, limits, .. } = begin(limits()) else { panic!("a beginning") };
    let setup = HarnessSetup { contract_by: Some("testing".into()), ..setup() };
    let mut bench = Bench::begun_with(Input::Begin { run, goal, context, setup, limits });
    bench.report(WorkReport::Planned(plan(vec![feature("a", &[])])));
    let output = r#"{"checks": [{"name": "rejects", "python": "import lib"}]}"#;
    bench.report(WorkReport::Proposed { output: output.into() });
    bench.report(prepared(&["rejects"]));
    bench.fail(WorkFailure::Failed("no model".into()));
    assert_eq!(bench.state.feature("a").expect("a").spec, feature("a", &[]));
    assert_eq!(bench.key(), "f-a/1/generate");
}

#[test]
fn a_proposal_that_cannot_be_read_changes_nothing() {
    let check = |output: &str| {
        let Input::Begin { run, goal, context, limits, .. } = begin(limits()) else { panic!("a beginning") };
        let setup = HarnessSetup { contract_by: Some("testing".into()), ..setup() };
        let mut bench = Bench::begun_with(Input::Begin { run, goal, context, setup, limits });
        bench.report(WorkReport::Planned(plan(vec![feature("a", &[])])));
        bench.report(WorkReport::Proposed { output: output.into() });
        assert_eq!(bench.state.feature("a").expect("a").spec, feature("a", &[]), "{output}");
        assert_eq!(bench.key(), "f-a/1/generate", "{output}");
        let state: RunState = RunState::from_json(&bench.state.to_json()).expect("it loads");
        assert!(state.feature("a").is_some_and(|feature| feature.proposed));
        assert_eq!(state.count(FeatureStatus::InProgress), 1);
    };
    check("no idea");
    check("[]");
    check(r#"{"checks": [{"name": "../x", "python": "1"}]}"#);
    check(r#"{"checks": [{"name": "x", "python": ""}]}"#);
    check(r#"{"criteria": [{"id": "x", "text": "y", "check": "missing"}]}"#);
}
