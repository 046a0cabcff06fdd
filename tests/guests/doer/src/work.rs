//! The calls of a task, in their order. What each answered goes into the outcome, so that a call which
//! was answered otherwise shows.

use longhaul_sdk::conversation::Conversation;
use longhaul_sdk::tools::{self, ToolCall};
use longhaul_sdk::types::{Outcome, Task};
use longhaul_sdk::{Error, log, outcome, progress, timer};
use serde_json::{Value, json};

pub(crate) fn run(task: &Task, word: &str) -> Result<Outcome, Error> {
    let label = format!("{}-{}", task.id, task.attempt);
    let file = format!("{}.txt", task.id);
    let mut answers = Vec::new();
    let conversation = Conversation::new("You write one line.");
    let line = conversation.text(&format!("A line about {label}."))?;
    answers.push(json!(line));
    answers.extend(look_around(&label)?);
    answers.push(call(
        "files",
        "write",
        &json!({ "path": file, "content": format!("{word} {label}: {line}\nend\n") }),
    )?);
    answers.push(call("poster", "post", &json!({ "text": format!("{label}-first") }))?);
    timer::sleep(20)?;
    answers.push(call("poster", "put", &json!({ "text": format!("{label}-put") }))?);
    progress::log("wrote", &label, std::slice::from_ref(&file))?;
    answers.push(call("files", "edit", &json!({ "path": file, "old": "end", "new": "the end" }))?);
    answers.push(call("poster", "post", &json!({ "text": format!("{label}-second") }))?);
    answers.push(json!(conversation.text(&format!("A word on {label}."))?));
    log::write(log::Level::Info, &label);
    Ok(outcome(&json!(answers), format!("did {label}")))
}

/// Three reads beside each other.
fn look_around(label: &str) -> Result<Vec<Value>, Error> {
    let calls = [
        of("files", "list", &json!({})),
        of("poster", "look", &json!({ "text": format!("{label}-look") })),
        of("files", "search", &json!({ "query": "the end" })),
    ];
    tools::call_many(&calls).into_iter().map(|answer| Ok(serde_json::from_str(&answer?.output)?)).collect()
}

fn call(tool: &str, function: &str, arguments: &Value) -> Result<Value, Error> {
    tools::call(tool, function, arguments)
}

fn of(tool: &str, function: &str, arguments: &Value) -> ToolCall {
    ToolCall { tool: tool.to_owned(), function: function.to_owned(), arguments: arguments.to_string() }
}
