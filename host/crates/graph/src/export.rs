//! A graph for other programs: as JSON and in the language of Graphviz.
//!
//! An export is a picture and no backup: it does not contain the results of runs.

use crate::analysis::{NameUse, Reason, SyntaxError, VariableName};
use crate::graph::{Edge, Graph, Node, NodeState, StepId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// Most edges of one export: 200,000. The export says if there are more.
///
/// Steps that all append to one list have as many edges as pairs of steps.
pub const EXPORT_EDGES_MAX: usize = 200_000;

/// Version of the form of [`Export`].
pub const EXPORT_VERSION: u32 = 1;

/// A graph in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Export {
    /// [`EXPORT_VERSION`].
    pub version: u32,
    /// The language of the steps.
    pub language: &'static str,
    /// In insertion order.
    pub steps: Vec<ExportedStep>,
    /// In the order of the depending step, in insertion order.
    pub edges: Vec<Edge>,
    /// True when there are more than [`EXPORT_EDGES_MAX`]; the first are listed here.
    pub edges_left_out: bool,
}

/// One step in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ExportedStep {
    /// Its name.
    pub id: StepId,
    /// Its source.
    pub source: Arc<str>,
    /// True when it is to be run again.
    pub stale: bool,
    /// True when its last run raised.
    pub failed: bool,
    /// The reason why its source does not parse, if it does not.
    pub error: Option<SyntaxError>,
    /// Names that it reads from earlier steps.
    pub reads: BTreeSet<VariableName>,
    /// Names that it may bind.
    pub writes: BTreeSet<VariableName>,
    /// Names whose value it may change in place, with the reason.
    pub mutates: BTreeMap<VariableName, Reason>,
    /// Names that it may unbind.
    pub deletes: BTreeSet<VariableName>,
}

/// The graph as a value for JSON.
#[must_use]
pub fn export(graph: &Graph) -> Export {
    let mut edges: Vec<Edge> = graph.edges().take(EXPORT_EDGES_MAX + 1).collect();
    let edges_left_out = edges.len() > EXPORT_EDGES_MAX;
    edges.truncate(EXPORT_EDGES_MAX);
    let steps = graph.steps().map(|node| exported(graph, node)).collect();
    Export { version: EXPORT_VERSION, language: graph.language().name(), steps, edges, edges_left_out }
}

/// The graph as JSON, with line ends and indented.
#[must_use]
pub fn json(graph: &Graph) -> String {
    // It has only names, texts and numbers, which always serialize.
    serde_json::to_string_pretty(&export(graph)).unwrap_or_default()
}

/// The graph in the language of Graphviz. Names are escaped, so that none ends its quotes.
#[must_use]
pub fn dot(graph: &Graph) -> String {
    let mut text = String::from("digraph steps {\n  rankdir=LR;\n  node [shape=box];\n");
    for node in graph.steps() {
        let line = node.source.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let label = format!("{}\n{}", node.id, line.chars().take(60).collect::<String>());
        let style = match node.state {
            NodeState::Broken(_) => ", color=red",
            NodeState::Parsed if graph.is_stale(&node.id).unwrap_or(true) => ", style=dashed",
            NodeState::Parsed => "",
        };
        let _ = writeln!(text, "  {} [label={}{style}];", quoted(node.id.as_str()), quoted(&label));
    }
    let mut left_out = false;
    for (count, edge) in graph.edges().enumerate() {
        if count == EXPORT_EDGES_MAX {
            left_out = true;
            break;
        }
        let names: Vec<&str> = edge.variables.keys().map(|name| &**name).collect();
        let style = if edge.observed { ", style=dotted" } else { "" };
        let (from, to) = (quoted(edge.from.as_str()), quoted(edge.to.as_str()));
        let _ = writeln!(text, "  {from} -> {to} [label={}{style}];", quoted(&names.join(", ")));
    }
    if left_out {
        let _ = writeln!(text, "  // more than {EXPORT_EDGES_MAX} edges; the rest is left out");
    }
    text.push_str("}\n");
    text
}

fn exported(graph: &Graph, node: &Node) -> ExportedStep {
    let analysis = &node.analysis;
    let error = match &node.state {
        NodeState::Parsed => None,
        NodeState::Broken(error) => Some((**error).clone()),
    };
    let reads = if error.is_some() { BTreeSet::new() } else { analysis.reads().cloned().collect() };
    let mutated = |known: &NameUse| Some((known.name.clone(), known.mutated.as_deref()?.clone()));
    let changed = graph.changed_by(&node.id).unwrap_or_default();
    let mutates = analysis.names().iter().filter(|known| changed.contains(&known.name)).filter_map(mutated);
    ExportedStep {
        id: node.id.clone(),
        source: node.source.as_str().into(),
        stale: graph.is_stale(&node.id).unwrap_or(true),
        failed: node.observed().failed,
        error,
        reads: reads.into_iter().chain(node.observed().reads.iter().cloned()).collect(),
        writes: analysis.writes().cloned().collect(),
        mutates: mutates.collect(),
        deletes: analysis.deletes().cloned().collect(),
    }
}

/// A string of Graphviz: quotes and backslashes escaped, line ends as `\n`, other control characters as text.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            control if control.is_control() => {
                let _ = write!(quoted, "\\\\u{{{:x}}}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
