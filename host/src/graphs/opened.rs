//! A graph in memory, as its rows have it; and what of it goes into the next transaction.

use super::{OF_AGENT, broken, bytes, no_graph, of_agent};
use longhaul_core::Digest;
use longhaul_core::graph::{Failure, GraphError};
use longhaul_core::store::{Batch, Key, Op, Store, Table};
use longhaul_graph::analysis::{JavaScript, Language, Python};
use longhaul_graph::graph::{self, Graph, Node, NodeState, Observed, StepId};
use longhaul_graph::record::{self, Head, StepRow, Text};
use longhaul_graph::replay::{Replay, Settings, StepHistory};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Rows that are read at once.
const PAGE_ROWS: usize = 1_000;

/// A graph.
pub(super) struct Opened {
    pub(super) head: Head,
    pub(super) replay: Replay,
    rows: HashMap<StepId, Row>,
    /// Those whose rows say that they are stale.
    stale: BTreeSet<StepId>,
}

/// What is known of a step's row.
struct Row {
    number: u64,
    /// Its last source that could be read, where this one cannot.
    last_good: Option<Arc<str>>,
}

/// What a step was before it was changed or removed.
pub(super) struct Before {
    pub(super) step: StepId,
    pub(super) source: Text,
}

impl Opened {
    /// A graph without steps.
    pub(super) fn new(head: Head) -> Result<Self, GraphError> {
        let replay = Replay::new(Graph::new(language(&head)?), settings(&head));
        Ok(Self { head, replay, rows: HashMap::new(), stale: BTreeSet::new() })
    }

    /// The graph as it lies in a store.
    pub(super) fn load(store: &dyn Store, name: &str) -> Result<Self, GraphError> {
        let found = store.get(Table::Graphs, &record::head_key(name)).map_err(broken)?;
        let mut head = Head::read(&found.ok_or_else(|| no_graph(name))?).map_err(GraphError::Failed)?;
        if head.name != name {
            return Err(GraphError::Failed(format!("the head of the graph `{name}` is another graph's")));
        }
        // An agent's comes from elsewhere where its run does, and what it sees is not for its rows to say.
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
            for (key, value) in &rows {
                let number = Key::last_number(key).unwrap_or_default();
                let row: StepRow<StepHistory> = serde_json::from_slice(value)
                    .map_err(|error| GraphError::Failed(format!("a step of `{name}` is damaged: {error}")))?;
                let id = row.id.clone();
                let last_good = restore(store, &mut graph, &row)?;
                opened.rows.insert(id.clone(), Row { number, last_good });
                if row.stale {
                    opened.stale.insert(id.clone());
                }
                histories.push((id, row.history));
            }
        }
        opened.replay = Replay::restore(graph, settings(&opened.head), histories).map_err(super::run::refused)?;
        Ok(opened)
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

    /// A step more. A source that cannot be read is kept, and answered why.
    pub(super) fn add(
        &mut self,
        step: &str,
        source: String,
        batch: &mut Batch,
    ) -> Result<(StepId, Option<Failure>), GraphError> {
        let id = StepId::new(step);
        self.replay.add_step(id.clone(), source).map_err(super::run::refused)?;
        self.rows.insert(id.clone(), Row { number: self.head.next_row, last_good: None });
        self.head.next_row += 1;
        self.write_step(&id, batch)?;
        let failure = syntax_failure(self.node(&id)?);
        Ok((id, failure))
    }

    /// Another source for a step: what is stale now because of it, why it cannot be read, and what it was.
    pub(super) fn change(
        &mut self,
        step: &str,
        source: String,
        batch: &mut Batch,
    ) -> Result<(Vec<String>, Option<Failure>, Before), GraphError> {
        let id = StepId::new(step);
        let node = self.node(&id)?;
        let (old, was_good) = (Arc::clone(&node.source), node.state == NodeState::Parsed);
        let touched = self.replay.change_step(&id, source).map_err(super::run::refused)?;
        let failure = syntax_failure(self.node(&id)?);
        if let Some(row) = self.rows.get_mut(&id) {
            row.last_good = match (&failure, was_good) {
                (None, _) => None,
                (Some(_), true) => Some(Arc::clone(&old)),
                (Some(_), false) => row.last_good.take(),
            };
        }
        self.write_steps(touched.iter().chain([&id]), batch)?;
        let before = Before { source: Text::keep(&old, batch), step: id };
        Ok((touched.iter().map(ToString::to_string).collect(), failure, before))
    }

