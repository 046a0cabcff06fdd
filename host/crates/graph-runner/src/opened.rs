//! A graph in memory, as its rows have it; and its rows for the next transaction.

use crate::agents::{OF_AGENT, of_agent};
use crate::errors::{broken, no_graph, refused, replay_refused};
use crate::files::FileDigests;
use longhaul_core::Digest;
use longhaul_core::graph::{GraphError, StepFailure};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_core::text;
use longhaul_graph::analysis::{Python, StepLanguage};
use longhaul_graph::graph::{Graph, Node, NodeState, Observed, StepId};
use longhaul_graph::record::{self, GraphHead, StepRow, Text};
use longhaul_graph::replay::{Replay, ReplaySettings, StepHistory};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Rows that one read returns.
const PAGE_ROWS: usize = 1_000;

/// A graph.
pub(super) struct OpenGraph {
    pub(super) head: GraphHead,
    pub(super) replay: Replay,
    rows: HashMap<StepId, StepRowInfo>,
    /// Steps whose rows say that they are stale.
    stale: BTreeSet<StepId>,
}

/// The known state of a step's row.
struct StepRowInfo {
    number: u64,
    /// Its last source that parses, when the current one does not.
    last_good: Option<Arc<str>>,
}

/// A stored step, with its texts.
struct StoredStep {
    number: u64,
    row: StepRow<StepHistory>,
    source: String,
    last_good: Option<Arc<str>>,
}

/// A step before its change or removal.
pub(super) struct ReplacedStep {
    pub(super) step: StepId,
    pub(super) source: Text,
}

impl OpenGraph {
    /// A graph without steps.
    pub(super) fn new(head: GraphHead) -> Result<Self, GraphError> {
        let replay = Replay::new(Graph::new(language(&head)?), settings(&head));
        Ok(Self { head, replay, rows: HashMap::new(), stale: BTreeSet::new() })
    }

    /// The graph from the store.
    pub(super) fn load(store: &dyn Store, name: &str) -> Result<Self, GraphError> {
        let found = store.get(Table::Graphs, &record::head_key(name)).map_err(broken)?;
        let mut head = GraphHead::read(&found.ok_or_else(|| no_graph(name))?).map_err(GraphError::Failed)?;
        if head.name != name {
            return Err(GraphError::Failed(format!("the head of the graph `{name}` is another graph's")));
        }
        // An imported run brings its agents' graphs along, and their rows must not decide what the steps see.
        if name.contains(OF_AGENT) {
            head.surroundings = of_agent();
        }
        let mut opened = Self::new(head)?;
        let (mut graph, mut histories) = (Graph::new(language(&opened.head)?), Vec::new());
        let mut after = None::<Vec<u8>>;
        loop {
            let rows = store.scan(Table::Graphs, &record::steps(name), after.as_deref(), PAGE_ROWS).map_err(broken)?;
            let Some((last, _)) = rows.last() else { break };
            after = Some(last.clone());
            let read = |(key, value): &(Vec<u8>, Vec<u8>)| StoredStep::read(store, name, key, value);
            let page = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
            restore(&mut graph, &page)?;
            for StoredStep { number, row, last_good, .. } in page {
                opened.rows.insert(row.id.clone(), StepRowInfo { number, last_good });
                if row.stale {
                    opened.stale.insert(row.id.clone());
                }
                histories.push((row.id, row.history));
            }
        }
        opened.replay = Replay::restore(graph, settings(&opened.head), histories).map_err(replay_refused)?;
        Ok(opened)
    }

    /// Looks at the files that steps read: a step that read one that has changed is stale, and what depends on it.
    pub(super) fn look_at_files(&mut self, digests: &FileDigests, now_ms: u64) -> Result<(), GraphError> {
        let names = self.replay.files();
        let directories = &self.head.surroundings.directories;
        if names.is_empty() || directories.is_empty() {
            return Ok(());
        }
        let files = digests.of(directories, names, now_ms);
        self.replay.set_files(files).map_err(replay_refused)?;
        Ok(())
    }

    /// Begins a walk over the stale steps.
    pub(super) fn start(&mut self, keep_going: bool) -> Result<(), GraphError> {
        let settings = ReplaySettings { keeps_going: keep_going, ..self.replay.settings().clone() };
        self.replay.set_settings(settings);
        self.replay.start().map_err(replay_refused)
    }

    pub(super) fn graph(&self) -> &Graph {
        self.replay.graph()
    }

    pub(super) fn len(&self) -> usize {
        self.graph().len()
    }

    /// The stale steps in the order in which they would run.
    pub(super) fn stale(&self) -> Vec<String> {
        self.graph().stale().iter().map(ToString::to_string).collect()
    }

