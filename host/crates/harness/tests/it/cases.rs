//! The suites `features`, `orchestrator`, `task_detector` and `truncate` of `$LONGHAUL_CASES`.

use crate::bench::{Bench, begin, feature, outcome, setup, verdict};
use longhaul_core::text::truncate;
use longhaul_core::work::{FeatureSpec, FeatureStatus, Mark, OnFailure, Plan, PlanStep};
use longhaul_harness::detect::detect;
use longhaul_harness::state::{count, is_complete};
use longhaul_harness::{
    Action, Feature, HarnessLimits, HarnessSetup, Input, RunState, Strategy, WorkFailure, WorkKind, WorkReport,
    decisions, pending, plan, route, select, wants_replan,
};
use serde_json::{Value, json};
use std::path::PathBuf;

#[test]
fn every_case_of_the_suite_features_holds() {
    every_case("features", feature_case);
}

#[test]
fn every_case_of_the_suite_orchestrator_holds() {
    every_case("orchestrator", orchestrator_case);
}

#[test]
fn every_case_of_the_suite_task_detector_holds() {
    every_case("task_detector", |case| {
        let prompt = case["prompt"].as_str().ok_or("prompt is no text")?;
        let found = serde_json::to_value(detect(prompt)).map_err(|error| error.to_string())?;
        for (name, expected) in case["expected"].as_object().ok_or("expected is no object")? {
            expect(&found[name], expected).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    });
}

#[test]
fn every_case_of_the_suite_truncate_holds() {
    every_case("truncate", |case| {
        let input = case["input"].as_str().ok_or("input is no text")?;
        let bytes_max = case["max_bytes"].as_u64().ok_or("max_bytes is no number")?;
        let cut = truncate(input, usize::try_from(bytes_max).map_err(|error| error.to_string())?);
        expect(&json!(cut), &case["expected"])
    });
}

/// Runs every case of a suite, of which there must be one.
#[track_caller]
fn every_case(suite: &str, run: impl Fn(&Value) -> Result<(), String>) {
    let cases = cases_of(suite);
    assert!(!cases.is_empty(), "no case of the suite `{suite}` in {}", directory().display());
    let named = |case: &Value| {
        let id = case["id"].as_str().ok_or_else(|| format!("a case without an id: {case}"))?;
        run(case).map_err(|error| format!("{id}: {error}"))
    };
    let wrong: Vec<_> = cases.iter().filter_map(|case| named(case).err()).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn directory() -> PathBuf {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases"));
    std::env::var_os("LONGHAUL_CASES").map_or_else(default, PathBuf::from)
}

/// Files are picked by their field `suite`, never by their name.
fn cases_of(suite: &str) -> Vec<Value> {
    let directory = directory();
    let entries = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &PathBuf| -> Value {
        let text = std::fs::read_to_string(path).expect("a readable file");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let files = paths.iter().map(read).filter(|file| file["suite"] == suite);
    files.flat_map(|file| file["cases"].as_array().cloned().expect("a list of cases")).collect()
}

fn feature_case(case: &Value) -> Result<(), String> {
    let has = |name: &str| case.get(name).is_some();
    let kind = case.get("kind").and_then(Value::as_str);
    match kind {
        Some("self_report") => self_report(case),
        None if has("transitions") => life(case),
        None if has("features") => next(case),
        None if has("category") => routed(case),
        None if has("score") => score(case),
        other => Err(format!("unknown kind {other:?}; write a driver for it in {}", file!())),
    }
}

fn expect(found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("expected {expected}, found {found}")) }
}

#[test]
fn a_case_with_an_unknown_step_is_an_error_that_names_it() {
    let told = feature_case(&json!({ "id": "x", "transitions": ["in_progress", "walking"], "expected": {} }));
    let told = told.expect_err("no such status");
    assert!(told.starts_with("unknown step 2, \"walking\": unknown variant `walking`"), "{told}");
    let failed = json!({ "transitions": ["in_progress", { "status": "failing", "error": "broken" }],
        "expected": { "failing": 1, "attempts": 1, "last_error": "broken", "completed": false } });
    assert_eq!(feature_case(&failed), Ok(()));
    let told = orchestrator_case(&json!({ "id": "o", "kind": "walk" })).expect_err("no such kind");
    assert!(told.contains("walk"), "{told}");
}

fn status(word: &Value) -> Result<FeatureStatus, String> {
    serde_json::from_value(word.clone()).map_err(|error| error.to_string())
}

/// Statuses one after the other, and the counts afterwards.
fn life(case: &Value) -> Result<(), String> {
    let mut one = Feature::new(feature("1", &[]));
    for (at, written) in (1..).zip(case["transitions"].as_array().ok_or("transitions is no list")?) {
        let (word, why) = transition(case, written);
        let status = status(word).map_err(|error| format!("unknown step {at}, {written}: {error}"))?;
        one.become_status(status, why);
    }
    let (attempts, last_error, ended) = (one.attempts, one.last_error.clone(), one.status);
    let features = [one];
    let complete = is_complete(&features);
    let books = json!({
        "passing": count(&features, FeatureStatus::Passing),
        "failing": count(&features, FeatureStatus::Failing),
        "attempts": attempts,
        "last_error": last_error,
        "status": ended,
        "completed": complete,
        "project_status": if complete { "completed" } else { "active" },
    });
    for (name, expected) in case["expected"].as_object().ok_or("expected is no object")? {
        let found = books.get(name).ok_or_else(|| format!("unknown expectation `{name}`"))?;
        expect(found, expected).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// A transition is a status, or one with its reason; a case may have one reason for all of its own.
fn transition<'a>(case: &'a Value, written: &'a Value) -> (&'a Value, &'a str) {
    let word =
        ["status", "to"].iter().find_map(|name| written.get(*name)).or_else(|| written.get(0)).unwrap_or(written);
    let said = |from: &'a Value| ["why", "error", "reason"].iter().find_map(|name| from.get(*name)?.as_str());
    let why = said(written).or_else(|| written.get(1)?.as_str()).or_else(|| said(case));
    (word, why.unwrap_or("why"))
}

fn next(case: &Value) -> Result<(), String> {
    let list = case["features"].as_array().ok_or("features is no list")?;
    let features = list.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
    // The cases were made when attempts had no cap.
    let position = select::next(&features, |_| false, |_| u32::MAX);
    expect(&position.map_or(Value::Null, |position| list[position]["id"].clone()), &case["expected_next"])?;
    let open = |feature: &Feature| matches!(feature.status, FeatureStatus::NotStarted);
    if position.is_none() && features.iter().any(open) {
        // There may be no next feature, but never without a reported reason.
        let specs: Vec<_> = features.iter().map(|feature| feature.spec.clone()).collect();
        let waits = select::waits(&features).iter().any(Option::is_some);
        if plan::dependency_error(&specs).is_none() && !waits {
            return Err("nothing is next and nothing says why".into());
        }
    }
    Ok(())
}

fn listed(value: &Value) -> Result<Feature, String> {
    let depends_on = value["depends_on"].as_array().into_iter().flatten().map(Value::to_string).collect();
    let priority = value["priority"].as_u64().and_then(|priority| u8::try_from(priority).ok()).unwrap_or(5);
    let attempts = value["attempts"].as_u64().and_then(|attempts| u32::try_from(attempts).ok()).unwrap_or(0);
    let spec = FeatureSpec { priority, depends_on, ..feature(&value["id"].to_string(), &[]) };
    Ok(Feature { status: status(&value["status"])?, attempts, ..Feature::new(spec) })
}

fn routed(case: &Value) -> Result<(), String> {
    let category = case["category"].as_str().ok_or("category is no text")?;
    let agents = ["code", "research", "testing", "documentation"].map(String::from).to_vec();
    let setup = HarnessSetup { agents, ..HarnessSetup::default() };
    expect(&json!(route::agent_for(category, &setup)), &case["expected_sub_agent"])
}

fn score(case: &Value) -> Result<(), String> {
    let number = |name: &str| case[name].as_f64().ok_or_else(|| format!("{name} is no number"));
    expect(&json!(decisions::clamp_score(number("score")?)), &json!(number("expected")?))
}

/// The agent reports `text`; the feature passes by the rubric alone.
fn self_report(case: &Value) -> Result<(), String> {
    let text = case["text"].as_str().ok_or("text is no text")?;
    let expected = case["expected_by_rubric"].as_bool().ok_or("expected_by_rubric is no truth value")?;
    for by_rubric in [expected, !expected] {
        expect(&json!(passes_when(text, by_rubric)), &json!(by_rubric))?;
    }
    Ok(())
}

fn passes_when(text: &str, by_rubric: bool) -> bool {
    let limits = HarnessLimits { iterations_max: 1, ..HarnessLimits::default() };
    let mut bench = Bench::planned(limits, vec![feature("a", &[])]);
    bench.report(WorkReport::Generated(outcome(text)));
    let mark = if by_rubric { Mark::Pass } else { Mark::Fail };
    bench.report(WorkReport::Judged(verdict(&bench.work(), mark)));
    if by_rubric {
        bench.committed()
    } else {
        bench.report(WorkReport::Discarded)
    }
    bench.state.features[0].status == FeatureStatus::Passing
}

fn orchestrator_case(case: &Value) -> Result<(), String> {
    match case["kind"].as_str() {
        Some("batches") => expect(&json!(select::waves(&specs(&case["tasks"])?)), &case["expected"]),
        Some("parse_plan") => {
            let plan = plan::written::read(&case["input"].to_string()).map_err(|error| error.to_string())?;
            expect(&as_written(&plan), &case["expected"])
        }
        Some("bad_plan") => {
            let steps = specs(&case["tasks"])?.into_iter().map(|spec| PlanStep { spec, on_failure: OnFailure::Replan });
            let plan = Plan { steps: steps.collect(), notes: String::new() };
            let refused = plan::accept(plan, &setup(), &HarnessLimits::default()).is_err();
            expect(&json!(if refused { "plan_error" } else { "accepted" }), &case["expected"])
        }
        Some("should_replan") => {
            let success = case["success"].as_bool().ok_or("success is no truth value")?;
            let threshold = case["threshold"].as_f64().ok_or("threshold is no number")?;
            expect(&json!(wants_replan(success, case["confidence"].as_f64(), threshold)), &case["expected"])
        }
        Some("scenario") => scenario(case),
        other => Err(format!("unknown kind {other:?}; write a driver for it in {}", file!())),
    }
}

/// The scenarios are texts: each has a driver in this file, chosen by the case's content.
fn scenario(case: &Value) -> Result<(), String> {
    let ended = |how: &str| {
        let tasks = case["completed"].as_object();
        tasks.is_some_and(|tasks| !tasks.is_empty() && tasks.values().all(|said| *said == how))
    };
    if ended("success=false") {
        resumed_after_a_failure()
    } else if ended("success=true") {
        resumed_after_a_step()
    } else if share_an_agent(&case["tasks"]) {
        one_agent_twice()
    } else if std::env::var_os("LONGHAUL_CASES").is_some() {
        // Another suite may contain scenarios without a driver.
        println!("not driven: {}", case["id"]);
        Ok(())
    } else {
        Err(format!("unknown scenario; write a driver for it in {}", file!()))
    }
}

/// True when all of several tasks, written `TASK@AGENT`, have one agent.
fn share_an_agent(tasks: &Value) -> bool {
    let agents = tasks.as_array().into_iter().flatten().filter_map(|task| task.as_str()?.split_once('@'));
    let agents: Vec<&str> = agents.map(|(_, agent)| agent).collect();
    agents.len() > 1 && agents.iter().all(|agent| *agent == agents[0])
}

fn specs(tasks: &Value) -> Result<Vec<FeatureSpec>, String> {
    let tasks = tasks.as_array().ok_or("tasks is no list")?;
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let spec = |task: &Value| {
        let id = task["id"].as_str().ok_or("a task without an id")?;
        Ok(FeatureSpec { depends_on: texts(&task["depends_on"]), ..feature(id, &[]) })
    };
    tasks.iter().map(spec).collect()
}

fn as_written(plan: &Plan) -> Value {
    let word = |on_failure| match on_failure {
        OnFailure::Retry(_) => "retry",
        OnFailure::Skip => "skip",
        OnFailure::Replan => "replan",
        OnFailure::Abort => "abort",
    };
    let task = |PlanStep { spec, on_failure }: &PlanStep| {
        json!({
            "id": spec.id, "agent_id": spec.agent, "instruction": spec.instruction,
            "depends_on": spec.depends_on, "on_failure": word(*on_failure),
        })
    };
    json!({ "rationale": plan.notes, "tasks": plan.steps.iter().map(task).collect::<Vec<_>>() })
}

/// A pipeline of `t1` and, after it, `t2`, at its first round.
fn two_tasks() -> Bench {
    let limits = HarnessLimits { iterations_max: 1, ..HarnessLimits::default() };
    follow(two_written(), limits)
}

fn follow(plan: Plan, limits: HarnessLimits) -> Bench {
    let Input::Begin { run, goal, context, .. } = begin(limits.clone()) else { panic!("a beginning") };
    let setup = HarnessSetup { strategy: Strategy::Pipeline, plan: Some(Box::new(plan)), ..setup() };
    Bench::begun_with(Input::Begin { run, goal, context, setup, limits })
}

/// The work of a new process, which loads the stored state.
fn after_a_kill(bench: &mut Bench) -> Vec<String> {
    bench.state = RunState::from_json(&bench.state.to_json()).expect("it loads");
    let work = |action| if let Action::Work(work) = action { Some(work.key()) } else { None };
    pending(&bench.state).into_iter().filter_map(work).collect()
}

fn resumed_after_a_failure() -> Result<(), String> {
    let mut bench = two_tasks();
    bench.exhaust();
    expect(&json!(after_a_kill(&mut bench)), &json!(["replan/1"]))?;
    let counts = json!([bench.state.count(FeatureStatus::Passing), bench.state.count(FeatureStatus::Failing)]);
    expect(&counts, &json!([0, 1]))?;
    let mut asked = asked(&two_written());
    asked.report(WorkReport::Failed(WorkFailure::Failed("no idea".into())));
    expect(&json!(after_a_kill(&mut asked)), &json!(["replan/1"]))?;
    expect(&json!(asked.state.count(FeatureStatus::Passing)), &json!(0))
}

/// The same tasks as an ask.
fn asked(plan: &Plan) -> Bench {
    let limits = HarnessLimits::of_ask();
    let Input::Begin { run, goal, context, .. } = begin(limits.clone()) else { panic!("a beginning") };
    let setup = HarnessSetup { strategy: Strategy::Ask, plan: Some(Box::new(plan.clone())), ..setup() };
    Bench::begun_with(Input::Begin { run, goal, context, setup, limits })
}

fn two_written() -> Plan {
    let text =
        r#"{"tasks": [{"id": "t1", "instruction": "a"}, {"id": "t2", "instruction": "b", "depends_on": ["t1"]}]}"#;
    plan::written::read(text).expect("a plan")
}

fn resumed_after_a_step() -> Result<(), String> {
    let mut bench = two_tasks();
    bench.pass();
    expect(&json!(after_a_kill(&mut bench)), &json!(["f-t2/1/generate"]))?;
    let WorkKind::Generate { task, .. } = bench.work().job else { return Err("no round of t2".into()) };
    expect(&task.context["depends_on"], &json!([{"id": "t1", "summary": "did it"}]))?;
    let mut asked = asked(&two_written());
    asked.report(WorkReport::Generated(outcome("did it")));
    expect(&json!(after_a_kill(&mut asked)), &json!(["f-t2/1/generate"]))?;
    let WorkKind::Generate { task, .. } = asked.work().job else { return Err("no task t2".into()) };
    expect(&json!(task.instruction), &json!("b\n\n--- Context from completed upstream tasks ---\n[t1] {}"))
}

fn one_agent_twice() -> Result<(), String> {
    let text = r#"{"tasks": [{"agent_id": "code", "instruction": "a"}, {"agent_id": "code", "instruction": "b"}]}"#;
    let plan = plan::written::read(text).expect("a plan");
    let mut bench = follow(plan, HarnessLimits { parallel_max: 2, ..HarnessLimits::default() });
    // Each has its own invocation, and so its own journal and context; and its own tree.
    expect(&json!(after_a_kill(&mut bench)), &json!(["f-t0/1/generate", "f-t1/1/generate"]))?;
    let text = r#"{"tasks": [{"agent_id": "code", "instruction": "a"}, {"agent_id": "code", "instruction": "b"}]}"#;
    let mut asked = asked(&plan::written::read(text).expect("a plan"));
    expect(&json!(after_a_kill(&mut asked)), &json!(["f-t0/1/generate", "f-t1/1/generate"]))?;
    let slots: Vec<_> = ["t0", "t1"].iter().filter_map(|id| Some(bench.state.session(id)?.slot)).collect();
    expect(&json!(slots), &json!([0, 1]))
}
