//! What agents were told, said and did: one trajectory an invocation, rated, corrected and exported.

use crate::common::lab::Lab;
use serde_json::{Value, json};

const CONFIG: &str = r#"
[project]
name = "kept"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[agents.code]
plugin = "caller"
models = ["fake"]
tools = ["memory"]
settings = { ask = "what is {id}?", calls = [{ tool = "memory", function = "remember", arguments = { text = "a fact of {id}" } }, { tool = "memory", function = "fly", arguments = {} }] }

[tools.memory]
plugin = "memory"

[evaluator]
plugin = "lenient"

[run.limits]
iterations_max = 1
parallel_max = 2
"#;

const GOAL: &str = "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n\n## Feature: the second\n- id: two\n- criterion: it is fine\n\nDo it, too.\n";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn ids(found: &Value) -> Vec<String> {
    let id = |one: &Value| {
        let id = one["id"].as_str().expect("an id");
        id.split_once('/').expect("a run before it").1.to_owned()
    };
    let mut ids: Vec<String> = found.as_array().expect("a list").iter().map(id).collect();
    ids.sort();
    ids
}

#[test]
fn each_invocation_of_an_agent_is_a_trajectory_that_can_be_rated_corrected_and_exported() {
    let lab = Lab::new(CONFIG, GOAL);
    lab.run(&["run"]).expect(0);
    let all = lab.json(&["trajectories", "list"]);
    assert_eq!(ids(&all), ["f-one/1/generate", "f-two/1/generate"]);
    let first = all.as_array().expect("a list").iter().find(|one| one["task"] == "one").expect("there");
    assert_eq!((&first["agent"], &first["ending"]), (&json!("agents.code"), &json!("returned")));
    assert_eq!(
        (&first["model_calls"], first["usage"]["input_tokens"].as_u64() > Some(0)),
        (&json!(1), true),
        "{first}"
    );
    let failed: Vec<bool> =
        first["steps"].as_array().expect("steps").iter().map(|step| step["failed"] == true).collect();
    assert_eq!(failed.iter().filter(|failed| **failed).count(), 1, "{first}");

    // The messages are those that were sent, and nothing was executed to find them.
    let asked = lab.fake.requests();
    let shown = lab.json(&["trajectories", "show", "f-one/1/generate"]);
    let messages = shown["conversations"][0].as_array().expect("messages");
    let said: Vec<_> = messages.iter().map(|one| one["role"].as_str().expect("a role")).collect();
    assert_eq!(said, ["system", "user", "assistant"], "{shown}");
    assert_eq!(messages[1]["content"], "what is one?");
    assert_eq!(shown["incomplete"], Value::Null, "{shown}");
    assert_eq!(lab.fake.requests(), asked);

    for wrong in ["0", "6"] {
        let ran = lab.run(&["trajectories", "rate", wrong, "f-one/1/generate"]).expect(1);
        assert!(ran.stderr.contains("from 1, bad, to 5, good"), "{}", ran.said());
    }
    let ran = lab.run(&["trajectories", "rate", "4", "f-none/1/generate"]).expect(1);
    assert!(ran.stderr.contains("there is no trajectory `f-none/1/generate`"), "{}", ran.said());
    lab.run(&["trajectories", "rate", "2", "f-one/1/generate"]).expect(0);
    lab.run(&["trajectories", "rate", "5", "f-two/1/generate"]).expect(0);
    lab.run(&["trajectories", "correct", "f-one/1/generate", "--answer", "the better answer"]).expect(0);
    assert_eq!(ids(&lab.json(&["trajectories", "list", "--rating-min", "4"])), ["f-two/1/generate"]);
    assert_eq!(ids(&lab.json(&["trajectories", "list", "--rating-max", "2"])), ["f-one/1/generate"]);
    assert!(ids(&lab.json(&["trajectories", "list", "--unannotated"])).is_empty());
    assert!(ids(&lab.json(&["trajectories", "list", "--agent", "other"])).is_empty());

    let full = lines(&lab.run(&["trajectories", "export"]).expect(0).stdout);
    assert!(full.len() == 2 && full.iter().all(|one| one["conversations"][0][2]["role"] == "assistant"), "{full:?}");
    let pairs = lines(&lab.run(&["trajectories", "export", "--format", "preference"]).expect(0).stdout);
    let [pair] = &pairs[..] else { panic!("{pairs:?}") };
    assert_eq!(pair["prompt"][1], json!({ "role": "user", "content": "what is one?" }));
    assert_eq!(pair["chosen"], json!([{ "role": "assistant", "content": "the better answer" }]));
    assert_eq!(pair["rejected"], json!([messages[2]]));
    let file = lab.path("out.jsonl");
    let file = file.to_str().expect("text");
    lab.run(&["trajectories", "export", "--format", "unpaired", "--output", file]).expect(0);
    let labels: Vec<Value> =
        lines(&std::fs::read_to_string(file).expect("written")).iter().map(|one| one["label"].clone()).collect();
    assert!(labels.len() == 2 && labels.contains(&json!(true)) && labels.contains(&json!(false)), "{labels:?}");
    let ran = lab.run(&["trajectories", "export", "--output", file]).expect(1);
    assert!(ran.stderr.contains("cannot make"), "a file is not overwritten: {}", ran.said());
}
