//! What a feature is judged by is agreed on before the work begins: an agent offers, the evaluator consents.

mod common;

use common::lab::Lab;
use serde_json::Value;

const CONFIG: &str = r#"
[project]
name = "kept"

[run]
contract_by = "testing"

[agents.code]
plugin = "caller"
tools = ["files"]

[agents.code.settings]
calls = [{ tool = "files", function = "write", arguments = { path = "part.txt", content = "the part" } }]

[agents.testing]
plugin = "caller"

[agents.testing.settings.output]
checks = [{ name = "is_there", python = "import os\nassert os.path.exists('part.txt')" }]
criteria = [
    { id = "pretty", text = "it is pretty" },
    { id = "says_so", text = "anything goes" },
]

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[checks]
says_so = { argv = ["grep", "-q", "the part", "part.txt"] }
"#;

const GOAL: &str = "# A part\n\n## Feature: The part\n- id: part\n- check: says_so\n\nWrite the part.\n";

fn events(lab: &Lab, kind: &str) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["type"] == kind).collect()
}

/// The check was added, and what no check decides was not; the feature passes by both checks.
#[track_caller]
fn is_agreed(lab: &Lab, told: &str) {
    let contracts = events(lab, "contract");
    assert_eq!(contracts.len(), 1, "{told}: {contracts:?}");
    assert_eq!(contracts[0]["criteria"], serde_json::json!(["is_there"]), "{told}");
    assert_eq!(contracts[0]["checks"], serde_json::json!(["is_there"]), "{told}");
    let warnings: Vec<String> = events(lab, "warning").iter().map(|event| event["text"].to_string()).collect();
    assert!(warnings.iter().any(|text| text.contains("`pretty` is not added, the evaluator cannot judge it")));
    let judged = events(lab, "judged");
    let marks = judged[0]["judgements"].as_array().expect("one a criterion");
    assert_eq!(judged.len(), 1, "{told}: consent is no verdict");
    assert!(marks.len() == 2 && marks.iter().all(|mark| mark["mark"] == "pass"), "{told}: {marks:?}");
    assert_eq!(lab.newest().expect("a run")["status"], "completed", "{told}");
}

#[test]
fn an_agent_adds_to_a_rubric_what_the_evaluator_can_judge() {
    let lab = Lab::new(CONFIG, GOAL);
    let ran = lab.run(&["run"]).expect(0);
    assert!(ran.stdout.contains("is_there"), "{}", ran.said());
    is_agreed(&lab, &ran.said());
    lab.run(&["replay"]).expect(0);
}

#[test]
fn a_kill_while_a_rubric_is_agreed_on_agrees_once() {
    // Both ends of: the plan, what is offered, the consent.
    for point in ["invocation.end:2", "invocation.start:3", "invocation.end:3", "work.end:3", "work.start:5"] {
        let lab = Lab::new(CONFIG, GOAL);
        let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        assert!(killed.was_killed(), "{point}: {}", killed.said());
        let ran = lab.run(&["resume"]).expect(0);
        is_agreed(&lab, &format!("{point}: {}", ran.said()));
    }
}