    /// Adds steps, all or none. A source that does not parse is kept; the first syntax error is returned.
    pub(super) fn add(
        &mut self,
        steps: Vec<(String, String)>,
        batch: &mut Batch,
    ) -> Result<(Vec<StepId>, Option<StepFailure>), GraphError> {
        let steps: Vec<(StepId, String)> = steps.into_iter().map(|(id, source)| (StepId::new(id), source)).collect();
        let ids: Vec<StepId> = steps.iter().map(|(id, _)| id.clone()).collect();
        self.replay.add_steps(steps).map_err(replay_refused)?;
        let mut failure = None;
        for id in &ids {
            self.rows.insert(id.clone(), StepRowInfo { number: self.head.next_row, last_good: None });
            self.head.next_row += 1;
            self.write_step(id, batch)?;
            failure = failure.or(syntax_failure(self.node(id)?));
        }
        Ok((ids, failure))
    }

    /// Changes the source of a step: returns the steps that are now stale, the syntax error, and the former step.
    pub(super) fn change(
        &mut self,
        step: &str,
        source: String,
        batch: &mut Batch,
    ) -> Result<(Vec<String>, Option<StepFailure>, ReplacedStep), GraphError> {
        let id = StepId::new(step);
        let node = self.node(&id)?;
        let (old, was_good) = (Arc::from(node.source.as_str()), node.state == NodeState::Parsed);
        let touched = self.replay.change_step(&id, source).map_err(replay_refused)?;
        let failure = syntax_failure(self.node(&id)?);
        if let Some(row) = self.rows.get_mut(&id) {
            row.last_good = match (&failure, was_good) {
                (None, _) => None,
                (Some(_), true) => Some(Arc::clone(&old)),
                (Some(_), false) => row.last_good.take(),
            };
        }
        self.write_steps(touched.iter().chain([&id]), batch)?;
        let before = ReplacedStep { source: Text::keep(&old, batch), step: id };
        Ok((touched.iter().map(ToString::to_string).collect(), failure, before))
    }

    /// Removes a step: returns the steps that are now stale, and the former step.
    pub(super) fn remove(&mut self, step: &str, batch: &mut Batch) -> Result<(Vec<String>, ReplacedStep), GraphError> {
        let id = StepId::new(step);
        let old = self.node(&id)?.source.clone();
        let touched = self.replay.remove_step(&id).map_err(replay_refused)?;
        if let Some(row) = self.rows.remove(&id) {
            batch.push(Op::Delete(Table::Graphs, record::step_key(&self.head.name, row.number)));
        }
        self.stale.remove(&id);
        self.write_steps(touched.iter(), batch)?;
        let before = ReplacedStep { source: Text::keep(&old, batch), step: id };
        Ok((touched.iter().map(ToString::to_string).collect(), before))
    }

    pub(super) fn node(&self, id: &StepId) -> Result<&Node, GraphError> {
        self.graph().node(id).map_err(refused)
    }

    /// The rows of all steps that changed in a run.
    pub(super) fn write_changed(&mut self, batch: &mut Batch) -> Result<(), GraphError> {
        let changed = self.replay.take_changed();
        self.write_steps(changed.iter(), batch)
    }

    /// The rows of steps whose staleness changed.
    pub(super) fn write_staleness(&mut self, batch: &mut Batch) -> Result<(), GraphError> {
        let now: BTreeSet<StepId> = self.graph().stale().into_iter().collect();
        let other: Vec<StepId> = now.symmetric_difference(&self.stale).cloned().collect();
        self.write_steps(other.iter(), batch)
    }

    pub(super) fn write_steps<'a>(
        &mut self,
        ids: impl Iterator<Item = &'a StepId>,
        batch: &mut Batch,
    ) -> Result<(), GraphError> {
        ids.collect::<BTreeSet<_>>().into_iter().try_for_each(|id| self.write_step(id, batch))
    }

    /// A step's row, unless the step no longer exists.
    pub(super) fn write_step(&mut self, id: &StepId, batch: &mut Batch) -> Result<(), GraphError> {
        let Ok(node) = self.replay.graph().node(id) else { return Ok(()) };
        let Some(row) = self.rows.get(id) else { return Ok(()) };
        let stale = self.replay.graph().is_stale(id).unwrap_or(true);
        let record = StepRow {
            id: id.clone(),
            source: Text::keep(&node.source, batch),
            last_good: row.last_good.as_ref().map(|source| Text::keep(source, batch)),
            stale,
            observed_reads: node.observed().reads.clone(),
            observed_writes: node.observed().writes.clone(),
            failed: node.observed().failed,
            history: self.replay.history(id).ok().flatten().cloned().unwrap_or_default(),
        };
        if stale {
            self.stale.insert(id.clone());
        } else {
            self.stale.remove(id);
        }
        let key = record::step_key(&self.head.name, row.number);
        batch.push(Op::Put(Table::Graphs, key, bytes(&record)?));
        Ok(())
    }

    /// The current head, with one more write.
    pub(super) fn write_head(&mut self, now_ms: u64, batch: &mut Batch) -> Result<(), GraphError> {
        self.head.revision += 1;
        self.head.changed_ms = now_ms;
        self.head.steps = self.len() as u64;
        self.head.stale = self.stale.len() as u64;
        batch.push(Op::Put(Table::Graphs, record::head_key(&self.head.name), bytes(&self.head)?));
        Ok(())
    }
}

