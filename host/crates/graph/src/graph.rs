//! The graph: steps in insertion order, their dependencies, and the stale steps.
//!
//! Inferred edges are not stored. An index holds, for each name, the positions of the steps that read, write or settle
//! it; edges, ancestors, descendants and the stale steps after a change are walks over it, which cost in proportion to
//! the steps that they meet. So a change of one step touches only the names of that step.

mod closure;
mod edge;
mod edges;
mod error;
mod index;
mod many;
mod marks;
mod node;
mod nodes;
mod places;
mod proofs;
mod variables;

use crate::analysis::{NameUse, StepLanguage, VariableName};
use foldhash::fast::RandomState;
use index::Index;
use marks::Marks;
use node::Analysed;
use nodes::Nodes;
use places::Place;
use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};
use std::fmt;
use std::sync::Arc;

pub use edge::{Edge, MissedEdge};
pub use error::StepGraphError;
pub use node::{Node, NodeState, Observed, StepId};
pub use variables::Variables;

/// Most steps of one graph: 100,000.
///
/// Adding one more is [`StepGraphError::TooManySteps`].
pub const STEPS_MAX: usize = 100_000;

/// Most requested edges against insertion order: 1,000.
///
/// Each is checked for a cycle after every change. Edges along insertion order have no cap.
pub const BACKWARD_EDGES_MAX: usize = 1_000;

/// Most missed edges in one result of [`Graph::observe`]: 1,000. It accepts any number of names.
pub const MISSED_EDGES_MAX: usize = 1_000;

/// Steps in insertion order and their dependencies.
#[derive(Clone)]
pub struct Graph {
    language: Arc<dyn StepLanguage>,
    nodes: Nodes,
    places: Positions,
    index: Index,
    asked: RequestedEdges,
    stale: Marks,
}

/// The positions of steps.
type Positions = HashMap<StepId, Place, RandomState>;

/// The requested edges.
#[derive(Clone, Debug, Default)]
struct RequestedEdges {
    into: BTreeMap<Place, BTreeMap<Place, BTreeSet<VariableName>>>,
    out: BTreeMap<Place, BTreeSet<Place>>,
    /// The edges against insertion order: (from, to).
    backward: BTreeSet<(Place, Place)>,
}

impl Graph {
    /// An empty graph of steps in this language.
    #[must_use]
    pub fn new(language: Arc<dyn StepLanguage>) -> Self {
        Self {
            language,
            nodes: Nodes::default(),
            places: HashMap::default(),
            index: Index::default(),
            asked: RequestedEdges::default(),
            stale: Marks::default(),
        }
    }

    /// The language of its steps.
    #[must_use]
    pub fn language(&self) -> &Arc<dyn StepLanguage> {
        &self.language
    }

    /// Adds a step at the end. It is stale, since it never ran.
    ///
    /// # Errors
    /// [`StepGraphError::DuplicateStep`] and [`StepGraphError::TooManySteps`]; nothing is changed then.
    pub fn add_step(&mut self, id: StepId, source: String) -> Result<(), StepGraphError> {
        let place = self.nodes.next();
        give(&mut self.places, &id, place)?;
        let analysed = Analysed::new(&*self.language, source, None);
        take_in(&mut self.index, &mut self.stale, &mut self.nodes, Arc::new(Node::new(id, place, analysed)));
        Ok(())
    }

    /// Adds steps at the end, as [`Graph::add_step`] would one after another; the sources of many steps are analysed on
    /// all cores.
    ///
    /// # Errors
    /// The first error that [`Graph::add_step`] would meet; nothing is changed then, and no step is added.
    pub fn add_steps(&mut self, steps: impl IntoIterator<Item = (StepId, String)>) -> Result<(), StepGraphError> {
        let Self { language, nodes, places, index, stale, .. } = self;
        let (first, steps) = (nodes.next(), steps.into_iter());
        let count = steps.size_hint().0.min(STEPS_MAX);
        places.reserve(count);
        index.reserve(count);
        nodes.reserve(count);
        let take = |node| take_in(index, stale, nodes, node);
        let added = many::analysed(language, first, steps, |id, place| give(places, id, place), take);
        if added.is_err() {
            places.retain(|_, place| *place < first);
        }
        added
    }

