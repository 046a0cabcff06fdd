//! Finds the step that is likely at fault for a failure, by rules.
//!
//! A diagnosis reads only the failure and the graph: it runs no code and asks no model. Its result is likely and not
//! certain; [`crate::patch`] turns it into candidate sources.

use crate::analysis::VariableName;
use crate::graph::{Graph, NodeState, StepGraphError, StepId};
use crate::similar_names::closest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most variables in one diagnosis.
pub const VARIABLES_MAX: usize = 20;

/// Most producing steps of a variable that are listed, the nearest.
const PRODUCERS_MAX: usize = 8;

/// Longest text of a failure that rules read, in bytes: 4,096. A longer text is cut.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4_096;

/// The failure of a run that raised. The step wrote every text in it, so each is treated only as text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RaisedFailure {
    /// The step whose run raised.
    pub step: StepId,
    /// The exception's type, for example `KeyError`.
    pub exception: String,
    /// The exception's `str`.
    pub message: String,
    /// The line of the step's source, from 1, if it is known.
    pub line: Option<u32>,
    /// The innermost place in a step that the exception passed through, if there was one.
    #[serde(default)]
    pub frame: Option<RaisedFrame>,
    /// Variables that the step had read, as they were when it raised.
    pub values: BTreeMap<VariableName, ObservedValue>,
}

/// A place in a step that an exception passed through.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RaisedFrame {
    /// The step: the one that raised, or one whose function it called.
    pub step: StepId,
    /// The line of that step's source, from 1.
    pub line: u32,
    /// The name of the function; empty outside of functions.
    pub function: String,
}

/// A value, as far as it was inspected.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservedValue {
    /// Its `repr`, cut.
    pub shown: String,
    /// Its type's name; empty when it is unknown.
    pub kind: String,
    /// The `repr` of the keys of a dictionary.
    pub keys: Vec<String>,
    /// Its length.
    pub len: Option<u64>,
    /// Names of its attributes.
    pub attributes: Vec<String>,
    /// The `repr` of the keys of dictionaries that it holds, or of the columns of a table.
    pub columns: Vec<String>,
    /// The name of the type of its first part; empty when it is unknown or there is none.
    pub part_kind: String,
    /// Names of the attributes of that part.
    pub part_attributes: Vec<String>,
}

/// The likely cause of a failure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Diagnosis {
    /// The step whose run raised.
    pub step: StepId,
    /// The exception's type.
    pub exception: String,
    /// The exception's message.
    pub message: String,
    /// The line of the step's source.
    pub line: Option<u32>,
    /// The step that is likely at fault.
    pub culprit: StepId,
    /// The reason, in a sentence.
    pub reason: String,
    /// The variables involved, those of the failing line first.
    pub variables: Vec<Involved>,
}

/// A variable that is involved in a failure.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Involved {
    /// Its name.
    pub name: VariableName,
    /// Its value in short, if it was inspected.
    pub shown: Option<String>,
    /// The steps that produce it, the nearest last; empty if no step writes it.
    pub producers: Vec<StepId>,
}

/// Finds the likely cause of a failure.
///
/// # Errors
/// [`StepGraphError::UnknownStep`] when the graph does not have the failure's step.
pub fn diagnose(graph: &Graph, failure: &RaisedFailure) -> Result<Diagnosis, StepGraphError> {
    let variables = involved(graph, failure)?;
    let (culprit, reason) = blame(graph, failure, &variables)?;
    Ok(Diagnosis {
        step: failure.step.clone(),
        exception: failure.exception.clone(),
        message: failure.message.clone(),
        line: failure.line,
        culprit,
        reason,
        variables,
    })
}

impl RaisedFailure {
    /// The exception's type without its module.
    pub(crate) fn kind(&self) -> &str {
        self.exception.rsplit('.').next().unwrap_or_default()
    }

    /// The innermost place, if it is in another step than the one that raised.
    pub(crate) fn elsewhere(&self) -> Option<&RaisedFrame> {
        self.frame.as_ref().filter(|frame| frame.step != self.step)
    }

    /// The part of the message that rules read.
    pub(crate) fn told(&self) -> &str {
        &self.message[..self.message.floor_char_boundary(MESSAGE_BYTES_MAX)]
    }

    /// The `at`th text between single quotes in the message, from 0.
    pub(crate) fn quoted(&self, at: usize) -> Option<&str> {
        self.told().split('\'').skip(1).step_by(2).nth(at)
    }

    /// The missing name of a `NameError` or `UnboundLocalError`.
    pub(crate) fn missing_name(&self) -> Option<&str> {
        matches!(self.kind(), "NameError" | "UnboundLocalError").then(|| self.quoted(0)).flatten()
    }
}

impl ObservedValue {
    /// True for `None`.
    pub(crate) fn is_none(&self) -> bool {
        self.kind == "NoneType" || (self.kind.is_empty() && self.shown == "None")
    }
}