impl StoredStep {
    fn read(store: &dyn Store, graph: &str, key: &[u8], value: &[u8]) -> Result<Self, GraphError> {
        let row: StepRow<StepHistory> = serde_json::from_slice(value)
            .map_err(|error| GraphError::Failed(format!("a step of `{graph}` is damaged: {error}")))?;
        let source = row.source.read(store).map_err(broken)?;
        let last_good = row.last_good.as_ref().map(|text| text.read(store)).transpose().map_err(broken)?;
        let (number, last_good) = (Key::last_number(key).unwrap_or_default(), last_good.map(Into::into));
        Ok(Self { number, row, source, last_good })
    }
}

/// The bytes of a row.
pub(super) fn bytes(record: &impl Serialize) -> Result<Vec<u8>, GraphError> {
    serde_json::to_vec(record).map_err(|error| GraphError::Failed(format!("a graph cannot be written: {error}")))
}

/// The settings that all steps of a graph share.
fn settings(head: &GraphHead) -> ReplaySettings {
    let sees = serde_json::to_vec(&head.surroundings).unwrap_or_default();
    let acts = head.surroundings.may_act();
    ReplaySettings { seed: head.seed, grants: Digest::of(&sees), acts, keeps_going: false }
}

fn language(head: &GraphHead) -> Result<Arc<dyn StepLanguage>, GraphError> {
    match head.language.as_str() {
        "python" => Ok(Arc::new(Python { mode: head.mode })),
        other => {
            let (name, other) = (text::printable(&head.name, 100), text::printable(other, 100));
            Err(GraphError::Invalid(format!(
                "the steps of `{name}` are in {other}, and only Python runs; remove it with: longhaul graph remove {name}"
            )))
        }
    }
}

/// Restores steps: their last good sources first, so that a broken step still stands for the names that it wrote.
fn restore(graph: &mut Graph, steps: &[StoredStep]) -> Result<(), GraphError> {
    let first = |step: &StoredStep| step.last_good.as_deref().unwrap_or(&step.source).to_owned();
    graph.add_steps(steps.iter().map(|step| (step.row.id.clone(), first(step)))).map_err(refused)?;
    for step in steps.iter().filter(|step| step.last_good.is_some()) {
        graph.change_step(&step.row.id, step.source.clone()).map_err(refused)?;
    }
    // A step is fresh if its row says so, whatever the changes above made stale.
    for StoredStep { row, .. } in steps {
        let observed =
            Observed { reads: row.observed_reads.clone(), writes: row.observed_writes.clone(), failed: row.failed };
        graph.observe(&row.id, &observed).map_err(refused)?;
        if !row.stale {
            graph.mark_fresh(&row.id).map_err(refused)?;
        }
    }
    Ok(())
}

/// The syntax error of a step's source, if there is one.
pub(super) fn syntax_failure(node: &Node) -> Option<StepFailure> {
    let NodeState::Broken(error) = &node.state else { return None };
    Some(StepFailure {
        kind: "SyntaxError".to_owned(),
        message: error.message.clone(),
        line: Some(error.line),
        column: Some(error.column),
        traceback: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::OpenGraph;
    use longhaul_core::Digest;
    use longhaul_core::graph::StepEnvironment;
    use longhaul_graph::record::GraphHead;

    #[test]
    fn a_graph_in_a_language_that_does_not_run_is_refused_with_what_to_do() {
        let open = |language: &str| {
            let head = GraphHead::new("old", language, Digest::of(b"seed"), StepEnvironment::default(), 0);
            OpenGraph::new(head).map(|opened| opened.len()).map_err(|error| error.to_string())
        };
        assert_eq!(open("python"), Ok(0));
        let refused =
            "the steps of `old` are in javascript, and only Python runs; remove it with: longhaul graph remove old";
        assert_eq!(open("javascript"), Err(refused.to_owned()));
    }
}
