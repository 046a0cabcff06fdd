//! What the model is asked for, and the way from its reply to steps.
//!
//! The schema keeps the shape; what a schema cannot say (ids that exist, no circles, caps) is
//! checked here, and every problem found goes back to the model at once.

use longhaul_sdk::planner::{OnFailure, Step, WorkPlan};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{bounds, graph};

/// The reply of the model.
#[derive(Debug, Deserialize)]
pub(crate) struct Draft {
    #[serde(default)]
    pub(crate) features: Vec<Feature>,
    /// Instead of features: what a person must say first.
    #[serde(default)]
    pub(crate) question: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Feature {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) instruction: String,
    #[serde(default = "functional")]
    pub(crate) category: String,
    #[serde(default = "middle")]
    pub(crate) priority: i64,
    #[serde(default)]
    pub(crate) criteria: Vec<String>,
    #[serde(default)]
    pub(crate) depends_on: Vec<String>,
}

fn functional() -> String {
    "functional".to_owned()
}

fn middle() -> i64 {
    5
}

/// The schema of [`Draft`]; all fields are required since some providers ask for that.
pub(crate) fn schema(features_max: usize) -> Value {
    json!({
        "type": "object",
        "properties": {
            "features": { "type": "array", "maxItems": features_max, "items": {
                "type": "object",
                "properties": {
                    "id": bounds::id(),
                    "title": bounds::text(120, "one line"),
                    "instruction": bounds::text(bounds::INSTRUCTION_CHARS_MAX, "what to do, complete on its own"),
                    "category": { "type": "string", "enum": graph::CATEGORIES },
                    "priority": { "type": "integer", "minimum": 1, "maximum": 10 },
                    "criteria": bounds::texts(20, bounds::text(500, "what must hold, decidable by yes or no")),
                    "depends_on": bounds::ids("ids of features that must be done before")
                },
                "required": ["id", "title", "instruction", "category", "priority", "criteria", "depends_on"],
                "additionalProperties": false
            } },
            "question": bounds::question()
        },
        "required": ["features", "question"],
        "additionalProperties": false
    })
}

/// The steps of a reply, or all that is wrong with it.
pub(crate) fn steps(draft: &Draft, features_max: usize) -> Result<Vec<Step>, String> {
    let mut wrong = Vec::new();
    if draft.features.is_empty() {
        wrong.push("there are no features; give at least one".to_owned());
    }
    if draft.features.len() > features_max {
        let count = draft.features.len();
        wrong.push(format!("{count} features are more than {features_max}; merge some"));
    }
    let mut steps = Vec::new();
    for feature in &draft.features {
        match step(feature) {
            Ok(step) => steps.push(step),
            Err(text) => wrong.push(format!("feature `{}`: {text}", feature.id)),
        }
    }
    if wrong.is_empty() { Ok(steps) } else { Err(wrong.join("; ")) }
}

fn step(feature: &Feature) -> Result<Step, String> {
    if feature.title.trim().is_empty() || feature.instruction.trim().is_empty() {
        return Err("it needs a title and an instruction".to_owned());
    }
    if feature.criteria.iter().all(|text| text.trim().is_empty()) {
        return Err("it has no criterion; say what must hold when it is done".to_owned());
    }
    // The model names no checks: only the operator can.
    let texts = feature.criteria.iter().filter(|text| !text.trim().is_empty());
    let criteria = (1..)
        .zip(texts)
        .map(|(number, text): (u32, _)| longhaul_sdk::types::Criterion {
            id: format!("c{number}"),
            text: text.trim().to_owned(),
            check: None,
        })
        .collect();
    Ok(Step {
        id: graph::valid_id(feature.id.trim())?,
        title: feature.title.lines().next().unwrap_or_default().trim().to_owned(),
        instruction: feature.instruction.trim().to_owned(),
        category: graph::valid_category(&feature.category)?,
        priority: graph::valid_priority(&feature.priority.to_string())?,
        agent: None,
        criteria,
        checks: Vec::new(),
        depends_on: feature.depends_on.clone(),
        on_failure: OnFailure::Replan,
    })
}

/// The new plan: what passed stays as it is, and of the rest no criterion and no check is lost.
///
/// A step that the reply leaves out stays too: leaving it out would weaken the goal.
pub(crate) fn merge(old: WorkPlan, passed: impl Fn(&str) -> bool, new: Vec<Step>) -> Result<Vec<Step>, String> {
    let mut new = new;
    let mut steps = Vec::new();
    for step in old.steps {
        let revised = new.iter().position(|other| other.id == step.id).map(|at| new.remove(at));
        match revised {
            Some(_) if passed(&step.id) => {
                return Err(format!("the feature `{}` has passed; leave it out", step.id));
            }
            Some(revised) => steps.push(revise(step, revised)),
            None => steps.push(step),
        }
    }
    steps.extend(new);
    graph::check("feature", &steps, &[])?;
    Ok(steps)
}

fn revise(old: Step, new: Step) -> Step {
    let mut criteria = old.criteria;
    for mut criterion in new.criteria {
        if criteria.iter().any(|known| known.text == criterion.text) {
            continue;
        }
        criterion.id = graph::free_id(&criterion.id, |id| criteria.iter().any(|known| known.id == id));
        criteria.push(criterion);
    }
    Step { criteria, checks: old.checks, agent: old.agent, on_failure: old.on_failure, ..new }
}

#[cfg(test)]
mod tests;
