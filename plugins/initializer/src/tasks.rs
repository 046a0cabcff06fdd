//! Tasks of an ask: a request split among agents, and what their answers come to.
//!
//! A reply that is no plan goes back to the model, at most `tries_max` times. Whether a plan can be carried out (ids,
//! agents, circles, caps) is the host's to say, which asks again with what is wrong: the notes in the goal's context.

use longhaul_sdk::conversation::ReplyFormat;
use longhaul_sdk::planner::{Goal, OnFailure, PlanError, Step, StepResult, Synthesis, WorkPlan};
use longhaul_sdk::{Conversation, json};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::{described, options};
use crate::settings::Settings;

const SYSTEM: &str = "You split a request into tasks for agents. Each task is given to one agent, who knows nothing \
but its instruction and the answers of the tasks that it depends on. Use as few tasks as will do, and let tasks that \
do not need each other stand side by side. You answer nothing yourself. If the request cannot be planned without an \
answer from a person, give no tasks and ask one question. Reply with JSON only.";

const SYSTEM_SYNTHESIS: &str = "You answer a request from what agents answered to its tasks. Use only what they say. \
Say where they contradict each other (`conflicts`) and what nobody found out (`unknowns`). `confidence` says from 0 \
to 1 how sure you are of the answer. Reply with JSON only.";

/// Characters of one answer that a model is shown.
const ANSWER_CHARS_MAX: usize = 8_000;

/// Whether a goal is an ask and not a project.
pub(crate) fn is_ask(goal: &Goal) -> bool {
    serde_json::from_str::<Value>(&goal.context).is_ok_and(|context| context["kind"] == "ask")
}

#[derive(Deserialize)]
struct Draft {
    #[serde(default)]
    rationale: String,
    #[serde(default)]
    tasks: Vec<Task>,
    #[serde(default)]
    question: String,
}

#[derive(Deserialize)]
struct Task {
    #[serde(default)]
    id: Option<String>,
    #[serde(default, alias = "agent")]
    agent_id: Option<String>,
    instruction: String,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    on_failure: Policy,
    #[serde(default)]
    max_retries: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    Retry,
    Skip,
    #[default]
    Replan,
    Abort,
}

#[derive(Deserialize)]
struct Summed {
    answer: Value,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    conflicts: Vec<String>,
    #[serde(default)]
    unknowns: Vec<String>,
}

pub(crate) fn plan(goal: &Goal, settings: &Settings) -> Result<WorkPlan, PlanError> {
    ask(&format!("{}\n\nSplit this request into tasks.", described(goal)), settings)
}

pub(crate) fn replan(
    goal: &Goal,
    settings: &Settings,
    plan: &WorkPlan,
    results: &[StepResult],
) -> Result<WorkPlan, PlanError> {
    let prompt = format!(
        "{}\n\nWhat became of the tasks so far:{}{}\n\nGive tasks for the rest of the way, under new ids. They may depend \
         on tasks that were answered. Do not repeat what was answered well.",
        described(goal),
        told(results),
        not_started(plan, results),
    );
    ask(&prompt, settings)
}

fn ask(prompt: &str, settings: &Settings) -> Result<WorkPlan, PlanError> {
    let draft: Draft = reply(SYSTEM, prompt, &plan_schema(settings.features_max), "tasks", settings)?;
    if draft.tasks.is_empty() && !draft.question.trim().is_empty() {
        return Err(PlanError::Unclear(draft.question.trim().to_owned()));
    }
    let steps = draft.tasks.into_iter().enumerate().map(|(number, task)| step(number, task)).collect();
    Ok(WorkPlan { steps, notes: draft.rationale })
}

pub(crate) fn synthesize(goal: &Goal, settings: &Settings, results: &[StepResult]) -> Result<Synthesis, PlanError> {
    let prompt = format!("{}\n\nWhat the agents answered:{}", described(goal), told(results));
    let summed: Summed = reply(SYSTEM_SYNTHESIS, &prompt, &synthesis_schema(), "answer", settings)?;
    Ok(Synthesis {
        answer: summed.answer.to_string(),
        confidence: summed.confidence.unwrap_or(0.5),
        conflicts: summed.conflicts,
        unknowns: summed.unknowns,
    })
}

