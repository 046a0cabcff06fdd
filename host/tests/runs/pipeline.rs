//! The strategy `pipeline` from the outside: what failed is planned again, then a person is asked, and in
//! the end there is an answer.

use crate::common::lab::Lab;
use crate::common::outcome::leftovers;
use crate::common::{DOER_CONFIG, THREE_FEATURES, answer_if_asked};
use serde_json::Value;
use std::collections::BTreeSet;

fn config(replans_max: u32) -> String {
    format!("{DOER_CONFIG}replans_max = {replans_max}\n")
        .replace("[run.limits]", "[run]\nstrategy = \"pipeline\"\n\n[run.limits]")
}

fn events(lab: &Lab, kind: &str) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["type"] == kind).collect()
}

#[test]
fn steps_that_fail_are_planned_again_then_a_person_is_asked_and_in_the_end_there_is_an_answer() {
    let lab = Lab::new(&config(1), THREE_FEATURES);
    let asked = lab.run(&["run"]).expect(5);
    assert!(asked.stdout.contains("2 plans did not lead to the goal"), "{}", asked.said());
    assert_eq!(events(&lab, "replanned").len(), 1);
    let commits = events(&lab, "committed").len();
    assert_eq!(commits, 2, "what passes is not built again");
    // Without an answer it asks the same, and does nothing.
    let posts = lab.fake.posts().len();
    lab.run(&["resume"]).expect(5);
    assert_eq!(lab.fake.posts().len(), posts);
    let run = lab.newest().expect("a run")["run"].as_str().expect("a name").to_owned();
    lab.run(&["answer", &run, "--text", "a fox is an animal"]).expect(0);
    lab.run(&["resume"]).expect(5);
    assert_eq!(events(&lab, "replanned").len(), 2);
    // The person takes it in hand: the question is over.
    lab.run(&["features", &run, "drop", "three"]).expect(0);
    lab.run(&["resume"]).expect(0);
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
    let answers = events(&lab, "answered");
    assert_eq!(answers.len(), 1, "{answers:?}");
    let answer: Value = serde_json::from_str(answers[0]["answer"].as_str().expect("JSON")).expect("JSON");
    assert!(answer.to_string().contains("did two-1"), "what the steps said: {answer}");
    assert_eq!(events(&lab, "committed").len(), commits);
    lab.run(&["replay"]).expect(0);
}

#[test]
fn a_kill_around_a_replan_or_an_answer_changes_nothing() {
    let config = config(1)
        .replace(
            "has_fox = { argv = [\"grep\", \"-q\", \"a fox\", \"three.txt\"] }",
            "has_fox = { argv = [\"grep\", \"-q\", \"written three-2\", \"three.txt\"] }",
        )
        .replace("iterations_max = 2", "iterations_max = 1");
    let goal = THREE_FEATURES;
    let reference = Lab::new(&config, goal);
    let log = reference.path("points");
    let ran = reference.start_with(&["run"], &[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]).wait();
    assert_eq!(ran.code(), Some(5), "{}", ran.said());
    let points = std::fs::read_to_string(&log).expect("points were reached");
    let of =
        |name: &str| points.lines().filter(|point| point.rsplit_once(':').is_some_and(|(it, _)| it == name)).count();
    let last = of("invocation.end");
    let all = std::env::var_os("LONGHAUL_CRASH_ALL").is_some();
    let from = if all { 1 } else { last.saturating_sub(2) };
    for (name, number) in (from..=last).flat_map(|n| [("invocation.start", n), ("invocation.end", n)]) {
        let lab = Lab::new(&config, goal);
        let point = format!("{name}:{number}");
        let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", &point)]).wait();
        assert!(killed.was_killed(), "{point}: {}", killed.said());
        for _ in 0..20 {
            lab.fake.settle();
            let status = lab.newest().expect("a run");
            if status["why"].as_str().is_some_and(|why| why.contains("plans did not lead")) {
                break;
            }
            answer_if_asked(&lab);
            lab.run(&["resume"]);
        }
        let (expected, found) = (statuses(&reference), statuses(&lab));
        assert_eq!(expected, found, "{point}");
        let posts: Vec<_> = lab.fake.posts().into_iter().map(|told| told.key).collect();
        assert_eq!(posts.iter().collect::<BTreeSet<_>>().len(), posts.len(), "{point}: {posts:?}");
        assert_eq!(leftovers(&lab), Vec::<String>::new(), "{point}");
    }
}

/// Each status that a feature had, in order.
fn statuses(lab: &Lab) -> Vec<String> {
    events(lab, "feature").iter().map(|it| format!("{} {} {}", it["feature"], it["status"], it["why"])).collect()
}

#[test]
fn a_plan_that_is_written_is_followed_and_a_wrong_one_makes_no_run() {
    let lab = Lab::new(DOER_CONFIG, THREE_FEATURES);
    let plan = lab.path("plan.json");
    let plan = plan.to_str().expect("plain");
    let refused = |text: &str, expected: &str| {
        std::fs::write(plan, text).expect("ours");
        let ran = lab.run(&["run", "--plan", plan]).expect(1);
        assert!(ran.stderr.contains(expected) && ran.error_lines() == 1, "{}", ran.said());
    };
    refused("{", "line 1 column 1");
    refused(r#"{"tasks": [{"instruction": "x", "dependson": []}]}"#, "unknown field `dependson`");
    refused(r#"{"tasks": []}"#, "has no features");
    refused(r#"{"tasks": [{"id": "a", "instruction": "x", "depends_on": ["a"]}]}"#, "a -> a");
    refused(r#"{"tasks": [{"instruction": "x", "checks": [{"name": "c", "native": "rm"}]}]}"#, "not in [checks]");
    assert_eq!(lab.runs(), Vec::<String>::new());
    let tasks = r#"{"rationale": "as agreed", "tasks": [
        {"id": "one", "title": "The first", "instruction": "Do it.", "checks": [{"name": "c", "native": "wrote_one"}]}]}"#;
    std::fs::write(plan, tasks).expect("ours");
    lab.run(&["run", "--plan", plan]).expect(0);
    assert_eq!(lab.git(&["log", "-1", "--format=%s", "longhaul/kept"]), "The first\n");
    let asked = events(&lab, "invocation_started");
    assert!(asked.iter().all(|event| event["plugin"] != "initializer"), "no planner was asked: {asked:?}");
}
