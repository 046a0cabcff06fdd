//! The agent `caller`: it does what its settings say, in their order, and hands back what came of each.
//!
//! `ask` is put to the model, `decide` is recorded as a decision, `calls` are calls of tools, and each of `batches` is
//! a list of calls that are made at once, `remember` is kept, `recall` is fetched and searched for, and each of `graph`
//! is asked of the graph `main`; `output` is handed back in the place of what came of them. In all of them `{id}` stands for the task, so that one agent does
//! another thing for each feature.

use longhaul_sdk::agent::{Agent, AgentError};
use longhaul_sdk::conversation::Conversation;
use longhaul_sdk::decisions::{self, Decision, DecisionOutcome};
use longhaul_sdk::graph::{Graph, GraphError, GraphFormat, GraphReplay};
use longhaul_sdk::recall::{self, Tier};
use longhaul_sdk::tools::{self, ToolCall, ToolError, ToolResult};
use longhaul_sdk::types::{Outcome, Task};
use longhaul_sdk::{Error, outcome};
use serde_json::{Value, json};

struct Caller;

impl Agent for Caller {
    fn run(task: Task) -> Result<Outcome, AgentError> {
        Ok(work(&task)?)
    }
}

longhaul_sdk::export_agent!(Caller);

fn work(task: &Task) -> Result<Outcome, Error> {
    let settings: Value = serde_json::from_str(&task.settings.replace("{id}", &task.id))?;
    let mut answers = Vec::new();
    if let Some(question) = settings["ask"].as_str() {
        answers.push(json!(Conversation::new("You answer in one line.").text(question)?));
    }
    if let Some(text) = settings["decide"].as_str() {
        decide(task, text)?;
    }
    for note in settings["remember"].as_array().into_iter().flatten() {
        let (tier, key) = (tier(note), note["key"].as_str().unwrap_or_default());
        answers.push(match recall::remember(tier, key, &note["value"].to_string()) {
            Ok(()) => json!("remembered"),
            Err(error) => json!({ "error": format!("{error:?}") }),
        });
    }
    answers.extend(settings["recall"].as_array().into_iter().flatten().map(recalled));
    answers.extend(settings["graph"].as_array().into_iter().flatten().map(graphed));
    answers.extend(settings["calls"].as_array().into_iter().flatten().map(call));
    answers.extend(settings["batches"].as_array().into_iter().flatten().map(batch));
    let summary = format!("made {} calls", answers.len());
    Ok(outcome(settings.get("output").unwrap_or(&json!(answers)), summary))
}

fn decide(task: &Task, text: &str) -> Result<(), Error> {
    decisions::record(&Decision {
        context: format!("how to do {}", task.id),
        decision: text.to_owned(),
        reasoning: "the settings say so".to_owned(),
        tags: Vec::new(),
        outcome: DecisionOutcome::Open,
        lesson: None,
    })?;
    Ok(())
}

fn tier(note: &Value) -> Tier {
    if note["tier"] == "working" { Tier::Working } else { Tier::Episodic }
}

/// The value under a key, and the keys that a search for it finds.
fn recalled(note: &Value) -> Value {
    let key = note["key"].as_str().unwrap_or_default();
    let kept = recall::fetch(tier(note), key).ok().flatten().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let found = recall::search(key, 5).unwrap_or_default();
    json!({ "kept": kept, "found": found.iter().map(|one| &one.key).collect::<Vec<_>>() })
}

/// `{ "do": "add", "step": "a", "source": "x = 1" }` and so on.
fn graphed(wanted: &Value) -> Value {
    let text = |field: &str| wanted[field].as_str().unwrap_or_default();
    let (graph, step) = (Graph::named("main"), text("step"));
    let answer = match text("do") {
        "add" => graph.add(step, text("source")).map(|changes| json!(changes.stale)),
        "change" => graph.change(step, text("source")).map(|changes| json!(changes.stale)),
        "remove" => graph.remove(step).map(|changes| json!(changes.stale)),
        "run" => graph.run().map(replayed),
        "replay" => graph.replay(step).map(replayed),
        "stale" => graph.stale().map(|steps| json!(steps)),
        "show" => graph.show().map(|steps| {
            json!(steps.iter().map(|one| json!([one.id, format!("{:?}", one.state), one.stdout])).collect::<Vec<_>>())
        }),
        "diagnose" => graph.diagnose(None).map(|found| json!([found.step, found.failure.kind, found.cause])),
        "patch" => graph.patch(None).map(|kept| json!([kept.step, kept.source])),
        "export" => graph.export(GraphFormat::Dot).map(|text| json!(text.contains("digraph"))),
        other => Err(GraphError::Invalid(format!("the settings ask for `{other}`"))),
    };
    answer.unwrap_or_else(|error| json!({ "error": Error::from(error).to_string() }))
}

fn replayed(did: GraphReplay) -> Value {
    json!({ "ran": did.ran, "answered": did.reused, "failed": did.failed, "untouched": did.untouched })
}

fn call(call: &Value) -> Value {
    shown(tools::call_raw(&of(call)))
}

fn batch(calls: &Value) -> Value {
    let calls: Vec<ToolCall> = calls.as_array().into_iter().flatten().map(of).collect();
    json!(tools::call_many(&calls).into_iter().map(shown).collect::<Vec<_>>())
}

/// `arguments` is JSON, or a text that is to be sent as it is.
fn of(call: &Value) -> ToolCall {
    let text = |field: &str| call[field].as_str().unwrap_or_default().to_owned();
    let arguments = call["arguments"].as_str().map_or_else(|| call["arguments"].to_string(), str::to_owned);
    ToolCall { tool: text("tool"), function: text("function"), arguments }
}

/// An error is an answer too.
fn shown(answer: Result<ToolResult, ToolError>) -> Value {
    match answer {
        Ok(result) => serde_json::from_str(&result.output).unwrap_or(Value::Null),
        Err(error) => json!({ "error": Error::from(error).to_string() }),
    }
}
