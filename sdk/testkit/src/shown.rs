//! Typed results as JSON, in the words of the contract.
//!
//! Where the contract has JSON in a text, the value is shown: the engine has seen to it that it is JSON.

use crate::done::{Done, Ending, Refusal};
use longhaul_core::memory::{KeyPage, MemoryEntry, MemoryHit};
use longhaul_core::tool::{ToolInfo, ToolOutput, Verification};
use longhaul_core::work::{Judgement, Outcome, Plan, RoleError, Synthesis, Verdict};
use longhaul_engine::Called;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;
use std::time::Duration;

/// The result of a call whose value `show` knows.
pub(crate) fn done<T, E: Serialize + Display>(
    export: &'static str,
    called: Called<Result<T, E>>,
    show: impl FnOnce(T) -> Value,
) -> Done {
    let Called { result, used, events, log, log_dropped, .. } = called;
    let ending = match result {
        Ok(Ok(value)) => Ending::Returned(show(value)),
        Ok(Err(error)) => Ending::Refused(refusal(&error)),
        Err(error) => Ending::Stopped(error),
    };
    Done { export, ending, used, calls: Vec::new(), events, log, log_dropped, wall: Duration::ZERO }
}

/// The same for planners, whose question has a case of its own.
pub(crate) fn planned<T>(
    export: &'static str,
    called: Called<Result<T, RoleError>>,
    show: impl FnOnce(T) -> Value,
) -> Done {
    let mut done = done(export, called, show);
    if let Ending::Refused(refusal) = &mut done.ending {
        name_question(refusal);
    }
    done
}

/// The error of a role, which another call returned.
pub(crate) fn refused(error: &RoleError, is_planner: bool) -> Refusal {
    let mut refusal = refusal(error);
    if is_planner {
        name_question(&mut refusal);
    }
    refusal
}

/// Gives a planner's question the name of its case.
fn name_question(refusal: &mut Refusal) {
    if refusal.case == "blocked" {
        refusal.case = "unclear".to_owned();
    }
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

pub(crate) fn plain<T: Serialize>(value: T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

pub(crate) fn prepared(text: String) -> Value {
    json_of(text)
}

pub(crate) fn tool_info(info: ToolInfo) -> Value {
    let functions: Vec<Value> = info
        .functions
        .into_iter()
        .map(|function| {
            json!({
                "name": function.name,
                "description": function.description,
                "parameters": json_of(function.parameters),
                "effect": function.effect,
            })
        })
        .collect();
    json!({ "id": info.id, "description": info.description, "functions": functions })
}

pub(crate) fn tool_output(output: ToolOutput) -> Value {
    json!({ "output": json_of(output.output), "truncated": output.truncated })
}

pub(crate) fn verification(verification: Verification) -> Value {
    match verification {
        Verification::Happened(output) => json!({ "happened": tool_output(output) }),
        Verification::DidNotHappen => json!("did-not-happen"),
        Verification::Unknown(text) => json!({ "unknown": text }),
    }
}

pub(crate) fn plan(plan: Plan) -> Value {
    plain(plan)
}

pub(crate) fn synthesis(synthesis: Synthesis) -> Value {
    let Synthesis { answer, confidence, conflicts, unknowns } = synthesis;
    let answer = json_of(answer);
    json!({ "answer": answer, "confidence": confidence, "conflicts": conflicts, "unknowns": unknowns })
}

pub(crate) fn outcome(outcome: Outcome) -> Value {
    let Outcome { output, summary, confidence, unknowns } = outcome;
    let output = json_of(output);
    json!({ "output": output, "summary": summary, "confidence": confidence, "unknowns": unknowns })
}

pub(crate) fn verdict(verdict: Verdict) -> Value {
    let judgement = |Judgement { criterion, mark, why }| json!({ "criterion": criterion, "mark": mark, "reason": why });
    let judgements: Vec<Value> = verdict.judgements.into_iter().map(judgement).collect();
    json!({ "judgements": judgements, "issues": verdict.issues })
}

pub(crate) fn found(found: Option<MemoryEntry>) -> Value {
    found.map_or(Value::Null, entry)
}

pub(crate) fn page(page: KeyPage) -> Value {
    json!({ "keys": page.keys, "cursor": page.next })
}

pub(crate) fn hits(hits: Vec<MemoryHit>) -> Value {
    hits.into_iter().map(|hit| json!({ "entry": entry(hit.entry), "score": hit.score })).collect()
}

fn entry(entry: MemoryEntry) -> Value {
    let MemoryEntry { key, value, tags, expires_at_ms } = entry;
    let value = json_of(value);
    json!({ "key": key, "value": value, "tags": tags, "expires_at_ms": expires_at_ms })
}

fn json_of(text: String) -> Value {
    // Deeper than our parser goes is still JSON.
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
