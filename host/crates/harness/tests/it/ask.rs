//! Asks: the choice of the agent, failing or doubtful tasks, and inputs of a person or a clock meanwhile.

use crate::bench::{Bench, feature, outcome, resume};
use longhaul_core::RunId;
use longhaul_core::event::{Event, WorkUsage};
use longhaul_core::work::{FeatureStatus, OnFailure, Outcome, Plan, PlanStep, Synthesis};
use longhaul_harness::{
    Action, Dispatch, EndStatus, HarnessLimits, HarnessSetup, Input, OrderRefusal, RunState, RunStatus, Strategy,
    WorkFailure, WorkKind, WorkReport, pending, step,
};
use serde_json::json;

fn asked(dispatch: Dispatch, agents: &[&str]) -> Bench {
    Bench::begun_with(question(dispatch, agents, HarnessLimits::of_ask()))
}

fn question(dispatch: Dispatch, agents: &[&str], limits: HarnessLimits) -> Input {
    let agents = agents.iter().map(|name| (*name).to_owned()).collect();
    let setup = HarnessSetup { agents, strategy: Strategy::Ask, dispatch, ..HarnessSetup::default() };
    Input::Begin { run: RunId::from_text("r-1"), goal: "why?".into(), context: json!({}), setup, limits }
}

/// A plan of tasks, each with its handling of failure and its dependencies.
fn tasks(list: &[(&str, OnFailure, &[&str])]) -> Plan {
    let step = |(id, on_failure, depends_on): &(&str, OnFailure, &[&str])| {
        let mut spec = feature(id, depends_on);
        spec.criteria.clear();
        PlanStep { spec, on_failure: *on_failure }
    };
    Plan { steps: list.iter().map(step).collect(), notes: String::new() }
}

fn planned(list: &[(&str, OnFailure, &[&str])]) -> Bench {
    let mut bench = asked(Dispatch::Plan, &["a", "b"]);
    bench.report(WorkReport::Planned(tasks(list)));
    bench
}

fn says(text: &str) -> WorkReport {
    WorkReport::Generated(Outcome { output: json!({ "answer": text }).to_string(), ..outcome(text) })
}

fn fails() -> WorkReport {
    WorkReport::Failed(WorkFailure::Failed("no idea".into()))
}

fn keys(bench: &Bench) -> Vec<String> {
    bench.state.lanes.iter().map(|lane| lane.work.key()).collect()
}

fn status(bench: &Bench, id: &str) -> FeatureStatus {
    bench.state.feature(id).expect("a task").status
}

#[test]
fn one_agent_answers_without_anybody_choosing() {
    for dispatch in [Dispatch::Auto, Dispatch::Route, Dispatch::Agent("only".into())] {
        let mut bench = asked(dispatch, &["only"]);
        assert_eq!(bench.key(), "f-answer/1/generate");
        bench.report(says("because"));
        let answer = bench.state.answer.clone().expect("an answer");
        assert_eq!((answer.answer.as_str(), answer.confidence), ("\"because\"", Some(1.0)));
        assert_eq!(bench.state.status(), RunStatus::Completed);
    }
}

#[test]
fn of_several_agents_a_model_chooses_and_what_it_says_is_no_more_than_a_word() {
    let route = |path: &str, agent: &str| {
        let mut bench = asked(Dispatch::Auto, &["a", "b"]);
        assert_eq!(bench.key(), "choose/path");
        bench.report(WorkReport::Chosen(path.into()));
        if bench.key() == "plan" {
            return "plan".to_owned();
        }
        assert_eq!(bench.key(), "choose/agent");
        bench.report(WorkReport::Chosen(agent.into()));
        match bench.work().job {
            WorkKind::Generate { agent, .. } => agent,
            other => panic!("{other:?}"),
        }
    };
    let found = [("complex", ""), ("simple", "b"), ("who knows", "The agent is `b`."), ("", "c"), ("simple", "a or b")];
    let found: Vec<_> = found.iter().map(|(path, agent)| route(path, agent)).collect();
    assert_eq!(found, ["plan", "b", "b", "a", "a"]);
}

