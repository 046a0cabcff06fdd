//! Tasks of an ask: a request split among agents, and what their answers come to.
//!
//! A reply that is no plan, or has a task wait for none or for itself, goes back to the model, at most `tries_max` times;
//! at the last one such waits are left out, and the plan's notes say so. What else a plan has to hold (agents, caps) is
//! the host's to say, which asks again with what is wrong: the notes in the goal's context.

use longhaul_sdk::conversation::ReplyFormat;
use longhaul_sdk::planner::{Goal, OnFailure, PlanError, PlanStep, PlanStepResult, Synthesis, WorkPlan};
use longhaul_sdk::{Conversation, json};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::{described, options};
use crate::settings::Settings;
use crate::{bounds, graph};

const SYSTEM: &str = "You split a request into tasks for agents. Each task is given to one agent, who knows nothing \
but its instruction and the answers of the tasks that it depends on. Use as few tasks as will do, and let tasks that \
do not need each other stand side by side. You answer nothing yourself. If the request cannot be planned without an \
answer from a person, give no tasks and ask one question. Reply with JSON only.";

const SYSTEM_SYNTHESIS: &str = "You answer a request from what agents answered to its tasks. Use only what they say. \
Say where they contradict each other (`conflicts`) and what nobody found out (`unknowns`). `confidence` says from 0 \
to 1 how sure you are of the answer. Reply with JSON only.";

/// Characters of one answer that a model is shown.
const ANSWER_CHARS_MAX: usize = 8_000;

/// True when a goal is an ask and not a project.
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
    ask(goal, &format!("{}\n\nSplit this request into tasks.", described(goal)), settings, &[])
}

pub(crate) fn replan(
    goal: &Goal,
    settings: &Settings,
    plan: &WorkPlan,
    results: &[PlanStepResult],
) -> Result<WorkPlan, PlanError> {
    let prompt = format!(
        "{}\n\nWhat became of the tasks so far:{}{}\n\nGive tasks for the rest of the way, under new ids. They may depend \
         on tasks that were answered. Do not repeat what was answered well.",
        described(goal),
        told(results),
        not_started(plan, results),
    );
    let known: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    ask(goal, &prompt, settings, &known)
}

fn ask(goal: &Goal, prompt: &str, settings: &Settings, known: &[&str]) -> Result<WorkPlan, PlanError> {
    let schema = plan_schema(settings.features_max, &agents(goal));
    let plan = |draft: Draft, is_last: bool| {
        if draft.tasks.is_empty() && !draft.question.trim().is_empty() {
            return Ok(Err(PlanError::Unclear(draft.question.trim().to_owned())));
        }
        let mut steps: Vec<PlanStep> =
            draft.tasks.into_iter().enumerate().map(|(number, task)| step(number, task)).collect();
        let mut notes = draft.rationale;
        if is_last {
            notes.extend(without_idle_waits(&mut steps, known).iter().map(|left_out| format!("\n{left_out}")));
        }
        graph::check("task", &steps, known)?;
        Ok(Ok(WorkPlan { steps, notes }))
    };
    reply(SYSTEM, prompt, &schema, "tasks", settings, plan)?
}

pub(crate) fn synthesize(goal: &Goal, settings: &Settings, results: &[PlanStepResult]) -> Result<Synthesis, PlanError> {
    let prompt = format!("{}\n\nWhat the agents answered:{}", described(goal), told(results));
    let synthesis = |summed: Summed, _| {
        Ok(Synthesis {
            answer: summed.answer.to_string(),
            confidence: summed.confidence,
            conflicts: summed.conflicts,
            unknowns: summed.unknowns,
        })
    };
    reply(SYSTEM_SYNTHESIS, &prompt, &synthesis_schema(), "answer", settings, synthesis)
}

/// Asks the model, and returns the result of `accept` for the first object of the reply that has `field` and the right
/// shape. `accept` is told whether it is the last attempt.
fn reply<T: serde::de::DeserializeOwned, M>(
    system: &str,
    prompt: &str,
    schema: &Value,
    field: &str,
    settings: &Settings,
    accept: impl Fn(T, bool) -> Result<M, String>,
) -> Result<M, PlanError> {
    let conversation = Conversation::new(system);
    conversation.pinned(prompt)?;
    let mut wrong = String::new();
    for attempt in 0..settings.tries_max {
        if attempt > 0 {
            conversation.user(format!("This cannot be used: {wrong}. Give all of it again."))?;
        }
        let reply = conversation.complete(&options(settings, attempt, ReplyFormat::Schema(schema.to_string())))?;
        let found = json::first_object(&reply.text, |value: &Value| value.get(field).is_some());
        let read =
            |value| serde_json::from_value(value).map_err(|error| format!("it does not fit the schema: {error}"));
        let is_last = attempt + 1 == settings.tries_max;
        let accept = |value| accept(value, is_last);
        match found.ok_or_else(|| format!("it is not a JSON object with `{field}`")).and_then(read).and_then(accept) {
            Ok(made) => return Ok(made),
            Err(text) => wrong = text,
        }
    }
    Err(PlanError::Failed(format!(
        "the model gave nothing usable in {} attempts; the last one: {}; choose a stronger model for the planner",
        settings.tries_max,
        json::cut(&wrong, 500),
    )))
}

/// Takes away waits for what is no task before it in the list, so that there is no circle either; answers what was taken
/// away. A small model that was told twice still writes them, and a plan without them is better than none.
fn without_idle_waits(steps: &mut [PlanStep], known: &[&str]) -> Vec<String> {
    let (mut before, mut left_out): (Vec<String>, Vec<String>) = Default::default();
    for step in steps {
        let idle = |id: &String| !before.contains(id) && !known.contains(&id.as_str());
        let (idle, kept): (Vec<String>, _) = std::mem::take(&mut step.depends_on).into_iter().partition(idle);
        step.depends_on = kept;
        if let Some(first) = idle.first() {
            let more = if idle.len() > 1 { format!(" and {} more", idle.len() - 1) } else { String::new() };
            left_out.push(format!("left out: `{}` waits for `{first}`{more}, which is no task before it", step.id));
        }
        before.push(step.id.clone());
    }
    left_out
}

