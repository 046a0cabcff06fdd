//! The dependents and dependencies of a step, directly or not, and the order of steps.
//!
//! Both walks follow the positions and carry the relevant names, so that they cost in proportion to the uses that they
//! pass and not to the edges between them, of which there may be as many as pairs of steps. Inferred edges go from
//! earlier to later; a requested edge that goes back starts the walk again from its end.
//!
//! The numbers of names are our own, so a fast hash without a secret is safe for them.

use super::Graph;
use super::error::StepGraphError;
use super::index::{Symbol, Use, Uses};
use super::marks::Marks;
use super::node::StepId;
use super::places::{Place, contains};
use crate::analysis::VariableName;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Bound::{Excluded, Unbounded};

/// The next stop of a walk back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A step that is the target of an edge.
    Seed,
    /// A step that uses this name.
    Uses(Symbol),
    /// A step that may use any name.
    All,
    /// Any step, since any name matters.
    Any,
}

impl Graph {
    /// A step and the steps that depend on it, in insertion order.
    pub(super) fn dependants(&self, place: Place) -> Vec<Place> {
        self.dependants_of(BTreeSet::from([place]))
    }

    /// These steps and those that depend on them, in insertion order.
    pub(super) fn dependants_of(&self, mut seeds: BTreeSet<Place>) -> Vec<Place> {
        loop {
            let mut forward = Forward::new(self, &seeds);
            forward.walk();
            if forward.back.iter().all(|place| contains(&forward.found, *place)) {
                return forward.found;
            }
            seeds.extend(forward.back);
        }
    }

    /// The dependencies of a step, without it.
    pub(super) fn dependencies<'g>(
        &'g self,
        place: Place,
        variables: Option<&'g BTreeSet<VariableName>>,
    ) -> BTreeSet<Place> {
        let mut later = BTreeSet::new();
        loop {
            let mut backward = Backward::new(self, place, variables);
            backward.send(&later);
            let mut events = Vec::new();
            while let Some(at) = backward.next(&mut events) {
                backward.visit(at, &events);
            }
            if backward.forth.is_subset(&backward.found) {
                return backward.found;
            }
            later.extend(backward.forth);
        }
    }

    /// These steps, given in insertion order: dependencies first, ties in insertion order.
    pub(super) fn ordered(&self, places: &[Place]) -> Vec<StepId> {
        if !self.asked.backward.iter().any(|(from, to)| contains(places, *from) && contains(places, *to)) {
            return self.named(places);
        }
        let mut waits: BTreeMap<Place, usize> = places.iter().map(|place| (*place, 0)).collect();
        let mut opens: BTreeMap<Place, Vec<Place>> = BTreeMap::new();
        for to in places {
            for from in self.starts(*to) {
                if contains(places, from) {
                    *waits.entry(*to).or_default() += 1;
                    opens.entry(from).or_default().push(*to);
                }
            }
        }
        let mut ready: BinaryHeap<Reverse<Place>> =
            waits.iter().filter(|(_, count)| **count == 0).map(|(place, _)| Reverse(*place)).collect();
        let mut order = Vec::new();
        while let Some(Reverse(place)) = ready.pop() {
            order.push(self.nodes[place].id.clone());
            for to in opens.remove(&place).unwrap_or_default() {
                let count = waits.entry(to).or_default();
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.push(Reverse(to));
                }
            }
        }
        order
    }

    /// A cycle with an edge against insertion order, as an error.
    pub(super) fn cycle(&self) -> Option<StepGraphError> {
        let closes = |(from, to): &&(Place, Place)| contains(&self.dependants(*to), *from);
        let (from, to) = self.asked.backward.iter().find(closes)?;
        Some(StepGraphError::Cycle { from: self.nodes[*from].id.clone(), to: self.nodes[*to].id.clone() })
    }
}

/// The walk along the positions: the names whose value an earlier affected step may have left.
struct Forward<'g> {
    graph: &'g Graph,
    /// The start of the walk; positions of `due` and `sent` count from here.
    first: Place,
    /// Positions that the walk will visit: a bit each, so that the search for the next one checks 64 positions at a
    /// time.
    due: Marks,
    /// Those of them that are visited whatever they read.
    sent: Marks,
    /// The visited positions, in their order.
    found: Vec<Place>,
    /// Steps before the start that edges lead back to.
    back: BTreeSet<Place>,
    /// Numbers of names.
    tainted: Marks,
    /// All names are tainted except those that were settled since.
    all: Option<FxHashSet<Symbol>>,
}