#[test]
fn an_ask_goes_on_where_no_model_can_choose() {
    let mut bench = asked(Dispatch::Auto, &["a", "b"]);
    bench.fail(WorkFailure::Failed("no model".into()));
    bench.fail(WorkFailure::Failed("no model".into()));
    assert!(matches!(bench.work().job, WorkKind::Generate { agent, .. } if agent == "a"));
}

#[test]
fn an_agent_that_is_not_there_is_refused_before_anything_runs() {
    let refused = step(&mut RunState::new(), 1, question(Dispatch::Agent("z".into()), &["a"], HarnessLimits::of_ask()));
    assert!(matches!(refused, Err(OrderRefusal::UnknownAgent { .. })), "{refused:?}");
    let refused = step(&mut RunState::new(), 1, question(Dispatch::Auto, &[], HarnessLimits::of_ask()));
    assert!(matches!(refused, Err(OrderRefusal::UnknownAgent { .. })), "{refused:?}");
}

#[test]
fn a_plan_that_cannot_be_carried_out_gets_one_repair_round() {
    let wrong: [(&str, Plan); 5] = [
        ("no features", tasks(&[])),
        ("a -> a", tasks(&[("a", OnFailure::Skip, &["a"])])),
        ("depends on `x`", tasks(&[("a", OnFailure::Skip, &["x"])])),
        ("used twice", tasks(&[("a", OnFailure::Skip, &[]), ("a", OnFailure::Skip, &[])])),
        ("agent `z`", {
            let mut plan = tasks(&[("a", OnFailure::Skip, &[])]);
            plan.steps[0].spec.agent = Some("z".into());
            plan
        }),
    ];
    for (why, plan) in wrong {
        let mut bench = asked(Dispatch::Plan, &["a", "b"]);
        bench.report(WorkReport::Planned(plan.clone()));
        assert_eq!(keys(&bench), ["plan/t2"], "{why}");
        let WorkKind::Plan { goal } = bench.work().job else { panic!("a plan is asked for") };
        assert!(goal.context["notes"].to_string().contains(why), "{why}: {}", goal.context);
        bench.report(WorkReport::Planned(plan));
        assert_eq!(bench.state.status(), RunStatus::Failed, "{why}");
    }
    let mut bench = asked(Dispatch::Plan, &["a", "b"]);
    bench.report(WorkReport::Planned(tasks(&[])));
    bench.report(WorkReport::Planned(tasks(&[("a", OnFailure::Skip, &[])])));
    assert_eq!(keys(&bench), ["f-a/1/generate"]);
}

#[test]
fn ready_tasks_go_side_by_side_up_to_the_cap_and_answers_reach_those_that_depend_on_them() {
    let limits = HarnessLimits { parallel_max: 2, ..HarnessLimits::of_ask() };
    let mut bench = Bench::begun_with(question(Dispatch::Plan, &["a"], limits));
    let plan = [
        ("x", OnFailure::Replan, &[][..]),
        ("y", OnFailure::Replan, &[]),
        ("z", OnFailure::Replan, &[]),
        ("sum", OnFailure::Replan, &["x", "y"]),
    ];
    bench.report(WorkReport::Planned(tasks(&plan)));
    assert_eq!(keys(&bench), ["f-x/1/generate", "f-y/1/generate"]);
    bench.report_on("f-y/1/generate", says("seven"));
    bench.report_on("f-x/1/generate", says("six"));
    let WorkKind::Generate { task, .. } = bench.work_on("sum").job else { panic!("a round") };
    assert_eq!(task.instruction, "write sum\n\n--- Context from completed upstream tasks ---\n[x] six\n[y] seven");
    bench.report_on("f-z/1/generate", says("z"));
    bench.report_on("f-sum/1/generate", says("13"));
    assert_eq!(keys(&bench), ["synthesize/1"]);
    let answer =
        Synthesis { answer: "\"13\"".into(), confidence: Some(0.8), conflicts: vec![], unknowns: vec!["z?".into()] };
    bench.report(WorkReport::Synthesized(answer.clone()));
    assert_eq!((bench.state.status(), bench.state.answer), (RunStatus::Completed, Some(answer)));
}

