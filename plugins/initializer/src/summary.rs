//! The summary of the work, from the results alone: the same results give the same text.

use longhaul_sdk::json;
use longhaul_sdk::planner::{PlanStepResult, Synthesis, WorkPlan};
use serde_json::{Value, json};

/// Longest text of one issue in a summary.
const ISSUE_CHARS_MAX: usize = 300;

pub(crate) fn answer(results: &[PlanStepResult]) -> Value {
    let passed = results.iter().filter(|result| result.passed).count();
    let features: Vec<Value> = results.iter().map(feature).collect();
    json!({
        "text": text(results, passed),
        "passed": passed,
        "total": results.len(),
        "features": features,
    })
}

pub(crate) fn synthesis(answer: &Value, results: &[PlanStepResult]) -> Synthesis {
    let passed = results.iter().filter(|result| result.passed).count();
    Synthesis {
        answer: answer.to_string(),
        confidence: Some(share(passed, results.len())),
        conflicts: Vec::new(),
        unknowns: unknowns(results),
    }
}

/// The plan with the state of each step, for the model.
pub(crate) fn plan_lines(plan: &WorkPlan, results: &[PlanStepResult]) -> String {
    let mut lines = String::new();
    for step in &plan.steps {
        let result = results.iter().find(|result| result.step == step.id);
        let state = match result {
            Some(result) if result.passed => "passed",
            Some(_) => "failed",
            None => "not started",
        };
        lines.push_str(&format!("- `{}` ({state}): {}\n", step.id, step.title));
        if state == "passed" {
            continue;
        }
        lines.push_str(&format!("  Instruction: {}\n", json::cut(&step.instruction, 1_000)));
        for issue in result.iter().flat_map(|result| &result.issues) {
            lines.push_str(&format!("  Issue: {}\n", json::cut(&issue.text, 1_000)));
        }
    }
    lines
}

fn feature(result: &PlanStepResult) -> Value {
    json!({
        "id": result.step,
        "passed": result.passed,
        "summary": result.outcome.as_ref().map(|outcome| outcome.summary.as_str()),
        "issues": result.issues.iter().map(|issue| one_line(&issue.text)).collect::<Vec<_>>(),
    })
}

fn text(results: &[PlanStepResult], passed: usize) -> String {
    let mut text = format!("{passed} of {} features pass.", results.len());
    for result in results.iter().filter(|result| !result.passed) {
        let why = result.issues.first().map(|issue| one_line(&issue.text));
        let why = why.unwrap_or_else(|| "no issue was given".to_owned());
        text.push_str(&format!("\nNot passing: {}: {why}", result.step));
    }
    text
}

/// The open points: the agents' own unknowns, then the steps that do not pass.
fn unknowns(results: &[PlanStepResult]) -> Vec<String> {
    let mut unknowns = Vec::new();
    let own = results.iter().filter_map(|result| result.outcome.as_ref());
    for unknown in own.flat_map(|outcome| &outcome.unknowns) {
        if !unknowns.contains(unknown) {
            unknowns.push(unknown.clone());
        }
    }
    let failed = results.iter().filter(|result| !result.passed);
    unknowns.extend(failed.map(|result| format!("`{}` does not pass", result.step)));
    unknowns
}

/// The last line that is not empty: of a traceback it is the one that says what happened.
fn one_line(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    json::cut(last.unwrap_or_default().trim(), ISSUE_CHARS_MAX)
}

fn share(part: usize, whole: usize) -> f64 {
    let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if whole == 0 { 0.0 } else { count(part) / count(whole) }
}