impl<'g> Forward<'g> {
    fn new(graph: &'g Graph, seeds: &BTreeSet<Place>) -> Self {
        let first = seeds.first().copied().unwrap_or_default();
        let (due, sent, tainted) = (Marks::default(), Marks::default(), Marks::default());
        let mut forward =
            Self { graph, first, due, sent, found: Vec::new(), back: BTreeSet::new(), tainted, all: None };
        seeds.iter().for_each(|seed| forward.send(*seed));
        forward
    }

    /// Visits every due position, including those that become due during the walk.
    fn walk(&mut self) {
        let mut next = 0;
        while let Some(at) = self.due.next_from(next) {
            self.visit(self.first + at);
            next = at + 1;
        }
    }

    fn send(&mut self, place: Place) {
        self.sent.insert(place - self.first);
        self.due.insert(place - self.first);
    }

    fn visit(&mut self, place: Place) {
        let uses = self.graph.index.uses(place);
        let affected = self.sent.contains(place - self.first)
            || (uses.reads_all && self.is_any_tainted())
            || uses.names.iter().any(|(symbol, one)| one.reads && self.is_tainted(*symbol));
        if affected {
            self.affect(place, uses);
        } else {
            self.settle(uses);
        }
        self.go_on(place, uses);
    }

    fn is_any_tainted(&self) -> bool {
        self.all.is_some() || !self.tainted.is_empty()
    }

    fn is_tainted(&self, symbol: Symbol) -> bool {
        self.tainted.contains(symbol.into()) || self.all.as_ref().is_some_and(|settled| !settled.contains(&symbol))
    }

    fn affect(&mut self, place: Place, uses: &Uses) {
        self.found.push(place);
        for (symbol, _) in uses.names.iter().filter(|(_, one)| one.changes) {
            self.tainted.insert((*symbol).into());
            if let Some(settled) = &mut self.all {
                settled.remove(symbol);
            }
        }
        if uses.changes_all {
            self.all = Some(FxHashSet::default());
        }
        for to in self.graph.asked.out.get(&place).into_iter().flatten() {
            if *to > place {
                self.send(*to);
            } else {
                self.back.insert(*to);
            }
        }
    }

    /// An unaffected step removes the taint from the names that it settles.
    fn settle(&mut self, uses: &Uses) {
        for (symbol, _) in uses.names.iter().filter(|(_, one)| one.settles) {
            self.tainted.remove((*symbol).into());
            if let Some(settled) = &mut self.all {
                settled.insert(*symbol);
            }
        }
    }

    /// Makes the next step due that uses a tainted name of this one, may read any, or, if any name may be tainted, is
    /// the next in order.
    fn go_on(&mut self, place: Place, uses: &Uses) {
        let index = &self.graph.index;
        for (symbol, _) in uses.names.iter() {
            if self.tainted.contains((*symbol).into())
                && let Some(next) = index.users(*symbol).after(place)
            {
                self.due.insert(next - self.first);
            }
        }
        if !index.reading_all.is_empty()
            && self.is_any_tainted()
            && let Some(next) = index.reading_all.range((Excluded(place), Unbounded)).next()
        {
            self.due.insert(next - self.first);
        }
        if self.all.is_some()
            && let Some(next) = self.graph.nodes.after(place).next()
        {
            self.due.insert(next.position - self.first);
        }
    }
}

/// The walk back: the names whose values still need a writer.
struct Backward<'g> {
    graph: &'g Graph,
    /// The position before which the walk looks; edges against insertion order may start it later.
    start: Place,
    /// The relevant names of the start; all if it is none.
    variables: Option<&'g BTreeSet<VariableName>>,
    events: BinaryHeap<(Place, Event)>,
    found: BTreeSet<Place>,
    /// Later steps that edges come from.
    forth: BTreeSet<Place>,
    wanted: FxHashSet<Symbol>,
    /// All names are wanted except those that were settled since.
    all: Option<FxHashSet<Symbol>>,
    watches_all: bool,
}

impl<'g> Backward<'g> {
    fn new(graph: &'g Graph, start: Place, variables: Option<&'g BTreeSet<VariableName>>) -> Self {
        Self {
            graph,
            start,
            variables,
            events: BinaryHeap::from([(start, Event::Seed)]),
            found: BTreeSet::new(),
            forth: BTreeSet::new(),
            wanted: FxHashSet::default(),
            all: None,
            watches_all: false,
        }
    }