#[test]
fn a_failed_task_is_tried_again_skipped_planned_again_or_ends_all_as_the_plan_says() {
    let mut bench = planned(&[("r", OnFailure::Retry(1), &[]), ("after", OnFailure::Skip, &["r"])]);
    bench.report(fails());
    assert_eq!(keys(&bench), ["f-r/e1/1/generate"], "what depends on it waits");
    bench.report(says("now"));
    assert_eq!(keys(&bench), ["f-after/1/generate"]);

    let mut bench = planned(&[("s", OnFailure::Skip, &[]), ("after", OnFailure::Skip, &["s"])]);
    bench.report(fails());
    let WorkKind::Generate { task, .. } = bench.work_on("after").job else { panic!("a round") };
    assert!(task.instruction.ends_with("[s] (failed, and the plan goes on without it)"), "{}", task.instruction);
    bench.report(says("without"));
    bench.report(WorkReport::Synthesized(synthesis()));
    assert_eq!(bench.state.status(), RunStatus::Completed);

    let mut bench = planned(&[("p", OnFailure::Replan, &[]), ("q", OnFailure::Skip, &[])]);
    bench.report_on("f-p/1/generate", fails());
    bench.report_on("f-q/1/generate", says("q"));
    assert_eq!(keys(&bench), ["replan/1"]);

    // Also without replans left, and with other tasks active.
    let limits = HarnessLimits { replans_max: 0, ..HarnessLimits::of_ask() };
    let mut bench = Bench::begun_with(question(Dispatch::Plan, &["a"], limits));
    let plan = [("x", OnFailure::Abort, &[][..]), ("y", OnFailure::Skip, &[]), ("z", OnFailure::Skip, &["y"])];
    bench.report(WorkReport::Planned(tasks(&plan)));
    bench.report_on("f-x/1/generate", fails());
    bench.report_on("f-y/1/generate", says("y"));
    assert_eq!((bench.state.status(), status(&bench, "z")), (RunStatus::Incomplete, FeatureStatus::NotStarted));
    assert_eq!(bench.state.answer, None);
}

fn synthesis() -> Synthesis {
    Synthesis { answer: "{}".into(), confidence: Some(0.9), conflicts: vec![], unknowns: vec![] }
}

#[test]
fn a_replan_keeps_what_was_answered_under_fresh_ids_and_is_what_a_restart_goes_on_with() {
    let mut bench = planned(&[("x", OnFailure::Replan, &[]), ("y", OnFailure::Replan, &[])]);
    bench.report_on("f-x/1/generate", says("six"));
    bench.report_on("f-y/1/generate", fails());
    bench.report(WorkReport::Planned(tasks(&[("y", OnFailure::Replan, &["x"]), ("z", OnFailure::Replan, &["y"])])));
    assert_eq!(keys(&bench), ["f-y-r1/1/generate"]);
    assert_eq!(bench.state.feature("z").expect("z").spec.depends_on, ["y-r1"]);
    assert_eq!((status(&bench, "x"), status(&bench, "y")), (FeatureStatus::Passing, FeatureStatus::Dropped));
    let task = bench.task();
    assert!(task.instruction.ends_with("[x] six"));
    bench.state = RunState::from_json(&bench.state.to_json()).expect("it loads");
    let work = |action| if let Action::Work(work) = action { Some(work.key()) } else { None };
    let goes_on: Vec<_> = pending(&bench.state).into_iter().filter_map(work).collect();
    assert_eq!(goes_on, ["f-y-r1/1/generate"]);
}

/// It used to be refused, for an id of more bytes than allowed.
#[test]
fn a_replan_names_tasks_anew_whose_ids_are_as_long_as_they_may_be() {
    let id = "y".repeat(HarnessLimits::of_ask().id_bytes_max);
    let mut bench = planned(&[(id.as_str(), OnFailure::Replan, &[])]);
    bench.report_on(&format!("f-{id}/1/generate"), fails());
    bench.report(WorkReport::Planned(tasks(&[(id.as_str(), OnFailure::Replan, &[])])));
    assert_eq!(keys(&bench), [format!("f-{}-r1/1/generate", &id[..id.len() - 12])]);
}

#[test]
fn what_was_answered_without_a_task_that_failed_stands_in_no_new_plan_s_way() {
    let plan = [("s", OnFailure::Skip, &[][..]), ("x", OnFailure::Skip, &["s"]), ("y", OnFailure::Replan, &[])];
    let mut bench = planned(&plan);
    bench.report_on("f-s/1/generate", fails());
    bench.report_on("f-y/1/generate", fails());
    bench.report_on("f-x/1/generate", says("without s"));
    bench.report(WorkReport::Planned(tasks(&[("s", OnFailure::Skip, &["x"])])));
    assert_eq!(keys(&bench), ["f-s-r1/1/generate"]);
}