    /// Gives a step another source. Returns the steps that became stale because of it, in replay order; none when the
    /// source is unchanged.
    ///
    /// Observations from runs of the old source are forgotten.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`]; [`StepGraphError::Cycle`] when a name that it now reads or writes closes one
    /// with a requested edge. Nothing is changed then.
    pub fn change_step(&mut self, id: &StepId, source: String) -> Result<Vec<StepId>, StepGraphError> {
        let place = self.place(id)?;
        let node = &self.nodes[place];
        if node.source == source {
            return Ok(Vec::new());
        }
        let Analysed { source, state, analysis } = Analysed::new(&*self.language, source, Some(&node.analysis));
        let last_good = match (&state, &node.state) {
            (NodeState::Parsed, _) => None,
            (NodeState::Broken(_), NodeState::Parsed) => Some(node.source.as_str().into()),
            (NodeState::Broken(_), NodeState::Broken(_)) => node.last_good.clone(),
        };
        let (id, position) = (node.id.clone(), node.position);
        let node = Node { id, source, position, state, last_good, analysis, seen: None };
        let mut touched = self.dependants(place);
        let before = self.put(node);
        if let Some(cycle) = self.cycle() {
            self.put(before);
            return Err(cycle);
        }
        touched.extend(self.dependants(place));
        touched.sort_unstable();
        touched.dedup();
        self.stale.extend(&touched);
        Ok(self.ordered(&touched))
    }

    /// Removes a step. Returns the steps that became stale because of it, in replay order.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`] and, as for [`Graph::change_step`], [`StepGraphError::Cycle`].
    pub fn remove_step(&mut self, id: &StepId) -> Result<Vec<StepId>, StepGraphError> {
        let place = self.place(id)?;
        let mut touched = self.dependants(place);
        touched.retain(|one| *one != place);
        let kept = self.asked.clone();
        self.index.remove(&self.nodes[place]);
        self.asked.forget(place);
        self.prove_again();
        if let Some(cycle) = self.cycle() {
            self.asked = kept;
            self.index.insert(&self.nodes[place]);
            self.prove_again();
            return Err(cycle);
        }
        self.nodes.remove(place);
        self.places.remove(id);
        self.stale.remove(place);
        if !touched.is_empty() {
            // Proofs about them may have ended with the step.
            touched = self.dependants_of(touched.into_iter().collect());
        }
        self.stale.extend(&touched);
        Ok(self.ordered(&touched))
    }

    /// Adds a requested edge; `variables` may be empty. An existing edge gains the names.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`], [`StepGraphError::Cycle`] and [`StepGraphError::TooManyBackwardEdges`]; nothing
    /// is changed then.
    pub fn add_edge(
        &mut self,
        from: &StepId,
        to: &StepId,
        variables: BTreeSet<VariableName>,
    ) -> Result<(), StepGraphError> {
        let (start, end) = (self.place(from)?, self.place(to)?);
        let along = start < end && self.asked.backward.is_empty();
        if start > end {
            // A proof that ends later must not close a cycle with this edge.
            self.index.turn_proofs_off(true);
            self.settle_proofs();
        }
        if !along && places::contains(&self.dependants(end), start) {
            self.prove_again();
            return Err(StepGraphError::Cycle { from: from.clone(), to: to.clone() });
        }
        if start > end && self.asked.backward.len() >= BACKWARD_EDGES_MAX {
            return Err(StepGraphError::TooManyBackwardEdges { edges_max: BACKWARD_EDGES_MAX });
        }
        self.asked.add(start, end, variables);
        Ok(())
    }