    /// A step less: what is stale now because of it, and what it was.
    pub(super) fn remove(&mut self, step: &str, batch: &mut Batch) -> Result<(Vec<String>, Before), GraphError> {
        let id = StepId::new(step);
        let old = Arc::clone(&self.node(&id)?.source);
        let touched = self.replay.remove_step(&id).map_err(super::run::refused)?;
        if let Some(row) = self.rows.remove(&id) {
            batch.push(Op::Delete(Table::Graphs, record::step_key(&self.head.name, row.number)));
        }
        self.stale.remove(&id);
        self.write_steps(touched.iter(), batch)?;
        let before = Before { source: Text::keep(&old, batch), step: id };
        Ok((touched.iter().map(ToString::to_string).collect(), before))
    }

    pub(super) fn node(&self, id: &StepId) -> Result<&Node, GraphError> {
        self.graph().node(id).map_err(refused)
    }

    /// The rows of all steps of which something changed in a run.
    pub(super) fn write_changed(&mut self, batch: &mut Batch) -> Result<(), GraphError> {
        let changed = self.replay.take_changed();
        self.write_steps(changed.iter(), batch)
    }

    /// The rows of steps that are stale now and were not, or the other way round.
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

    /// A step's row, unless the step is gone.
    pub(super) fn write_step(&mut self, id: &StepId, batch: &mut Batch) -> Result<(), GraphError> {
        let Ok(node) = self.replay.graph().node(id) else { return Ok(()) };
        let Some(row) = self.rows.get(id) else { return Ok(()) };
        let stale = self.replay.graph().is_stale(id).unwrap_or(true);
        let record = StepRow {
            id: id.clone(),
            source: Text::keep(&node.source, batch),
            last_good: row.last_good.as_ref().map(|source| Text::keep(source, batch)),
            stale,
            observed_reads: node.observed_reads.clone(),
            observed_writes: node.observed_writes.clone(),
            failed: node.failed,
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

    /// The head as it is now: one more writing.
    pub(super) fn write_head(&mut self, now_ms: u64, batch: &mut Batch) -> Result<(), GraphError> {
        self.head.revision += 1;
        self.head.changed_ms = now_ms;
        self.head.steps = self.len() as u64;
        self.head.stale = self.stale.len() as u64;
        batch.push(Op::Put(Table::Graphs, record::head_key(&self.head.name), bytes(&self.head)?));
        Ok(())
    }
}

/// What is the same for all steps of a graph.
fn settings(head: &Head) -> Settings {
    let sees = serde_json::to_vec(&head.surroundings).unwrap_or_default();
    let acts = head.surroundings.may_act();
    Settings { seed: head.seed, grants: Digest::of(&sees), acts, keeps_going: false }
}

fn language(head: &Head) -> Result<Arc<dyn Language>, GraphError> {
    match head.language.as_str() {
        "python" => Ok(Arc::new(Python { mode: head.mode })),
        "javascript" => Ok(Arc::new(JavaScript { mode: head.mode })),
        other => {
            Err(GraphError::Failed(format!("the graph's steps are in `{other}`, which this longhaul does not know")))
        }
    }
}

/// Puts a step back: its last good source first, so that a broken one still stands for what it wrote.
fn restore(store: &dyn Store, graph: &mut Graph, row: &StepRow<StepHistory>) -> Result<Option<Arc<str>>, GraphError> {
    let source = row.source.read(store).map_err(broken)?;
    let last_good = row.last_good.as_ref().map(|text| text.read(store)).transpose().map_err(broken)?;
    match last_good.clone() {
        Some(good) => {
            graph.add_step(row.id.clone(), good).map_err(refused)?;
            graph.change_step(&row.id, source).map_err(refused)?;
        }
        None => graph.add_step(row.id.clone(), source).map_err(refused)?,
    }
    let observed =
        Observed { reads: row.observed_reads.clone(), writes: row.observed_writes.clone(), failed: row.failed };
    graph.observe(&row.id, &observed).map_err(refused)?;
    if !row.stale {
        graph.mark_fresh(&row.id).map_err(refused)?;
    }
    Ok(last_good.map(Into::into))
}

/// Why a step's source cannot be read, if it cannot.
pub(super) fn syntax_failure(node: &Node) -> Option<Failure> {
    let NodeState::Broken(error) = &node.state else { return None };
    Some(Failure {
        kind: "SyntaxError".to_owned(),
        message: error.message.clone(),
        line: Some(error.line),
        column: Some(error.column),
        traceback: String::new(),
    })
}

/// A refusal of the graph in the words of the outside.
pub(super) fn refused(error: graph::GraphError) -> GraphError {
    match error {
        graph::GraphError::UnknownStep { id } => GraphError::UnknownStep(id.to_string()),
        other => GraphError::Invalid(other.to_string()),
    }
}