#[test]
fn what_an_agent_is_not_sure_of_is_planned_again_once_while_replans_are_left() {
    let unsure = |bench: &mut Bench, id: &str| {
        let key = bench.work_on(id).key();
        bench.report_on(&key, WorkReport::Generated(Outcome { confidence: Some(0.59), ..outcome("hm") }));
    };
    let mut bench = planned(&[("x", OnFailure::Replan, &[])]);
    unsure(&mut bench, "x");
    assert_eq!(keys(&bench), ["replan/1"]);
    bench.report(WorkReport::Planned(tasks(&[("check", OnFailure::Replan, &["x"])])));
    unsure(&mut bench, "check");
    assert_eq!(keys(&bench), ["replan/2"]);
    bench.report(WorkReport::Planned(tasks(&[("more", OnFailure::Replan, &[])])));
    unsure(&mut bench, "more");
    assert_eq!(keys(&bench), ["synthesize/3"], "the low confidence stands after the cap");
    // The planner is not asked about an agent whose opinion does not count.
    let Input::Begin { run, goal, context, setup, limits } = question(Dispatch::Plan, &["a"], HarnessLimits::of_ask())
    else {
        panic!("a beginning")
    };
    let setup = HarnessSetup { confidence_ignored: ["a".to_owned()].into(), ..setup };
    let mut bench = Bench::begun_with(Input::Begin { run, goal, context, setup, limits });
    bench.report(WorkReport::Planned(tasks(&[("x", OnFailure::Replan, &[])])));
    unsure(&mut bench, "x");
    assert_eq!(keys(&bench), ["synthesize/1"]);
}

#[test]
fn a_planner_that_gives_no_answer_or_no_second_plan_loses_nothing_that_was_answered() {
    let mut bench = planned(&[("x", OnFailure::Replan, &[]), ("y", OnFailure::Replan, &[])]);
    bench.report_on("f-x/1/generate", says("six"));
    bench.report_on("f-y/1/generate", fails());
    bench.fail(WorkFailure::Failed("no JSON".into()));
    bench.fail(WorkFailure::Failed("no JSON".into()));
    assert_eq!(keys(&bench), ["synthesize/2"]);
    bench.fail(WorkFailure::Failed("no JSON".into()));
    let answer = bench.state.answer.clone().expect("an answer");
    assert_eq!((answer.answer.as_str(), answer.confidence), ("\"x: six\"", Some(0.5)));
    assert_eq!(bench.state.status(), RunStatus::Incomplete, "y failed");
}

#[test]
fn a_correction_goes_to_what_is_worked_on_and_to_nothing_that_is_done() {
    let mut bench = planned(&[("x", OnFailure::Skip, &[]), ("y", OnFailure::Skip, &[])]);
    let told = |bench: &Bench| -> Vec<Option<String>> {
        let one = |action: &Action| match action {
            Action::Emit(Event::Steered { feature, .. }) => Some(feature.clone()),
            _ => None,
        };
        bench.last.iter().filter_map(one).collect()
    };
    bench.tell(Input::Steered { feature: None, text: "in French".into() });
    assert_eq!(told(&bench), [Some("x".to_owned()), Some("y".to_owned())]);
    bench.report_on("f-x/1/generate", says("six"));
    let refused = bench.try_tell(Input::Steered { feature: Some("x".into()), text: "no".into() });
    assert_eq!(refused, Err(OrderRefusal::NothingToSteer));
    let refused = bench.try_tell(Input::Steered { feature: Some("z".into()), text: "no".into() });
    assert!(matches!(refused, Err(OrderRefusal::UnknownFeature { .. })));
}