    /// Takes in the observations from a run of a step, and returns the dependencies that analysis missed, the first
    /// [`MISSED_EDGES_MAX`] of them.
    ///
    /// After a run that raised, the step's writes are uncertain, until a run does not raise. No step becomes stale: the
    /// runner of the steps knows the changes. Names that would close a cycle with a requested edge are left out.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`]; nothing is changed then.
    pub fn observe(&mut self, id: &StepId, observed: &Observed) -> Result<Vec<MissedEdge>, StepGraphError> {
        let place = self.place(id)?;
        let node = &self.nodes[place];
        let reads: BTreeSet<VariableName> =
            observed.reads.iter().filter(|name| !self.index.reads(place, name)).cloned().collect();
        let writes: BTreeSet<VariableName> =
            observed.writes.iter().filter(|name| !self.index.changes(place, name)).cloned().collect();
        let mut seen = Observed { failed: observed.failed, ..node.observed().clone() };
        seen.reads.extend(reads.iter().cloned());
        // A change that only the absence of a proof predicts is noted as well: there may be a proof later.
        let known = |name: &VariableName| node.analysis.of(name).is_some_and(NameUse::is_changed_for_certain);
        let noted = observed.writes.iter().filter(|name| node.analysis.sees_all().is_none() && !known(name));
        seen.writes.extend(noted.cloned());
        if seen == *node.observed() {
            return Ok(Vec::new());
        }
        let before = self.put(Node { seen: Some(Arc::new(seen)), ..node.clone() });
        if self.cycle().is_some() {
            self.put(before);
            return Ok(Vec::new());
        }
        Ok(self.missed(place, &reads, &writes))
    }

    /// The number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True without steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 0
    }

    /// The steps in insertion order.
    pub fn steps(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// One step.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn node(&self, id: &StepId) -> Result<&Node, StepGraphError> {
        Ok(&self.nodes[self.place(id)?])
    }

    /// The step at a position, if there is one.
    #[must_use]
    pub fn at(&self, position: u64) -> Option<&Node> {
        self.nodes.get(position)
    }

    /// The steps that a step depends on, directly or not, in insertion order; with `variables`, only the dependencies
    /// of those of its reads, and requested edges without names.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn ancestors(
        &self,
        id: &StepId,
        variables: Option<&BTreeSet<VariableName>>,
    ) -> Result<Vec<StepId>, StepGraphError> {
        let found = self.dependencies(self.place(id)?, variables);
        Ok(self.named(&found))
    }

    /// The steps that depend on a step, directly or not, in insertion order, without the step.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn descendants(&self, id: &StepId) -> Result<Vec<StepId>, StepGraphError> {
        let place = self.place(id)?;
        let mut found = self.dependants(place);
        found.retain(|one| *one != place);
        Ok(self.named(&found))
    }

    /// The names whose values later steps may see changed by a step.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn changed_by(&self, id: &StepId) -> Result<BTreeSet<VariableName>, StepGraphError> {
        let uses = self.index.uses(self.place(id)?);
        let changed = uses.names.iter().filter(|(_, one)| one.changes);
        Ok(changed.map(|(symbol, _)| self.index.name(*symbol).clone()).collect())
    }

    /// A step and the steps that depend on it, in insertion order.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn subgraph_from(&self, id: &StepId) -> Result<Vec<StepId>, StepGraphError> {
        Ok(self.named(&self.dependants(self.place(id)?)))
    }

    /// A step and the steps that depend on it, in replay order: dependencies first, ties in insertion order.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn replay_from(&self, id: &StepId) -> Result<Vec<StepId>, StepGraphError> {
        Ok(self.ordered(&self.dependants(self.place(id)?)))
    }

    /// Marks a step and the steps that depend on it stale, and returns them in insertion order.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn mark_stale(&mut self, id: &StepId) -> Result<Vec<StepId>, StepGraphError> {
        let found = self.dependants(self.place(id)?);
        self.stale.extend(&found);
        Ok(self.named(&found))
    }

    /// Marks only this one step stale.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn mark_stale_alone(&mut self, id: &StepId) -> Result<(), StepGraphError> {
        let place = self.place(id)?;
        self.stale.insert(place);
        Ok(())
    }

    /// Marks one step fresh.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn mark_fresh(&mut self, id: &StepId) -> Result<(), StepGraphError> {
        let place = self.place(id)?;
        self.stale.remove(place);
        Ok(())
    }

    /// The stale steps in replay order.
    #[must_use]
    pub fn stale(&self) -> Vec<StepId> {
        self.ordered(&self.stale.iter().collect::<Vec<_>>())
    }

    /// True when a step is stale.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn is_stale(&self, id: &StepId) -> Result<bool, StepGraphError> {
        Ok(self.stale.contains(self.place(id)?))
    }

    fn place(&self, id: &StepId) -> Result<Place, StepGraphError> {
        self.places.get(id).copied().ok_or_else(|| StepGraphError::UnknownStep { id: id.clone() })
    }

    /// Replaces the node at its position, and returns the old one.
    fn put(&mut self, node: impl Into<Arc<Node>>) -> Arc<Node> {
        let node = node.into();
        self.index.remove(&self.nodes[node.position]);
        self.index.insert(&node);
        let before = self.nodes.replace(node);
        self.settle_proofs();
        before
    }

    /// Proves what can be proved with the requested edges that there are.
    fn prove_again(&mut self) {
        self.index.turn_proofs_off(!self.asked.backward.is_empty());
        self.settle_proofs();
    }

    /// Looks again at the proofs that a change may have ended or made.
    fn settle_proofs(&mut self) {
        settle_proofs(&mut self.index, &self.nodes);
    }

    fn named<'p>(&self, places: impl IntoIterator<Item = &'p Place>) -> Vec<StepId> {
        let places = places.into_iter();
        let mut ids = Vec::with_capacity(places.size_hint().0);
        ids.extend(places.filter_map(|place| self.nodes.get(*place)).map(|node| node.id.clone()));
        ids
    }
}

