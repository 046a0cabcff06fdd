//! An agent may read the state of its project and propose changes: a person decides, and a kill repeats nothing.

use crate::common::in_toml;
use crate::common::lab::Lab;
use serde_json::{Value, json};

/// A project whose agent makes these calls of the host's own tool, and whose only feature passes whatever is done.
fn lab(calls: &Value) -> Lab {
    let calls: Vec<Value> = calls.as_array().expect("a list").iter().map(call).collect();
    let config = CONFIG.replace("{settings}", &in_toml(&json!({ "calls": calls })));
    Lab::new(&config, "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n")
}

const CONFIG: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = ["project"]
settings = {settings}

[tools.project]
plugin = "builtin:project"

[evaluator]
plugin = "lenient"

[run.limits]
iterations_max = 1
"#;

fn call(call: &Value) -> Value {
    json!({ "tool": "project", "function": call[0], "arguments": call[1] })
}

/// The results of the calls, in order.
fn answers(lab: &Lab) -> Vec<Value> {
    let entries = lab.json(&["journal", "--invocation", "f-one/1/generate"]);
    let result: Value = serde_json::from_str(entries["finished"]["result"].as_str().expect("a result")).expect("JSON");
    let output = result["returned"]["output"].as_str().expect("an output");
    serde_json::from_str(output).expect("a list")
}

fn proposals(lab: &Lab) -> Vec<Value> {
    lab.json(&["features", "--proposals"])["items"].as_array().expect("a list").clone()
}

const ADD: &str = "add_project_feature";

fn add(id: &str) -> Value {
    json!([ADD, { "id": id, "instruction": "More.", "criteria": ["It is more."], "reason": "it is missing" }])
}

#[test]
fn an_agent_reads_its_project_and_each_function_is_listed_with_its_schema() {
    let lab = lab(&json!([
        ["get_project_status", {}],
        ["list_project_features", { "status": "in_progress" }],
        ["log_project_progress", { "action": "looked around", "files": ["a.txt"] }],
        ["get_project_progress_log", { "limit": 3 }],
        ["list_long_running_projects", {}],
        ["get_next_feature_to_work_on", {}],
        ["get_project_status", { "project": "other" }],
        ["drop_everything", {}],
    ]));
    lab.run(&["run"]).expect(0);
    let answers = answers(&lab);
    let [status, listed, logged, log, projects, next, stranger, unknown] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((&status["project"], &status["features"]["in_progress"]), (&json!("kept"), &json!(1)), "{status}");
    assert_eq!((&status["features_total"], &status["percent_passing"]), (&json!(1), &json!(0)), "{status}");
    assert_eq!(listed[0]["id"], "one", "{listed}");
    assert_eq!(logged, &json!({ "logged": true }));
    assert_eq!((&log[0]["action"], &log[0]["files"][0]), (&json!("looked around"), &json!("a.txt")), "{log}");
    assert_eq!((projects.as_array().map(Vec::len), &projects[0]["project"]), (Some(1), &json!("kept")), "{projects}");
    assert_eq!((&next["feature"]["id"], &next["feature"]["instruction"]), (&json!("one"), &json!("Do it.")), "{next}");
    assert!(stranger["error"].as_str().is_some_and(|error| error.contains("unknown field `project`")), "{stranger}");
    assert!(unknown["error"].as_str().is_some_and(|error| error.contains("drop_everything")), "{unknown}");

    let journal = lab.json(&["journal", "--invocation", "f-one/1/generate"]);
    let tools = journal["entries"].as_array().expect("a list").iter().find(|entry| entry["name"] == "tools.list");
    let told = tools.expect("it was asked")["answer"].as_str().expect("text").to_owned();
    let tools: Value = serde_json::from_str(&told).expect("JSON");
    let functions = tools[0]["functions"].as_array().expect("a list");
    assert_eq!((tools[0]["id"].as_str(), functions.len()), (Some("project"), 9));
    for function in functions {
        let schema: Value = serde_json::from_str(function["parameters"].as_str().expect("text")).expect("JSON");
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)), "{function}");
        let name = function["name"].as_str().expect("a name");
        let reads = name.starts_with("get_") || name.starts_with("list_");
        assert_eq!(function["effect"], if reads { "read-only" } else { "idempotent" }, "{name}");
    }
}

#[test]
fn a_kill_around_a_call_proposes_nothing_twice_and_loses_nothing() {
    for point in ["tool.before-call:1", "tool.after-call:1", "tool.after-call:2", "invocation.end:2"] {
        let lab =
            lab(&json!([add("two"), ["log_project_progress", { "action": "once" }], ["get_project_progress_log", {}]]));
        let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        assert!(killed.was_killed(), "{point}: {}", killed.said());
        lab.run(&["resume"]).expect(0);
        assert_eq!(proposals(&lab).len(), 1, "{point}");
        let answers = answers(&lab);
        let logged = answers[2].as_array().expect("a list").iter().filter(|entry| entry["action"] == "once").count();
        assert_eq!(logged, 1, "{point}");
        let events = lab.run(&["--json", "attach"]).expect(0).stdout;
        assert_eq!(events.matches("\"type\":\"proposed\"").count(), 1, "{point}");
    }
}