    fn begin(&mut self) {
        let place = self.start;
        let Some(variables) = self.variables else { return self.want(place) };
        let index = &self.graph.index;
        let read = variables.iter().filter(|name| index.reads(place, name));
        let wanted: Vec<Symbol> = read.filter_map(|name| index.symbol(name)).collect();
        wanted.into_iter().for_each(|symbol| self.want_name(place, symbol));
        self.watch(place);
        let asked = self.graph.asked.into.get(&place).into_iter().flatten();
        let meant = asked.filter(|(_, names)| names.is_empty() || !names.is_disjoint(variables));
        let meant: Vec<Place> = meant.map(|(from, _)| *from).collect();
        self.follow(place, meant);
    }

    fn send(&mut self, places: &BTreeSet<Place>) {
        self.events.extend(places.iter().map(|place| (*place, Event::Seed)));
    }

    fn next(&mut self, events: &mut Vec<Event>) -> Option<Place> {
        let (place, first) = self.events.pop()?;
        events.clear();
        events.push(first);
        while let Some((_, event)) = self.events.peek().filter(|(at, _)| *at == place) {
            if events.last() != Some(event) {
                events.push(*event);
            }
            self.events.pop();
        }
        Some(place)
    }

    fn visit(&mut self, place: Place, events: &[Event]) {
        let graph = self.graph;
        let uses = graph.index.uses(place);
        let explains = |one: &(Symbol, Use)| one.1.changes && self.is_wanted(one.0);
        let any_wanted = self.all.is_some() || !self.wanted.is_empty();
        let meant = events.contains(&Event::Seed)
            || (uses.changes_all && any_wanted)
            || if self.all.is_some() {
                uses.names.iter().any(explains)
            } else {
                events.iter().any(|event| self.event_changes(place, *event))
            };
        if place == self.start {
            self.begin();
        } else if meant {
            self.found.insert(place);
            self.settle(place);
            self.want(place);
        }
        for event in events {
            self.go_on(place, *event);
        }
    }

    fn event_changes(&self, place: Place, event: Event) -> bool {
        let Event::Uses(symbol) = event else { return false };
        self.wanted.contains(&symbol) && self.graph.index.uses(place).of(symbol).changes
    }

    fn is_wanted(&self, symbol: Symbol) -> bool {
        self.wanted.contains(&symbol) || self.all.as_ref().is_some_and(|settled| !settled.contains(&symbol))
    }

    fn settle(&mut self, place: Place) {
        for (symbol, _) in self.graph.index.uses(place).names.iter().filter(|(_, one)| one.settles) {
            self.wanted.remove(symbol);
            if let Some(settled) = &mut self.all {
                settled.insert(*symbol);
            }
        }
    }

    /// The names that the step at `place` reads are wanted from earlier steps.
    fn want(&mut self, place: Place) {
        let graph = self.graph;
        let uses = graph.index.uses(place);
        for (symbol, _) in uses.names.iter().filter(|(_, one)| one.reads) {
            self.want_name(place, *symbol);
        }
        if uses.reads_all {
            if self.all.is_none() {
                self.go_on(place, Event::Any);
            }
            self.all = Some(FxHashSet::default());
        }
        self.watch(place);
        let asked = graph.asked.into.get(&place).into_iter().flat_map(BTreeMap::keys).copied().collect();
        self.follow(place, asked);
    }

    fn want_name(&mut self, place: Place, symbol: Symbol) {
        if let Some(settled) = &mut self.all {
            settled.remove(&symbol);
        }
        if self.wanted.insert(symbol) {
            self.go_on(place, Event::Uses(symbol));
        }
    }

    fn watch(&mut self, place: Place) {
        if !self.watches_all && !self.wanted.is_empty() {
            self.watches_all = true;
            self.go_on(place, Event::All);
        }
    }

    fn follow(&mut self, place: Place, asked: Vec<Place>) {
        for from in asked {
            if from < place {
                self.events.push((from, Event::Seed));
            } else {
                self.forth.insert(from);
            }
        }
    }

    fn go_on(&mut self, place: Place, event: Event) {
        let index = &self.graph.index;
        let next = match event {
            Event::Seed => None,
            Event::Uses(symbol) if self.wanted.contains(&symbol) => {
                index.users(symbol).writers.before(place).last().map(|(next, _)| *next)
            }
            Event::Uses(_) => None,
            Event::All => index.changing_all.range(..place).next_back().copied(),
            Event::Any => self.graph.nodes.before(place).next().map(|node| node.position),
        };
        if let Some(next) = next {
            self.events.push((next, event));
        }
    }
}
