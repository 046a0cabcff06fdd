//! Edges, made from the index as they are asked for.

use super::index::{Place, Symbol};
use super::{Edge, Graph, GraphError, MISSED_EDGES_MAX, MissedEdge, Node, NodeState, StepId};
use crate::analysis::{Name, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// What stands for all names in an edge between two steps that may read and write any.
const ALL: &str = "*";

/// The edges of one step, by the other end.
type Ends = BTreeMap<Place, BTreeSet<Name>>;

impl Graph {
    /// All edges, made as they are asked for: by the step that depends, in insertion order.
    ///
    /// A list that every step appends to has as many edges as pairs of steps, so take no more than is needed.
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        self.nodes.keys().flat_map(|place| self.edges_to(*place))
    }

    /// The two ends of every edge, in the order of [`Graph::edges`], without what it is about.
    pub fn links(&self) -> impl Iterator<Item = (&StepId, &StepId)> {
        self.nodes.iter().flat_map(move |(place, node)| {
            self.starts(*place).into_iter().map(move |from| (&self.nodes[&from].id, &node.id))
        })
    }

    /// The edges that end at a step, by position of where they start.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn edges_into(&self, id: &StepId) -> Result<Vec<Edge>, GraphError> {
        Ok(self.edges_to(self.place(id)?))
    }

    /// The edges that end at a step from the nearest `most` steps of each name, the nearest last, and whether there are
    /// more.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn nearest_edges_into(&self, id: &StepId, most: usize) -> Result<(Vec<Edge>, bool), GraphError> {
        let to = self.place(id)?;
        let (mut ends, mut more, uses) = (Ends::new(), false, self.index.uses(to));
        for (symbol, _) in uses.names.iter().filter(|(_, one)| one.reads) {
            more |= self.writers_before(to, *symbol, Some(most), &mut ends);
        }
        if uses.reads_all {
            for from in self.nodes.range(..to).map(|(place, _)| place).rev().take(most) {
                ends.entry(*from).or_default().insert(ALL.into());
            }
            more |= to > most as Place;
        }
        for (from, _) in self.asked.into.get(&to).into_iter().flatten().take(most) {
            ends.entry(*from).or_default();
        }
        more |= ends.len() > most;
        let last = ends.into_iter().rev().take(most).collect::<Vec<_>>().into_iter().rev();
        Ok((last.map(|(from, names)| self.edge(from, to, names)).collect(), more))
    }

    /// The edges that start at a step, by position of where they end.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn edges_out(&self, id: &StepId) -> Result<Vec<Edge>, GraphError> {
        let from = self.place(id)?;
        let mut ends = self.readers(from);
        for to in self.asked.out.get(&from).into_iter().flatten() {
            ends.entry(*to).or_default();
        }
        Ok(ends.into_iter().map(|(to, names)| self.edge(from, to, names)).collect())
    }

    /// The steps after this one that read one of these names and may see what this one left in it, in insertion order.
    ///
    /// # Errors
    /// [`GraphError::UnknownStep`].
    pub fn readers_of(&self, id: &StepId, names: &BTreeSet<Name>) -> Result<Vec<StepId>, GraphError> {
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

    fn edges_to(&self, to: Place) -> Vec<Edge> {
        let mut ends = self.writers(to);
        for from in self.asked.into.get(&to).into_iter().flat_map(BTreeMap::keys) {
            ends.entry(*from).or_default();
        }
        ends.into_iter().map(|(from, names)| self.edge(from, to, names)).collect()
    }

    /// Where the edges that end at a step start, by position.
    pub(super) fn starts(&self, to: Place) -> Vec<Place> {
        let uses = self.index.uses(to);
        if uses.reads_all {
            let asked = self.asked.into.get(&to).into_iter().flat_map(BTreeMap::keys).copied();
            return self.writers(to).into_keys().chain(asked).collect::<BTreeSet<_>>().into_iter().collect();
        }
        let mut starts: Vec<Place> = Vec::new();
        for (symbol, _) in uses.names.iter().filter(|(_, one)| one.reads) {
            let mut reached = 0;
            for (place, settles) in self.index.users(*symbol).writers.range(..to).rev() {
                starts.push(*place);
                if *settles {
                    reached = *place;
                    break;
                }
            }
            starts.extend(self.index.changing_all.range(reached..to));
        }
        starts.extend(self.asked.into.get(&to).into_iter().flat_map(BTreeMap::keys));
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// The steps whose changes a step may see, each with the names.
    fn writers(&self, to: Place) -> Ends {
        let (mut ends, uses) = (Ends::new(), self.index.uses(to));
        if uses.reads_all {
            for symbol in self.index.symbols() {
                self.naming_writers_before(to, symbol, usize::MAX, &mut ends);
            }
            for from in self.index.changing_all.range(..to) {
                ends.entry(*from).or_default().insert(ALL.into());
            }
        } else {
            for (symbol, _) in uses.names.iter().filter(|(_, one)| one.reads) {
                self.writers_before(to, *symbol, None, &mut ends);
            }
        }
        ends
    }

    /// Walks back from a reader to the first step that settles the name, or over `most` that change it. True when it
    /// went not all the way.
    fn writers_before(&self, to: Place, symbol: Symbol, most: Option<usize>, ends: &mut Ends) -> bool {
        let most = most.unwrap_or(usize::MAX);
        let Some(reached) = self.naming_writers_before(to, symbol, most, ends) else { return true };
        for (count, from) in self.index.changing_all.range(reached..to).rev().enumerate() {
            if count == most {
                return true;
            }
            ends.entry(*from).or_default().insert(self.index.name(symbol).clone());
        }
        false
    }

    /// The same among those that name it; where it came to an end.
    fn naming_writers_before(&self, to: Place, symbol: Symbol, most: usize, ends: &mut Ends) -> Option<Place> {
        for (count, (place, settles)) in self.index.users(symbol).writers.range(..to).rev().enumerate() {
            if count == most {
                return None;
            }
            ends.entry(*place).or_default().insert(self.index.name(symbol).clone());
            if *settles {
                return Some(*place);
            }
        }
        Some(0)
    }

    /// The steps that may see what a step changes, each with the names.
    fn readers(&self, from: Place) -> Ends {
        let (mut ends, uses) = (Ends::new(), self.index.uses(from));
        let changed: Vec<Symbol> = if uses.changes_all {
            self.index.symbols().collect()
        } else {
            uses.names.iter().filter(|(_, one)| one.changes).map(|(symbol, _)| *symbol).collect()
        };
        for symbol in changed {
            for place in self.readers_after(from, symbol) {
                ends.entry(place).or_default().insert(self.index.name(symbol).clone());
            }
            let (own, settled) = (self.changes_itself(from, symbol), self.settled_after(from, symbol));
            if own {
                for to in self.index.reading_all.range(from + 1..=settled) {
                    ends.entry(*to).or_default().insert(self.index.name(symbol).clone());
                }
            }
        }
        if uses.changes_all {
            for to in self.index.reading_all.range(from + 1..) {
                ends.entry(*to).or_default().insert(ALL.into());
            }
        }
        ends
    }

    fn readers_after(&self, from: Place, symbol: Symbol) -> impl Iterator<Item = Place> {
        let settled = self.settled_after(from, symbol);
        self.index.users(symbol).readers.range(from + 1..=settled).copied()
    }

    /// The first step after this one that settles the name.
    fn settled_after(&self, from: Place, symbol: Symbol) -> Place {
        let mut writers = self.index.users(symbol).writers.range(from + 1..);
        writers.find(|(_, settles)| **settles).map_or(Place::MAX - 1, |(place, _)| *place)
    }

    fn changes_itself(&self, place: Place, symbol: Symbol) -> bool {
        self.index.users(symbol).writers.contains_key(&place)
    }

    fn edge(&self, from: Place, to: Place, names: BTreeSet<Name>) -> Edge {
        let (writer, reader) = (&self.nodes[&from], &self.nodes[&to]);
        let observed = names.iter().any(|name| {
            reader.observed_reads.contains(name) || (writer.observed_writes.contains(name) && !predicted(writer, name))
        });
        let mut variables: BTreeMap<Name, Reason> =
            names.into_iter().map(|name| (name.clone(), reason(writer, &name))).collect();
        let asked = self.asked.into.get(&to).and_then(|into| into.get(&from));
        for name in asked.into_iter().flatten() {
            variables.entry(name.clone()).or_insert(Reason::Explicit);
        }
        Edge { from: writer.id.clone(), to: reader.id.clone(), variables, observed, explicit: asked.is_some() }
    }

    /// The edges that these names, read and changed against expectation, make.
    pub(super) fn missed(&self, place: Place, reads: &BTreeSet<Name>, writes: &BTreeSet<Name>) -> Vec<MissedEdge> {
        let mut found = Vec::new();
        for name in reads {
            let mut ends = Ends::new();
            if let Some(symbol) = self.index.symbol(name) {
                self.writers_before(place, symbol, None, &mut ends);
            }
            found.extend(ends.into_keys().map(|from| (from, place, name)));
        }
        for name in writes {
            if let Some(symbol) = self.index.symbol(name) {
                found.extend(self.readers_after(place, symbol).map(|to| (place, to, name)));
            }
        }
        let id = |place: Place| self.nodes[&place].id.clone();
        let edges = found.into_iter().take(MISSED_EDGES_MAX);
        edges.map(|(from, to, name)| MissedEdge { from: id(from), to: id(to), variable: name.clone() }).collect()
    }
}

fn predicted(writer: &Node, name: &Name) -> bool {
    let analysis = &writer.analysis;
    analysis.writes.contains(name) || analysis.mutates.contains_key(name) || analysis.deletes.contains(name)
}

/// Why a step matters to who reads the name after it.
fn reason(writer: &Node, name: &Name) -> Reason {
    let analysis = &writer.analysis;
    if analysis.writes.contains(name) {
        return Reason::Written;
    }
    if analysis.deletes.contains(name) {
        return Reason::Deleted;
    }
    let all = || analysis.sees_all.clone().filter(|_| writer.state == NodeState::Parsed);
    analysis.mutates.get(name).cloned().or_else(all).unwrap_or(Reason::Observed)
}
