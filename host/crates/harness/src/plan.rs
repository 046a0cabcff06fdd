//! Validates a plan, or one feature of it.
//!
//! A plan comes from a model, so nothing in it is trusted: every text and list has a cap, every name is looked up, and
//! the dependencies must be acyclic. Titles and notes are cut; text that says what to build or how to judge it is
//! refused rather than changed.

pub mod written;

use crate::HarnessLimits;
use crate::input::{HarnessSetup, Strategy};
use crate::route;
use crate::texts::line;
use longhaul_core::text::truncate;
use longhaul_core::work::{CheckBody, CheckSpec, Criterion, FeatureSpec, Plan, PlanStep};
use std::collections::BTreeSet;

/// The reason why a plan or a feature is refused. The text names the remedy, for a person or the planner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The plan has no features.
    #[error("the plan has no features; give it at least one")]
    Empty,
    /// The plan has too many features.
    #[error("the plan has {count} features, features_max is {features_max}; merge some, or raise it in [run.limits]")]
    TooMany {
        /// The number of features.
        count: usize,
        /// The limit.
        features_max: u32,
    },
    /// Too much text.
    #[error(
        "the plan has {bytes} bytes of text, plan_bytes_max is {plan_bytes_max}; say it shorter, or raise it in [run.limits]"
    )]
    TooLarge {
        /// The size of the text.
        bytes: usize,
        /// The limit, in bytes.
        plan_bytes_max: usize,
    },
    /// An id that cannot be a file name or part of a key.
    #[error("the {what} id {id:?} is not usable; write 1 to {id_bytes_max} letters, digits, `-` or `_`")]
    BadId {
        /// `feature`, or its place.
        what: String,
        /// The id of the step, cut.
        id: String,
        /// The limit, in bytes.
        id_bytes_max: usize,
    },
    /// Two features or other items with the same id.
    #[error("the {what} id `{id}` is used twice; rename one of them")]
    Duplicate {
        /// `feature`, or its place.
        what: String,
        /// The id of the step.
        id: String,
    },
    /// A text that may not be cut is too long.
    #[error(
        "{what} of feature `{feature}` has {bytes} bytes, {limit} is {max}; say it shorter, split the feature, or raise it in [run.limits]"
    )]
    TooLong {
        /// The id of the feature.
        feature: String,
        /// The name of the text.
        what: String,
        /// The length in bytes.
        bytes: usize,
        /// The name of the limit.
        limit: &'static str,
        /// The limit.
        max: usize,
    },
    /// A list is too long.
    #[error("feature `{feature}` has {count} {what}, {limit} is {max}; split the feature, or raise it in [run.limits]")]
    TooManyOf {
        /// The id of the feature.
        feature: String,
        /// The name of the list.
        what: &'static str,
        /// The number of items.
        count: usize,
        /// The name of the limit.
        limit: &'static str,
        /// The limit.
        max: usize,
    },
    /// The feature has no instruction.
    #[error("feature `{feature}` has no instruction; say what the agent is to do")]
    NoInstruction {
        /// The id of the feature.
        feature: String,
    },
    /// A criterion without a name to mark it by.
    #[error("criterion {number} of feature `{feature}` has no id; give it one of letters, digits, `-` or `_`")]
    CriterionWithoutId {
        /// The id of the feature.
        feature: String,
        /// The number, from 1.
        number: usize,
    },
    /// A criterion without text.
    #[error("criterion `{criterion}` of feature `{feature}` has neither a text nor a check; say what must hold")]
    CriterionWithoutText {
        /// The id of the feature.
        feature: String,
        /// The id of the criterion.
        criterion: String,
    },
    /// A criterion that names a missing check.
    #[error(
        "criterion `{criterion}` of feature `{feature}` names the check `{check}`, which the feature does not have; it has: {known}"
    )]
    UnknownCheck {
        /// The id of the feature.
        feature: String,
        /// The id of the criterion.
        criterion: String,
        /// The name, cut.
        check: String,
        /// The known names.
        known: String,
    },
    /// A native check that the operator did not configure.
    #[error(
        "check `{check}` of feature `{feature}` runs `{native}`, which is not in [checks] of longhaul.toml; there is: {known}"
    )]
    UnknownNativeCheck {
        /// The id of the feature.
        feature: String,
        /// The name of the check.
        check: String,
        /// The name, cut.
        native: String,
        /// The known names.
        known: String,
    },
    /// A check without source.
    #[error("check `{check}` of feature `{feature}` is empty; write what it runs, or remove it")]
    EmptyCheck {
        /// The id of the feature.
        feature: String,
        /// The name of the check.
        check: String,
    },
    /// A criterion without a check, under an evaluator that uses checks alone.
    #[error(
        "criterion `{criterion}` of feature `{feature}` names no check, and the evaluator `{evaluator}` judges by checks \
         alone; write a check for it, or give it to a model: [evaluator] plugin = \"rubric-evaluator\", models = [\"NAME\"]"
    )]
    NobodyJudges {
        /// The id of the feature.
        feature: String,
        /// The id of the criterion.
        criterion: String,
        /// The evaluator's name.
        evaluator: String,
    },
    /// The feature has nothing to judge it by.
    #[error("feature `{feature}` has neither criteria nor checks, so its completion could not be judged; add one")]
    NothingToJudge {
        /// The id of the feature.
        feature: String,
    },
    /// A task that names an unknown agent.
    #[error("task `{feature}` asks for the agent `{agent}`; there is: {known}")]
    UnknownAgent {
        /// The id of the task.
        feature: String,
        /// The name, cut.
        agent: String,
        /// The known agents.
        known: String,
    },
    /// A dependency that does not exist.
    #[error(
        "feature `{feature}` depends on `{dependency}`, which is not in the plan; add it, or remove the dependency"
    )]
    UnknownDependency {
        /// The id of the feature.
        feature: String,
        /// The id of the dependency, cut.
        dependency: String,
    },
    /// A cycle of dependencies.
    #[error("the features depend on each other in a circle: {}; remove one of these dependencies", .path.join(" -> "))]
    Cycle {
        /// The cycle, the first id again as the last.
        path: Vec<String>,
    },
}

