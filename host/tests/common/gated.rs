//! A project in which calls ask before they are made, and what people do about it.

use super::in_toml;
use super::lab::{Lab, Ran};
use serde_json::{Value, json};

/// A project whose agent makes these calls, or lists of calls at once, and whose only feature passes whatever is done.
pub fn lab(calls: &Value, batches: &Value) -> Lab {
    lab_with(calls, batches, "functions = { post = \"ask\", look = \"deny\" }")
}

/// As [`lab`], with this policy for the tool `poster`, whose answers no test checks.
pub fn lab_with(calls: &Value, batches: &Value, policy: &str) -> Lab {
    let config = CONFIG.replace("{settings}", &in_toml(&json!({ "calls": calls, "batches": batches })));
    let config = config.replace("{policy}", &format!("when_heard = \"allow\"\n{policy}"));
    Lab::new(&config, "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n")
}

const CONFIG: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = ["poster", "shell", "human", "files", "web"]
settings = {settings}

[tools.poster]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }
confirm_effects = true

[tools.poster.approval]
{policy}

[tools.shell]
plugin = "poster"
hosts = ["http://{server}"]
settings = { server = "{server}" }

[tools.shell.approval]
default = "ask"
when_heard = "allow"

[tools.human]
plugin = "builtin:ask-human"

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]

[tools.web]
plugin = "http-fetch"
hosts = ["GET http://{server}", "GET http://localhost"]

[evaluator]
plugin = "lenient"

[run.limits]
iterations_max = 1
"#;

/// A call that tells the server.
pub fn post(text: &str) -> Value {
    json!({ "tool": "poster", "function": "post", "arguments": { "text": text } })
}

/// The open approvals, in the order in which they were asked.
pub fn open(lab: &Lab) -> Vec<Value> {
    let all = lab.json(&["approvals"])["approvals"].as_array().expect("a list").clone();
    all.into_iter().filter(|one| one["status"] == "open").collect()
}

/// The one that is open.
#[track_caller]
pub fn the_open(lab: &Lab) -> String {
    let open = open(lab);
    let [one] = &open[..] else { panic!("{open:?}") };
    one["id"].as_str().expect("an id").to_owned()
}

/// Answers one from another process.
pub fn answer(lab: &Lab, id: &str, words: &str) -> Ran {
    lab.run(&["approvals", "answer", id, words])
}

/// The results of the calls, in order.
pub fn answers(lab: &Lab) -> Vec<Value> {
    let entries = lab.json(&["journal", "--invocation", "f-one/1/generate"]);
    let result: Value = serde_json::from_str(entries["finished"]["result"].as_str().expect("a result")).expect("JSON");
    serde_json::from_str(result["returned"]["output"].as_str().expect("an output")).expect("a list")
}

/// The requests that the server received.
pub fn posted(lab: &Lab) -> Vec<String> {
    lab.fake.settle();
    lab.fake.posts().into_iter().map(|told| told.text).collect()
}

/// Checks that a call was refused in these words.
#[track_caller]
pub fn error(answer: &Value, expected: &str) {
    let text = answer["error"].as_str().unwrap_or_else(|| panic!("no error: {answer}"));
    assert!(text.contains(expected), "{text}");
}