#[test]
fn a_task_that_was_cancelled_is_taken_up_by_a_resume() {
    let mut bench = planned(&[("x", OnFailure::Skip, &[]), ("y", OnFailure::Skip, &[])]);
    bench.look();
    bench.tell(Input::TaskCancelled { feature: "x".into() });
    assert_eq!(status(&bench, "x"), FeatureStatus::Blocked);
    assert!(bench.last.contains(&Action::Cancel { key: "f-x/1/generate".into() }));
    bench.report_on("f-x/1/generate", fails());
    bench.report_on("f-y/1/generate", says("y"));
    assert_eq!(bench.state.status(), RunStatus::Incomplete);
    bench.tell(resume());
    assert_eq!(keys(&bench), ["f-x/1/generate"], "it goes on where it was");
    assert_eq!((bench.state.set_aside.len(), bench.state.feature("x").expect("x").sessions), (0, 1));
    bench.report(says("x"));
    bench.report(WorkReport::Synthesized(synthesis()));
    assert_eq!(bench.state.status(), RunStatus::Completed);
}

/// Corrections up to then are part of its journal.
#[test]
fn a_task_that_was_cancelled_and_is_asked_something_else_begins_anew() {
    let mut bench = planned(&[("x", OnFailure::Skip, &[])]);
    bench.tell(Input::TaskCancelled { feature: "x".into() });
    bench.report_on("f-x/1/generate", fails());
    let x = bench.state.features.iter_mut().find(|feature| feature.spec.id == "x").expect("x");
    x.spec.instruction = "something else".into();
    bench.tell(resume());
    assert_eq!(keys(&bench), ["f-x/e1/1/generate"]);
}

#[test]
fn each_cap_of_the_ledger_holds_the_work_under_its_own_name() {
    for name in [
        "tokens_max",
        "model_calls_max",
        "tool_calls_max",
        "fuel_max",
        "memory_bytes_max",
        "egress_bytes_max",
        "stored_bytes_max",
    ] {
        let mut bench = planned(&[("x", OnFailure::Skip, &[])]);
        let report = WorkReport::Failed(WorkFailure::Budget(longhaul_core::LimitHit::new(name, 9, 8)));
        bench.tell(Input::Done { key: "f-x/1/generate".into(), used: WorkUsage::default(), report });
        let said = bench.last.iter().any(|action| {
            matches!(action, Action::Emit(Event::Limit { name: said, text }) if said == name && text.contains("[ask.limits]"))
        });
        assert!(said, "{:?}", bench.last);
        bench.tell(resume());
        assert_eq!(keys(&bench), ["f-x/1/generate"]);
    }
}

#[test]
fn a_cap_that_is_reached_in_the_middle_keeps_the_work_for_a_resume() {
    let mut bench = planned(&[("x", OnFailure::Skip, &[])]);
    let early = bench.try_tell(Input::WallUsedUp { spent_ms: 179_999 });
    assert!(matches!(early, Ok(longhaul_harness::Reaction::Ignored(_))), "{early:?}");
    bench.tell(Input::WallUsedUp { spent_ms: 180_000 });
    assert_eq!(bench.state.status(), RunStatus::Incomplete);
    let more = HarnessLimits { wall_ms_max: None, ..HarnessLimits::of_ask() };
    bench.tell(Input::Resume { retry_failing: false, limits: Some(more) });
    assert_eq!(keys(&bench), ["f-x/1/generate"]);
    let over = longhaul_core::LimitHit::new("cost_microdollars_max", 9, 8);
    let report = WorkReport::Failed(WorkFailure::Budget(over));
    bench.tell(Input::Done { key: "f-x/1/generate".into(), used: WorkUsage::default(), report });
    assert_eq!(bench.state.status(), RunStatus::Incomplete);
    bench.tell(resume());
    assert_eq!(keys(&bench), ["f-x/1/generate"], "the same invocation goes on");
    bench.report(says("x"));
    bench.report(WorkReport::Synthesized(synthesis()));
    assert!(matches!(bench.state.phase, longhaul_harness::state::Phase::Ended { status: EndStatus::Completed, .. }));
}

#[test]
fn checks_of_a_task_are_left_out_since_there_is_no_tree() {
    let mut plan = tasks(&[("x", OnFailure::Skip, &[])]);
    plan.steps[0].spec.checks = vec![crate::bench::python_check("t")];
    let mut bench = asked(Dispatch::Plan, &["a", "b"]);
    bench.report(WorkReport::Planned(plan));
    assert!(bench.state.feature("x").expect("x").spec.checks.is_empty());
    assert_eq!(bench.key(), "f-x/1/generate");
}
