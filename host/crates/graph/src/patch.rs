//! Makes candidate sources for a failure, by rules for the common mistakes.
//!
//! A candidate is a whole new source of one step, made by edits at places that the parser gave, never by a search in
//! the text. A candidate may be wrong: the caller runs it on a copy of the graph and keeps it only if the failure is
//! gone. Patches exist only for Python.

mod calls;
mod names;
mod proposal;
mod sites;

use crate::analysis::{Python, StepLanguage, SyntaxError, with_python};
use crate::diagnose::{RaisedFailure, diagnose, names_before};
use crate::graph::{Graph, StepGraphError, StepId};
use proposal::{Edit, Facts, Proposal};
use serde::Serialize;
use sites::Sites;
use std::collections::BTreeSet;

/// Most candidates for one failure: 16, the likeliest.
pub const CANDIDATES_MAX: usize = 16;

/// A candidate source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Candidate {
    /// The step of the source.
    pub step: StepId,
    /// The whole new source.
    pub source: String,
    /// The rule that made it, for example `name-typo`.
    pub rule: &'static str,
    /// The change, for example ``line 3: `totl` becomes `total` ``.
    pub change: String,
    /// The reason why it may help.
    pub reason: String,
}

/// Candidate sources for a failure, the likeliest first. Each parses and differs from the step's source.
///
/// # Errors
/// [`StepGraphError::UnknownStep`] when the graph does not have the failure's step.
pub fn candidates(graph: &Graph, failure: &RaisedFailure) -> Result<Vec<Candidate>, StepGraphError> {
    if graph.language().name() != Python::default().name() {
        return Ok(Vec::new());
    }
    let diagnosis = diagnose(graph, failure)?;
    let mut found = Vec::new();
    if diagnosis.culprit != failure.step {
        let none = diagnosis.variables.iter().find(|one| one.producers.contains(&diagnosis.culprit));
        let facts = Facts {
            failure: RaisedFailure { line: None, ..failure.clone() },
            known: BTreeSet::new(),
            none: none.map(|one| one.name.clone()),
        };
        found.extend(for_step(graph, &diagnosis.culprit, facts, rules_for_culprit)?);
    }
    let known = names_before(graph, &failure.step);
    if let Some(frame) = failure.elsewhere().filter(|frame| graph.node(&frame.step).is_ok()) {
        // The function that raised is another step's.
        let there = RaisedFailure { line: Some(frame.line), ..failure.clone() };
        let facts = Facts { failure: there, known: known.clone(), none: None };
        found.extend(for_step(graph, &frame.step, facts, rules)?);
    }
    let facts = Facts { failure: failure.clone(), known, none: None };
    found.extend(for_step(graph, &failure.step, facts, rules)?);
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in found {
        if kept.len() < CANDIDATES_MAX
            && !kept.iter().any(|one| one.step == candidate.step && one.source == candidate.source)
        {
            kept.push(candidate);
        }
    }
    Ok(kept)
}

type Rules = fn(&Sites<'_>, &Facts) -> Vec<Proposal>;

fn for_step(graph: &Graph, step: &StepId, facts: Facts, rules: Rules) -> Result<Vec<Candidate>, StepGraphError> {
    let source = graph.node(step)?.source.clone();
    let proposals = match proposals(&source, facts, rules) {
        Ok(proposals) => proposals,
        // A source that does not parse has no places to edit.
        Err(SyntaxError { .. }) => return Ok(Vec::new()),
    };
    let made = proposals.into_iter().filter_map(|proposal| {
        let patched = edited(&source, &proposal.edits)?;
        let parses = Python::default().analyse(&patched).is_ok();
        (parses && patched != *source).then(|| Candidate {
            step: step.clone(),
            change: described(&source, &proposal.edits),
            source: patched,
            rule: proposal.rule,
            reason: proposal.reason,
        })
    });
    Ok(made.take(CANDIDATES_MAX).collect())
}

/// The rules' proposals at the failing line, or anywhere when there are none at that line.
fn proposals(source: &str, facts: Facts, rules: Rules) -> Result<Vec<Proposal>, SyntaxError> {
    with_python(source, move |source, module| {
        let line = facts.failure.line;
        let mut found = rules(&Sites::new(source, module, line), &facts);
        if found.is_empty() && line.is_some() {
            found = rules(&Sites::new(source, module, None), &facts);
        }
        found.sort_by_key(|proposal| proposal.rank);
        found
    })
}

fn rules(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    match facts.failure.kind() {
        "NameError" => names::missing_name(sites, facts),
        "UnboundLocalError" => names::unbound_local(sites, facts),
        "ModuleNotFoundError" | "ImportError" => names::missing_module(sites, facts),
        "AttributeError" => names::missing_attribute(sites, facts),
        "KeyError" => calls::missing_key(sites, facts),
        "IndexError" => calls::past_the_end(sites, facts),
        "TypeError" => calls::wrong_type(sites, facts),
        "ValueError" => calls::wrong_form(sites, facts),
        _ => Vec::new(),
    }
}

fn rules_for_culprit(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    facts.none.as_ref().map(|variable| calls::none_kept(sites, variable)).unwrap_or_default()
}

/// The edited source; `None` when the edits overlap.
fn edited(source: &str, edits: &[Edit]) -> Option<String> {
    let mut edits = edits.to_vec();
    edits.sort();
    edits.dedup();
    let (mut patched, mut at) = (String::with_capacity(source.len()), 0);
    for edit in &edits {
        patched.push_str(source.get(at..edit.start)?);
        patched.push_str(&edit.text);
        at = edit.end;
    }
    patched.push_str(source.get(at..)?);
    Some(patched)
}

/// A description of the first edit.
fn described(source: &str, edits: &[Edit]) -> String {
    const SHOWN: usize = 60;
    let Some(first) = edits.iter().min() else { return String::new() };
    let line = source.get(..first.start).map_or(1, |before| before.matches('\n').count() + 1);
    let short = |text: &str| {
        let text = text.trim_end();
        if text.chars().count() > SHOWN {
            text.chars().take(SHOWN).collect::<String>() + "..."
        } else {
            text.to_owned()
        }
    };
    let (before, after) = (short(source.get(first.start..first.end).unwrap_or_default()), short(&first.text));
    let what = match (before.is_empty(), after.is_empty()) {
        (true, _) => format!("`{after}` is added"),
        (false, true) => format!("`{before}` is removed"),
        (false, false) => format!("`{before}` becomes `{after}`"),
    };
    let more = if edits.len() > 1 { format!(", and {} more", edits.len() - 1) } else { String::new() };
    format!("line {line}: {what}{more}")
}
