//! Typed results as JSON, in the words of the contract.
//!
//! Where the contract has JSON in a text, the value is shown. A text that is not JSON is shown as it is
//! and its field is noted, since such a plugin breaks the contract.

use crate::done::{Done, Ending, Refusal};
use longhaul_core::memory::{Entry, Hit};
use longhaul_core::tool::{ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Outcome, Plan, RoleError, Synthesis};
use longhaul_engine::Called;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;
use std::time::Duration;

/// Fields that hold something else than JSON.
type NotJson = Vec<&'static str>;

/// What came of a call whose value `show` knows.
pub(crate) fn done<T, E: Serialize + Display>(
    export: &'static str,
    called: Called<Result<T, E>>,
    show: impl FnOnce(T, &mut NotJson) -> Value,
) -> Done {
    let Called { result, used, events, log, log_dropped, .. } = called;
    let mut not_json = NotJson::new();
    let ending = match result {
        Ok(Ok(value)) => Ending::Returned(show(value, &mut not_json)),
        Ok(Err(error)) => Ending::Refused(refusal(&error)),
        Err(error) => Ending::Stopped(error),
    };
    Done { export, ending, not_json, used, calls: Vec::new(), events, log, log_dropped, wall: Duration::ZERO }
}

/// The same for planners, whose question has a case of its own.
pub(crate) fn planned<T>(
    export: &'static str,
    called: Called<Result<T, RoleError>>,
    show: impl FnOnce(T, &mut NotJson) -> Value,
) -> Done {
    let mut done = done(export, called, show);
    if let Ending::Refused(refusal) = &mut done.ending
        && refusal.case == "blocked"
    {
        refusal.case = "unclear".to_owned();
    }
    done
}

/// Errors are enums that hold one thing each, which serde writes as `{CASE: THING}`.
fn refusal(error: &(impl Serialize + Display)) -> Refusal {
    let text = error.to_string();
    match serde_json::to_value(error) {
        Ok(Value::Object(cases)) if cases.len() == 1 => {
            let (case, detail) = cases.into_iter().next().unwrap_or_default();
            // The plugin's own words where it has some.
            let text = detail.as_str().map_or(text, str::to_owned);
            Refusal { case, detail, text }
        }
        _ => Refusal { case: "failed".to_owned(), detail: Value::String(text.clone()), text },
    }
}

pub(crate) fn plain<T: Serialize>(value: T, _: &mut NotJson) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

pub(crate) fn prepared(text: String, wrong: &mut NotJson) -> Value {
    json_of("prepared", text, wrong)
}

pub(crate) fn tool_info(info: ToolInfo, wrong: &mut NotJson) -> Value {
    let functions: Vec<Value> = info
        .functions
        .into_iter()
        .map(|function| {
            json!({
                "name": function.name,
                "description": function.description,
                "parameters": json_of("parameters", function.parameters, wrong),
                "effect": function.effect,
            })
        })
        .collect();
    json!({ "id": info.id, "description": info.description, "functions": functions })
}

pub(crate) fn tool_output(output: ToolOutput, wrong: &mut NotJson) -> Value {
    json!({ "output": json_of("output", output.output, wrong), "truncated": output.truncated })
}

pub(crate) fn verification(verification: Verification, wrong: &mut NotJson) -> Value {
    match verification {
        Verification::Happened(output) => json!({ "happened": tool_output(output, wrong) }),
        Verification::DidNotHappen => json!("did-not-happen"),
        Verification::Unknown(text) => json!({ "unknown": text }),
    }
}

pub(crate) fn plan(plan: Plan, wrong: &mut NotJson) -> Value {
    plain(plan, wrong)
}

pub(crate) fn synthesis(synthesis: Synthesis, wrong: &mut NotJson) -> Value {
    let Synthesis { answer, confidence, conflicts, unknowns } = synthesis;
    let answer = json_of("answer", answer, wrong);
    json!({ "answer": answer, "confidence": confidence, "conflicts": conflicts, "unknowns": unknowns })
}

pub(crate) fn outcome(outcome: Outcome, wrong: &mut NotJson) -> Value {
    let Outcome { output, summary, confidence, unknowns } = outcome;
    let output = json_of("output", output, wrong);
    json!({ "output": output, "summary": summary, "confidence": confidence, "unknowns": unknowns })
}

pub(crate) fn found(found: Option<Entry>, wrong: &mut NotJson) -> Value {
    found.map_or(Value::Null, |found| entry(found, wrong))
}

pub(crate) fn hits(hits: Vec<Hit>, wrong: &mut NotJson) -> Value {
    hits.into_iter().map(|hit| json!({ "entry": entry(hit.entry, wrong), "score": hit.score })).collect()
}

fn entry(entry: Entry, wrong: &mut NotJson) -> Value {
    let Entry { key, value, tags, expires_at_ms } = entry;
    let value = json_of("value", value, wrong);
    json!({ "key": key, "value": value, "tags": tags, "expires_at_ms": expires_at_ms })
}

fn json_of(field: &'static str, text: String, wrong: &mut NotJson) -> Value {
    serde_json::from_str(&text).unwrap_or_else(|error| {
        // Deeper than our parser goes is still JSON.
        if !error.to_string().contains("recursion limit") {
            wrong.push(field);
        }
        Value::String(text)
    })
}