/// A plan that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The steps, corrected where that changes neither what is built nor how it is judged.
    pub steps: Vec<PlanStep>,
    /// The corrections, one line each.
    pub warnings: Vec<String>,
}

/// Accepts a plan or returns its fault.
///
/// # Errors
/// Every [`PlanError`]; the first fault.
pub fn accept(plan: Plan, setup: &HarnessSetup, limits: &HarnessLimits) -> Result<Accepted, PlanError> {
    accept_beside(plan, &[], setup, limits)
}

/// Accepts the plan for the remaining steps, which may depend on those that are `kept`.
///
/// # Errors
/// Every [`PlanError`]; the first fault.
pub fn accept_beside(
    plan: Plan,
    kept: &[&FeatureSpec],
    setup: &HarnessSetup,
    limits: &HarnessLimits,
) -> Result<Accepted, PlanError> {
    if plan.steps.is_empty() {
        return Err(PlanError::Empty);
    }
    check_size(kept.iter().copied().chain(plan.steps.iter().map(|step| &step.spec)), limits)?;
    let mut accepted = Accepted { steps: Vec::with_capacity(plan.steps.len()), warnings: Vec::new() };
    for PlanStep { spec, on_failure } in plan.steps {
        let spec = accept_one(spec, setup, limits, &mut accepted.warnings)?;
        check_judges(&spec, setup)?;
        accepted.steps.push(PlanStep { spec, on_failure });
    }
    // A finished step waits for nothing, even if it was done without a failed step that is now planned differently.
    let done = kept.iter().map(|spec| FeatureSpec { depends_on: Vec::new(), ..(*spec).clone() });
    let all: Vec<_> = done.chain(accepted.steps.iter().map(|step| step.spec.clone())).collect();
    check_graph(&all)?;
    Ok(accepted)
}

/// Accepts the features of a run after one was added or edited, or returns the fault.
///
/// # Errors
/// Every [`PlanError`]; the first fault.
pub fn accept_edit(
    spec: FeatureSpec,
    others: &[&FeatureSpec],
    setup: &HarnessSetup,
    limits: &HarnessLimits,
) -> Result<(FeatureSpec, Vec<String>), PlanError> {
    let mut warnings = Vec::new();
    check_size(others.iter().copied().chain([&spec]), limits)?;
    let spec = accept_one(spec, setup, limits, &mut warnings)?;
    check_judges(&spec, setup)?;
    let all: Vec<_> = others.iter().copied().chain([&spec]).cloned().collect();
    check_graph(&all)?;
    Ok((spec, warnings))
}

