//! Views of a graph's state, for callers.

use crate::opened::{OpenGraph, syntax_failure};
use crate::task::GraphTask;
use longhaul_api::graphs::GraphPage;
use longhaul_core::graph::{
    GraphAnswer, GraphError, GraphFormat, GraphOperation, GraphSummary, StepFailure, StepFrame, StepState, StepView,
};
use longhaul_core::text::truncate;
use longhaul_graph::analysis::VariableName;
use longhaul_graph::draw;
use longhaul_graph::graph::{Node, NodeState, StepId};
use longhaul_graph::replay::{Replay, StepHistory};
use longhaul_graph::step::{KeptValues, SHARING, StepEnd, StepReport};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes of an output, of a value and of a traceback in a view.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
const VALUE_BYTES_MAX: usize = 10_000;
const TRACEBACK_BYTES_MAX: usize = 16 << 10;

/// Bytes of the line of a frame.
const FRAME_BYTES_MAX: usize = 200;

/// Columns of a drawing, and of the name of a step in a note.
const WIDTH_MAX: usize = 1_000;
const NOTE_COLUMNS_MAX: usize = 60;

/// Notes below a drawing.
const NOTES_MAX: usize = 100;

/// Dependencies of all steps together that are listed. A list that every step appends to has as many as there are pairs
/// of steps.
const EDGES_MAX: usize = 500_000;

/// Dependencies of each step of a page, the nearest of each name.
const PAGE_EDGES_MAX: usize = 1_000;

/// Answers a read-only request.
pub(super) fn look(opened: &OpenGraph, task: &GraphTask) -> Result<GraphAnswer, GraphError> {
    match task {
        GraphTask::Ask(GraphOperation::Stale) => Ok(GraphAnswer::Stale(opened.stale())),
        GraphTask::Ask(GraphOperation::Show) => Ok(GraphAnswer::Steps(steps(opened))),
        GraphTask::Ask(GraphOperation::Export { format }) => Ok(GraphAnswer::Text(export(opened, *format))),
        _ => Err(GraphError::Failed("this changes the graph".to_owned())),
    }
}

/// A line for each step, followed by the failures, and the values that cannot be kept.
pub(super) fn drawing(opened: &OpenGraph, width: u32) -> String {
    let states = states(&opened.replay);
    let width = usize::try_from(width).unwrap_or(usize::MAX).min(WIDTH_MAX);
    let state = |node: &Node| states.get(&node.id).copied().unwrap_or_default();
    let mut lines: Vec<String> = draw::lines(opened.graph(), width, |node| state(node).as_str().to_owned()).collect();
    let mut notes = Vec::new();
    for node in opened.graph().steps() {
        let name = draw::visible(node.id.as_str(), NOTE_COLUMNS_MAX);
        if let Some(failure) = failure(opened, node, state(node)) {
            let line = failure.line.map(|line| format!(" (line {line})")).unwrap_or_default();
            let text = draw::visible(&format!("{}: {}", failure.kind, failure.message), width);
            notes.push(format!("{name}: {text}{line}"));
        }
        let live = live_only(opened, node);
        if !live.is_empty() {
            let names = draw::visible(&live.join(", "), width);
            notes.push(format!("{name}: {names} cannot be kept, so that it runs again whenever that is needed"));
        }
        if notes.len() >= NOTES_MAX {
            break;
        }
    }
    lines.extend(notes);
    lines.join("\n")
}

fn live_only(opened: &OpenGraph, node: &Node) -> Vec<String> {
    let run = history(&opened.replay, &node.id).and_then(|history| history.current.as_ref());
    let groups = run.into_iter().flat_map(|run| &run.report.delta.groups);
    let live = groups.filter(|group| matches!(group.kept, KeptValues::Live { .. }));
    live.flat_map(|group| group.names.iter().map(ToString::to_string)).collect()
}

pub(super) fn steps(opened: &OpenGraph) -> Vec<StepView> {
    let mut needs: HashMap<StepId, Vec<String>> = HashMap::new();
    for edge in opened.graph().edges().take(EDGES_MAX) {
        needs.entry(edge.to).or_default().push(edge.from.to_string());
    }
    let states = states(&opened.replay);
    let state = |node: &Node| states.get(&node.id).copied().unwrap_or_default();
    let view =
        |node: &Node| StepView { needs: needs.remove(&node.id).unwrap_or_default(), ..view(opened, node, state(node)) };
    opened.graph().steps().map(view).collect()
}

/// The graph with a page of its steps.
pub(super) fn page(opened: &OpenGraph, offset: usize, limit: usize) -> GraphPage {
    let states = states(&opened.replay);
    let one = |node: &Node| {
        let (edges, _) = opened.graph().nearest_edges_into(&node.id, PAGE_EDGES_MAX).unwrap_or_default();
        let needs = edges.iter().map(|edge| edge.from.to_string()).collect();
        StepView { needs, ..view(opened, node, states.get(&node.id).copied().unwrap_or_default()) }
    };
    let steps = opened.graph().steps().skip(offset).take(limit).map(one).collect();
    let stale = opened.graph().stale().len();
    let graph = GraphSummary { stale, ..opened.head.summary() };
    GraphPage { graph, steps, total: opened.len(), offset }
}

