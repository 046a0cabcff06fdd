//! The fake model of asks: it chooses, plans, works and sums up, and what it answers follows from what it is asked.
//!
//! A request names the agent that is to answer it: `simple` or `complex`, `to:AGENT`, and `PLAN JSON` on a line of its
//! own is the plan. A task is written `do NAME; WORD; WORD...`, where the words say what its agent does: `put`, `post`
//! and `look` tell the server NAME, `fails-once` and `fails` end in a reply that cannot be parsed, `unsure` in one of
//! little confidence. What fails, or was never begun, is planned again as `do NAME again; put`.

use super::fake::fnv;
use serde_json::{Value, json};

/// The reply, if a request is one of an ask.
pub fn reply(body: &Value) -> Option<String> {
    let messages = body["messages"].as_array()?;
    let text = |at: usize| messages.get(at).map(|message| said(&message["content"])).unwrap_or_default();
    let (system, prompt) = (text(0), text(1));
    if system.starts_with("You decide how a request") {
        return Some(if prompt.contains("complex") { "Complex." } else { "simple" }.to_owned());
    }
    if system.starts_with("You decide which agent") {
        let named = prompt.split_once("to:").map(|(_, rest)| rest.split_whitespace().next().unwrap_or_default());
        return Some(named.unwrap_or("nobody-known").to_owned());
    }
    if system.starts_with("You split a request") {
        return Some(plan(&prompt));
    }
    if system.starts_with("You answer a request") {
        let told = prompt.split_once("What the agents answered:").map_or("", |(_, told)| told);
        let answer = format!("{} answers, {:016x}", told.matches("\n- `").count(), fnv(told));
        return Some(json!({"answer": answer, "confidence": 0.9, "conflicts": [], "unknowns": []}).to_string());
    }
    let task = prompt.strip_prefix("Task:\ndo ")?;
    let steps = messages.iter().filter(|message| message["role"] == "assistant").count();
    let guidance =
        messages.iter().map(|message| said(&message["content"])).find(|text| text.starts_with("Human guidance"));
    Some(work(task, steps, guidance.as_deref()))
}

fn said(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn plan(prompt: &str) -> String {
    let Some((_, told)) = prompt.split_once("What became of the tasks so far:") else {
        let line = prompt.lines().find_map(|line| line.strip_prefix("PLAN "));
        return line.unwrap_or("I have no plan.").to_owned();
    };
    let again = |line: &str| {
        let (id, rest) = line.strip_prefix("- `")?.split_once('`')?;
        let is_open = rest.starts_with(": (failed)") || rest.starts_with(": (not started)") || rest.contains("0.20");
        is_open.then(|| json!({"id": id, "instruction": format!("do {id} again; put"), "on_failure": "skip"}))
    };
    let tasks: Vec<Value> = told.lines().filter_map(again).collect();
    json!({"rationale": "what failed, once more", "tasks": tasks, "question": ""}).to_string()
}

fn work(task: &str, steps: usize, guidance: Option<&str>) -> String {
    let line = task.lines().next().unwrap_or_default();
    let mut words = line.split("; ");
    let name = words.next().unwrap_or_default().split(' ').next().unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let effects: Vec<&&str> = words.iter().filter(|word| ["put", "post", "look"].contains(word)).collect();
    if let Some(effect) = effects.get(steps) {
        let action = format!("poster.{effect}");
        return json!({"thought": "tell", "action": action, "args": {"text": name}}).to_string();
    }
    let is_first = !task.contains("earlier_failure");
    if words.contains(&"fails") || (words.contains(&"fails-once") && is_first) {
        return "I would rather not.".to_owned();
    }
    let upstream =
        task.split_once("--- Context").map_or("", |(_, told)| told.split("\n\nWhat is").next().unwrap_or(""));
    let confidence = if words.contains(&"unsure") { 0.2 } else { 0.95 };
    let guided = guidance.map_or(String::new(), |text| format!(" ({text})"));
    let answer = format!("{name} {:08x}{guided}", fnv(upstream) & 0xffff_ffff);
    json!({"thought": "done", "action": "finish", "answer": answer, "confidence": confidence}).to_string()
}