/// Accepts one feature whose place among the others does not change.
///
/// # Errors
/// Every [`PlanError`] about a single feature.
pub(crate) fn accept_alone(
    spec: FeatureSpec,
    setup: &HarnessSetup,
    limits: &HarnessLimits,
) -> Result<FeatureSpec, PlanError> {
    check_size(std::iter::once(&spec), limits)?;
    accept_one(spec, setup, limits, &mut Vec::new())
}

/// Checked first, so that a plan of a million features costs no more than counting them.
fn check_size<'a>(
    specs: impl Iterator<Item = &'a FeatureSpec> + Clone,
    limits: &HarnessLimits,
) -> Result<(), PlanError> {
    let count = specs.clone().count();
    if count == 0 {
        return Err(PlanError::Empty);
    }
    if count > usize::try_from(limits.features_max).unwrap_or(usize::MAX) {
        return Err(PlanError::TooMany { count, features_max: limits.features_max });
    }
    let bytes = specs.map(bytes_of).sum::<usize>();
    if bytes > limits.plan_bytes_max {
        return Err(PlanError::TooLarge { bytes, plan_bytes_max: limits.plan_bytes_max });
    }
    Ok(())
}

fn bytes_of(spec: &FeatureSpec) -> usize {
    let criterion = |c: &Criterion| c.id.len() + c.text.len() + c.check.as_ref().map_or(0, String::len);
    let check = |c: &CheckSpec| c.name.len() + body_text(&c.body).len();
    spec.id.len()
        + spec.title.len()
        + spec.instruction.len()
        + spec.category.len()
        + spec.agent.as_ref().map_or(0, String::len)
        + spec.criteria.iter().map(criterion).sum::<usize>()
        + spec.checks.iter().map(check).sum::<usize>()
        + spec.depends_on.iter().map(String::len).sum::<usize>()
}

fn body_text(body: &CheckBody) -> &str {
    match body {
        CheckBody::Python(text) | CheckBody::Native(text) => text,
    }
}

/// Accepts one feature by itself; [`check_graph`] checks its dependencies.
fn accept_one(
    mut spec: FeatureSpec,
    setup: &HarnessSetup,
    limits: &HarnessLimits,
    warnings: &mut Vec<String>,
) -> Result<FeatureSpec, PlanError> {
    check_id("feature", &spec.id, limits)?;
    check_instruction(&spec, limits)?;
    if setup.strategy == Strategy::Ask {
        return accept_task(spec, setup, limits, warnings);
    }
    check_checks(&spec, setup, limits)?;
    check_criteria(&spec, limits)?;
    if spec.criteria.is_empty() {
        spec.criteria = spec.checks.iter().map(criterion_of).collect();
    }
    if spec.criteria.is_empty() {
        return Err(PlanError::NothingToJudge { feature: spec.id });
    }
    mend(&mut spec, setup, limits, warnings);
    Ok(spec)
}

/// Accepts one task of an ask. It has no tree to check, so criteria are text for its agent; and the requested agent is
/// part of the task.
fn accept_task(
    mut spec: FeatureSpec,
    setup: &HarnessSetup,
    limits: &HarnessLimits,
    warnings: &mut Vec<String>,
) -> Result<FeatureSpec, PlanError> {
    if let Some(agent) = spec.agent.as_ref().filter(|agent| !setup.agents.contains(agent)) {
        let (agent, known) = (line(agent, 80), listed(setup.agents.iter()));
        return Err(PlanError::UnknownAgent { feature: spec.id, agent, known });
    }
    if !spec.checks.is_empty() {
        spec.checks.clear();
        warnings.push(format!("task `{}` names checks, which were left out: an ask has no tree to check", spec.id));
    }
    spec.criteria.iter_mut().for_each(|criterion| criterion.check = None);
    spec.criteria.retain(|criterion| !criterion.text.trim().is_empty());
    check_criteria(&spec, limits)?;
    mend(&mut spec, setup, limits, warnings);
    let of_category = setup.categories.get(&spec.category).filter(|agent| setup.agents.contains(agent));
    spec.agent = spec.agent.or_else(|| of_category.cloned());
    Ok(spec)
}