fn view(opened: &OpenGraph, node: &Node, state: StepState) -> StepView {
    let mut view = StepView {
        id: node.id.to_string(),
        source: node.source.to_string(),
        state,
        reads: named(node.analysis.reads().chain(&node.observed().reads)),
        writes: named(opened.graph().changed_by(&node.id).unwrap_or_default().iter()),
        failure: failure(opened, node, state),
        live_only: live_only(opened, node),
        ..StepView::default()
    };
    for names in [&mut view.reads, &mut view.writes] {
        names.sort_unstable();
        names.dedup();
    }
    if let Some(run) = history(&opened.replay, &node.id).and_then(|history| history.current.as_ref()) {
        outcome(&mut view, &run.report);
    }
    view
}

/// The names of variables, without those of what variables share.
fn named<'a>(names: impl Iterator<Item = &'a VariableName>) -> Vec<String> {
    names.filter(|name| !name.starts_with(SHARING)).map(ToString::to_string).collect()
}

fn outcome(view: &mut StepView, report: &StepReport) {
    view.files = report.files.keys().cloned().collect();
    view.stdout = truncate(&report.stdout, OUTPUT_BYTES_MAX);
    view.stderr = truncate(&report.stderr, OUTPUT_BYTES_MAX);
    view.value = report.result.as_deref().map(|value| truncate(value, VALUE_BYTES_MAX));
    view.duration_ms = u32::try_from(report.duration_us.div_ceil(1_000)).unwrap_or(u32::MAX);
    view.fuel_used = report.fuel_used;
    view.memory_bytes_peak = report.memory_bytes_peak;
}

fn history<'a>(replay: &'a Replay, id: &StepId) -> Option<&'a StepHistory> {
    replay.history(id).ok().flatten()
}

/// The state of each step. A dependency that failed, does not parse, or was interrupted while it acted, blocks a step
/// until it is repaired, unless the step ran all the same.
pub(super) fn states(replay: &Replay) -> HashMap<StepId, StepState> {
    let (mut states, mut blocked) = (HashMap::new(), HashSet::new());
    for node in replay.graph().steps() {
        let is_stale = replay.graph().is_stale(&node.id).unwrap_or(true);
        let state = match own_state(replay, node, is_stale) {
            StepState::Stale if blocked.contains(&node.id) => StepState::Blocked,
            state => state,
        };
        // A step that another one blocks is among the steps that the other blocks.
        if matches!(state, StepState::Failed | StepState::Broken | StepState::Unknown) && !blocked.contains(&node.id) {
            blocked.extend(replay.graph().descendants(&node.id).unwrap_or_default());
        }
        states.insert(node.id.clone(), state);
    }
    states
}

/// The state of a step by itself. One that failed with its present input is not stale, except one that a limit stopped,
/// which gets further with a higher limit.
fn own_state(replay: &Replay, node: &Node, is_stale: bool) -> StepState {
    let history = history(replay, &node.id);
    let stopped = history.and_then(|history| history.current.as_ref()).is_some_and(|run| run.is_stopped());
    if matches!(node.state, NodeState::Broken(_)) {
        StepState::Broken
    } else if history.is_some_and(|history| history.started) {
        StepState::Unknown
    } else if node.observed().failed && history.is_some_and(StepHistory::has_failed) && (!is_stale || stopped) {
        StepState::Failed
    } else if is_stale {
        StepState::Stale
    } else {
        StepState::Fresh
    }
}

/// The reason why a step failed, or does not parse.
pub(super) fn failure(opened: &OpenGraph, node: &Node, state: StepState) -> Option<StepFailure> {
    if let Some(failure) = syntax_failure(node) {
        return Some(failure);
    }
    if state != StepState::Failed {
        return None;
    }
    let report = &history(&opened.replay, &node.id)?.current.as_ref()?.report;
    match &report.ended {
        StepEnd::Well => None,
        StepEnd::Raised(exception) => Some(StepFailure {
            kind: exception.kind.clone(),
            message: exception.message.clone(),
            line: exception.line,
            column: None,
            traceback: truncate(&exception.traceback(|step| source_of(opened, step)), TRACEBACK_BYTES_MAX),
        }),
        StepEnd::Stopped { limit, message } => Some(StepFailure {
            kind: limit.clone().unwrap_or_else(|| "stopped".to_owned()),
            message: message.clone(),
            ..StepFailure::default()
        }),
    }
}

/// The innermost place in a step that the exception of a step passed through.
pub(super) fn innermost(opened: &OpenGraph, node: &Node, state: StepState) -> Option<StepFrame> {
    if state != StepState::Failed {
        return None;
    }
    let report = &history(&opened.replay, &node.id)?.current.as_ref()?.report;
    let StepEnd::Raised(exception) = &report.ended else { return None };
    exception.frames.iter().rev().find_map(|frame| {
        let step = frame.file.strip_prefix("<step ")?.strip_suffix('>')?;
        let source = source_of(opened, step)?;
        let at = usize::try_from(frame.line).ok()?.checked_sub(1)?;
        let line = source.lines().nth(at).unwrap_or_default().trim();
        let function = if frame.name == "<module>" { String::new() } else { frame.name.clone() };
        let source = truncate(line, FRAME_BYTES_MAX);
        Some(StepFrame { step: step.to_owned(), line: frame.line, function, source })
    })
}

fn source_of(opened: &OpenGraph, step: &str) -> Option<Arc<str>> {
    opened.graph().node(&StepId::new(step)).ok().map(|node| node.source.as_str().into())
}

pub(super) fn export(opened: &OpenGraph, format: GraphFormat) -> String {
    match format {
        GraphFormat::Json => longhaul_graph::export::json(opened.graph()),
        GraphFormat::Dot => longhaul_graph::export::dot(opened.graph()),
    }
}
