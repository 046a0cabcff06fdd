//! The rules of every plan, by any author: ids, priorities, categories, dependencies, criteria.
//!
//! Each function answers with what is wrong and what would be right, since the reader is a person
//! or a model that will try again.

use std::collections::BTreeSet;

use longhaul_sdk::planner::{CheckSpec, PlanStep};
use longhaul_sdk::types::Criterion;

use crate::markdown::criterion_check;

pub(crate) const CATEGORIES: [&str; 7] =
    ["functional", "ui", "performance", "security", "integration", "testing", "documentation"];

/// The fault of a plan as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The step that it is about, counted from 0; none: several.
    pub(crate) step: Option<usize>,
    text: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.text
    }
}

/// Longest id: it becomes part of branch names and keys.
const ID_CHARS_MAX: usize = 64;

/// Refuses a plan with an id twice, a dependency on nothing, or a circle. `what`: a word for its steps; `known`: ids of
/// others that they may depend on.
pub(crate) fn check(what: &str, steps: &[PlanStep], known: &[&str]) -> Result<(), Fault> {
    let mut ids = BTreeSet::new();
    for (number, step) in steps.iter().enumerate() {
        if !ids.insert(step.id.as_str()) {
            let text = format!("two {what}s have the id `{}`; give each its own", step.id);
            return Err(Fault { step: Some(number), text });
        }
    }
    for (number, step) in steps.iter().enumerate() {
        for needed in &step.depends_on {
            if !ids.contains(needed.as_str()) && !known.contains(&needed.as_str()) {
                let there: Vec<_> = ids.iter().chain(known).map(|id| format!("`{id}`")).collect();
                let text = format!(
                    "the {what} `{}` depends on `{needed}`, which does not exist; there are: {}",
                    step.id,
                    there.join(", ")
                );
                return Err(Fault { step: Some(number), text });
            }
        }
    }
    check_circles(what, steps)
}

/// Takes away what depends on nothing left, again and again; what stays waits for itself.
fn check_circles(what: &str, steps: &[PlanStep]) -> Result<(), Fault> {
    let mut left: Vec<&PlanStep> = steps.iter().collect();
    loop {
        let waiting: BTreeSet<&str> = left.iter().map(|step| step.id.as_str()).collect();
        let before = left.len();
        left.retain(|step| step.depends_on.iter().any(|id| waiting.contains(id.as_str())));
        if left.is_empty() {
            return Ok(());
        }
        if left.len() == before {
            let names: Vec<_> = left.iter().map(|step| format!("`{}`", step.id)).collect();
            let text = format!(
                "these {what}s depend on each other in a circle or wait for one that does: {}; \
                 remove a dependency",
                names.join(", ")
            );
            let first = left.first().and_then(|first| steps.iter().position(|step| step.id == first.id));
            return Err(Fault { step: first, text });
        }
    }
}

pub(crate) fn valid_id(id: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if id.is_empty() || id.len() > ID_CHARS_MAX || !id.chars().all(is_plain) {
        return Err(format!("`{id}` is not an id; use 1 to {ID_CHARS_MAX} letters, digits, `-` and `_`"));
    }
    Ok(id.to_owned())
}

pub(crate) fn valid_priority(text: &str) -> Result<u32, String> {
    let priority = text.parse().ok().filter(|priority| (1..=10).contains(priority));
    priority.ok_or_else(|| format!("the priority `{text}` is not 1 to 10; higher goes first"))
}

pub(crate) fn valid_category(text: &str) -> Result<String, String> {
    let category = text.trim().to_ascii_lowercase();
    if CATEGORIES.contains(&category.as_str()) {
        return Ok(category);
    }
    Err(format!("the category `{text}` is not one of {}", CATEGORIES.join(", ")))
}

/// An id made of a title.
pub(crate) fn slug(title: &str) -> String {
    let plain: String =
        title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect();
    let mut slug = plain.split_whitespace().collect::<Vec<_>>().join("-");
    // Room for a number behind it.
    slug.truncate(ID_CHARS_MAX - 8);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "feature".to_owned() } else { slug.to_owned() }
}

/// `wanted`, or the first of `wanted-2`, `wanted-3`, ... that is not taken.
pub(crate) fn free_id(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2_u32..).map(|number| format!("{wanted}-{number}"));
    std::iter::once(wanted.to_owned()).chain(numbered).find(|id| !taken(id)).unwrap_or_else(|| wanted.to_owned())
}

/// The criteria that are written, then one for each check that none of them names.
pub(crate) fn criteria(texts: &[String], checks: &[CheckSpec]) -> Result<Vec<Criterion>, String> {
    let mut criteria: Vec<Criterion> = Vec::new();
    for (number, text) in (1..).zip(texts) {
        let (text, check) = criterion_check(text);
        if let Some(name) = check
            && !checks.iter().any(|check| check.name == name)
        {
            return Err(format!("a criterion names the check `{name}`, which does not exist"));
        }
        let check = check.map(str::to_owned);
        criteria.push(Criterion { id: format!("c{number}"), text: text.to_owned(), check });
    }
    for check in checks {
        let is_named = |criterion: &Criterion| criterion.check.as_ref() == Some(&check.name);
        if criteria.iter().any(is_named) {
            continue;
        }
        let id = free_id(&slug(&check.name), |id| criteria.iter().any(|other| other.id == id));
        let text = format!("the check `{}` passes", check.name);
        criteria.push(Criterion { id, text, check: Some(check.name.clone()) });
    }
    Ok(criteria)
}
