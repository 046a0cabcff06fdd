//! Edges, made from the index on request.

use super::edge::{Edge, MissedEdge};
use super::error::StepGraphError;
use super::index::Symbol;
use super::node::{Node, NodeState, StepId};
use super::places::Place;
use super::variables::Variables;
use super::{Graph, MISSED_EDGES_MAX};
use crate::analysis::{NameUse, Reason, VariableName};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::from_fn;

/// The name that represents all names in an edge between two steps that may read and write any.
const ALL: &str = "*";

/// The other ends of one step's edges, each with a subject of the edge; in any order, and repeated, until they are
/// [`sorted`].
type Ends = Vec<(Place, About)>;

/// The subject of an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum About {
    /// It was requested.
    Asked,
    /// Any name.
    All,
    /// This name.
    Name(Symbol),
}

/// A walk over the edges that end at these steps, each with its end and all subjects, by start.
struct Incoming<'g, N> {
    graph: &'g Graph,
    nodes: N,
    to: Place,
    /// The ends of one step after another, so that the list is allocated once.
    ends: Ends,
    passed: usize,
}

impl Graph {
    /// All edges, made on request: by the depending step, in insertion order.
    ///
    /// A list that every step appends to has as many edges as pairs of steps, so take no more than is needed.
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        let mut incoming = Incoming::new(self, self.nodes.iter());
        from_fn(move || incoming.next().map(|(to, about)| self.edge(about[0].0, to, about)))
    }

    /// The two ends of every edge, in the order of [`Graph::edges`], without their names.
    pub fn links(&self) -> impl Iterator<Item = (&StepId, &StepId)> {
        let mut incoming = Incoming::new(self, self.nodes.iter());
        from_fn(move || incoming.next().map(|(to, about)| (&self.nodes[about[0].0].id, &self.nodes[to].id)))
    }

    /// The edges that end at a step, by position of their starts.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn edges_into(&self, id: &StepId) -> Result<Vec<Edge>, StepGraphError> {
        let to = self.place(id)?;
        Ok(self.ends_of(to).chunk_by(same_end).map(|about| self.edge(about[0].0, to, about)).collect())
    }

    /// The edges that end at a step from the nearest `most` steps of each name, the nearest last, and whether there are
    /// more.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn nearest_edges_into(&self, id: &StepId, most: usize) -> Result<(Vec<Edge>, bool), StepGraphError> {
        let to = self.place(id)?;
        let (mut ends, mut more, uses) = (Ends::new(), false, self.index.uses(to));
        for (symbol, _) in uses.names.iter().filter(|(_, one)| one.reads) {
            more |= self.writers_before(to, *symbol, Some(most), &mut ends);
        }
        if uses.reads_all {
            ends.extend(self.nodes.before(to).take(most).map(|node| (node.position, About::All)));
            more |= to > most as Place;
        }
        ends.extend(self.starts_asked(to).take(most).map(|from| (from, About::Asked)));
        sorted(&mut ends);
        let edges = ends.chunk_by(same_end);
        let count = edges.clone().count();
        let nearest = edges.skip(count.saturating_sub(most)).map(|about| self.edge(about[0].0, to, about));
        Ok((nearest.collect(), more || count > most))
    }

    /// The edges that start at a step, by position of their ends.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn edges_out(&self, id: &StepId) -> Result<Vec<Edge>, StepGraphError> {
        let from = self.place(id)?;
        let mut ends = self.readers(from);
        ends.extend(self.asked.out.get(&from).into_iter().flatten().map(|to| (*to, About::Asked)));
        sorted(&mut ends);
        Ok(ends.chunk_by(same_end).map(|about| self.edge(from, about[0].0, about)).collect())
    }

    /// The later steps that read one of these names and may see this step's value of it, in insertion order.
    ///
    /// # Errors
    /// [`StepGraphError::UnknownStep`].
    pub fn readers_of(&self, id: &StepId, names: &BTreeSet<VariableName>) -> Result<Vec<StepId>, StepGraphError> {
        let from = self.place(id)?;
        let mut found = BTreeSet::new();
        for symbol in names.iter().filter_map(|name| self.index.symbol(name)) {
            found.extend(self.readers_after(from, symbol));
        }
        if !names.is_empty() {
            found.extend(self.index.reading_all.range(from + 1..));
        }
        Ok(self.named(&found))
    }

    fn starts_asked(&self, to: Place) -> impl Iterator<Item = Place> {
        self.asked.into.get(&to).into_iter().flat_map(BTreeMap::keys).copied()
    }

    /// The starts of the edges that end at a step, by position.
    pub(super) fn starts(&self, to: Place) -> impl Iterator<Item = Place> {
        let mut ends = self.ends_of(to);
        ends.dedup_by_key(|(from, _)| *from);
        ends.into_iter().map(|(from, _)| from)
    }

    /// The starts of the edges that end at a step, each with all subjects, by position.
    fn ends_of(&self, to: Place) -> Ends {
        let mut ends = Ends::new();
        self.fill_ends_of(to, &mut ends);
        ends
    }

    /// The same, into an empty list.
    fn fill_ends_of(&self, to: Place, ends: &mut Ends) {
        self.writers(to, ends);
        ends.extend(self.starts_asked(to).map(|from| (from, About::Asked)));
        sorted(ends);
    }

    /// The steps whose changes a step may see, each with the names.
    fn writers(&self, to: Place, ends: &mut Ends) {
        let uses = self.index.uses(to);
        if uses.reads_all {
            for symbol in self.index.symbols() {
                self.naming_writers_before(to, symbol, usize::MAX, ends);
            }
            ends.extend(self.index.changing_all.range(..to).map(|from| (*from, About::All)));
        } else {
            for (symbol, _) in uses.names.iter().filter(|(_, one)| one.reads) {
                self.writers_before(to, *symbol, None, ends);
            }
        }
    }

    /// Walks back from a reader to the first step that settles the name, or over `most` steps that change it. True when
    /// it stopped early.
    fn writers_before(&self, to: Place, symbol: Symbol, most: Option<usize>, ends: &mut Ends) -> bool {
        let most = most.unwrap_or(usize::MAX);
        let Some(reached) = self.naming_writers_before(to, symbol, most, ends) else { return true };
        for (count, from) in self.index.changing_all.range(reached..to).rev().enumerate() {
            if count == most {
                return true;
            }
            ends.push((*from, About::Name(symbol)));
        }
        false
    }

    /// The same among the steps that name it; returns the place where it stopped.
    fn naming_writers_before(&self, to: Place, symbol: Symbol, most: usize, ends: &mut Ends) -> Option<Place> {
        for (count, (place, settles)) in self.index.users(symbol).writers.before(to).iter().rev().enumerate() {
            if count == most {
                return None;
            }
            ends.push((*place, About::Name(symbol)));
            if *settles {
                return Some(*place);
            }
        }
        Some(0)
    }

    /// The steps that may see a step's changes, each with the names.
    fn readers(&self, from: Place) -> Ends {
        let (mut ends, uses) = (Ends::new(), self.index.uses(from));
        let changed: Vec<Symbol> = if uses.changes_all {
            self.index.symbols().collect()
        } else {
            uses.names.iter().filter(|(_, one)| one.changes).map(|(symbol, _)| *symbol).collect()
        };
        for symbol in changed {
            ends.extend(self.readers_after(from, symbol).map(|place| (place, About::Name(symbol))));
            if uses.of(symbol).changes {
                let seeing = self.index.reading_all.range(from + 1..=self.settled_after(from, symbol));
                ends.extend(seeing.map(|to| (*to, About::Name(symbol))));
            }
        }
        if uses.changes_all {
            ends.extend(self.index.reading_all.range(from + 1..).map(|to| (*to, About::All)));
        }
        ends
    }

    fn readers_after(&self, from: Place, symbol: Symbol) -> impl Iterator<Item = Place> {
        let settled = self.settled_after(from, symbol);
        let readers = self.index.users(symbol).readers.after(from).iter().map(|(place, ())| *place);
        readers.take_while(move |place| *place <= settled)
    }

    /// The first step after this one that settles the name.
    fn settled_after(&self, from: Place, symbol: Symbol) -> Place {
        let mut writers = self.index.users(symbol).writers.after(from).iter();
        writers.find(|(_, settles)| *settles).map_or(Place::MAX - 1, |(place, _)| *place)
    }

    /// The edge between two steps, with all subjects.
    fn edge(&self, from: Place, to: Place, about: &[(Place, About)]) -> Edge {
        let (writer, reader) = (&self.nodes[from], &self.nodes[to]);
        let (from, to) = (writer.id.clone(), reader.id.clone());
        let asked = self.asked.into.get(&reader.position).and_then(|into| into.get(&writer.position));
        if let ([(_, About::Name(symbol))], None) = (about, asked) {
            let name = self.index.name(*symbol);
            let variables = Variables::one(name.clone(), self.reason(writer, name));
            return Edge { from, to, variables, observed: self.is_observed(writer, reader, name), explicit: false };
        }
        let named = |about: &About| match about {
            About::Asked => None,
            About::All => Some(ALL.into()),
            About::Name(symbol) => Some(self.index.name(*symbol).clone()),
        };
        let named = about.iter().filter_map(|(_, about)| named(about));
        let mut variables: Vec<(VariableName, Reason)> =
            named.map(|name| (name.clone(), self.reason(writer, &name))).collect();
        let observed = variables.iter().any(|(name, _)| self.is_observed(writer, reader, name));
        variables.extend(asked.into_iter().flatten().map(|name| (name.clone(), Reason::Explicit)));
        Edge { from, to, variables: Variables::first_of_each(variables), observed, explicit: asked.is_some() }
    }

    /// True when analysis missed this name between two steps and a run showed it.
    fn is_observed(&self, writer: &Node, reader: &Node, name: &VariableName) -> bool {
        let is_predicted = || writer.analysis.of(name).is_some_and(NameUse::is_changed) && !self.is_left(writer, name);
        reader.observed().reads.contains(name) || (writer.observed().writes.contains(name) && !is_predicted())
    }

    /// True when the steps together prove that this one leaves the value of a name as it is.
    fn is_left(&self, node: &Node, name: &VariableName) -> bool {
        self.index.symbol(name).is_some_and(|symbol| self.index.uses(node.position).of(symbol).is_left)
    }

    /// The reason why a step matters to later readers of the name.
    fn reason(&self, writer: &Node, name: &VariableName) -> Reason {
        let known = writer.analysis.of(name);
        if known.is_some_and(|known| known.written) {
            return Reason::Written;
        }
        if known.is_some_and(|known| known.deleted) {
            return Reason::Deleted;
        }
        let mutated = known.and_then(|known| known.mutated.as_deref().cloned()).filter(|_| !self.is_left(writer, name));
        let all = || writer.analysis.sees_all().cloned().filter(|_| writer.state == NodeState::Parsed);
        mutated.or_else(all).unwrap_or(Reason::Observed)
    }

    /// The edges from names that were read and changed unexpectedly.
    pub(super) fn missed(
        &self,
        place: Place,
        reads: &BTreeSet<VariableName>,
        writes: &BTreeSet<VariableName>,
    ) -> Vec<MissedEdge> {
        let mut found = Vec::new();
        for name in reads {
            let mut ends = Ends::new();
            if let Some(symbol) = self.index.symbol(name) {
                self.writers_before(place, symbol, None, &mut ends);
            }
            sorted(&mut ends);
            found.extend(ends.into_iter().map(|(from, _)| (from, place, name)));
        }
        for name in writes {
            if let Some(symbol) = self.index.symbol(name) {
                found.extend(self.readers_after(place, symbol).map(|to| (place, to, name)));
            }
        }
        let id = |place: Place| self.nodes[place].id.clone();
        let edges = found.into_iter().take(MISSED_EDGES_MAX);
        edges.map(|(from, to, name)| MissedEdge { from: id(from), to: id(to), variable: name.clone() }).collect()
    }
}

impl<'g, N: Iterator<Item = &'g Node>> Incoming<'g, N> {
    fn new(graph: &'g Graph, nodes: N) -> Self {
        Self { graph, nodes, to: 0, ends: Ends::new(), passed: 0 }
    }

    fn next(&mut self) -> Option<(Place, &[(Place, About)])> {
        while self.passed == self.ends.len() {
            (self.to, self.passed) = (self.nodes.next()?.position, 0);
            self.ends.clear();
            self.graph.fill_ends_of(self.to, &mut self.ends);
        }
        let about = self.ends[self.passed..].chunk_by(same_end).next()?;
        self.passed += about.len();
        Some((self.to, about))
    }
}

/// Sorts the edges by their other end, with each subject once.
fn sorted(ends: &mut Ends) {
    ends.sort_unstable();
    ends.dedup();
}

fn same_end(one: &(Place, About), next: &(Place, About)) -> bool {
    one.0 == next.0
}