/// Assigns a new step its position.
fn give(places: &mut Positions, id: &StepId, place: Place) -> Result<(), StepGraphError> {
    let count = places.len();
    match places.entry(id.clone()) {
        hash_map::Entry::Occupied(_) => Err(StepGraphError::DuplicateStep { id: id.clone() }),
        hash_map::Entry::Vacant(_) if count >= STEPS_MAX => Err(StepGraphError::TooManySteps { steps_max: STEPS_MAX }),
        hash_map::Entry::Vacant(free) => {
            free.insert(place);
            Ok(())
        }
    }
}

/// Takes in a step that has the next position, and never ran.
fn take_in(index: &mut Index, stale: &mut Marks, nodes: &mut Nodes, node: Arc<Node>) {
    index.insert(&node);
    stale.insert(node.position);
    nodes.push(node);
    settle_proofs(index, nodes);
}

fn settle_proofs(index: &mut Index, nodes: &Nodes) {
    for place in index.take_due() {
        if let Some(node) = nodes.get(place) {
            index.prove_again(node);
        }
    }
}

impl RequestedEdges {
    fn add(&mut self, from: Place, to: Place, variables: BTreeSet<VariableName>) {
        self.into.entry(to).or_default().entry(from).or_default().extend(variables);
        self.out.entry(from).or_default().insert(to);
        if from > to {
            self.backward.insert((from, to));
        }
    }

    fn forget(&mut self, place: Place) {
        for from in self.into.remove(&place).unwrap_or_default().into_keys() {
            self.out.entry(from).or_default().remove(&place);
        }
        for to in self.out.remove(&place).unwrap_or_default() {
            self.into.entry(to).or_default().remove(&place);
        }
        self.backward.retain(|(from, to)| *from != place && *to != place);
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} steps of {}, {} stale)", self.nodes.len(), self.language.name(), self.stale.len())
    }
}