fn step(number: usize, task: Task) -> PlanStep {
    let first_line = task.instruction.trim().lines().next().unwrap_or_default();
    PlanStep {
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

fn told(results: &[PlanStepResult]) -> String {
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

/// Tasks that did not start because a task before them failed.
fn not_started(plan: &WorkPlan, results: &[PlanStepResult]) -> String {
    let open = plan.steps.iter().filter(|step| !results.iter().any(|result| result.step == step.id));
    open.map(|step| format!("\n- `{}`: (not started) {}", step.id, json::cut(&step.instruction, 1_000))).collect()
}

/// The agents that a task may name.
fn agents(goal: &Goal) -> Vec<String> {
    let context: Value = serde_json::from_str(&goal.context).unwrap_or_default();
    serde_json::from_value(context["agents"].clone()).unwrap_or_default()
}

/// With bounds for every text and list: a small model that is held to a schema ends a text only where it has to.
fn plan_schema(tasks_max: usize, agents: &[String]) -> Value {
    let mut agent = json!({ "type": "string", "description": "one of the agents" });
    if !agents.is_empty() {
        agent["enum"] = json!(agents);
    }
    json!({
        "type": "object",
        "properties": {
            "rationale": bounds::text(300, "why these tasks, in one or two sentences"),
            "tasks": { "type": "array", "maxItems": tasks_max, "items": {
                "type": "object",
                "properties": {
                    "id": bounds::id(),
                    "agent_id": agent,
                    "instruction": bounds::text(bounds::INSTRUCTION_CHARS_MAX, "what to do, complete on its own"),
                    "depends_on": bounds::ids("ids of tasks whose answers it needs"),
                    "on_failure": { "type": "string", "enum": ["retry", "skip", "replan", "abort"] },
                    "max_retries": { "type": "integer", "minimum": 0, "maximum": 5 }
                },
                "required": ["id", "agent_id", "instruction", "depends_on", "on_failure", "max_retries"],
                "additionalProperties": false
            } },
            "question": bounds::question()
        },
        "required": ["rationale", "tasks", "question"],
        "additionalProperties": false
    })
}

fn synthesis_schema() -> Value {
    let texts = |what: &str| bounds::texts(10, bounds::text(500, what));
    json!({
        "type": "object",
        "properties": {
            "answer": bounds::text(bounds::ANSWER_CHARS_MAX, "the answer to the request"),
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "conflicts": texts("where two answers contradict each other"),
            "unknowns": texts("what nobody found out")
        },
        "required": ["answer", "confidence", "conflicts", "unknowns"],
        "additionalProperties": false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(told: &[(&str, &[&str])]) -> Vec<PlanStep> {
        let task = |(id, depends_on): &(&str, &[&str])| {
            let task = json!({ "id": id, "agent_id": "a", "instruction": "do", "depends_on": depends_on });
            step(0, serde_json::from_value(task).expect("a task"))
        };
        told.iter().map(task).collect()
    }

    #[test]
    fn the_last_try_waits_only_for_tasks_before() {
        let told: [(&str, &[&str]); 3] = [("a", &["a", "name"]), ("b", &["a", "c", "old"]), ("c", &["b"])];
        let mut plan = steps(&told);
        assert!(graph::check("task", &plan, &["old"]).is_err());
        let left_out = without_idle_waits(&mut plan, &["old"]);
        let waits: Vec<_> = plan.iter().map(|step| step.depends_on.join(" ")).collect();
        assert_eq!(waits, ["", "a old", "b"]);
        assert_eq!(left_out[0], "left out: `a` waits for `a` and 1 more, which is no task before it");
        assert_eq!(left_out[1], "left out: `b` waits for `c`, which is no task before it");
        assert_eq!((left_out.len(), graph::check("task", &plan, &["old"])), (2, Ok(())));
    }

    #[test]
    fn what_can_be_carried_out_is_left_as_it_is() {
        let told: [(&str, &[&str]); 2] = [("a", &[]), ("b", &["a"])];
        let (mut plan, before) = (steps(&told), steps(&told));
        assert!(without_idle_waits(&mut plan, &[]).is_empty());
        let waits = |plan: &[PlanStep]| plan.iter().map(|step| step.depends_on.clone()).collect::<Vec<_>>();
        assert_eq!(waits(&plan), waits(&before));
        assert_eq!(graph::check("task", &plan, &["b"]), Ok(()), "an id of the plan before is the host's to replace");
    }

    #[test]
    fn every_text_and_list_of_a_reply_has_a_bound() {
        fn walk(schema: &Value, at: &str) {
            let bounds: &[&str] = match schema["type"].as_str() {
                Some("string") => &["maxLength", "pattern", "enum"],
                Some("array") => &["maxItems"],
                _ => &[],
            };
            assert!(bounds.is_empty() || bounds.iter().any(|bound| schema.get(bound).is_some()), "{at} has no bound");
            let fields = schema["properties"].as_object().into_iter().flatten();
            fields.for_each(|(name, field)| walk(field, &format!("{at}.{name}")));
            if let Some(items) = schema.get("items") {
                walk(items, &format!("{at}[]"));
            }
        }
        walk(&plan_schema(5, &["a".to_owned()]), "plan");
        walk(&synthesis_schema(), "synthesis");
        walk(&crate::draft::schema(5), "draft");
    }
}
