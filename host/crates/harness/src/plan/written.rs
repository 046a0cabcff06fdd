//! A plan that a person wrote as JSON, for a run that follows it instead of asking a planner.
//!
//! ```json
//! {"rationale": "why", "tasks": [
//!   {"id": "a", "agent_id": "research", "instruction": "find out", "on_failure": "abort"},
//!   {"id": "b", "instruction": "write it down", "depends_on": ["a"], "on_failure": "retry", "max_retries": 2,
//!    "criteria": [{"id": "short", "text": "it has one page"}], "checks": [{"name": "c", "python": "..."}]}]}
//! ```
//!
//! Only `instruction` is required. Refuses unknown fields, and decides nothing else: [`super::accept`] validates the
//! plan.

use longhaul_core::work::{CheckBody, CheckSpec, Criterion, FeatureSpec, OnFailure, Plan, PlanStep};
use serde::Deserialize;

/// Retries of a task whose plan says `retry` without a number.
const RETRIES_DEFAULT: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    rationale: String,
    #[serde(default)]
    tasks: Vec<WrittenTask>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTask {
    id: Option<String>,
    title: Option<String>,
    #[serde(alias = "agent")]
    agent_id: Option<String>,
    instruction: String,
    category: Option<String>,
    priority: Option<u8>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    on_failure: WrittenFailure,
    max_retries: Option<u32>,
    #[serde(default)]
    criteria: Vec<Criterion>,
    #[serde(default)]
    checks: Vec<WrittenCheck>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenFailure {
    Retry,
    Skip,
    #[default]
    Replan,
    Abort,
}

#[derive(Deserialize)]
struct WrittenCheck {
    name: String,
    #[serde(flatten)]
    body: CheckBodyWritten,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum CheckBodyWritten {
    Python(String),
    Native(String),
}

/// Parses a plan.
///
/// # Errors
/// The fault of the JSON, with line and column.
pub fn read(text: &str) -> Result<Plan, serde_json::Error> {
    let Written { rationale, tasks } = serde_json::from_str(text)?;
    let steps = tasks.into_iter().enumerate().map(|(number, task)| step(number, task)).collect();
    Ok(Plan { steps, notes: rationale })
}

fn step(number: usize, task: WrittenTask) -> PlanStep {
    let id = task.id.unwrap_or_else(|| format!("t{number}"));
    let first_line = task.instruction.lines().next().unwrap_or_default().to_owned();
    let checks: Vec<_> = task.checks.into_iter().map(check).collect();
    let on_failure = match task.on_failure {
        WrittenFailure::Retry => OnFailure::Retry(task.max_retries.unwrap_or(RETRIES_DEFAULT)),
        WrittenFailure::Skip => OnFailure::Skip,
        WrittenFailure::Replan => OnFailure::Replan,
        WrittenFailure::Abort => OnFailure::Abort,
    };
    let criteria = if task.criteria.is_empty() && checks.is_empty() { vec![done()] } else { task.criteria };
    let spec = FeatureSpec {
        id,
        title: task.title.unwrap_or(first_line),
        instruction: task.instruction,
        category: task.category.unwrap_or_else(|| "functional".to_owned()),
        priority: task.priority.unwrap_or(5),
        agent: task.agent_id,
        criteria,
        checks,
        depends_on: task.depends_on,
    };
    PlanStep { spec, on_failure }
}

/// A task without criteria is still judged.
fn done() -> Criterion {
    Criterion { id: "done".to_owned(), text: "what the instruction asks for is done".to_owned(), check: None }
}

fn check(check: WrittenCheck) -> CheckSpec {
    let body = match check.body {
        CheckBodyWritten::Python(source) => CheckBody::Python(source),
        CheckBodyWritten::Native(name) => CheckBody::Native(name),
    };
    CheckSpec { name: check.name, body }
}