fn check_id(what: &str, id: &str, limits: &HarnessLimits) -> Result<(), PlanError> {
    let usable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !id.is_empty() && id.len() <= limits.id_bytes_max && id.bytes().all(usable) {
        return Ok(());
    }
    Err(PlanError::BadId { what: what.to_owned(), id: truncate(id, 80), id_bytes_max: limits.id_bytes_max })
}

fn check_instruction(spec: &FeatureSpec, limits: &HarnessLimits) -> Result<(), PlanError> {
    if spec.instruction.trim().is_empty() {
        return Err(PlanError::NoInstruction { feature: spec.id.clone() });
    }
    let max = limits.instruction_bytes_max;
    check_length(spec, || "the instruction".into(), spec.instruction.len(), "instruction_bytes_max", max)
}

fn check_length(
    spec: &FeatureSpec,
    what: impl Fn() -> String,
    bytes: usize,
    limit: &'static str,
    max: usize,
) -> Result<(), PlanError> {
    if bytes <= max {
        return Ok(());
    }
    Err(PlanError::TooLong { feature: spec.id.clone(), what: what(), bytes, limit, max })
}

fn check_count(
    spec: &FeatureSpec,
    what: &'static str,
    count: usize,
    limit: &'static str,
    max: usize,
) -> Result<(), PlanError> {
    if count <= max {
        return Ok(());
    }
    Err(PlanError::TooManyOf { feature: spec.id.clone(), what, count, limit, max })
}

fn check_checks(spec: &FeatureSpec, setup: &HarnessSetup, limits: &HarnessLimits) -> Result<(), PlanError> {
    check_count(spec, "checks", spec.checks.len(), "checks_max", limits.checks_max)?;
    let what = format!("check of feature `{}`:", spec.id);
    let mut seen = BTreeSet::new();
    for check in &spec.checks {
        check_id(&what, &check.name, limits)?;
        if !seen.insert(&check.name) {
            return Err(PlanError::Duplicate { what, id: check.name.clone() });
        }
        let bytes = body_text(&check.body).len();
        check_length(spec, || format!("check `{}`", check.name), bytes, "check_bytes_max", limits.check_bytes_max)?;
        check_body(spec, check, setup)?;
    }
    Ok(())
}

fn check_body(spec: &FeatureSpec, check: &CheckSpec, setup: &HarnessSetup) -> Result<(), PlanError> {
    match &check.body {
        CheckBody::Python(source) if source.trim().is_empty() => {
            Err(PlanError::EmptyCheck { feature: spec.id.clone(), check: check.name.clone() })
        }
        CheckBody::Native(native) if !setup.checks.contains(native) => Err(PlanError::UnknownNativeCheck {
            feature: spec.id.clone(),
            check: check.name.clone(),
            native: line(native, 80),
            known: listed(setup.checks.iter()),
        }),
        CheckBody::Python(_) | CheckBody::Native(_) => Ok(()),
    }
}

fn check_criteria(spec: &FeatureSpec, limits: &HarnessLimits) -> Result<(), PlanError> {
    check_count(spec, "criteria", spec.criteria.len(), "criteria_max", limits.criteria_max)?;
    let what = format!("criterion of feature `{}`:", spec.id);
    let mut seen = BTreeSet::new();
    for (position, criterion) in spec.criteria.iter().enumerate() {
        if criterion.id.is_empty() {
            return Err(PlanError::CriterionWithoutId { feature: spec.id.clone(), number: position + 1 });
        }
        check_id(&what, &criterion.id, limits)?;
        if !seen.insert(&criterion.id) {
            return Err(PlanError::Duplicate { what, id: criterion.id.clone() });
        }
        check_criterion(spec, criterion, limits)?;
    }
    Ok(())
}

fn check_criterion(spec: &FeatureSpec, criterion: &Criterion, limits: &HarnessLimits) -> Result<(), PlanError> {
    let what = || format!("criterion `{}`", criterion.id);
    check_length(spec, what, criterion.text.len(), "criterion_bytes_max", limits.criterion_bytes_max)?;
    match &criterion.check {
        None if criterion.text.trim().is_empty() => {
            Err(PlanError::CriterionWithoutText { feature: spec.id.clone(), criterion: criterion.id.clone() })
        }
        Some(name) if !spec.checks.iter().any(|check| check.name == *name) => Err(PlanError::UnknownCheck {
            feature: spec.id.clone(),
            criterion: criterion.id.clone(),
            check: line(name, 80),
            known: listed(spec.checks.iter().map(|check| &check.name)),
        }),
        None | Some(_) => Ok(()),
    }
}

