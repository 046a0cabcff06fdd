//! Drafts of a model become steps, or are refused with all that is wrong, and a revised plan keeps what passed.

use longhaul_sdk::planner::CheckSource;
use serde_json::json;

use super::*;

fn draft(features: serde_json::Value) -> Draft {
    serde_json::from_value(json!({ "features": features })).expect("a draft")
}

fn feature(id: &str, depends_on: &[&str]) -> serde_json::Value {
    json!({ "id": id, "title": "T", "instruction": "I", "criteria": ["it works"], "depends_on": depends_on })
}

fn plan(ids: &[&str]) -> WorkPlan {
    let features: Vec<_> = ids.iter().map(|id| feature(id, &[])).collect();
    WorkPlan { steps: steps(&draft(json!(features)), 9, false).expect("steps"), notes: String::new() }
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let mut bad = feature("a b", &[]);
    bad["priority"] = json!(0);
    let mut vague = feature("vague", &[]);
    vague["criteria"] = json!([" "]);
    let wrong = steps(&draft(json!([bad, vague, feature("c", &[])])), 2, false).expect_err("refused");
    for expected in ["3 features are more than 2", "`a b` is not an id", "`vague`: it has no criterion"] {
        assert!(wrong.contains(expected), "{wrong}");
    }
}

#[test]
fn a_replan_keeps_what_passed_and_loses_no_criterion() {
    let mut old = plan(&["a", "b", "c"]);
    old.steps[1].criteria[0].check = Some("pinned".to_owned());
    let mut revised = plan(&["b", "d"]).steps;
    revised[0].instruction = "better".to_owned();
    revised[0].criteria[0].text = "it is fast".to_owned();

    let merged = merge(old, |id| id == "a", revised).expect("a plan");
    let ids: Vec<_> = merged.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert_eq!(merged[1].instruction, "better");
    let criteria: Vec<_> = merged[1].criteria.iter().map(|c| (c.id.as_str(), c.check.as_deref())).collect();
    assert_eq!(criteria, [("c1", Some("pinned")), ("c1-2", None)]);
}

#[test]
fn a_replan_cannot_touch_what_passed() {
    let wrong = merge(plan(&["a"]), |_| true, plan(&["a"]).steps).expect_err("refused");
    assert_eq!(wrong, "the feature `a` has passed; leave it out");
}

#[test]
fn a_criterion_brings_its_check_and_one_that_needs_a_check_is_asked_for_it() {
    let mut one = feature("a", &[]);
    one["criteria"] = json!([
        { "text": "it adds", "check": "```python\nfrom a import add\nassert add(1, 2) == 3\n```" },
        { "text": "it reads well", "check": "" },
    ]);
    let planned = steps(&draft(json!([one])), 9, false).expect("steps").remove(0);
    let criteria: Vec<_> = planned.criteria.iter().map(|c| (c.id.as_str(), c.check.as_deref())).collect();
    assert_eq!(criteria, [("c1", Some("c1")), ("c2", None)]);
    let CheckBody::Source(CheckSource { language, text: source }) = &planned.checks[0].body else {
        panic!("no source")
    };
    assert_eq!(language, "python");
    assert_eq!((planned.checks.len(), source.as_str()), (1, "from a import add\nassert add(1, 2) == 3\n"));

    let wrong = steps(&draft(json!([one])), 9, true).expect_err("refused");
    assert!(wrong.contains("\"it reads well\" has no check"), "{wrong}");
}

#[test]
fn a_replan_brings_the_checks_of_its_new_criteria() {
    let mut revised = feature("a", &[]);
    revised["criteria"] = json!([{ "text": "it is fast", "check": "assert True" }]);
    let mut old = plan(&["a"]);
    old.steps[0].checks.push(CheckSpec { name: "c1".to_owned(), body: CheckBody::Native("unit".to_owned()) });
    let revised = steps(&draft(json!([revised])), 9, false).expect("steps");
    let merged = merge(old, |_| false, revised).expect("a plan").remove(0);
    let criteria: Vec<_> = merged.criteria.iter().map(|c| (c.id.as_str(), c.check.as_deref())).collect();
    assert_eq!(criteria, [("c1", None), ("c1-2", Some("c1-2"))]);
    assert_eq!(merged.checks.len(), 2, "none is lost, and none is replaced");
}