fn involved(graph: &Graph, failure: &RaisedFailure) -> Result<Vec<Involved>, StepGraphError> {
    let node = graph.node(&failure.step)?;
    let (edges, _) = graph.nearest_edges_into(&failure.step, PRODUCERS_MAX)?;
    let mut names: Vec<(bool, &VariableName)> = Vec::new();
    for known in node.analysis.names().iter().filter(|known| !known.builtin) {
        names.extend(known.read.map(|span| (failure.line != Some(span.line), &known.name)));
    }
    let is_read =
        |name: &VariableName| node.analysis.of(name).is_some_and(|known| known.read.is_some() && !known.builtin);
    let seen = failure.values.keys().filter(|name| !is_read(name));
    names.extend(seen.map(|name| (true, name)));
    names.sort();
    let one = |name: &VariableName| Involved {
        name: name.clone(),
        shown: failure.values.get(name).map(|seen| seen.shown.clone()),
        producers: edges
            .iter()
            .filter(|edge| edge.variables.contains_key(name))
            .map(|edge| edge.from.clone())
            .collect(),
    };
    Ok(names.into_iter().take(VARIABLES_MAX).map(|(_, name)| one(name)).collect())
}

/// The step at fault, and the reason.
fn blame(graph: &Graph, failure: &RaisedFailure, variables: &[Involved]) -> Result<(StepId, String), StepGraphError> {
    let node = graph.node(&failure.step)?;
    if let NodeState::Broken(error) = &node.state {
        return Ok((failure.step.clone(), format!("its source does not parse: {error}")));
    }
    if let ("NameError", Some(name)) = (failure.kind(), failure.missing_name()) {
        return Ok(blame_for_name(graph, failure, name));
    }
    if failure.told().contains("'NoneType'")
        && let Some((variable, producer)) = none_of(failure, variables)
    {
        return Ok((producer, format!("it leaves `None` in `{variable}`, which `{}` does not expect", failure.step)));
    }
    let reason = match failure.kind() {
        "KeyError" => "it asks for a key that is not there",
        "IndexError" => "it asks for an item past the end",
        "AttributeError" => "it asks for an attribute that the value does not have",
        "ModuleNotFoundError" | "ImportError" => "it imports what is not there",
        "TypeError" => "it uses a value of another type than it expects",
        "ValueError" => "it converts a value that does not have the form",
        "UnboundLocalError" => "a function of it assigns to a name that it reads before",
        "ZeroDivisionError" => "it divides by zero",
        _ => "it raised, and nothing points to an earlier step",
    };
    match failure.elsewhere() {
        Some(RaisedFrame { step, function, .. }) if graph.node(step).is_ok() => {
            Ok((step.clone(), format!("in `{function}`, which `{}` calls, {reason}", failure.step)))
        }
        _ => Ok((failure.step.clone(), reason.to_owned())),
    }
}

fn blame_for_name(graph: &Graph, failure: &RaisedFailure, name: &str) -> (StepId, String) {
    let here = &failure.step;
    let (mut before, mut after) = (None, None);
    let mut passed = false;
    for node in graph.steps() {
        if node.id == *here {
            passed = true;
        } else if node.analysis.of(name).is_some_and(|known| known.written) {
            if passed {
                after = after.or(Some(node));
            } else {
                before = Some(node);
            }
        }
    }
    if let Some(writer) = before {
        let reason = match &writer.state {
            NodeState::Broken(error) => format!("it would define `{name}`, and does not parse: {error}"),
            NodeState::Parsed if writer.observed().failed => format!("it would define `{name}`, and raised before"),
            NodeState::Parsed => format!("it may define `{name}`, and did not"),
        };
        return (writer.id.clone(), reason);
    }
    let known = names_before(graph, here);
    let near = closest(name, known.iter().map(|name| &**name)).into_iter().next();
    let reason = match (near, after) {
        (Some(near), _) => format!("no earlier step defines `{name}`; `{near}` is near"),
        (None, Some(writer)) => format!("`{name}` is defined by the later step `{}`", writer.id),
        (None, None) => format!("no earlier step defines `{name}`"),
    };
    let reader = failure.elsewhere().map(|frame| &frame.step).filter(|step| graph.node(step).is_ok());
    (reader.unwrap_or(here).clone(), reason)
}

/// The names that steps before this one may have bound.
pub(crate) fn names_before(graph: &Graph, step: &StepId) -> BTreeSet<VariableName> {
    let before = graph.steps().take_while(|node| node.id != *step);
    before.flat_map(|node| node.analysis.writes().cloned()).collect()
}

/// A variable that is `None`, with the step that produced it.
fn none_of(failure: &RaisedFailure, variables: &[Involved]) -> Option<(VariableName, StepId)> {
    let none = |one: &&Involved| failure.values.get(&one.name).is_some_and(ObservedValue::is_none);
    let variable = variables.iter().find(none)?;
    Some((variable.name.clone(), variable.producers.last()?.clone()))
}
