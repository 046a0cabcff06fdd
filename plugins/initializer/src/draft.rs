//! The request to the model, and the conversion of its reply to steps.
//!
//! The schema keeps the shape; what a schema cannot say (ids that exist, no circles, caps) is
//! checked here, and every problem found goes back to the model at once.

use longhaul_sdk::planner::{CheckBody, CheckSpec, OnFailure, PlanStep, WorkPlan};
use longhaul_sdk::types::Criterion;
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
    pub(crate) criteria: Vec<Judged>,
    #[serde(default)]
    pub(crate) depends_on: Vec<String>,
}

/// A criterion, with the check that decides it where one can.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Judged {
    ByCheck {
        text: String,
        /// Python; empty: no program can decide it.
        #[serde(default)]
        check: Option<String>,
    },
    /// As models write it that are not held to the schema.
    ByReading(String),
}

impl Judged {
    fn text(&self) -> &str {
        match self {
            Self::ByCheck { text, .. } | Self::ByReading(text) => text.trim(),
        }
    }

    fn check(&self) -> Option<&str> {
        match self {
            Self::ByCheck { check, .. } => check.as_deref().map(unfenced).filter(|check| !check.is_empty()),
            Self::ByReading(_) => None,
        }
    }
}

/// Models put code into a fence even where a string stands alone.
fn unfenced(source: &str) -> &str {
    let source = source.trim();
    let inner = source.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(source, |(_, code)| code.trim_end())
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
                    "criteria": bounds::texts(20, criterion()),
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

fn criterion() -> Value {
    let check = "a Python file in the style of pytest or unittest that decides it, or empty where no program can";
    json!({
        "type": "object",
        "properties": {
            "text": bounds::text(500, "what must hold, decidable by yes or no"),
            "check": bounds::text(bounds::CHECK_CHARS_MAX, check)
        },
        "required": ["text", "check"],
        "additionalProperties": false
    })
}

/// The steps of a reply, or all that is wrong with it. `checks_only`: nothing but a check decides a criterion.
pub(crate) fn steps(draft: &Draft, features_max: usize, checks_only: bool) -> Result<Vec<PlanStep>, String> {
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
        match step(feature, checks_only) {
            Ok(step) => steps.push(step),
            Err(text) => wrong.push(format!("feature `{}`: {text}", feature.id)),
        }
    }
    if wrong.is_empty() { Ok(steps) } else { Err(wrong.join("; ")) }
}

fn step(feature: &Feature, checks_only: bool) -> Result<PlanStep, String> {
    if feature.title.trim().is_empty() || feature.instruction.trim().is_empty() {
        return Err("it needs a title and an instruction".to_owned());
    }
    let judged: Vec<_> = feature.criteria.iter().filter(|judged| !judged.text().is_empty()).collect();
    if judged.is_empty() {
        return Err("it has no criterion; say what must hold when it is done".to_owned());
    }
    if let Some(unchecked) = judged.iter().find(|judged| checks_only && judged.check().is_none()) {
        let text = unchecked.text();
        return Err(format!("its criterion \"{text}\" has no check, and here nothing else judges; write one"));
    }
    let (mut criteria, mut checks) = (Vec::new(), Vec::new());
    for (number, judged) in (1_u32..).zip(judged) {
        let id = format!("c{number}");
        let check = judged.check().map(|source| {
            checks.push(CheckSpec { name: id.clone(), body: CheckBody::python(format!("{source}\n")) });
            id.clone()
        });
        criteria.push(Criterion { id, text: judged.text().to_owned(), check });
    }
    Ok(PlanStep {
        id: graph::valid_id(feature.id.trim())?,
        title: feature.title.lines().next().unwrap_or_default().trim().to_owned(),
        instruction: feature.instruction.trim().to_owned(),
        category: graph::valid_category(&feature.category)?,
        priority: graph::valid_priority(&feature.priority.to_string())?,
        agent: None,
        criteria,
        checks,
        depends_on: feature.depends_on.clone(),
        on_failure: OnFailure::Replan,
    })
}

/// The new plan: what passed stays as it is, and of the rest no criterion and no check is lost.
///
/// A step that the reply leaves out stays too: leaving it out would weaken the goal.
pub(crate) fn merge(old: WorkPlan, passed: impl Fn(&str) -> bool, new: Vec<PlanStep>) -> Result<Vec<PlanStep>, String> {
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

fn revise(old: PlanStep, new: PlanStep) -> PlanStep {
    let (mut criteria, mut checks) = (old.criteria, old.checks);
    for mut criterion in new.criteria {
        if criteria.iter().any(|known| known.text == criterion.text) {
            continue;
        }
        criterion.id = graph::free_id(&criterion.id, |id| criteria.iter().any(|known| known.id == id));
        let body = criterion.check.take().and_then(|name| new.checks.iter().find(|check| check.name == name));
        if let Some(CheckSpec { name, body }) = body {
            let name = graph::free_id(name, |name| checks.iter().any(|known| known.name == name));
            checks.push(CheckSpec { name: name.clone(), body: body.clone() });
            criterion.check = Some(name);
        }
        criteria.push(criterion);
    }
    PlanStep { criteria, checks, agent: old.agent, on_failure: old.on_failure, ..new }
}

#[cfg(test)]
mod tests;
