//! The questions to the model.
//!
//! A reply that cannot be used goes back with what is wrong, at most `tries_max` times. Errors of
//! the host (denied, limit, outage) are passed on at once: asking again is the host's affair.

use longhaul_sdk::conversation::{Options, ReplyFormat, StopReason};
use longhaul_sdk::planner::{Goal, PlanError, PlanStep, PlanStepResult, WorkPlan};
use longhaul_sdk::repository::Repository;
use longhaul_sdk::{Conversation, Error, json};
use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::settings::Settings;
use crate::{graph, summary};

const SYSTEM: &str = "You plan software projects. You split a goal into features. Each feature is \
small enough for one working session of one programmer who knows nothing but its instruction. You \
write no code but checks and you execute nothing. If the goal cannot be planned without an answer from a \
person, give no features and ask one question.\n\
\n\
Give each criterion that a program can decide a check: one Python file in the style of pytest or \
unittest, run in the top directory of the repository. It imports the modules of the repository by \
their names there, and those that the feature adds by names that its instruction says. It has the \
standard library and `pytest` (raises, approx, mark.parametrize, fixture, monkeypatch, capsys), and \
nothing else: no other packages, no processes, no network, no files that it writes. It must fail \
before the feature is built and pass once it is. Leave the check empty only where a reader has to \
judge, and do not repeat in words what a check decides. Reply with JSON only.";

const SYSTEM_SUMMARY: &str = "You sum up what was done on a project for its owner, in at most five \
plain sentences. Say only what the given results say. Name what is not done.";

pub(crate) fn plan(goal: &Goal, settings: &Settings) -> Result<WorkPlan, PlanError> {
    let prompt = format!("{}\n\nSplit this goal into features.", described(goal));
    let steps = steps(&prompt, settings, checks_only(goal), |steps| {
        graph::check("feature", &steps, &[])?;
        Ok(steps)
    })?;
    let notes = format!("{} features, planned by the model", steps.len());
    Ok(WorkPlan { steps, notes })
}

pub(crate) fn replan(
    goal: &Goal,
    settings: &Settings,
    plan: WorkPlan,
    results: &[PlanStepResult],
) -> Result<WorkPlan, PlanError> {
    let passed = |id: &str| results.iter().any(|result| result.step == id && result.passed);
    let prompt = format!(
        "{}\n\nThe plan so far:\n{}\nGive the features that are still to be done, changed so that \
         they can succeed. Keep the id of a feature that you change. Leave out what has passed.",
        described(goal),
        summary::plan_lines(&plan, results),
    );
    let steps = steps(&prompt, settings, checks_only(goal), |steps| draft::merge(plan.clone(), passed, steps))?;
    Ok(WorkPlan { steps, notes: "replanned by the model after failures".to_owned() })
}

pub(crate) fn summary(goal: &Goal, settings: &Settings, answer: &Value) -> Result<String, Error> {
    let conversation = Conversation::new(SYSTEM_SUMMARY);
    conversation.user(format!("{}\n\nResults:\n{answer}", described(goal)))?;
    let reply = conversation.complete(&options(settings, 0, ReplyFormat::Text))?;
    let text = reply.text.trim();
    if text.is_empty() {
        return Err(Error::failed("the model said nothing"));
    }
    Ok(text.to_owned())
}

fn steps(
    prompt: &str,
    settings: &Settings,
    checks_only: bool,
    accept: impl Fn(Vec<PlanStep>) -> Result<Vec<PlanStep>, String>,
) -> Result<Vec<PlanStep>, PlanError> {
    let conversation = Conversation::new(SYSTEM);
    conversation.pinned(prompt)?;
    let schema = draft::schema(settings.features_max).to_string();
    let mut wrong = String::new();
    for attempt in 0..settings.tries_max {
        if attempt > 0 {
            conversation.user(format!("This plan cannot be used: {wrong}. Give all of it again."))?;
        }
        let format = ReplyFormat::Schema(schema.clone());
        let reply = conversation.complete(&options(settings, attempt, format))?;
        let draft = match read(&reply.text, reply.reason) {
            Ok(draft) => draft,
            Err(text) => {
                wrong = text;
                continue;
            }
        };
        if draft.features.is_empty() && !draft.question.trim().is_empty() {
            return Err(PlanError::Unclear(draft.question.trim().to_owned()));
        }
        match draft::steps(&draft, settings.features_max, checks_only).and_then(&accept) {
            Ok(steps) => return Ok(steps),
            Err(text) => wrong = text,
        }
    }
    Err(PlanError::Failed(format!(
        "the model gave no usable plan in {} attempts; the last one: {}; choose a stronger model for \
         the planner, or write the features into the goal as `## Feature: TITLE` sections",
        settings.tries_max,
        json::cut(&wrong, 500),
    )))
}

fn read(text: &str, reason: StopReason) -> Result<Draft, String> {
    let is_plan = |value: &Value| value.get("features").is_some();
    let found = json::first_object(text, is_plan);
    match found.map(serde_json::from_value) {
        Some(Ok(draft)) => Ok(draft),
        Some(Err(error)) => Err(format!("it does not fit the schema: {error}")),
        None if reason == StopReason::Length => {
            Err("it was cut at the limit of tokens; give fewer features in fewer words".to_owned())
        }
        None => Err("it is not a JSON object with `features`".to_owned()),
    }
}

/// A model that is asked again as it was would fail the same way.
const TEMPERATURE_RETRY: f32 = 0.2;

pub(crate) fn options(settings: &Settings, attempt: u32, format: ReplyFormat) -> Options {
    Options {
        temperature: settings.temperature.or((attempt > 0).then_some(TEMPERATURE_RETRY)),
        seed: Some(settings.seed.wrapping_add(attempt)),
        output_tokens_max: settings.output_tokens_max,
        format,
        ..Options::default()
    }
}

/// True when the evaluator has nothing but checks.
fn checks_only(goal: &Goal) -> bool {
    let context: Value = serde_json::from_str(&goal.context).unwrap_or_default();
    context["judged_by"] == "checks"
}

/// The goal, its context and its criteria as the model sees them. What was said of an earlier plan, and the map of the
/// repository, stand by themselves: the rest is cut where it is long.
pub(crate) fn described(goal: &Goal) -> String {
    let mut text = format!("Goal:\n{}", goal.text.trim());
    let mut known = match serde_json::from_str(&goal.context) {
        Ok(Value::Object(known)) => known,
        _ => Map::new(),
    };
    if let Some(repository) = Repository::take(&mut known) {
        text.push_str(&format!("\n\n{}", repository.text()));
    }
    let notes = known.remove("notes");
    if !known.is_empty() {
        text.push_str(&format!("\n\nWhat is known:\n{}", json::cut(&Value::Object(known).to_string(), 8_000)));
    }
    if let Some(notes) = notes {
        text.push_str(&format!("\n\nWhat was said before:\n{}", json::cut(&notes.to_string(), 8_000)));
    }
    if !goal.criteria.is_empty() {
        text.push_str("\n\nWhat must hold in the end:");
        for criterion in &goal.criteria {
            text.push_str(&format!("\n- {}", criterion.text));
        }
    }
    text
}
