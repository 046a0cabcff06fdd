//! A graph as lines for a terminal: a step a line, with its state, its first line and its dependencies.
//!
//! Every line is plain ASCII of a bounded width: other characters are escaped, so that no source moves the cursor or
//! looks like another. Lines are made on request, each from a bounded number of edges.

use crate::graph::{Edge, Graph, Node, NodeState, StepId};

/// Narrowest drawing, in columns; a smaller width is raised to this one.
pub const WIDTH_MIN: usize = 40;

/// Dependencies that a line names: the nearest 6. The line says if there are more.
pub const DEPENDENCIES_MAX: usize = 6;

/// Widest column of names, in characters.
const NAME_WIDTH_MAX: usize = 24;

/// The lines of a drawing, `width` columns wide at most, without line ends.
///
/// `state` returns the state of a step as a word; if it returns none, [`state_of`] applies.
pub fn lines<'g>(
    graph: &'g Graph,
    width: usize,
    state: impl Fn(&Node) -> String + 'g,
) -> impl Iterator<Item = String> + 'g {
    let width = width.max(WIDTH_MIN);
    let names = graph.steps().map(|node| visible(node.id.as_str(), NAME_WIDTH_MAX).len()).max().unwrap_or(0);
    graph.steps().map(move |node| {
        let name = visible(node.id.as_str(), NAME_WIDTH_MAX);
        let begin = format!("{name:names$}  {:8} ", visible(&state(node), 12));
        let dependencies = dependencies(graph, &node.id);
        let room = width.saturating_sub(begin.len());
        let source_room = if dependencies.is_empty() { room } else { room / 2 };
        let source = visible(first_line(node), source_room);
        let line = if dependencies.is_empty() {
            format!("{begin}{source}")
        } else {
            format!("{begin}{source:source_room$} {dependencies}")
        };
        cut(line.trim_end(), width)
    })
}

/// The state that the graph itself knows: `broken`, `failed`, `stale` or `fresh`.
#[must_use]
pub fn state_of(graph: &Graph, node: &Node) -> &'static str {
    match node.state {
        NodeState::Broken(_) => "broken",
        NodeState::Parsed if node.observed().failed => "failed",
        NodeState::Parsed if graph.is_stale(&node.id).unwrap_or(true) => "stale",
        NodeState::Parsed => "fresh",
    }
}

/// Printable ASCII unchanged, everything else as an escape; `...` at the end of a text longer than `columns`.
#[must_use]
pub fn visible(text: &str, columns: usize) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        if character == ' ' || character.is_ascii_graphic() {
            shown.push(character);
        } else {
            shown.extend(character.escape_default());
        }
        if shown.len() > columns {
            return cut(&shown, columns);
        }
    }
    shown
}

fn first_line(node: &Node) -> &str {
    node.source.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn dependencies(graph: &Graph, id: &StepId) -> String {
    let (edges, more) = graph.nearest_edges_into(id, DEPENDENCIES_MAX).unwrap_or_default();
    if edges.is_empty() {
        return String::new();
    }
    let mut named: Vec<String> = edges.iter().map(one_dependency).collect();
    if more {
        named.push("...".to_owned());
    }
    format!("<- {}", named.join(", "))
}

fn one_dependency(edge: &Edge) -> String {
    let from = visible(edge.from.as_str(), NAME_WIDTH_MAX);
    let mark = if edge.observed { "!" } else { "" };
    let mut names: Vec<String> = edge.variables.keys().take(3).map(|name| visible(name, NAME_WIDTH_MAX)).collect();
    if edge.variables.len() > names.len() {
        names.push("...".to_owned());
    }
    if names.is_empty() { from } else { format!("{from}{mark} ({})", names.join(" ")) }
}

/// `text` is ASCII.
fn cut(text: &str, columns: usize) -> String {
    if text.len() <= columns {
        return text.to_owned();
    }
    format!("{}...", &text[..columns.saturating_sub(3)])
}