/// Checks that each criterion can be judged. An agent's proposal for one feature is exempt: the evaluator is asked
/// about it.
fn check_judges(spec: &FeatureSpec, setup: &HarnessSetup) -> Result<(), PlanError> {
    let Some(evaluator) = setup.checks_only.as_ref().filter(|_| setup.strategy != Strategy::Ask) else { return Ok(()) };
    match spec.criteria.iter().find(|criterion| criterion.check.is_none()) {
        Some(criterion) => Err(PlanError::NobodyJudges {
            feature: spec.id.clone(),
            criterion: criterion.id.clone(),
            evaluator: evaluator.clone(),
        }),
        None => Ok(()),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn criterion_of(check: &CheckSpec) -> Criterion {
    let text = format!("the check `{}` passes", check.name);
    Criterion { id: check.name.clone(), text, check: Some(check.name.clone()) }
}

/// Corrects fields that decide neither what is built nor how it is judged.
fn mend(spec: &mut FeatureSpec, setup: &HarnessSetup, limits: &HarnessLimits, warnings: &mut Vec<String>) {
    spec.priority = spec.priority.clamp(1, 10);
    spec.title = line(&spec.title, limits.title_bytes_max);
    if spec.title.is_empty() {
        spec.title.clone_from(&spec.id);
    }
    let mut seen = BTreeSet::new();
    spec.depends_on.retain(|id| seen.insert(id.clone()));
    let category = spec.category.trim().to_ascii_lowercase();
    if route::is_category(&category) {
        spec.category = category;
    } else {
        let unknown = line(&spec.category, 40);
        warnings.push(format!("feature `{}` has the unknown category `{unknown}`, taken as `functional`", spec.id));
        spec.category = "functional".to_owned();
    }
    if let Some(agent) = spec.agent.take_if(|agent| !setup.agents.contains(agent)) {
        let unknown = line(&agent, 40);
        warnings.push(format!(
            "feature `{}` asks for agent `{unknown}`, which is not in [agents]; its category decides instead",
            spec.id
        ));
    }
}

/// Checks that ids are unique, and that dependencies exist and are acyclic.
fn check_graph(specs: &[FeatureSpec]) -> Result<(), PlanError> {
    let mut ids = BTreeSet::new();
    for spec in specs {
        if !ids.insert(spec.id.as_str()) {
            return Err(PlanError::Duplicate { what: "feature".into(), id: spec.id.clone() });
        }
    }
    match dependency_error(specs) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The fault of the dependencies, if there is one: a missing one, or a cycle.
#[must_use]
pub fn dependency_error(specs: &[FeatureSpec]) -> Option<PlanError> {
    let ids: BTreeSet<_> = specs.iter().map(|spec| spec.id.as_str()).collect();
    for spec in specs {
        if let Some(unknown) = spec.depends_on.iter().find(|id| !ids.contains(id.as_str())) {
            return Some(PlanError::UnknownDependency { feature: spec.id.clone(), dependency: line(unknown, 80) });
        }
    }
    cycle(specs).map(|path| PlanError::Cycle { path })
}

/// A cycle, if there is one. Features whose dependencies are all resolved are removed repeatedly; the remaining ones
/// lead into a cycle.
fn cycle(specs: &[FeatureSpec]) -> Option<Vec<String>> {
    let mut left: Vec<&FeatureSpec> = specs.iter().collect();
    loop {
        let ids: BTreeSet<_> = left.iter().map(|spec| spec.id.as_str()).collect();
        let before = left.len();
        left.retain(|spec| spec.depends_on.iter().any(|id| ids.contains(id.as_str())));
        if left.len() == before {
            break;
        }
    }
    let mut path = vec![left.first()?.id.clone()];
    loop {
        let last = left.iter().find(|spec| Some(&spec.id) == path.last())?;
        let next = last.depends_on.iter().find(|id| left.iter().any(|spec| spec.id == **id))?.clone();
        let seen = path.iter().position(|id| *id == next);
        path.push(next);
        if let Some(start) = seen {
            return Some(path.split_off(start));
        }
    }
}