/// The first object of a reply that has `field` and the right shape.
fn reply<T: serde::de::DeserializeOwned>(
    system: &str,
    prompt: &str,
    schema: &Value,
    field: &str,
    settings: &Settings,
) -> Result<T, PlanError> {
    let conversation = Conversation::new(system);
    conversation.pinned(prompt)?;
    let mut wrong = String::new();
    for attempt in 0..settings.tries_max {
        if attempt > 0 {
            conversation.user(format!("This cannot be used: {wrong}. Give all of it again."))?;
        }
        let turn = conversation.complete(&options(settings, attempt, ReplyFormat::Schema(schema.to_string())))?;
        match json::first_object(&turn.text, |value: &Value| value.get(field).is_some()).map(serde_json::from_value) {
            Some(Ok(value)) => return Ok(value),
            Some(Err(error)) => wrong = format!("it does not fit the schema: {error}"),
            None => wrong = format!("it is not a JSON object with `{field}`"),
        }
    }
    Err(PlanError::Failed(format!(
        "the model gave nothing usable in {} tries; the last one: {}; choose a stronger model for the planner",
        settings.tries_max,
        json::cut(&wrong, 500),
    )))
}

fn step(number: usize, task: Task) -> Step {
    let first_line = task.instruction.trim().lines().next().unwrap_or_default();
    Step {
        id: task.id.map_or_else(|| format!("t{number}"), |id| id.trim().to_owned()),
        title: json::cut(first_line, 120),
        category: "functional".to_owned(),
        priority: 5,
        agent: task.agent_id.filter(|agent| !agent.is_empty()),
        criteria: Vec::new(),
        checks: Vec::new(),
        depends_on: task.depends_on,
        on_failure: match task.on_failure {
            Policy::Retry => OnFailure::Retry(task.max_retries.unwrap_or(1)),
            Policy::Skip => OnFailure::Skip,
            Policy::Replan => OnFailure::Replan,
            Policy::Abort => OnFailure::Abort,
        },
        instruction: task.instruction,
    }
}

fn told(results: &[StepResult]) -> String {
    let mut text = String::new();
    for result in results {
        let said = match &result.outcome {
            Some(outcome) if result.passed => json::cut(&outcome.output, ANSWER_CHARS_MAX),
            _ => {
                let issues: Vec<&str> = result.issues.iter().map(|issue| issue.text.as_str()).collect();
                format!("(failed) {}", json::cut(&issues.join("; "), 1_000))
            }
        };
        let sure = result.outcome.as_ref().and_then(|outcome| outcome.confidence).filter(|_| result.passed);
        let sure = sure.map_or(String::new(), |sure| format!(" (confidence {sure:.2})"));
        text.push_str(&format!("\n- `{}`{sure}: {said}", result.step));
    }
    text
}

/// Tasks that nobody came to, since one before them failed.
fn not_started(plan: &WorkPlan, results: &[StepResult]) -> String {
    let open = plan.steps.iter().filter(|step| !results.iter().any(|result| result.step == step.id));
    open.map(|step| format!("\n- `{}`: (not started) {}", step.id, json::cut(&step.instruction, 1_000))).collect()
}

fn plan_schema(tasks_max: usize) -> Value {
    json!({
        "type": "object",
        "properties": {
            "rationale": { "type": "string", "description": "why these tasks, in one or two sentences" },
            "tasks": { "type": "array", "maxItems": tasks_max, "items": {
                "type": "object",
                "properties": {
                    "id": { "type": "string", "description": "letters, digits and -, unique" },
                    "agent_id": { "type": "string", "description": "one of the agents" },
                    "instruction": { "type": "string", "description": "what to do, complete on its own" },
                    "depends_on": { "type": "array", "items": { "type": "string" },
                        "description": "ids of tasks whose answers it needs" },
                    "on_failure": { "type": "string", "enum": ["retry", "skip", "replan", "abort"] },
                    "max_retries": { "type": "integer", "minimum": 0, "maximum": 5 }
                },
                "required": ["id", "agent_id", "instruction", "depends_on", "on_failure", "max_retries"],
                "additionalProperties": false
            } },
            "question": { "type": "string",
                "description": "empty, or what a person must answer before this can be planned" }
        },
        "required": ["rationale", "tasks", "question"],
        "additionalProperties": false
    })
}

fn synthesis_schema() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "answer": { "type": "string" },
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "conflicts": texts,
            "unknowns": texts
        },
        "required": ["answer", "confidence", "conflicts", "unknowns"],
        "additionalProperties": false
    })
}
