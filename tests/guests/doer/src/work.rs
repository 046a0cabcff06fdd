//! The calls of a task, in their order. What each answered goes into the outcome, so that a call which
//! was answered otherwise shows.

use longhaul_sdk::conversation::Conversation;
use longhaul_sdk::tools::{self, ToolCall};
use longhaul_sdk::types::{Outcome, Task};
use longhaul_sdk::{Error, decisions, delegate, log, outcome, progress, timer};
use serde_json::{Value, json};

/// The tasks that it hands to others; the second feature does.
const HELPED: &str = "two";

pub(crate) fn run(task: &Task, word: &str) -> Result<Outcome, Error> {
    if task.id.starts_with("help-") {
        return help(task);
    }
    let label = format!("{}-{}", task.id, task.round);
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
    progress::add("wrote", &label, std::slice::from_ref(&file))?;
    answers.push(call("files", "edit", &json!({ "path": file, "old": "end", "new": "the end" }))?);
    answers.push(call("poster", "post", &json!({ "text": format!("{label}-second") }))?);
    answers.push(decide(&label)?);
    answers.push(json!(conversation.text(&format!("A word on {label}."))?));
    if task.id == HELPED {
        answers.extend(ask_others(&label));
    }
    log::write(log::Level::Info, &label);
    Ok(outcome(&json!(answers), format!("did {label}")))
}

/// Records what it did, and finds it again.
fn decide(label: &str) -> Result<Value, Error> {
    decisions::record(&decisions::Decision {
        context: format!("how to do {label}"),
        decision: format!("did {label} in a file"),
        reasoning: "files last".to_owned(),
        tags: vec!["files".to_owned()],
        outcome: decisions::DecisionOutcome::Open,
        lesson: None,
    })?;
    let found = decisions::find(&format!("how was {label} done"), 1)?;
    Ok(json!(found.into_iter().map(|found| found.decision.decision).collect::<Vec<_>>()))
}

/// Two that help beside each other, one that asks another one and so on, and one that was not granted.
fn ask_others(label: &str) -> Vec<Value> {
    let of = |agent: &str, id: &str| delegate::Assignment { agent: agent.into(), task: task_of(id, label) };
    let asked = [of("helper", "help-a"), of("helper", "help-b"), of("helper", "help-deep"), of("stranger", "help-c")];
    delegate::run_many(&asked).into_iter().map(told).collect()
}

fn help(task: &Task) -> Result<Outcome, Error> {
    if task.id == "help-deep" {
        let next = delegate::Assignment { agent: "helper".into(), task: task_of(&task.id, &task.instruction) };
        return Ok(outcome(&told(delegate::run(&next)), "asked another"));
    }
    let label = format!("{}-{}", task.instruction, task.id);
    let line = Conversation::new("You help.").text(&format!("A line about {label}."))?;
    let posted = call("poster", "post", &json!({ "text": label }))?;
    let put = call("poster", "put", &json!({ "text": format!("{label}-put") }))?;
    Ok(outcome(&json!([line, posted, put]), format!("helped with {label}")))
}

fn told(answer: Result<Outcome, delegate::DelegateError>) -> Value {
    answer.map_or_else(|error| json!(format!("{error:?}")), |outcome| json!(outcome.output))
}

fn task_of(id: &str, instruction: &str) -> Task {
    Task {
        id: id.to_owned(),
        instruction: instruction.to_owned(),
        context: "{}".to_owned(),
        settings: "{}".to_owned(),
        criteria: Vec::new(),
        feedback: Vec::new(),
        round: 1,
    }
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
