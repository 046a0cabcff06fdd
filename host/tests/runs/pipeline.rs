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
    events.filter(|line| line["type"] == kind).map(|line| line["payload"].clone()).collect()
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
            if status["reason"].as_str().is_some_and(|why| why.contains("plans did not lead")) {
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
